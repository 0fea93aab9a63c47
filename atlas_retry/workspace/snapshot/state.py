"""The content of a snapshot, its form in the shadow repository, and differences between two."""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import product

import msgspec
from msgspec import Struct

from atlas_retry.model import Change, ChangeStatus
from atlas_retry.patterns import regex
from atlas_retry.workspace.discovery import Workspace, commit_in
from atlas_retry.workspace.files import (
    CACHE,
    Attributes,
    StoredFile,
    Unheld,
    blob_id,
    differing,
    entry_of,
)
from atlas_retry.workspace.git import GitError, split
from atlas_retry.workspace.place import parents
from atlas_retry.workspace.snapshot.shadow import read_blobs, shadow_git

WORK, IGNORED = "work/", "ignored/"
INDEX, MANIFEST = "index", "manifest"
_RESERVED = regex(r"(?i)(?<![^/])(?:\.git%*|\.gitmodules%+)(?![^/])")
_RESERVED_OF_LINK = regex(r"(?i)(?<![^/])\.git(?:modules)?%*(?![^/])")
_STORED = regex(r"(?i)(?<![^/])(\.git(?:modules)?%*)%(?![^/])")
_MAX_STATES = 4
_states: "dict[str, TreeState]" = {}
"""Contents of snapshots by id, the one that was used last at the end; they never change.

An attempt uses those of the run's start, before it and after it.
"""


class SnapshotManifest(msgspec.Struct, frozen=True, array_like=True):
    """Facts that a git tree cannot hold. Paths are bytes, because they may not be UTF-8."""

    left_out: list[tuple[bytes, str]]
    empty: list[bytes]
    permissions: list[tuple[bytes, int]]
    """Of files and folders, where unusual."""
    index_mtime_ns: int
    unheld: list[tuple[bytes, Unheld]]
    git: list[tuple[bytes, int, bytes]]
    """Name, `st_mode` and content of each of git's own small files."""
    attributes: list[tuple[bytes, Attributes]] = []


class GitFile(Struct, frozen=True):
    """One of git's own files, or a link among them."""

    mode: int
    """As in `st_mode`."""
    content: bytes
    """For a link, its target."""

    @property
    def entry(self) -> StoredFile:
        return entry_of(self.mode, blob_id(self.content))


class TreeState(Struct, frozen=True, kw_only=True, dict=True):
    """A work tree, its index and git's own small files at one time."""

    work: Mapping[str, StoredFile]
    ignored: Mapping[str, StoredFile]
    git: Mapping[str, "GitFile"]
    """Git's own small files: `common/...` and `own/...`, see `git_files`."""
    index: StoredFile | None
    index_mtime_ns: int = 0
    """0 without an index. Git uses it to tell which entries it must check again."""
    empty: tuple[str, ...] = ()
    """Empty folders."""
    folder_modes: Mapping[str, int] = {}
    """Permissions of folders, if not 0755."""
    left_out: Mapping[str, str] = {}
    """Paths that are not held (folders end in `/`), and why."""
    unheld: Mapping[str, Unheld] = {}
    """Data that show whether a file in `left_out` is still the same."""
    attributes: Mapping[str, Attributes] = {}
    """Owners, hard links and extended attributes of files and folders, where unusual."""

    @cached_property
    def files(self) -> Mapping[str, StoredFile]:
        """All files and links of the work tree in the snapshot."""
        return {**self.work, **self.ignored} if self.ignored else self.work

    @property
    def in_git(self) -> dict[str, bytes]:
        """Contents of git's own small files by their names in a git directory."""
        return {name.partition("/")[2]: file.content for name, file in self.git.items()}

    @property
    def head(self) -> str | None:
        """The last commit; None if there was none, or only git could tell."""
        return commit_in(self.in_git) if "own/HEAD" in self.git else None

    def may_lack(self, path: str) -> bool:
        """Whether the snapshot left a path out for another reason than being in a cache."""
        above = (f"{folder}/" for folder in parents(path))
        return any(self.left_out.get(one, CACHE) != CACHE for one in (path, *above))


def manifest_of(state: TreeState) -> bytes:
    """Content of the manifest, equal for equal states."""
    special = [
        (os.fsencode(path), entry.permissions)
        for path, entry in state.files.items()
        if entry.permissions is not None
    ]
    special += ((os.fsencode(path), mode) for path, mode in state.folder_modes.items())
    own = ((os.fsencode(name), file.mode, file.content) for name, file in state.git.items())
    return msgspec.msgpack.encode(
        SnapshotManifest(
            sorted((os.fsencode(path), reason) for path, reason in state.left_out.items()),
            sorted(map(os.fsencode, state.empty)),
            sorted(special),
            state.index_mtime_ns,
            sorted((os.fsencode(path), seen) for path, seen in state.unheld.items()),
            sorted(own),
            sorted((os.fsencode(path), one) for path, one in state.attributes.items()),
        )
    )


def stored_as(path: str, *, is_link: bool) -> str:
    """The path in the shadow repository of a file of the work tree; see `file_of`.

    Git takes no path with `.git` in any case, and no link `.gitmodules`: a `%` is added.
    """
    if ".git" not in path.lower():
        return path
    return (_RESERVED_OF_LINK if is_link else _RESERVED).sub(r"\g<0>%", path)


def file_of(path: str) -> str:
    """The file of the work tree that is stored under this path."""
    return _STORED.sub(r"\1", path) if "%" in path else path


def read_state(ws: Workspace, snapshot_id: str) -> TreeState:
    """The content of a snapshot. Raises WorkspaceError if there is no such snapshot."""
    if known := _states.get(snapshot_id):
        remember_state(snapshot_id, known)
        return known
    entries = dict(
        list_tree(shadow_git(ws, "ls-tree", "-r", "-z", "--end-of-options", snapshot_id))
    )
    if MANIFEST not in entries:
        raise GitError(f"{snapshot_id} is not a snapshot", status=None)
    oid = entries[MANIFEST].oid
    manifest = msgspec.msgpack.decode(read_blobs(ws, [oid])[oid], type=SnapshotManifest)
    special = {os.fsdecode(path): bits for path, bits in manifest.permissions}
    work, ignored = _below(WORK, entries, special), _below(IGNORED, entries, special)
    folders = special.keys() - work.keys() - ignored.keys()
    state = TreeState(
        work=work,
        ignored=ignored,
        git={os.fsdecode(name): GitFile(mode, held) for name, mode, held in manifest.git},
        index=entries.get(INDEX),
        index_mtime_ns=manifest.index_mtime_ns,
        empty=tuple(map(os.fsdecode, manifest.empty)),
        folder_modes={path: special[path] for path in folders},
        left_out={os.fsdecode(path): reason for path, reason in manifest.left_out},
        unheld={os.fsdecode(path): seen for path, seen in manifest.unheld},
        attributes={os.fsdecode(path): one for path, one in manifest.attributes},
    )
    remember_state(snapshot_id, state)
    return state


def remember_state(snapshot_id: str, state: TreeState) -> None:
    """Keep the content of a snapshot in memory, and drop the one that was used longest ago."""
    _states.pop(snapshot_id, None)
    _states[snapshot_id] = state
    for oldest in list(_states)[:-_MAX_STATES]:
        _states.pop(oldest, None)


def list_tree(out: bytes) -> Iterator[tuple[str, StoredFile]]:
    """Path and entry of each line of `ls-tree -z`."""
    for line in split(out):
        facts, _, path = line.partition("\t")
        mode, _, oid = facts.split(" ")
        yield path, StoredFile(mode, oid)


def _below(
    prefix: str, entries: Mapping[str, StoredFile], special: Mapping[str, int]
) -> dict[str, StoredFile]:
    start = len(prefix)
    inside = ((file_of(p[start:]), entry) for p, entry in entries.items() if p.startswith(prefix))
    return {
        path: StoredFile(entry.mode, entry.oid, special[path]) if path in special else entry
        for path, entry in inside
    }


_DIFF = ("diff-tree", "-r", "--no-renames", "--full-index")
_Lines = tuple[int | None, int | None]
"""Numbers of added and removed lines; None for a binary file."""


def patch(
    ws: Workspace, before_id: str, after_id: str, paths: Iterable[str] = (), *, whole: bool = False
) -> bytes:
    """Unified diff of the files that git does not ignore, or of `paths`.

    With `whole` it contains binary files, so that it can be applied.
    """
    form = ("--binary",) if whole else ()
    below = (*form, f"--relative={WORK}", before_id, after_id)
    chosen = {
        WORK + stored_as(path, is_link=is_link) for path, is_link in product(paths, (False, True))
    }
    return shadow_git(ws, *_DIFF, "-p", "--no-color", *below, "--", *sorted(chosen))


def changes(
    ws: Workspace, before_id: str, after_id: str, *, ignored: bool = False
) -> tuple[Change, ...]:
    """Differences between two snapshots, in order of the paths.

    Files that are ignored in both count only with `ignored`; those that became ignored, or are not
    any more, count by their content like any other.
    """
    before, after = read_state(ws, before_id), read_state(ws, after_id)
    seen = differing(before.work, after.work)
    paths = seen | differing(before.ignored, after.ignored)
    was, now = before.files, after.files
    moved = [path for path in sorted(paths) if _content(was.get(path)) != _content(now.get(path))]
    chosen = moved if ignored else [path for path in moved if path in seen]
    lines = _lines(ws, before_id, after_id) if chosen else {}
    return tuple(
        _change(path, was.get(path), now.get(path), lines.get(path, (0, 0))) for path in chosen
    )


def _content(entry: StoredFile | None) -> tuple[str, str] | None:
    return (entry.mode, entry.oid) if entry else None


def _change(path: str, old: StoredFile | None, new: StoredFile | None, lines: _Lines) -> Change:
    return Change(
        path=path,
        status=status_of(old, new) or ChangeStatus.MODE,
        added=lines[0],
        removed=lines[1],
        old_mode=old.mode if old else None,
        new_mode=new.mode if new else None,
    )


def status_of(before: StoredFile | None, after: StoredFile | None) -> ChangeStatus | None:
    """The change of a file; None if unchanged."""
    if before == after:
        return None
    if before is None:
        return ChangeStatus.ADDED
    if after is None:
        return ChangeStatus.DELETED
    return ChangeStatus.MODE if before.oid == after.oid else ChangeStatus.MODIFIED


def _lines(ws: Workspace, before_id: str, after_id: str) -> dict[str, _Lines]:
    """Added and removed lines by path; summed for a file that is ignored on one side only."""
    counted: dict[str, _Lines] = {}
    how = ("-z", "--numstat", before_id, after_id, "--", WORK, IGNORED)
    for item in split(shadow_git(ws, *_DIFF, *how)):
        added, removed, path = item.split("\t", 2)
        name = file_of(path.partition("/")[2])
        counted[name] = _sum(counted.get(name, (0, 0)), (added, removed))
    return counted


def _sum(one: _Lines, more: tuple[str, str]) -> _Lines:
    if None in one or "-" in more:
        return (None, None)
    return (one[0] or 0) + int(more[0]), (one[1] or 0) + int(more[1])
