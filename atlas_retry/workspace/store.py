"""Files as git and snapshots name them: mode, content, status. Reads and writes none."""

import hashlib
import stat
from functools import cache
from threading import Lock

import msgspec
from msgspec import Struct

from atlas_retry.workspace.scan import Stat

FILE, EXECUTABLE, LINK = "100644", "100755", "120000"
USUAL = {FILE: 0o644, EXECUTABLE: 0o755}
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
