"""What the turn of a run that was cut off wrote where git does not look. Asks no agent."""

from pathlib import Path

from atlas_retry import workspace
from atlas_retry.events import seconds_of
from atlas_retry.guard.judge import seals
from atlas_retry.history import OpenAttempt, RunRow, rescue


def clear(
    git: workspace.Workspace, run: RunRow, attempt: OpenAttempt, folder: Path
) -> tuple[str, ...]:
    """Restore what git ignores, remove caches; the files of dependencies that the turn wrote.

    The next baseline would take it for the user's. What somebody wrote since stays, and what goes
    is held. The workspace's lock is held by the caller. Raises WorkspaceError.
    """
    there = workspace.snapshot(git).id
    quiet_s = rescue.quiet_since_s(run, folder)
    moved = {c.path for c in workspace.changes(git, attempt.snapshot, there, ignored=True)}
    moved -= {c.path for c in workspace.changes(git, attempt.snapshot, there)}
    moved.difference_update(rescue.edited_since(git, moved, quiet_s))
    if moved:
        workspace.keep(git, rescue.held_under(run, rescue.unfinished(attempt)), there)
        workspace.restore(git, attempt.snapshot, moved)
    began_s = max(map(seconds_of, (run.segment_at, attempt.started_at)))
    tracked = frozenset(workspace.tree(git, there).paths())
    return seals.clean_between(git.root, began_s, quiet_s, tracked)
