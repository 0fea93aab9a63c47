"""The user's index file: what is staged, and restoring the file as git itself would."""

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from atlas_retry.errors import WorkspaceError
from atlas_retry.patterns import regex
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git
from atlas_retry.workspace.scan import Stat
from atlas_retry.workspace.shadow import read_blobs
from atlas_retry.workspace.state import TreeState

_STAT = regex(rb"""(?x)\0[ ]{2}ctime:[ ][\d:]+\n
    [ ]{2}mtime:[ ][\d:]+\n
    [ ]{2}dev:[ ]\d+\tino:[ ]\d+\n
    [ ]{2}uid:[ ]\d+\tgid:[ ]\d+\n
    [ ]{2}size:[ ]\d+\t""")
"""Stat data of a file in the output of `ls-files --debug`."""
_ENTRY = regex(rb"(?P<mode>\d+) [0-9a-f]+ \d\t(?P<path>[^\0]+)\0flags: (?P<flags>\w+)\n")
_ODD = regex(rb"^160000 |\0flags: (?!0\n)", re.MULTILINE)
"""Matches an entry that is a submodule or has a flag."""
_KNOWN = regex(
    rb"100(?P<mode>\d+) (?P<oid>[0-9a-f]{40}) 0\t(?P<path>[^\0]+)\0"
    rb"  ctime: (?P<ctime>\d+:\d+)\n  mtime: (?P<mtime>\d+:\d+)\n"
    rb"  dev: \d+\tino: (?P<ino>\d+)\n  uid: .*\n  size: (?P<size>\d+)\tflags: \w+\n"
)
_MANY_PATHS = 500
_FRESH, _LOCK = "index.atlas", "index.lock"
_FLAGS = {0x8000: "assume-unchanged", 0x40000000: "skip-worktree", 0x20000000: "intent-to-add"}
"""Bits of an entry's flags. Source: CE_VALID and others in git's read-cache.h."""


class Staged(Struct, frozen=True, kw_only=True):
    """Content of an index, without the stat data of files."""

    digest: str
    """Digest of every path with its mode, content and stage, and of the flags."""
    flags: Mapping[str, str]
    """Flags by path: `skip-worktree`, `assume-unchanged`, `intent-to-add`."""
    submodules: tuple[str, ...]


def staged(root: Path, env: Mapping[str, str], index: Path | None = None) -> Staged:
    """Read the index of the work tree at `root`, or the one that GIT_INDEX_FILE in `env` names.

    `index` is the index file; if given, the same content is read only once.
    """
    if index is None or not index.is_file():
        return _read_index(root, env)
    key = index, hashlib.sha256(index.read_bytes()).hexdigest()
    if key not in _READ:
        content = _read_index(root, env)
        _READ.clear()
        _READ[key] = content
    return _READ[key]


_READ: dict[tuple[Path, str], "Staged"] = {}
"""The index that was read last, by its file and content."""


def _read_index(root: Path, env: Mapping[str, str]) -> Staged:
    out = _STAT.sub(b"\0", git("ls-files", "-z", "--stage", "--debug", cwd=root, env=env))
    entries = [*_ENTRY.finditer(out)] if _ODD.search(out) else []
    bits = {os.fsdecode(one["path"]): int(one["flags"], 16) for one in entries}
    flags = {path: [name for bit, name in _FLAGS.items() if b & bit] for path, b in bits.items()}
    linked = (one["path"] for one in entries if one["mode"] == b"160000")
    return Staged(
        digest=hashlib.sha256(out).hexdigest(),
        flags={path: ",".join(names) for path, names in flags.items() if names},
        submodules=tuple(map(os.fsdecode, linked)),
    )


def ids_when(root: Path, env: Mapping[str, str], wanted: Mapping[str, Stat]) -> dict[str, str]:
    """Content ids of files with the stat data `wanted`, according to the index.

    Without files that the index does not know, or that may have changed at the moment when it was
    written. Source: racy-git.txt in git's technical documentation. Raises GitError.
    """
    index_path = git("rev-parse", "--git-path", "index", cwd=root, env=env)
    try:
        written_ns = (root / os.fsdecode(index_path).rstrip("\n")).stat().st_mtime_ns
    except FileNotFoundError:
        return {}
    some = tuple(wanted) if len(wanted) <= _MANY_PATHS else ()
    out = git("ls-files", "-z", "--stage", "--debug", "--", *some, cwd=root, env=env)
    ids: dict[str, str] = {}
    for entry in _KNOWN.finditer(out):
        path = os.fsdecode(entry["path"])
        seen = wanted.get(path)
        if seen and _is_of(entry, seen) and seen[2] < written_ns:
            ids[path] = entry["oid"].decode()
    return ids


def _is_of(entry: re.Match[bytes], seen: Stat) -> bool:
    """Whether stat data match an index entry, which has 32 bits for an inode."""
    mode, size, *times, inode = seen
    return (
        (mode & stat.S_IXUSR != 0) == (entry["mode"] == b"755")
        and [_ns(entry["mtime"]), _ns(entry["ctime"])] == times
        and (int(entry["size"]), int(entry["ino"])) == (size, inode & 0xFFFFFFFF)
    )


def _ns(stamp: bytes) -> int:
    seconds, _, rest = stamp.partition(b":")
    return int(seconds) * 10**9 + int(rest)


def put_back_index(
    ws: Workspace, target: TreeState, expected: TreeState | None
) -> tuple[bool, bool]:
    """Restore the index file, unless someone has staged something since `expected`.

    Returns whether it was changed, and whether it was left alone for that reason. Raises
    WorkspaceError if another git holds its lock.
    """
    path = ws.git_dir / "index"
    if not ws.git_dir.is_dir():
        return False, False  # the git directory is gone, and no snapshot holds it
    _clear_leftovers(ws)
    now = path.read_bytes() if path.exists() else None
    wanted = _content(ws, target)
    if now == wanted:
        return False, False
    if expected and not _are_equal(ws, now, _content(ws, expected)):
        return False, not _are_equal(ws, now, wanted)
    _restore_shared(ws, target)
    _write(ws, wanted, target.index_mtime_ns)
    return True, False


def is_staged(ws: Workspace, state: TreeState) -> bool:
    """Whether the index has the same content as then; True if the repository is gone."""
    path = ws.git_dir / "index"
    now = path.read_bytes() if path.exists() else None
    return not ws.git_dir.is_dir() or _are_equal(ws, now, _content(ws, state))


def _restore_shared(ws: Workspace, target: TreeState) -> None:
    """Restore missing shared parts of a split index (git-update-index(1)), which never change."""
    for name, entry in target.git.items():
        path = ws.git_dir / name.rpartition("/")[2]
        if path.name.startswith("sharedindex.") and not path.exists():
            path.write_bytes(read_blobs(ws, [entry.oid])[entry.oid])


def _content(ws: Workspace, state: TreeState) -> bytes | None:
    return read_blobs(ws, [state.index.oid])[state.index.oid] if state.index else None


def _are_equal(ws: Workspace, one: bytes | None, other: bytes | None) -> bool:
    """Whether two indexes are equal, except for the stat data of files."""
    return one == other or _digest(ws, one) == _digest(ws, other)


def _digest(ws: Workspace, content: bytes | None) -> str | None:
    if content is None:
        return None
    path = ws.home / "index.looked-at"
    path.write_bytes(content)
    try:
        return staged(ws.root, {**ws.environ, "GIT_INDEX_FILE": str(path)}).digest
    except GitError:
        return None  # a broken index is not an edit
    finally:
        path.unlink()


def _clear_leftovers(ws: Workspace) -> None:
    """Remove what a killed `_write` left: its lock is a hard link to the old or new index."""
    index, fresh, held = (ws.git_dir / name for name in ("index", _FRESH, _LOCK))
    if _is_same(held, fresh) or _is_same(held, index):
        held.unlink()
    fresh.unlink(missing_ok=True)


def _write(ws: Workspace, content: bytes | None, mtime_ns: int) -> None:
    """Replace the index file (None: remove it) while holding git's own lock.

    The lock is a hard link to the new file, which distinguishes a lock that a kill left from the
    lock of another git, which is never touched. Raises WorkspaceError if another git is running.
    """
    index = ws.git_dir / "index"
    fresh, held = ws.git_dir / _FRESH, ws.git_dir / _LOCK
    fresh.write_bytes(content or b"")
    os.utime(fresh, ns=(mtime_ns, mtime_ns))
    try:
        os.link(fresh, held)
    except FileExistsError as error:
        fresh.unlink()
        raise WorkspaceError(
            f"another git is running in {ws.root}: {held} exists",
            remedy=f"wait for it; if there is none: rm {held}",
        ) from error
    if content is None:
        index.unlink(missing_ok=True)
        fresh.unlink()
    else:
        fresh.replace(index)
    held.unlink()


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)
