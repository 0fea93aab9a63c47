"""Leftovers of the previous run, from which the next run must not start."""

from collections.abc import Collection
from contextlib import suppress
from itertools import chain
from pathlib import Path

from atlas_retry import process
from atlas_retry.errors import StateError, UsageError, WorkspaceError
from atlas_retry.events import Emit, Notice, seconds_of
from atlas_retry.guard.beside import OWN
from atlas_retry.guard.judge import seals
from atlas_retry.history import archive, database, rescue, values
from atlas_retry.model import Attempt, Level
from atlas_retry.run import held, irreversible, isolation
from atlas_retry.run.effects.open_run import run_folder
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.run.undecided import undecided
from atlas_retry.text.commands import quoted
from atlas_retry.text.globs import Globs
from atlas_retry.text.units import first_few
from atlas_retry.workspace import discovery, gitmoves, installed
from atlas_retry.workspace.snapshot import git_state, restoring, snapshots, store, trees

_UNDER = ("HEAD", "state:", "hooks/", "info/")
"""State of git whose change may change files, or how gates run; a commit changes neither."""
ACCEPTING = "a file with a new time stamp (touch FILE) counts as yours"


def refuse_leftovers(opened: OpenWorkspace, emit: Emit) -> None:
    """Refuse to start from changes that the guard refused or has not judged yet.

    The caller holds the workspace's lock, so a run without an end was interrupted. Raises
    WorkspaceError if refused changes of the last run could not be restored and are still there,
    and UsageError if its interrupted turn changed files that decide.
    """
    run = None
    with suppress(StateError), database.reading(opened.state) as connection:
        for run in archive.runs(connection, str(opened.root), limit=1):
            attempts = archive.attempts(connection, run.id)
            attempt = archive.open_attempt(connection, run.id) if run.is_open else None
    if run is None:
        return
    _refuse_as_left(opened, run, attempts)
    if not attempt or attempt.restored or isolation.is_apart(opened.state, run.id):
        return
    if rescue.is_lost(opened.git, run):
        text = f"the snapshots of run {run.id} are gone: what its last turn changed is not judged"
        emit(Notice(level=Level.WARNING, text=text))
    else:
        _refuse_undecided(opened, run, attempt, emit)


def clear(
    git: discovery.Workspace, run: values.RunRow, attempt: values.OpenAttempt, folder: Path
) -> tuple[str, ...]:
    """Restore ignored and installed files that an interrupted turn wrote.

    Returns those of dependencies and outside the workspace, which it cannot restore. The next
    baseline would take them for the user's. Caches are removed; what others wrote since stays; a
    snapshot keeps what is reverted. The caller holds the workspace's lock. Raises WorkspaceError.
    """
    run_ended_s = rescue.end_of_run_s(run, folder)
    there, _, ignored = _leftovers(git, attempt, run_ended_s)
    if ignored:
        store.keep(git, rescue.held_under(run.id, rescue.unfinished(attempt)), there)
        restoring.restore(git, attempt.snapshot, ignored)
    tracked = frozenset(trees.tree(git, there).paths())
    installed.put_back_between(git.root, git.installed, _began_s(run, attempt), run_ended_s)
    return seals.clean_between(git, _began_s(run, attempt), run_ended_s, tracked)


def _began_s(run: values.RunRow, attempt: values.OpenAttempt) -> float:
    return max(map(seconds_of, (run.segment_at, attempt.started_at)))


def _refuse_as_left(
    opened: OpenWorkspace, run: values.RunRow, attempts: tuple[Attempt, ...]
) -> None:
    """Raise WorkspaceError if a refused change is left: a baseline would pass with it.

    A configuration file among them decides nothing about itself.
    """
    guard = opened.settings.guard
    allowed = Globs(guard.allow if guard.mode == "block" else ("*",))
    left = filter(irreversible.is_as_left, chain.from_iterable(one.left for one in attempts))
    own = frozenset(opened.settings.sources)
    paths = {one.path for one in left}
    there = (paths & own) | {path for path in paths if not allowed.match(path)}
    if not there:
        return
    violations = chain.from_iterable(attempt.violations for attempt in attempts)
    names = held.named(one for one in violations if one.path in there)
    raise WorkspaceError(
        f"the guard refused {names} in run {run.id}: it is still as that run left it, "
        "and atlas cannot restore it",
        remedy=next(attempt.remedy for attempt in attempts if attempt.left),
    )


def changed_by_others(
    git: discovery.Workspace, run: values.RunRow, paths: Collection[str], run_ended_s: float
) -> str:
    """What someone else changed since the run, git's state or these paths; empty if nothing."""
    moved = {name for name in git_state.moved_git(git, run.start) if name.startswith(_UNDER)}
    if moved:
        return f"changed in git since: {first_few(sorted(moved))}"
    if theirs := restoring.edited_after(git, paths, run_ended_s):
        return f"edited since: {first_few(sorted(theirs))}"
    return ""


def _refuse_undecided(
    opened: OpenWorkspace, run: values.RunRow, attempt: values.OpenAttempt, emit: Emit
) -> None:
    if ended := process.end_marked(run.mark):
        text = f"run {run.id}: the processes it left running are ended ({first_few(ended)})"
        emit(Notice(level=Level.WARNING, text=text))
    run_ended_s = rescue.end_of_run_s(run, run_folder(opened, run.id))
    outside = [*seals.outside_between(opened.git, _began_s(run, attempt), run_ended_s)]
    if opened.settings.guard.mode != "block":
        # a turn can turn the guard off in the configuration of the user
        outside = [path for path in outside if path in opened.settings.sources]
    if outside:
        raise UsageError(
            f"run {run.id} was interrupted in this workspace, and during its turn files outside "
            f"that its gates use were changed: {first_few(outside)}",
            remedy=f"restore what you did not change yourself; {ACCEPTING}",
        )
    interrupted = f"run {run.id} was interrupted in this workspace, and its turn changed"
    undo = f"to restore what was there before it (later changes stay): atlas undo {run.id}"
    blocks = opened.settings.guard.mode == "block"
    folder = run_folder(opened, run.id) / "attempts" / f"{attempt.number}"
    turn = gitmoves.turned(opened.git, folder) if blocks else None
    if turn and (by_git := (*turn.moves.agents, *turn.moves.runs)):
        text = f"{interrupted} git's own state: {first_few(map(gitmoves.plain, by_git))}"
        raise UsageError(text, remedy=undo)
    if paths := _undecided(opened, attempt, run_ended_s):
        text = f"{interrupted} files that decide: {first_few(paths)}"
        there = snapshots.snapshot(opened.git).id
        moved = trees.moved(opened.git, attempt.snapshot, there)
        if why := changed_by_others(opened.git, run, moved, run_ended_s):
            raise UsageError(f"{text}; it cannot be resumed: {why}", remedy=undo)
        resume = f"to judge them and continue: atlas resume {quoted(opened.root)} --ai-fix"
        raise UsageError(text, remedy=f"{resume}\n{undo}")


def _undecided(
    opened: OpenWorkspace, attempt: values.OpenAttempt, run_ended_s: float
) -> tuple[str, ...]:
    """Paths of a turn's changes in the workspace that the guard would hold or refuse."""
    git, guard = opened.git, opened.settings.guard
    there, moved, ignored = _leftovers(git, attempt, run_ended_s)
    if not moved:
        return ()
    own = [path for path in ignored if not OWN.match(path)]
    paths = undecided(git, (attempt.snapshot, there), moved, opened.settings, own)
    return tuple(paths if guard.mode == "block" else filter(OWN.match, paths))


def _leftovers(
    git: discovery.Workspace, attempt: values.OpenAttempt, run_ended_s: float
) -> tuple[str, set[str], set[str]]:
    """A new snapshot, paths that the turn changed and nobody edited since, and the ignored ones."""
    there = snapshots.snapshot(git).id
    moved = {*trees.moved(git, attempt.snapshot, there, ignored=True)}
    moved -= restoring.edited_after(git, moved, run_ended_s)
    return there, moved, moved.difference(trees.moved(git, attempt.snapshot, there))
