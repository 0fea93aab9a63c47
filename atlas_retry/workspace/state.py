"""The content of a snapshot, its form in the shadow repository, and differences between two."""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from io import BytesIO
from itertools import chain, product, takewhile
from pathlib import Path

import msgspec
from msgspec import Struct

from atlas_retry.model import Change, ChangeStatus
from atlas_retry.patterns import regex
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import EMPTY_TREE, GitError, split
from atlas_retry.workspace.place import parents
from atlas_retry.workspace.scan import CACHE, Unheld
from atlas_retry.workspace.shadow import read_blobs, shadow_git
from atlas_retry.workspace.store import FILE, LINK, RECENT, StoredFile
from atlas_retry.workspace.versions import Version, differing

WORK, IGNORED, GIT = "work/", "ignored/", "git/"
_INDEX, _MANIFEST = "index", "manifest"
_HEAD = b"commit refs/heads/none\nmark :1\ncommitter atlas <atlas> 0 +0000\ndata 0\n"
_IDS = b'\nls :1 ""\nls :1 "work"\nreset refs/heads/none\nfrom %b\n\n' % (b"0" * 40)
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
    unheld: list[tuple[bytes, Unheld]] = []


class TreeState(Struct, frozen=True, kw_only=True, dict=True):
    """A work tree, its index and git's own small files at one time."""

    work: Version[StoredFile]
    ignored: Version[StoredFile]
    git: Mapping[str, StoredFile]
    """`common/...` and `own/...`, see `gitfiles`."""
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

    @cached_property
    def files(self) -> Mapping[str, StoredFile]:
        """All files and links of the work tree in the snapshot."""
        return {**self.work, **self.ignored} if self.ignored else self.work

    @property
    def own(self) -> tuple[StoredFile, ...]:
        """Git's own files and the index."""
        return (*self.git.values(), *((self.index,) if self.index else ()))

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
    return msgspec.msgpack.encode(
        SnapshotManifest(
            sorted((os.fsencode(path), reason) for path, reason in state.left_out.items()),
            sorted(map(os.fsencode, state.empty)),
            sorted(special),
            state.index_mtime_ns,
            sorted((os.fsencode(path), seen) for path, seen in state.unheld.items()),
        )
    )


def commit_stream(
    old: TreeState, new: TreeState, whole: str, manifest: str | None
) -> Iterator[bytes]:
    """The part of a fast-import stream that makes the tree of `new` (git-fast-import(1)).

    It is made from the tree `whole`, which holds `old`; empty if nothing differs. The commit is
    only a handle for its tree, and no ref names it afterwards. `manifest` is the id of a blob, None
    if unchanged.
    """
    lines = chain(
        _moves(WORK, old.work, new.work),
        _moves(IGNORED, old.ignored, new.ignored),
        _moves(GIT, old.git, new.git),
        _moves("", {_INDEX: old.index}, {_INDEX: new.index}),
        _moves("", {}, {_MANIFEST: StoredFile(FILE, manifest) if manifest else None}),
    )
    if first := next(lines, b""):
        yield _HEAD
        if whole != EMPTY_TREE:
            yield f'M 040000 {whole} ""\n'.encode()
        yield first
        yield from lines
        yield _IDS


def _moves(
    prefix: str, old: Mapping[str, StoredFile | None], new: Mapping[str, StoredFile | None]
) -> Iterator[bytes]:
    moved = differing(old, new)
    was, now = (
        {path: _name(prefix + path, side.get(path)) for path in moved} for side in (old, new)
    )
    for path in moved:
        if was[path] and was[path] != now[path]:
            yield b"D %b\n" % was[path]
    for path in moved:
        if entry := new.get(path):
            yield b"M %b %b %b\n" % (entry.mode.encode(), entry.oid.encode(), now[path])


def _name(path: str, entry: StoredFile | None) -> bytes:
    """A path as fast-import reads it; empty without an entry."""
    if entry is None:
        return b""
    name = os.fsencode(stored_as(path, is_link=entry.mode == LINK))
    if b"\n" not in name:
        return name
    escaped = name.replace(b"\\", rb"\\").replace(b'"', rb"\"").replace(b"\n", rb"\n")
    return b'"%b"' % escaped


def stored_as(path: str, *, is_link: bool) -> str:
    """The path in the shadow repository of a file of the work tree; see `_file_of`.

    Since git 2.55 fast-import refuses `.git` in any case, and a link `.gitmodules`: a `%` is added.
    """
    if ".git" not in path.lower():
        return path
    return (_RESERVED_OF_LINK if is_link else _RESERVED).sub(r"\g<0>%", path)


def _file_of(path: str) -> str:
    """The file of the work tree that is stored under this path."""
    return _STORED.sub(r"\1", path) if "%" in path else path


def ids_of(answer: bytes) -> tuple[str, str]:
    """Ids of the whole tree and of `work`, from fast-import's answer to `commit_stream`."""
    whole, work = (line.split() for line in answer.decode().splitlines())
    return whole[2], EMPTY_TREE if work[0] == "missing" else work[2]


def read_state(ws: Workspace, snapshot_id: str) -> TreeState:
    """The content of a snapshot. Raises WorkspaceError if there is no such snapshot."""
    if known := _states.get(snapshot_id):
        remember_state(snapshot_id, known)
        return known
    listed = list_tree(shadow_git(ws, "ls-tree", "-r", "-z", snapshot_id))
    entries = {_file_of(path): entry for path, entry in listed}
    if _MANIFEST not in entries:
        raise GitError(f"{snapshot_id} is not a snapshot", status=None)
    oid = entries[_MANIFEST].oid
    manifest = msgspec.msgpack.decode(read_blobs(ws, [oid])[oid], type=SnapshotManifest)
    special = {os.fsdecode(path): bits for path, bits in manifest.permissions}
    work, ignored = _below(WORK, entries, special), _below(IGNORED, entries, special)
    folders = special.keys() - work.keys() - ignored.keys()
    state = TreeState(
        work=work,
        ignored=ignored,
        git=_below(GIT, entries, {}),
        index=entries.get(_INDEX),
        index_mtime_ns=manifest.index_mtime_ns,
        empty=tuple(map(os.fsdecode, manifest.empty)),
        folder_modes={path: special[path] for path in folders},
        left_out={os.fsdecode(path): reason for path, reason in manifest.left_out},
        unheld={os.fsdecode(path): seen for path, seen in manifest.unheld},
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
) -> Version[StoredFile]:
    start = len(prefix)
    inside = ((path[start:], entry) for path, entry in entries.items() if path.startswith(prefix))
    return Version(
        (path, StoredFile(entry.mode, entry.oid, special.get(path))) for path, entry in inside
    )


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
    if before_id == after_id:
        return ()
    between = _between(ws, before_id, after_id)
    pairs = between if ignored else (pair for pair in between if pair[1])
    return tuple(change for change, _ in pairs)


_Between = tuple[tuple[Change, bool], ...]
"""Changes, and whether the file is not ignored before or after."""
_known: dict[tuple[Path, str, str], _Between] = {}
"""Differences by the ids of two snapshots, the latest last."""
_MAX_KNOWN = 8


def _between(ws: Workspace, before_id: str, after_id: str) -> _Between:
    key = ws.shadow, before_id, after_id
    if key in _known:
        return _known[key]
    before, after = read_state(ws, before_id), read_state(ws, after_id)
    seen = differing(before.work, after.work)
    paths = sorted(seen | differing(before.ignored, after.ignored))
    sides = ((path, before.files.get(path), after.files.get(path)) for path in paths)
    moved = [side for side in sides if _content(side[1]) != _content(side[2])]
    certain, hidden = _certain(moved), (before.ignored, after.ignored)
    was, now = ([path in one for path in paths] for one in hidden)
    if len(certain) < len(moved) or was != now:
        certain = _lines(ws, before_id, after_id)
    _known[key] = tuple(
        (_change(*side, certain.get(side[0], (0, 0))), side[0] in seen) for side in moved
    )
    for oldest in list(_known)[:-_MAX_KNOWN]:
        _known.pop(oldest, None)
    return _known[key]


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


def _certain(
    sides: Iterable[tuple[str, StoredFile | None, StoredFile | None]],
) -> dict[str, _Lines]:
    """Added and removed lines by path, where contents in memory tell as surely as git."""
    counted = ((path, _distinct(_text(old), _text(new))) for path, old, new in sides)
    return {path: lines for path, lines in counted if lines}


def _text(entry: StoredFile | None) -> bytes | None:
    """Content with lines to count; None if it is binary, a link's, or not in memory."""
    if entry is None:
        return b""
    content = None if entry.mode == LINK else RECENT.get(entry.oid)
    return None if content and b"\0" in content else content


def _distinct(old: bytes | None, new: bytes | None) -> _Lines | None:
    """Added and removed lines if no line is both: then there is one way to count."""
    if old is None or new is None:
        return None
    sides = BytesIO(old).readlines(), BytesIO(new).readlines()
    for _ in ("same lines at the start", "and at the end"):
        same = takewhile(lambda pair: pair[0] == pair[1], zip(*sides, strict=False))
        start = sum(1 for _ in same)
        sides = sides[0][start:][::-1], sides[1][start:][::-1]
    return (len(sides[1]), len(sides[0])) if {*sides[0]}.isdisjoint(sides[1]) else None


def _lines(ws: Workspace, before_id: str, after_id: str) -> dict[str, _Lines]:
    """Added and removed lines by path; summed for a file that is ignored on one side only."""
    counted: dict[str, _Lines] = {}
    for item in split(shadow_git(ws, *_DIFF, "-z", "--numstat", before_id, after_id)):
        added, removed, path = item.split("\t", 2)
        name = _file_of(path.partition("/")[2])
        counted[name] = _sum(counted.get(name, (0, 0)), (added, removed))
    return counted


def _sum(one: _Lines, more: tuple[str, str]) -> _Lines:
    if None in one or "-" in more:
        return (None, None)
    return (one[0] or 0) + int(more[0]), (one[1] or 0) + int(more[1])
