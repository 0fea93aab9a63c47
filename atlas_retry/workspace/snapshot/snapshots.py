"""Take a snapshot of a work tree; restores nothing and compares nothing.

Git keeps it: two indexes of the shadow repository hold the stat data of what was last held, so that
git reads only files that changed. What a tree cannot hold is in a manifest beside it.
"""

import errno
import os
import stat
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import (
    CACHE,
    FILE,
    SURELY_SETTLED_NS,
    USUAL_FOLDER,
    Attributes,
    Stat,
    StoredFile,
    stat_of,
    unusual_permissions,
)
from atlas_retry.workspace.git import EMPTY_TREE, GitError, joined, split
from atlas_retry.workspace.gitfacts import git_files
from atlas_retry.workspace.snapshot.store import (
    INDEX,
    MANIFEST,
    TreeState,
    exclusive,
    file_of,
    forget,
    index_git,
    manifest_of,
    newest_state,
    read_state,
    remember_state,
    shadow_git,
    stored_as,
)
from atlas_retry.workspace.walk import UNREADABLE, Scan, look_over

_TRIES = 4


class Snapshot(Struct, frozen=True, kw_only=True):
    """A whole work tree, held in the shadow repository."""

    id: str
    """Id to restore everything that is held."""
    tree: str
    """Id of the tree of files that git does not ignore; equal if and only if these are equal."""
    left_out: tuple[str, ...] = ()
    """Files that are not held and cannot be made again, with the reason, for a person."""


class HeldTree(Struct, frozen=True, kw_only=True):
    """A snapshot, its content, and the walk it was made from."""

    snapshot: Snapshot
    state: TreeState
    scan: Scan


def snapshot(ws: Workspace) -> Snapshot:
    """Take a snapshot of the work tree. The user's repository is only read.

    It lasts while it is kept by `keep`, otherwise an hour. Raises WorkspaceError.
    """
    return take(ws).snapshot


def take(ws: Workspace, scan: Scan | None = None) -> HeldTree:
    """Take a snapshot, from a walk if there is one."""
    scan = scan or look_over(ws)
    with exclusive(ws):
        for _ in range(_TRIES):
            with suppress(GitError):
                return _take(ws, scan)
            # a file became a folder while it was read, or objects of the last snapshot are gone
            forget(ws)
            scan = look_over(ws)
        return _take(ws, scan)


def _take(ws: Workspace, scan: Scan) -> HeldTree:
    hidden = {path: scan.files[path] for path in scan.ignored}
    work_id, work = _hold(ws, "work", scan.visible(), scan)
    ignored_id, ignored = _hold(ws, "ignored", hidden, scan)
    state = TreeState(
        work=work,
        ignored=ignored,
        git=dict(git_files(ws.git_dir, ws.common_dir)),
        index=None,
        empty=tuple(sorted(scan.empty)),
        modes=_unusual_modes(scan),
        left_out=scan.left_out,
        unheld=scan.unheld,
        attributes=_attributes(ws.root, scan),
    )
    state, manifest = _with_index(ws, state)
    sides = (("work", work_id), ("ignored", ignored_id))
    lines = [f"040000 tree {oid}\t{name}" for name, oid in sides if oid != EMPTY_TREE]
    lines.append(f"{FILE} blob {manifest}\t{MANIFEST}")
    lines += [f"{FILE} blob {state.index.oid}\t{INDEX}"] if state.index else []
    whole = shadow_git(ws, "mktree", "-z", stdin=joined(lines)).decode().strip()
    remember_state(whole, state)
    taken = Snapshot(id=whole, tree=work_id, left_out=missed(scan.left_out))
    return HeldTree(snapshot=taken, state=state, scan=scan)


def _hold(
    ws: Workspace, index: str, files: Mapping[str, Stat], scan: Scan
) -> tuple[str, dict[str, StoredFile]]:
    """Have one of the indexes hold these files; returns its tree, and an entry for each file."""
    file = ws.shadow / index
    if not files and not file.exists():
        return EMPTY_TREE, {}
    known = _updated(ws, index, files, scan)
    tree = index_git(ws, index, "write-tree").decode().strip()
    if file.exists():
        os.utime(file, ns=(scan.taken_ns, scan.taken_ns))
    held, last = dict[str, StoredFile](), newest_state()
    before = getattr(last, index) if last else {}
    for name, entry in known.items():
        path = sys.intern(file_of(name))
        new = StoredFile(entry.mode, entry.oid, unusual_permissions(files[path][0]))
        old = before.get(path)
        held[path] = old if old == new else new  # the states in memory share what is equal
    return tree, held


def _updated(
    ws: Workspace, index: str, files: Mapping[str, Stat], scan: Scan
) -> dict[str, StoredFile]:
    """Have an index hold these files; returns its entries by the names that git takes.

    Git compares times by the second only, so what changed less than two seconds before the walk
    that the index was made from is read again. A file that cannot be read is left out.
    """
    named = ((stored_as(path, is_link=stat.S_ISLNK(files[path][0])), path) for path in files)
    odd = {name: path for name, path in named if name != path}
    plain, known = files.keys() - odd.values(), dict(_listed(ws, index))
    sure_ns = (ws.shadow / index).stat().st_mtime_ns - SURELY_SETTLED_NS if known else 0
    there = known.keys() & plain
    late = {path for path in there if max(files[path][2], files[path][3]) > sure_ns}
    changed = plain & {*split(index_git(ws, index, "diff-files", "--name-only", "-z"))}
    wanted = (plain - known.keys()) | late | changed
    new = _readable(ws, wanted, scan)
    again = (known.keys() - plain) | late | (there & wanted.difference(new))
    if not (again or new or odd):
        return known
    if again:
        gone = ("update-index", "--force-remove", "-z", "--stdin")
        index_git(ws, index, *gone, stdin=joined(again))
    if new:
        added = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        index_git(ws, index, *added, stdin=joined(new))
    for name, path in odd.items():
        _hold_odd(ws, index, name, path)
    return dict(_listed(ws, index))


def _listed(ws: Workspace, index: str) -> Iterator[tuple[str, StoredFile]]:
    """Names and entries of an index."""
    for line in split(index_git(ws, index, "ls-files", "-z", "--stage")):
        facts, _, name = line.partition("\t")
        mode, oid, _ = facts.split(" ")
        yield name, StoredFile(sys.intern(mode), oid)


def _readable(ws: Workspace, paths: Collection[str], scan: Scan) -> list[str]:
    """Those of the paths that can be read, in order; the others are left out, with the reason."""
    readable = list[str]()
    for path in sorted(paths):
        is_link = stat.S_ISLNK(scan.files[path][0])
        if is_link or os.access(ws.root / path, os.R_OK) or not place.is_there(ws.root, path):
            readable.append(path)
        else:
            scan.left_out[path] = f"{UNREADABLE}: {os.strerror(errno.EACCES)}"
    return readable


def _hold_odd(ws: Workspace, index: str, name: str, path: str) -> None:
    """Hold a file whose own name git does not take."""
    entry, content = place.look(ws.root, path), place.read(ws.root, path)
    if entry and content is not None:
        oid = shadow_git(ws, "hash-object", "-w", "--stdin", stdin=content).decode().strip()
        line = f"{entry.mode} {oid}\t{name}"
        index_git(ws, index, "update-index", "-z", "--index-info", stdin=joined([line]))


def _with_index(ws: Workspace, state: TreeState) -> tuple[TreeState, str]:
    """The state with the user's index, and the id of its manifest. Raises GitError."""
    index = ws.git_dir / "index"
    for _ in range(_TRIES):
        was = stat_of(index.stat()) if index.exists() else None
        state = replace(state, index_mtime_ns=was[2] if was else 0)
        asked = ("hash-object", "-w", "--no-filters", "--stdin", "--")
        files = [str(index)] if was else []
        manifest, *held = shadow_git(ws, *asked, *files, stdin=manifest_of(state)).decode().split()
        if was == (stat_of(index.stat()) if index.exists() else None):
            break  # else another git was just writing it
    return replace(state, index=StoredFile(FILE, held[0]) if held else None), manifest


def _attributes(root: Path, scan: Scan) -> dict[str, Attributes]:
    """What of owners, hard links and extended attributes is unusual."""
    unusual = dict(scan.attributes)
    for path in chain(scan.files, scan.folders):
        if held := place.extended(f"{root}/{path}"):
            usual = Attributes(scan.owner)
            unusual[path] = replace(unusual.get(path, usual), extended=held)
    return unusual


def _unusual_modes(scan: Scan) -> dict[str, int]:
    folders = {path: stat.S_IMODE(seen[0]) for path, seen in scan.folders.items()}
    modes = {path: mode for path, mode in folders.items() if mode != USUAL_FOLDER}
    for path, seen in scan.files.items():
        permissions = unusual_permissions(seen[0])
        if permissions is not None:
            modes[path] = permissions
    return modes


def missed(left_out: Mapping[str, str]) -> tuple[str, ...]:
    """Left-out files that are not in caches, with the reasons."""
    lines = (f"{path} ({why})" for path, why in left_out.items() if why != CACHE)
    return tuple(sorted(lines))


def load(ws: Workspace, snapshot_id: str) -> Snapshot:
    """A snapshot by its id. Raises WorkspaceError if it does not exist."""
    state, work = read_state(ws, snapshot_id), EMPTY_TREE
    if state.work:
        work = shadow_git(ws, "rev-parse", f"{snapshot_id}:work").decode().strip()
    return Snapshot(id=snapshot_id, tree=work, left_out=missed(state.left_out))
