"""Takes the files of an attempt, or some of them, without losing work.

Takes a snapshot of the present state first.
"""

import shlex
from collections.abc import Collection
from contextlib import suppress

from msgspec.structs import replace

from atlas_retry.errors import AtlasError, UsageError, WorkspaceError
from atlas_retry.history import merging
from atlas_retry.history.rescue import HELD, ORIGIN, checked, held_under, no_attempt, snapshots
from atlas_retry.history.values import RunRow
from atlas_retry.model import Content
from atlas_retry.workspace import discovery
from atlas_retry.workspace.snapshot import restoring, store, trees
from atlas_retry.workspace.snapshot.restoring import Restored
from atlas_retry.workspace.snapshot.snapshots import snapshot


def pick(ws: discovery.Workspace, run: RunRow, name: str, but: Collection[str] = ()) -> Restored:
    """Set the files, except `but`, to a snapshot of a run; the index stays unchanged.

    Raises UsageError for an unknown snapshot, WorkspaceError.
    """
    held = _holding(ws, run, name)
    since = run.left_behind or held.get(ORIGIN)
    if run.is_open or since is None:
        raise WorkspaceError(
            f"run {run.id} was interrupted, so its changes in the workspace are unknown",
            remedy=f"atlas resume\natlas undo {run.id}",
        )
    now = snapshot(ws).id
    store.keep(ws, held_under(run.id, HELD), now)
    there = trees.changes(ws, since, held[name], ignored=True)
    wanted = {change.path for change in there if change.path not in but}
    differing = {change.path for change in trees.changes(ws, held[name], now, ignored=True)}
    known = (_found_elsewhere(ws, held.values(), since, now) & differing) - {*but}
    done = Restored()
    if wanted - known:
        done = restoring.restore(ws, held[name], wanted - known, since=since)
    if known:
        also = restoring.restore(ws, held[name], known)
        done = replace(done, changed=(*done.changed, *also.changed))
    done, stays = checked(ws, done, held[name]), {restoring.INDEX, *but}
    return replace(done, differs=tuple(path for path in done.differs if path not in stays))


def _found_elsewhere(
    ws: discovery.Workspace, snapshots: Collection[str], since: str, now: str
) -> set[str]:
    """Files changed since, whose content a snapshot or the last commit has: no edit is lost.

    After `git checkout .`, for example.
    """
    edited = {change.path for change in trees.changes(ws, since, now, ignored=True)}
    if not edited:
        return edited
    found = set[str]()
    for other in {*snapshots}:
        differing = {change.path for change in trees.changes(ws, other, now, ignored=True)}
        found |= edited - differing
    with suppress(AtlasError):  # no commit yet
        head = trees.revision_tree(ws.root, "HEAD", environ=ws.environ)
        present = trees.tree(ws, now)
        found |= {path for path in edited if head.entry(path) == present.entry(path)}
    return found


def pick_files(ws: discovery.Workspace, run: RunRow, name: str, paths: Collection[str]) -> Restored:
    """Set some files to their content in a snapshot of a run, even if edited since.

    `paths` are relative to the root; the present state is held. Raises UsageError for an unknown
    snapshot, WorkspaceError.
    """
    held = _holding(ws, run, name)
    there = snapshot(ws)
    differing = trees.changes(ws, there.id, held[name], ignored=True)
    wanted = {
        change.path
        for change in differing
        if any(f"{change.path}/".startswith(f"{path.rstrip('/')}/") for path in paths)
    }
    if wanted:
        store.keep(ws, held_under(run.id, HELD), there.id)
    done = restoring.restore(ws, held[name], wanted) if wanted else Restored()
    return replace(done, now=held[name])


def merge_files(
    ws: discovery.Workspace, run: RunRow, name: str, paths: Collection[str]
) -> Restored:
    """Merge what files of a snapshot changed in the last commit into the present files.

    The present state is held. Raises UsageError for an unknown snapshot, and WorkspaceError, before
    anything is written, where both changed the same place.
    """
    held = _holding(ws, run, name)
    there = snapshot(ws)
    before, now = trees.tree(ws, held[name]), trees.tree(ws, there.id)
    committed = None
    with suppress(UsageError):  # without a commit there is no base
        committed = trees.revision_tree(ws.root, "HEAD", paths, environ=ws.environ)
    files: dict[str, Content | None] = {}
    for path in paths:
        theirs, ours = before.read(path), now.read(path)
        if theirs is None:
            continue
        base = (committed and committed.read(path)) or b""
        merged = theirs if ours is None else merging.merged(ours=ours, base=base, theirs=theirs)
        if merged is None:
            raise WorkspaceError(
                f"{path} cannot be merged: the run and {name} changed the same lines",
                remedy="to replace it, without what the run changed there: "
                f"atlas pick {run.id} {name} --path {shlex.quote(path)}",
            )
        files[path] = f"{now.mode(path) or before.mode(path)}", merged
    if files:
        store.keep(ws, held_under(run.id, HELD), there.id)
    restoring.write(ws, files, there.id)
    return Restored(changed=tuple(files), now=held[name])


def _holding(ws: discovery.Workspace, run: RunRow, name: str) -> dict[str, str]:
    """The snapshots of a run. Raises UsageError if it has none of this name."""
    held = snapshots(ws, run)
    if name not in held:
        raise no_attempt(run, name, held)
    return held
