"""Files as git and snapshots describe them: mode, content, status. Reads and writes none."""

import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from threading import Lock

import msgspec
from msgspec import Struct

from atlas_retry.digests import sha1_of
from atlas_retry.workspace.scan import Stat

FILE, EXECUTABLE, LINK = "100644", "100755", "120000"
USUAL = {FILE: 0o644, EXECUTABLE: 0o755}
USUAL_FOLDER = 0o755
_MAX_RECENT_BYTES = 4 << 20


class StoredFile(Struct, frozen=True, gc=False):
    """One file or link in a snapshot."""

    mode: str
    oid: str
    permissions: int | None = None
    """Permissions, if not 0644 or 0755."""


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file with its blob in the shadow repository, and its stat data when it was read."""

    status: Stat
    oid: str
    settled: bool
    """Whether the stat data show any later change of the content."""


class _Recent:
    """Cache of the contents that were last read or written, by id."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}
        self._bytes = 0
        self._lock = Lock()

    def add(self, oid: str, content: bytes) -> None:
        """Keep a content, and drop the oldest ones; large contents are not kept."""
        if len(content) > _MAX_RECENT_BYTES // 16:
            return
        with self._lock:
            self._bytes += len(content) - len(self._held.pop(oid, b""))
            self._held[oid] = content
            while self._bytes > _MAX_RECENT_BYTES:
                self._bytes -= len(self._held.pop(next(iter(self._held))))

    def get(self, oid: str) -> bytes | None:
        return self._held.get(oid)

    def among(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of those of these ids that are kept."""
        with self._lock:
            return {oid: self._held[oid] for oid in oids if oid in self._held}


RECENT = _Recent()


def blob_id(content: bytes) -> str:
    """Git's id of this content."""
    return sha1_of(b"blob %d\0" % len(content), content)


def entries_of(files: Mapping[str, Known]) -> Iterator[tuple[str, StoredFile]]:
    """Path and entry of each file."""
    for path, known in files.items():
        name, permissions = _modes(known.status[0])
        yield path, StoredFile(name, known.oid, permissions)


def entry_of(mode: int, oid: str) -> StoredFile:
    """The entry of a file or link with this `st_mode` and content."""
    name, permissions = _modes(mode)
    return StoredFile(name, oid, permissions)


@cache
def _modes(mode: int) -> tuple[str, int | None]:
    """Git's mode, and the permissions if they are unusual for it."""
    name, permissions = git_mode(mode), stat.S_IMODE(mode)
    is_usual = name == LINK or permissions == USUAL[name]
    return name, None if is_usual else permissions


def git_mode(mode: int) -> str:
    """Git's mode for this `st_mode`; only the owner's x counts."""
    if stat.S_ISLNK(mode):
        return LINK
    return EXECUTABLE if mode & stat.S_IXUSR else FILE
