"""The shadow repository, in which git keeps the snapshots, and what a snapshot holds.

It is in the state directory. Only atlas uses it. Git's own commands make and read all of it.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path

import msgspec
from msgspec import Struct

from atlas_retry.errors import StateError, WorkspaceError
from atlas_retry.patterns import regex
from atlas_retry.state_dir import alone
from atlas_retry.workspace.discovery import Workspace, commit_in
from atlas_retry.workspace.files import (
    CACHE,
    Attributes,
    GitFile,
    StoredFile,
    Unheld,
)
from atlas_retry.workspace.git import GitError, git, lined, shadow_environment, split
from atlas_retry.workspace.place import parents

_KEPT = "refs/atlas/kept/"
_RAW = "* -text -filter -ident -eol -working-tree-encoding\n"
"""Attributes that come before those of the work tree, so that content is held byte for byte."""
_CONFIG = (
    *("-c", "core.compression=1"),
    *("-c", "core.logAllRefUpdates=false"),
    *("-c", "core.attributesFile="),
    # of the work tree, whatever the file system of the state directory can do
    *("-c", "core.fileMode=true"),
    *("-c", "core.symlinks=true"),
    *("-c", "core.ignoreCase=false"),
    *("-c", "core.precomposeUnicode=false"),
)
INDEXES = ("work", "ignored")
"""Git's indexes of the two sides of a snapshot: what it does not ignore, and what it does."""
_LEFTOVERS = ("*.lock", "refs/**/*.lock", "objects/**/tmp_*")
"""What a killed git leaves."""
_BATCH_BYTES = 4 << 20
_GRACE = "1.hour.ago"
"""Age up to which `compact` spares snapshots without a name."""
_NO_ROOM = ("No space left", "Disk quota exceeded", "Permission denied", "Read-only file system")
_NOT_WRITABLE = ("insufficient permission", "cannot mkdir", "unable to write", "unable to create")


def shadow_git(ws: Workspace, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git in the shadow repository, without the work tree. Raises GitError."""
    env = shadow_environment(ws.shadow, ws.environ)
    return git(*_CONFIG, *arguments, cwd=ws.home, env=env, stdin=stdin)


def index_git(ws: Workspace, index: str, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git on the work tree, with one of the `INDEXES`. Raises GitError."""
    env = shadow_environment(ws.shadow, ws.environ)
    env |= {"GIT_INDEX_FILE": str(ws.shadow / index), "GIT_WORK_TREE": str(ws.root)}
    return git(*_CONFIG, *arguments, cwd=ws.root, env=env, stdin=stdin)


@contextmanager
def exclusive(ws: Workspace) -> Iterator[None]:
    """Hold the only right to write to the shadow repository; creates it if missing.

    Waits for its turn, and first removes leftovers of a killed process. Raises StateError if the
    state directory cannot be written, or is full.
    """
    busy = ws.home / "shadow.busy"
    try:
        with alone(ws.home):
            if busy.exists():
                _clear(ws.shadow)
            busy.touch()
            _init(ws)
            yield
            busy.unlink()
    except OSError as error:
        if not ws.home.is_dir():
            raise StateError(
                f"{ws.home} was deleted while atlas used it", remedy="run the command again"
            ) from error
        raise _not_writable(str(error)) from error
    except GitError as error:
        if any(text in error.message for text in (*_NO_ROOM, *_NOT_WRITABLE)):
            raise _not_writable(error.message) from error
        raise


def _not_writable(why: str) -> StateError:
    return StateError(
        f"the state directory cannot be written: {why}",
        remedy="make room there, or: export ATLAS_HOME=/a/folder/you/can/write",
    )


def _init(ws: Workspace) -> None:
    attributes = ws.shadow / "info/attributes"
    if not attributes.exists() or not (ws.shadow / "objects").is_dir():
        plain = ("--bare", "--template=", "--object-format=sha1")
        git("init", "-q", *plain, str(ws.shadow), cwd=ws.home, env=ws.environ)
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text(_RAW, encoding="utf-8")


def _clear(shadow: Path) -> None:
    """Remove locks and incomplete files, which no other process can be using."""
    for pattern in _LEFTOVERS:
        for left in shadow.glob(pattern):
            left.unlink(missing_ok=True)


def forget(ws: Workspace) -> None:
    """Have the next snapshot read all files again."""
    for index in INDEXES:
        (ws.shadow / index).unlink(missing_ok=True)


def kept(ws: Workspace) -> dict[str, str]:
    """Ids of the kept snapshots, by name."""
    if not (ws.shadow / "HEAD").exists():
        return {}
    lines = shadow_git(ws, "for-each-ref", "--format=%(objectname) %(refname)", _KEPT)
    refs = (line.partition(" ") for line in os.fsdecode(lines).splitlines())
    return {ref.removeprefix(_KEPT): oid for oid, _, ref in refs}


def keep(ws: Workspace, name: str, snapshot_id: str) -> None:
    """Keep a snapshot under a name (`runs/<run_id>/<n>`) until it is dropped."""
    with exclusive(ws):
        shadow_git(ws, "update-ref", f"{_KEPT}{name}", snapshot_id)


def drop(ws: Workspace, *names: str) -> None:
    """Stop keeping these snapshots; unknown names are not an error."""
    orders = "".join(f"delete {_KEPT}{name}\0\0" for name in names)
    with exclusive(ws):
        shadow_git(ws, "update-ref", "-z", "--stdin", stdin=os.fsencode(orders))


def compact(ws: Workspace) -> None:
    """Free the space of snapshots that are no longer kept."""
    with exclusive(ws):
        forget(ws)
        shadow_git(ws, "gc", "--quiet", f"--prune={_GRACE}")


def read_blobs(ws: Workspace, oids: Iterable[str]) -> dict[str, bytes]:
    """Contents by id. Raises WorkspaceError if one is missing."""
    asked = lined(oids)
    return parse_batch(shadow_git(ws, "cat-file", "--batch", stdin=asked)) if asked else {}


def contents(ws: Workspace, oids: Sequence[str]) -> Iterator[bytes]:
    """Yield contents in the given order, with only a few in memory at a time."""
    asked = dict.fromkeys(oids)
    how = ("cat-file", "--batch-check=%(objectsize)")
    sizes = shadow_git(ws, *how, stdin=lined(asked)).split() if asked else []
    size_of = dict(zip(asked, map(int, sizes), strict=True))
    ends = accumulate(size_of[oid] for oid in oids)
    for _, batch in groupby(zip(ends, oids, strict=True), lambda one: one[0] // _BATCH_BYTES):
        some = [oid for _, oid in batch]
        blobs = read_blobs(ws, dict.fromkeys(some))
        yield from (blobs[oid] for oid in some)


def parse_batch(out: bytes) -> dict[str, bytes]:
    """Contents by id, from the output of `cat-file --batch`. Source: git-cat-file(1)."""
    blobs: dict[str, bytes] = {}
    start = 0
    while start < len(out):
        end = out.index(b"\n", start)
        oid, kind, *size = out[start:end].decode().split(" ")
        if kind == "missing":
            raise WorkspaceError(f"the snapshot is damaged: {oid} is missing")
        start = end + 1 + int(size[0])
        blobs[oid] = out[end + 1 : start]
        start += 1
    return blobs


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


class SnapshotManifest(Struct, frozen=True, kw_only=True, dict=True):
    """What a git tree cannot hold of a work tree."""

    git: Mapping[str, GitFile]
    """Git's own small files: `common/...` and `own/...`, see `git_files`."""
    index_mtime_ns: int = 0
    """0 without an index. Git uses it to tell which entries it must check again."""
    empty: tuple[str, ...] = ()
    """Empty folders."""
    modes: Mapping[str, int] = {}
    """Permissions of files and folders, where unusual."""
    left_out: Mapping[str, str] = {}
    """Paths that are not held (folders end in `/`), and why."""
    unheld: Mapping[str, Unheld] = {}
    """Data that show whether a file in `left_out` is still the same."""
    attributes: Mapping[str, Attributes] = {}
    """Owners, hard links and extended attributes of files and folders, where unusual."""


class TreeState(SnapshotManifest, frozen=True, kw_only=True, dict=True):
    """A work tree, its index and git's own small files at one time."""

    work: Mapping[str, StoredFile]
    ignored: Mapping[str, StoredFile]
    index: StoredFile | None

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
    fields = {name: getattr(state, name) for name in SnapshotManifest.__struct_fields__}
    # of Python's own, which also writes names that are not UTF-8
    return json.dumps(msgspec.to_builtins(fields), sort_keys=True).encode()


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
    manifest = msgspec.convert(json.loads(read_blobs(ws, [oid])[oid]), SnapshotManifest)
    modes = manifest.modes
    state = TreeState(
        **{name: getattr(manifest, name) for name in SnapshotManifest.__struct_fields__},
        work=_below(WORK, entries, modes),
        ignored=_below(IGNORED, entries, modes),
        index=entries.get(INDEX),
    )
    remember_state(snapshot_id, state)
    return state


def remember_state(snapshot_id: str, state: TreeState) -> None:
    """Keep the content of a snapshot in memory, and drop the one that was used longest ago."""
    _states.pop(snapshot_id, None)
    _states[snapshot_id] = state
    for oldest in list(_states)[:-_MAX_STATES]:
        _states.pop(oldest, None)


def newest_state() -> TreeState | None:
    """The content of the snapshot that was used last, if one is in memory."""
    return next(reversed(_states.values()), None)


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
