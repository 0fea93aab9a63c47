"""Run the gates on what a fresh clone would have: HEAD and index, without ignored files."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.events import Emit, Notice
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.results import skipped
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Gate, Kind, Level, Status, Validation
from atlas_retry.run.open import OpenWorkspace, plan
from atlas_retry.text.units import counted, some
from atlas_retry.workspace import checkout

SETUP = "setup"
SETUP_TIMEOUT_S = 1800.0
MAX_SHOWN = 4


def validate_as_committed(
    opened: OpenWorkspace, chosen: Sequence[Gate], how: Plan, emit: Emit
) -> Validation:
    """Run `validation.setup`, then the gates, in a temporary worktree.

    Raises WorkspaceError without a repository or a commit, Interrupted.
    """
    with checkout.as_committed(opened.git) as made:
        emit(Notice(text=_left_out(made)))
        environ = checkout.environment(opened.environ, opened.root, made.root)
        there = OpenWorkspace(
            root=made.root, settings=opened.settings, state=opened.state, environ=environ
        )
        planned = plan(there, how.logs)
        how = replace(how, root=made.root, environ=environ, watched=planned.watched)
        setup = opened.settings.setup
        if setup and not (ran := _set_up(setup, made.root, how, emit)).success:
            return _not_set_up(ran, chosen)
        validation = run_gates(chosen, how, emit)
    if not validation.success and not setup:
        text = "a fresh clone has nothing installed; a command that does it: validation.setup"
        emit(Notice(level=Level.WARNING, text=text))
    return validation


def _left_out(made: checkout.Checkout) -> str:
    """What the worktree lacks, in one line."""
    parts = ["what git ignores"]
    if made.untracked:
        names = some(made.untracked, MAX_SHOWN)
        parts.append(f"{counted(len(made.untracked), 'untracked file')} ({names})")
    if made.unstaged:
        names = some(made.unstaged, MAX_SHOWN)
        parts.append(f"unstaged changes ({names})")
    return f"on HEAD and the index, as a fresh clone; left out: {', '.join(parts)}"


def _set_up(line: str, root: Path, how: Plan, emit: Emit) -> Validation:
    gate = Gate(name=SETUP, kind=Kind.CUSTOM, run=line, timeout_s=SETUP_TIMEOUT_S, writes=True)
    alone = replace(how, check=False, flake_reruns=0, watched=None, root=root)
    return run_gates([gate], alone, emit)


def _not_set_up(ran: Validation, chosen: Sequence[Gate]) -> Validation:
    """The validation in which setup is broken, and no gate has run."""
    (result,) = ran.results
    broken = replace(
        result,
        status=Status.BROKEN,
        success=False,
        error=f"validation.setup failed: {result.error or result.status}",
        triage="environment",
    )
    rest = (skipped(gate, "setup failed") for gate in chosen)
    return replace(ran, results=(broken, *rest))
