"""Run gates with some files changed, and restore everything afterwards."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager

from msgspec.structs import replace

from atlas_retry.events import (
    Emit,
    Event,
    GateFinished,
    Notice,
    ValidationFinished,
    ValidationStarted,
    unseen,
)
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Contents, Gate, Level, Validation
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.run.triage import against_baseline
from atlas_retry.workspace import installed
from atlas_retry.workspace.isolation import isolated


def run_aside(
    opened: OpenWorkspace, chosen: Sequence[Gate], files: Contents, how: Plan, emit: Emit
) -> Validation:
    """Run these gates with these files in place, and report only the gates' own events.

    `how.previous` is the result of the same gates without these files.
    """
    finished: list[Event] = []

    def put_off(event: Event) -> None:
        (finished.append if isinstance(event, GateFinished) else emit)(event)

    lines = [gate.run for gate in chosen]
    beside = isolated.beside(opened.git, files, lines)
    seen, reason = _run(opened, chosen, how, put_off, beside)
    has_passed = how.previous is not None and how.previous.success
    if has_passed and not seen.success and not reason:
        # in an overlay no gate sees what another wrote, so only a red in place counts
        in_place = isolated.beside(opened.git, files, lines, in_place=True)
        return _run(opened, chosen, how, emit, in_place)[0]
    for event in finished:
        emit(event)
    return seen


def made_with(
    opened: OpenWorkspace,
    chosen: Sequence[Gate],
    files: Contents,
    paths: Collection[str],
    how: Plan,
) -> dict[str, str]:
    """The digest of each of the paths after these gates, run with these files in place.

    An absolute path is outside the workspace, and is written by such a run itself.
    """
    lines = [gate.run for gate in chosen]
    with opened.tracker.elsewhere(), isolated.beside(opened.git, files, lines) as there:
        run_gates(chosen, replace(how, wrap=there.wrap, locate=there.file), unseen)
        seen = {path: path if path.startswith("/") else there.file(path) for path in paths}
        return {p: installed.digest(opened.root, f"{at}") if at else "" for p, at in seen.items()}


def _run(
    opened: OpenWorkspace,
    chosen: Sequence[Gate],
    how: Plan,
    emit: Emit,
    beside: AbstractContextManager[isolated.Beside],
) -> tuple[Validation, str]:
    """The validation, and why it ran in place, if it did."""

    def gates_only(event: Event) -> None:
        if not isinstance(event, ValidationStarted | ValidationFinished):
            emit(event)

    with opened.tracker.elsewhere(), beside as there:
        if there.reason not in ("", isolated.ASKED):
            emit(Notice(level=Level.NOTE, text=f"gates run in place: {there.reason}"))
        wrapped = replace(how, wrap=there.wrap, locate=there.file)
        seen = run_gates(chosen, wrapped, gates_only)
    if any(gate.accepts_baseline for gate in chosen):
        seen = against_baseline(opened, chosen, seen, how, gates_only)
    return seen, there.reason
