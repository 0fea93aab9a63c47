"""What a turn left that was cut off: nothing runs by what it changed of what decides."""

from contextlib import suppress

from atlas_retry import process
from atlas_retry.errors import StateError, UsageError
from atlas_retry.events import Emit, Notice
from atlas_retry.guard import Case, assess
from atlas_retry.guard.beside import OWN
from atlas_retry.guard.judge import folders
from atlas_retry.history import archive, database, rescue, values
from atlas_retry.model import Level
from atlas_retry.run import isolation
from atlas_retry.run.effects import run_folder
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.text.units import some
from atlas_retry.workspace import restoring, snapshots, state, trees

MAX_SHOWN = 8


def refuse_undecided(opened: OpenWorkspace, emit: Emit) -> None:
    """Raise UsageError where a turn that was cut off changed what decides, and nobody judged it.

    By the run that was the last in the workspace, whose lock is the caller's. What somebody edited
    since is theirs, and a run in layers has left the workspace as it was.
    """
    run, attempt = _newest(opened)
    if run is None or attempt is None or attempt.restored:
        return
    if isolation.is_apart(opened.state, run.id):
        return
    if ended := process.end_marked(run.mark):
        text = f"run {run.id}: what it had left running is ended ({some(ended, 4)})"
        emit(Notice(level=Level.WARNING, text=text))
    if paths := _undecided(opened, run, attempt):
        raise UsageError(
            f"run {run.id} was interrupted in this workspace, and its turn changed what decides: "
            f"{some(paths, MAX_SHOWN)}",
            remedy=f"atlas resume {opened.root} --ai-fix judges it and goes on; "
            f"atlas undo {run.id} restores what was there before it",
        )


def _newest(opened: OpenWorkspace) -> tuple[values.RunRow | None, values.OpenAttempt | None]:
    """The newest run, where it was cut off; none where the journal cannot be read."""
    with suppress(StateError), database.reading(opened.state) as connection:
        for run in archive.runs(connection, str(opened.root), limit=1):
            return (run, archive.open_attempt(connection, run.id)) if run.is_open else (None, None)
    return None, None


def _undecided(
    opened: OpenWorkspace, run: values.RunRow, attempt: values.OpenAttempt
) -> tuple[str, ...]:
    """What the guard would hold or refuse of a turn's changes, as they are in the workspace."""
    git, there = opened.git, snapshots.snapshot(opened.git).id
    tracked = {c.path for c in state.changes(git, attempt.snapshot, there)}
    moved = {c.path for c in state.changes(git, attempt.snapshot, there, ignored=True)}
    quiet_s = rescue.quiet_since_s(run, run_folder(opened, run.id))
    moved -= restoring.edited_after(git, moved, quiet_s)
    if not moved:
        return ()
    before = trees.tree(git, attempt.snapshot, ignored=True)
    guard = opened.settings.guard
    judgement = assess(
        Case(
            before=before,
            after=trees.tree(git, there, ignored=True),
            changed=tuple(sorted(moved)),
            in_run=True,
            ignored=frozenset(path for path in moved - tracked if not OWN.match(path)),
            gates=opened.settings.gates,
            protect=guard.protect,
            allow=guard.allow,
            mentions=folders.searching(opened.root, before, lambda: moved),
        )
    )
    refused = (violation.path for violation in judgement.refused)
    paths = dict.fromkeys((*refused, *judgement.held_paths))
    return tuple(paths if guard.mode == "block" else filter(OWN.match, paths))
