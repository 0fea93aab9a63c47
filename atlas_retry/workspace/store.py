"""Contents of work-tree files as git blobs in the shadow repository; knows nothing of trees.

What a file's status says is trusted only when nothing can have changed since the content was
read, whatever the clocks do: its content decides everything else.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from threading import Lock

import msgspec
from msgspec import Struct

from atlas_retry.workspace.scan import Stat, is_settled, stat_of, why

FILE, EXECUTABLE, LINK = "100644", "100755", "120000"
BIG_BYTES = 8 << 20
"""From here on git reads the file itself, so that it need not fit into memory."""
BATCH_BYTES = 16 << 20
USUAL = {FILE: 0o644, EXECUTABLE: 0o755}
_TRIES = 3
_MAX_RECENT_BYTES = 4 << 20


class StoredFile(Struct, frozen=True):
    """What a snapshot holds of one file or link."""

    mode: str
    oid: str
    permissions: int | None = None
    """Where they are not 0644 or 0755."""


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file whose blob the shadow repository has, and its status when it was read."""

    status: Stat
    oid: str
    settled: bool
    """Any later change of the content shows in the status."""


Held = Known | str | None
"""Of one file: what is held, the reason why nothing is, or None: it is gone."""

Big = Callable[[str], str]
"""Writes the blob of a file too big to be read here; its id."""


class _Recent:
    """Contents that were read or written last, by id: an id says all of a content."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}
        self._bytes = 0
        self._lock = Lock()

    def add(self, oid: str, content: bytes) -> None:
        """Keep it in the place of the oldest; one that leaves little room for others is not."""
        if len(content) > _MAX_RECENT_BYTES // 16:
            return
        with self._lock:
            self._bytes += len(content) - len(self._held.pop(oid, b""))
            self._held[oid] = content
            while self._bytes > _MAX_RECENT_BYTES:
                self._bytes -= len(self._held.pop(next(iter(self._held))))

    def get(self, oid: str) -> bytes | None:
        return self._held.get(oid)


RECENT = _Recent()


class Blobs:
    """Blobs on their way into the shadow repository, a few at a time."""

    def __init__(self, write: Callable[[bytes], bytes], known: Iterable[str] = ()) -> None:
        self._write = write
        self.known = set(known)
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, content: bytes) -> str:
        """The id of the blob, which will be there after the next `flush`."""
        oid = blob_id(content)
        if oid not in self.known:
            self.known.add(oid)
            RECENT.add(oid, content)
            self._parts.append(b"blob\ndata %d\n%b\n" % (len(content), content))
            self._size += len(content)
            if self._size > BATCH_BYTES:
                self.flush()
        return oid

    def flush(self, rest: bytes = b"") -> bytes:
        """Send what waits, and `rest` of the same stream (git-fast-import(1)); what git answers."""
        stream = b"".join([*self._parts, rest])
        self._parts, self._size = [], 0
        return self._write(stream) if stream else b""


def blob_id(content: bytes) -> str:
    """The name git gives to this content."""
    digest = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def entry_of(mode: int, oid: str) -> StoredFile:
    """The entry of a file or link with this `st_mode` and content."""
    name, permissions = _modes(mode)
    return StoredFile(name, oid, permissions)


@cache
def _modes(mode: int) -> tuple[str, int | None]:
    """Git's mode, and the permissions where that does not say them."""
    name, permissions = git_mode(mode), stat.S_IMODE(mode)
    is_usual = name == LINK or permissions == USUAL[name]
    return name, None if is_usual else permissions


def git_mode(mode: int) -> str:
    """What git calls this `st_mode`; it looks at the owner's x alone."""
    if stat.S_ISLNK(mode):
        return LINK
    return EXECUTABLE if mode & stat.S_IXUSR else FILE


def hold(path: str, blobs: Blobs, big: Big) -> Held:
    """Make sure that the file at `path` (absolute) is in the shadow repository."""
    try:
        return _read_at_rest(path, blobs, big)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return why(error)


def _read_at_rest(path: str, blobs: Blobs, big: Big) -> Known | str:
    """Read again while it is being written; what is read last may be half of it."""
    read = _read(path, blobs, big)
    for _ in range(_TRIES):
        if isinstance(read, str) or read.status == stat_of(os.lstat(path)):
            return read
        read = _read(path, blobs, big)
    return read if isinstance(read, str) else msgspec.structs.replace(read, settled=False)


def _read(path: str, blobs: Blobs, big: Big) -> Known | str:
    now = time.time_ns()
    status = os.lstat(path)
    seen = stat_of(status)
    if stat.S_ISLNK(status.st_mode):
        oid = blobs.add(os.fsencode(Path(path).readlink()))
    elif not stat.S_ISREG(status.st_mode):
        return "not a file"
    elif status.st_size >= BIG_BYTES:
        oid = big(path)
    else:
        oid = blobs.add(_content(path))
    return Known(seen, oid, settled=is_settled(seen, now))


def _content(path: str) -> bytes:
    """All of a regular file; O_NONBLOCK, because it may have become a FIFO meanwhile."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        return file.read()
