"""Reads the user's index file: what is staged, and what differs from the last commit."""

import os
import stat
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.digests import sha256_of
from atlas_retry.reading import read_file
from atlas_retry.workspace.discovery import Uncommitted, Workspace, head_in, uncommitted
from atlas_retry.workspace.git import MAX_NAMED, GitError, git, split
from atlas_retry.workspace.place import look
from atlas_retry.workspace.scan import NESTED, Scan, Stat

_HEADER, _STATS, _EXTENSION = struct.Struct(">4sII"), struct.Struct(">10I"), struct.Struct(">4sI")
_PLAIN = ("-c", "index.sparse=false", "update-index", "--no-split-index", "--index-version", "2")
_S_NS = 1_000_000_000
_MAX_READ_BYTES = 1 << 20
"""Of larger files git is asked whether they are as staged."""
_SHA1, _SHA256 = 20, 32
"""Lengths of ids."""
_MODE, _OID, _FLAGS_LENGTH = 24, 40, 2
"""Offsets within an entry, and the length of the flags after the id."""
_SUBMODULE, _FLAGGED, _LONG = 0xE0, 0xC0, 0x40
"""Third byte of a submodule's mode; flag bits: any flag, and two more bytes of flags."""
_FLAGS = {0x80000000: "assume-unchanged", 0x4000: "skip-worktree", 0x2000: "intent-to-add"}
_PARTIAL = frozenset({b"link", b"sdir"})
"""Extensions of an index that lacks entries: a split one, and a sparse one."""


class Index(Struct, frozen=True, kw_only=True, dict=True):
    """Content of an index file."""

    data: bytes
    width: int
    """Length of an id in bytes."""
    offsets: "array[int]"
    """Three numbers an entry: offsets of the entry, of its path, and of the path's end."""
    at: Mapping[str, int]
    """Offset of each path's entry; of a path in conflict the last entry."""
    written_ns: int = 0
    """Modification time. A file as new as that may have changed at the moment when the index was
    written: see racy-git.txt in git's technical documentation."""

    @property
    def entries(self) -> Iterator[tuple[int, int, int]]:
        """The three offsets of each entry."""
        return _threes(self.offsets)

    @cached_property
    def digest(self) -> str:
        """Digest of every path with its mode, content and stage, and of the flags."""
        said = list[bytes]()
        for begin, _, end in self.entries:
            said += self.data[begin + _MODE : begin + _MODE + 4], self.data[begin + _OID : end]
        return sha256_of(b"\0".join(said))

    @cached_property
    def flags(self) -> Mapping[str, str]:
        """Paths with flags, and these: `skip-worktree`, `assume-unchanged`, `intent-to-add`."""
        flagged = dict[str, str]()
        for begin, start, end in self.entries:
            at = begin + _OID + self.width
            if self.data[at] & _FLAGGED:
                bits = _bits(self.data, at)
                names = ",".join(name for bit, name in _FLAGS.items() if bits & bit)
                flagged[os.fsdecode(self.data[start:end])] = names
        return flagged

    @cached_property
    def submodules(self) -> tuple[str, ...]:
        """Paths of submodules."""
        return tuple(
            os.fsdecode(self.data[start:end])
            for begin, start, end in self.entries
            if self.data[begin + _MODE + 2] == _SUBMODULE
        )

    def unlike(self, paths: Iterable[str], files: Mapping[str, Stat]) -> Iterator[str]:
        """The paths whose stat data in `files` do not show that the file is as staged."""
        unpack, data, racy_ns = _STATS.unpack_from, self.data, self.written_ns
        for path in paths:
            ctime_s, ctime_ns, mtime_s, mtime_ns, _, inode, mode, _, _, size = unpack(
                data, self.at[path]
            )
            seen = files.get(path)
            if seen is None or seen[2] >= racy_ns or _mode_of(seen[0]) != mode:
                yield path
                continue
            mtime_ns, ctime_ns = mtime_s * _S_NS + mtime_ns, ctime_s * _S_NS + ctime_ns
            if (size, mtime_ns, ctime_ns, inode) != (*seen[1:4], seen[4] & 0xFFFFFFFF):
                yield path

    def ids_when(self, wanted: Mapping[str, Stat]) -> dict[str, str]:
        """Content ids of files with the stat data `wanted`, as far as the index knows them."""
        there = wanted.keys() & self.at.keys()
        same = there.difference(self.unlike(there, wanted))
        return {path: self._oid(path) for path in same if self.width == _SHA1}

    def has(self, path: str, seen: Stat | None, root: Path) -> bool:
        """Whether the file is plainly as staged: with its mode, and with the same bytes."""
        if seen is None or self.width != _SHA1 or not 0 < seen[1] <= _MAX_READ_BYTES:
            return False  # an empty file may be staged as to be added
        now, mode = look(root, path), _STATS.unpack_from(self.data, self.at[path])[6]
        return now is not None and (int(now.mode, 8), now.oid) == (mode, self._oid(path))

    def _oid(self, path: str) -> str:
        start = self.at[path] + _OID
        return self.data[start : start + self.width].hex()


@cache
def _mode_of(mode: int) -> int:
    if stat.S_ISLNK(mode):
        return stat.S_IFLNK
    return stat.S_IFREG | (0o755 if mode & stat.S_IXUSR else 0o644)


def staged(root: Path, env: Mapping[str, str], file: Path) -> Index:
    """Read the index file of the work tree at `root`; unchanged content is parsed once.

    Raises GitError.
    """
    written_ns, data = (file.stat().st_mtime_ns, read_file(file)) if file.is_file() else (0, b"")
    last = _READ.get(file)
    if last is None or last.data != data:
        _READ.clear()
        last = read_index(root, env, data)
    if last.written_ns != written_ns:
        last = replace(last, written_ns=written_ns)
    _READ[file] = last
    return last


_READ: dict[Path, Index] = {}


def read_index(root: Path, env: Mapping[str, str], data: bytes) -> Index:
    """Parse the content of an index file. Raises GitError."""
    index = _parsed(data) or _parsed(_plain(root, env, data))
    if index is None:
        raise GitError("the index cannot be read", status=None)
    return index


def _parsed(data: bytes) -> Index | None:
    """Parse an index; None if it is split, sparse, broken or of another version.

    Source: gitformat-index(5).
    """
    if not data:
        return _indexed(b"", _SHA1, array("I"))
    for width in (_SHA1, _SHA256):
        with suppress(ValueError, IndexError, struct.error):
            return _indexed(data, width, _offsets(data, width))
    return None


def _threes(offsets: "array[int]") -> Iterator[tuple[int, int, int]]:
    return zip(offsets[::3], offsets[1::3], offsets[2::3], strict=True)


def _offsets(data: bytes, width: int) -> "array[int]":
    """Three numbers an entry: offsets of the entry, of its path, and of the path's end.

    Raises ValueError, IndexError or struct.error for data of another form.
    """
    kind, version, count = _HEADER.unpack_from(data)
    if kind != b"DIRC" or version not in (2, 3):
        raise ValueError(version)
    offsets, at, flags, find = array("I"), _HEADER.size, _OID + width, data.index
    for _ in range(count):
        start = at + flags + _FLAGS_LENGTH
        if data[at + flags] & _LONG:
            start += _FLAGS_LENGTH
        end = find(b"\0", start)
        offsets.extend((at, start, end))
        at += (end - at + 8) & ~7
    while at < len(data) - width:
        name, length = _EXTENSION.unpack_from(data, at)
        if name in _PARTIAL:
            raise ValueError(name)
        at += _EXTENSION.size + length
    if at != len(data) - width:
        raise ValueError(at)
    return offsets


def _indexed(data: bytes, width: int, offsets: "array[int]") -> Index:
    paths = split(b"".join([data[start : end + 1] for _, start, end in _threes(offsets)]))
    # one object for a path here and in walks: there may be many
    at = dict(zip(map(sys.intern, paths), offsets[::3], strict=True))
    return Index(data=data, width=width, offsets=offsets, at=at)


def _bits(data: bytes, at: int) -> int:
    """Flags of an entry as one number, with the optional ones in the lower half."""
    more = int.from_bytes(data[at + 2 : at + 4]) if data[at] & _LONG else 0
    return int.from_bytes(data[at : at + 2]) << 16 | more


def _plain(root: Path, env: Mapping[str, str], data: bytes) -> bytes:
    """Have git rewrite an index in the form that is read here. Raises GitError."""
    from tempfile import TemporaryDirectory  # start-up

    with TemporaryDirectory() as folder:
        file = Path(folder) / "index"
        file.write_bytes(data)
        git(*_PLAIN, cwd=root, env={**env, "GIT_INDEX_FILE": str(file)})
        return file.read_bytes()


def compared(ws: Workspace, scan: Scan) -> Uncommitted:
    """Same as `uncommitted`, but git looks only at files that differ from the index's stat data.

    Raises GitError.
    """
    root, env = ws.root, ws.environ
    index = staged(root, env, ws.git_dir / "index")
    suspects = [*index.unlike(index.at, scan.files)]
    if len(suspects) > MAX_NAMED:
        return uncommitted(root, env)
    suspects = [path for path in suspects if not index.has(path, scan.files.get(path), root)]
    paths, head = {*_untracked(index, scan)}, head_in(ws.git_dir, ws.common_dir)
    if suspects:
        moved = uncommitted(root, env, suspects)
        head, paths = moved.head, paths | moved.paths
    elif head is None:
        asked = ("rev-parse", "--verify", "--quiet", "HEAD")
        head = os.fsdecode(git(*asked, cwd=root, env=env, accept=(0, 1))).strip() or None
    if head:
        how = ("--cached", "--name-only", "-z", "--no-renames")
        paths.update(split(git("diff-index", *how, head, cwd=root, env=env)))
    else:
        paths.update(index.at)
    return Uncommitted(head=head, paths=frozenset(paths))


def _untracked(index: Index, scan: Scan) -> Iterator[str]:
    """Untracked files; of a nested repository that is no submodule, its folder."""
    nested = [p.removesuffix(".git") for p, why in scan.left_out.items() if why == NESTED]
    for path in scan.files.keys() - index.at.keys() - scan.ignored:
        folder = next(filter(path.startswith, nested), "")
        if folder[:-1] not in index.at:
            yield folder or path
