"""Try each proposed gate once on a copy: green, changing files, red, or unable to start."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import config, state_dir
from atlas_retry.config.init import text_of
from atlas_retry.config.init.commands import only_checks
from atlas_retry.config.init.detect import left_to_ci
from atlas_retry.config.init.narrowing import without_files
from atlas_retry.config.init.values import Proposal, Proposed, Slot
from atlas_retry.errors import WorkspaceError
from atlas_retry.events import Emit, Notice
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Gate, GateResult, Status
from atlas_retry.run.open import OpenWorkspace, beside, plan
from atlas_retry.settings import Settings
from atlas_retry.text.units import counted
from atlas_retry.workspace import discovery
from atlas_retry.workspace.git import ignored

LIMIT_S = 120.0
MAX_TOTAL_S = 600.0
"""A validation by hand should not take longer; the rest is left to CI."""


class TriedGate(Struct, frozen=True, kw_only=True):
    """A proposal with its outcome and duration."""

    choice: Proposed
    outcome: str
    """passes, fails today, left out ...; one or two words for the table."""
    duration_s: float | None = None
    result: GateResult | None = None
    """Of its trial run; None if it was not tried."""


class _Trial(Struct, frozen=True, kw_only=True):
    result: GateResult
    moved: tuple[str, ...]
    """Files of the project that the gate changed or deleted."""


def try_all(
    root: Path, choices: Sequence[Proposed], environ: Mapping[str, str], emit: Emit
) -> Iterator[TriedGate]:
    """Run the gates that can start, one after the other, in a repository or a folder.

    Without git nothing is tried, because nothing could be restored. What an interrupt leaves
    untried is not yielded.
    """
    state = state_dir.locate(environ)
    try:
        ws = discovery.open_workspace(root, state, environ=environ)
    except WorkspaceError as error:
        emit(Notice(text=f"not tried: {error}"))
        yield from untried(choices)
        return
    opened = OpenWorkspace(root=ws.root, settings=Settings(gates=()), state=state, environ=environ)
    for choice in choices:
        yield _try(opened, choice, emit)


def within_minutes(tried: Sequence[TriedGate]) -> tuple[TriedGate, ...]:
    """The gates, shortest first, that run in `MAX_TOTAL_S` together; CI keeps the others."""
    total_s, kept = 0.0, []
    for one in sorted(tried, key=lambda one: one.duration_s or 0.0):
        total_s += one.duration_s or 0.0
        if total_s <= MAX_TOTAL_S or one.choice.obstacle:
            kept.append(one)
    return tuple(
        one if one in kept else replace(one, choice=left_to_ci(one.choice, "it takes long"))
        for one in tried
    )


def untried(choices: Sequence[Proposed]) -> tuple[TriedGate, ...]:
    """The table of `try_all` without running anything."""
    return tuple(
        _not_started(choice) if choice.obstacle else TriedGate(choice=choice, outcome="not tried")
        for choice in map(without_files, choices)
    )


def _not_started(choice: Proposed) -> TriedGate:
    return TriedGate(choice=choice, outcome="left out" if choice.installs else "cannot start")


def _try(opened: OpenWorkspace, choice: Proposed, emit: Emit) -> TriedGate:
    if choice.obstacle:
        return _not_started(choice)
    emit(Notice(text=f"trying {choice.run}"))
    gate = gate_of(choice)
    with suppress(WorkspaceError):
        trial = _run(opened, gate)
        duration_s, result = trial.result.duration_ms / 1000, trial.result
        seen = _judged(choice, trial)
        if seen is None:
            recheck = choice.recheck and only_checks(choice.recheck)
            checked = replace(choice, run=only_checks(gate.run), fix=gate.run, recheck=recheck)
            trial = _run(opened, gate_of(checked))
            outcome = "passes" if trial.result.success else "fails today"
            seen = TriedGate(choice=checked, outcome=outcome)
        proposed = seen.choice
        if proposed.inputs and not _is_same_by_files(opened, proposed, trial):
            proposed = without_files(proposed)
        return replace(seen, choice=proposed, duration_s=duration_s, result=result)
    return TriedGate(choice=without_files(choice), outcome="not tried")


def _is_same_by_files(opened: OpenWorkspace, choice: Proposed, whole: _Trial) -> bool:
    """Whether its line for files, given all of them, finds and changes what the gate does."""
    if whole.result.status not in (Status.PASSED, Status.FAILED):
        return False
    trial = _run(opened, replace(gate_of(choice), run=choice.recheck or "", fix=None))
    found, wanted = (
        (one.result.status, {d.fingerprint for d in one.result.diagnostics}, {*one.moved})
        for one in (trial, whole)
    )
    return found == wanted


def gate_of(proposed: Proposed) -> Gate:
    """The gate of a proposal, as its configuration would give it, with the limit of a trial."""
    text = text_of(Proposal(choices=(proposed,))).encode()
    (gate,) = config.load_text(text, "proposal").gates
    return replace(gate, timeout_s=min(gate.timeout_s, LIMIT_S), recheck=None)


def _run(opened: OpenWorkspace, gate: Gate) -> _Trial:
    parent = state_dir.folder(opened.state, "trials", state_dir.key_of(opened.root))
    state_dir.trim(parent, keep=20)
    logs = state_dir.folder(parent, state_dir.new_run_id())
    how = replace(plan(opened, logs), watched=None)
    with beside(opened, [gate], {}, how) as (aside, there):
        (result,) = run_gates([gate], aside).results
        moved = there.overwritten()
    made = tuple(ignored(opened.root, opened.environ))
    return _Trial(result=result, moved=tuple(path for path in moved if not path.startswith(made)))


def _judged(proposed: Proposed, trial: _Trial) -> TriedGate | None:
    """The proposal to write; None if its check-only form must be tried first."""
    result = trial.result
    checks = proposed.slot not in (Slot.TEST, Slot.BUILD)
    if result.status is Status.BROKEN:
        why = result.error or "cannot start"
        choice = replace(proposed, obstacle=why, remedy=result.remedy)
        return TriedGate(choice=choice, outcome="cannot start")
    if checks and trial.moved and proposed.slot is not Slot.HOOKS:
        if only_checks(proposed.run) != proposed.run:
            return None
        files = counted(len(trial.moved), "file") if trial.moved[1:] else trial.moved[0]
        why = f"it changes {files}, and has no check-only form"
        return TriedGate(choice=replace(proposed, obstacle=why), outcome="left out")
    if result.status is Status.TIMED_OUT:
        note = f"did not end within {LIMIT_S:.0f} s when it was tried"
        return TriedGate(choice=replace(proposed, note=note), outcome="too slow")
    if result.success:
        return TriedGate(choice=proposed, outcome="passes")
    # a failing gate stays required: it is what the user wants to see green
    return TriedGate(choice=proposed, outcome="fails today")
