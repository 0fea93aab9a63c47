"""Take a snapshot of a work tree; restores nothing and compares nothing."""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.errors import WorkspaceError
from atlas_retry.reading import read_file
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import EMPTY_TREE, GitError, joined
from atlas_retry.workspace.gitfacts import git_files
from atlas_retry.workspace.remembered import (
    Remembered,
    RememberedTree,
    RememberedWalk,
    excludes_of,
    recall,
    remember,
    walk_of,
)
from atlas_retry.workspace.scan import CACHE, Scan, Stat, stat_of
from atlas_retry.workspace.shadow import Blobs, exclusive, hold, merge_packs, shadow_git
from atlas_retry.workspace.state import (
    TreeState,
    commit_stream,
    ids_of,
    manifest_of,
    read_state,
    remember_state,
)
from atlas_retry.workspace.store import (
    EXECUTABLE,
    FILE,
    LINK,
    USUAL_FOLDER,
    Known,
    StoredFile,
    entries_of,
    entry_of,
    git_mode,
)
from atlas_retry.workspace.versions import Version, differing
from atlas_retry.workspace.walking import look_over


class Snapshot(Struct, frozen=True, kw_only=True):
    """A whole work tree, held in the shadow repository."""

    id: str
    """Id to restore everything that is held."""
    work: str
    """Id of the tree of files that git does not ignore; equal if and only if these are equal."""
    left_out: tuple[str, ...] = ()
    """Files that are not held and cannot be made again, with the reason, for a person."""


def snapshot(ws: Workspace) -> Snapshot:
    """Take a snapshot of the work tree. The user's repository is only read.

    It lasts while it is kept by `keep`, otherwise an hour. Raises WorkspaceError.
    """
    return take(ws)[0]


WholeLook = tuple[Snapshot, TreeState, Scan]
"""A snapshot, its content, and the walk it was made from."""


def take(ws: Workspace) -> WholeLook:
    """Take a snapshot by a walk over the whole work tree."""
    scan = look_over(ws)
    held = take_from(ws, scan, recall(ws))
    return held.snapshot, held.state, scan


class HeldTree(Struct, frozen=True, kw_only=True):
    """A snapshot with the data that the next one builds on."""

    snapshot: Snapshot
    state: TreeState
    manifest: str = ""
    files: Version[Known]
    index: Known | None = None
    """The user's index."""
    listed: Version[Stat] | None = None
    """The files of the walk it was made from, if that was in this process."""
    unsure: frozenset[str] = frozenset()
    """Files in `listed` that are not held, or may change without a change of their stat data."""


def _nothing() -> HeldTree:
    return HeldTree(
        snapshot=Snapshot(id=EMPTY_TREE, work=EMPTY_TREE),
        state=TreeState(work=Version(), ignored=Version(), git={}, index=None),
        files=Version(),
    )


def take_from(ws: Workspace, scan: Scan, before: HeldTree | RememberedTree | None) -> HeldTree:
    """Take a snapshot from a walk, based on the snapshot `before` or the remembered one."""
    with exclusive(ws):
        last = _built_upon(before) if isinstance(before, RememberedTree) else before or _nothing()
        try:
            held = _next(ws, scan, last)
        except GitError:  # the remembered snapshot may be gone
            scan = look_over(ws)
            held = _next(ws, scan, _nothing())
        if held.snapshot.id != last.snapshot.id:
            merge_packs(ws)
        is_same = last.snapshot.id == held.snapshot.id and not differing(last.files, held.files)
        is_known = is_same and last.listed is not None
        if not isinstance(before, HeldTree) and not is_known:
            excludes = before.excludes if isinstance(before, RememberedTree) else excludes_of(ws)
            _remember(ws, held, walk_of(scan, held.files, excludes))
    return held


def _built_upon(memory: RememberedTree) -> HeldTree:
    """The remembered snapshot as a base for the next one."""
    read, files = memory.read, memory.files
    entries = Version(entries_of(files))
    state = TreeState(
        work=entries.amended({}, memory.ignored),
        ignored=Version((path, entries[path]) for path in memory.ignored),
        git=memory.git,
        index=_entry(read.index),
    )
    return HeldTree(
        snapshot=Snapshot(id=read.ids[0], work=read.ids[1]),
        state=state,
        manifest=read.manifest,
        files=files,
        index=read.index,
        listed=memory.scan.files if memory.scan else None,
        unsure=frozenset(path for path, known in files.items() if not known.settled),
    )


def _remember(ws: Workspace, held: HeldTree, walk: RememberedWalk | None) -> None:
    state = held.state
    remember(
        ws,
        Remembered(
            ids=(held.snapshot.id, held.snapshot.work),
            paths=joined(held.files),
            known=[*held.files.values()],
            ignored=joined(state.ignored),
            git={os.fsencode(name): entry for name, entry in state.git.items()},
            index=held.index,
            manifest=held.manifest,
            walk=walk,
        ),
    )


def _next(ws: Workspace, scan: Scan, before: HeldTree) -> HeldTree:
    """Take a snapshot by storing what differs from the last one."""
    blobs = Blobs(ws, {before.manifest, *(entry.oid for entry in before.state.own)})
    files, unsure = _hold_all(ws, scan, before, blobs)
    own_files = git_files(ws.git_dir, ws.common_dir)
    git = {name: entry for name, path in own_files if (entry := _small(path, blobs))}
    index = _index(ws.git_dir / "index", blobs, before.index)
    state = _state(scan, files, git, index, before)
    manifest = blobs.add(manifest_of(state))
    last = before.snapshot
    new = manifest if manifest != before.manifest else None
    answer = blobs.flush(commit_stream(before.state, state, last.id, new))
    ids = ids_of(answer) if answer else (last.id, last.work)
    remember_state(ids[0], state)
    return HeldTree(
        snapshot=Snapshot(id=ids[0], work=ids[1], left_out=missed(state.left_out)),
        state=state,
        manifest=manifest,
        files=files,
        index=index,
        listed=scan.files,
        unsure=unsure,
    )


def _hold_all(
    ws: Workspace, scan: Scan, before: HeldTree, blobs: Blobs
) -> tuple[Version[Known], frozenset[str]]:
    """Known data of each file now, and the paths that the next snapshot must check again.

    If the walk was made from the one before, only changed files are compared.
    """
    held, unsure, gone, base = dict[str, Known](), set[str](), set[str](), f"{ws.root}/"
    for path in _to_compare(scan, before):
        known, status = before.files.get(path), scan.files.get(path)
        if status is None:
            gone.add(path)
            continue
        if known and known.settled and known.status == status:
            continue
        now = _hold(base + path, blobs, known, status)
        if isinstance(now, Known):
            held[path] = now
        elif now:
            scan.left_out[path] = now
        if not isinstance(now, Known) or not now.settled or now.status != status:
            unsure.add(path)
    gone.update(unsure - held.keys())
    return before.files.amended(held, gone), frozenset(unsure)


def _hold(path: str, blobs: Blobs, known: Known | None, status: Stat) -> Known | str | None:
    """Like `hold`, of a file that was `known`; stat data equal to `status` are that object."""
    if known:
        blobs.known.add(known.oid)
    now = hold(path, blobs)
    if isinstance(now, Known) and now.status == status:
        return replace(now, status=status)
    return now


def _to_compare(scan: Scan, before: HeldTree) -> Iterable[str]:
    if before.listed is None:
        return [*scan.files, *(before.files.keys() - scan.files.keys())]
    return differing(before.listed, scan.files) | before.unsure


def _state(
    scan: Scan,
    files: Version[Known],
    git: Mapping[str, StoredFile],
    index: Known | None,
    before: HeldTree,
) -> TreeState:
    work, ignored = before.state.work, before.state.ignored
    moved = differing(before.files, files)
    moved |= ignored.keys() ^ (scan.ignored & files.keys())
    seen = {p: entry_of(files[p].status[0], files[p].oid) for p in moved if p in files}
    hidden = {path: seen.pop(path) for path in scan.ignored & seen.keys()}
    return TreeState(
        work=work.amended(seen, moved.difference(seen)),
        ignored=ignored.amended(hidden, moved.difference(hidden)),
        git=git,
        index=_entry(index),
        index_mtime_ns=index.status[2] if index else 0,
        empty=tuple(sorted(scan.empty)),
        folder_modes=_folder_modes(scan),
        left_out=scan.left_out,
        unheld=scan.unheld,
    )


def _folder_modes(scan: Scan) -> dict[str, int]:
    modes = ((path, stat.S_IMODE(seen[0])) for path, seen in scan.folders.items())
    return {path: mode for path, mode in modes if mode != USUAL_FOLDER}


def _index(path: Path, blobs: Blobs, before: Known | None) -> Known | None:
    """The user's index, read again only if it may have changed. Raises WorkspaceError."""
    with suppress(FileNotFoundError):
        if before and before.settled and before.status == stat_of(path.lstat()):
            return before
    held = hold(str(path), blobs)
    if isinstance(held, str):
        raise WorkspaceError(f"{path} {held}")
    return held


def _entry(index: Known | None) -> StoredFile | None:
    return StoredFile(git_mode(index.status[0]), index.oid) if index else None


def _small(path: Path, blobs: Blobs) -> StoredFile | None:
    """One of git's own files; None if it is gone."""
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return StoredFile(LINK, blobs.add(os.fsencode(path.readlink())))
        kind = EXECUTABLE if mode & stat.S_IXUSR else FILE
        return StoredFile(kind, blobs.add(read_file(path)))
    return None


def missed(left_out: Mapping[str, str]) -> tuple[str, ...]:
    """Left-out files that are not in caches, with the reasons."""
    lines = (f"{path} ({why})" for path, why in left_out.items() if why != CACHE)
    return tuple(sorted(lines))


def load(ws: Workspace, snapshot_id: str) -> Snapshot:
    """A snapshot by its id. Raises WorkspaceError if it does not exist."""
    state, work = read_state(ws, snapshot_id), EMPTY_TREE
    if state.work:
        work = shadow_git(ws, "rev-parse", f"{snapshot_id}:work").decode().strip()
    return Snapshot(id=snapshot_id, work=work, left_out=missed(state.left_out))
