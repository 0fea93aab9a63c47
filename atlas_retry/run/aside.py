"""Run gates with some files changed, and restore everything afterwards."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from atlas_retry.events import (
    Emit,
    Event,
    GateFinished,
    Notice,
    ValidationFinished,
    ValidationStarted,
)
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Contents, Gate, Level, Validation
from atlas_retry.run.open import OpenWorkspace, beside
from atlas_retry.run.triage import against_baseline
from atlas_retry.workspace.isolation.isolated import ASKED, Beside


def run_aside(
    opened: OpenWorkspace, chosen: Sequence[Gate], files: Contents, how: Plan, emit: Emit
) -> Validation:
    """Run these gates with these files in place, and report only the gates' own events.

    `how.previous` is the result of the same gates without these files.
    """
    finished: list[Event] = []

    def put_off(event: Event) -> None:
        (finished.append if isinstance(event, GateFinished) else emit)(event)

    seen, reason = _run(opened, chosen, put_off, beside(opened, chosen, files, how))
    has_passed = how.previous is not None and how.previous.success
    if has_passed and not seen.success and not reason:
        # in an overlay no gate sees what another wrote, so only a red in place counts
        in_place = beside(opened, chosen, files, how, in_place=True)
        return _run(opened, chosen, emit, in_place)[0]
    for event in finished:
        emit(event)
    return seen


def _run(
    opened: OpenWorkspace,
    chosen: Sequence[Gate],
    emit: Emit,
    changed: AbstractContextManager[tuple[Plan, Beside]],
) -> tuple[Validation, str]:
    """The validation, and why it ran in place, if it did."""

    def gates_only(event: Event) -> None:
        if not isinstance(event, ValidationStarted | ValidationFinished):
            emit(event)

    with changed as (how, there):
        if there.reason not in ("", ASKED):
            emit(Notice(level=Level.NOTE, text=f"gates run in place: {there.reason}"))
        seen = run_gates(chosen, how, gates_only)
    if any(gate.accepts_baseline for gate in chosen):
        seen = against_baseline(opened, chosen, seen, how, gates_only)
    return seen, there.reason
