"""Files as git and snapshots describe them: mode, content, status. Reads and writes none."""

import stat
from functools import cache

from msgspec import Struct

from atlas_retry.digests import sha1_of

FILE, EXECUTABLE, LINK = "100644", "100755", "120000"
USUAL = {FILE: 0o644, EXECUTABLE: 0o755}
USUAL_FOLDER = 0o755


class StoredFile(Struct, frozen=True, gc=False):
    """One file or link in a snapshot."""

    mode: str
    oid: str
    permissions: int | None = None
    """Permissions, if not 0644 or 0755."""


class Attributes(Struct, frozen=True):
    """What a file or folder has besides content and permissions."""

    owner: tuple[int, int]
    """Ids of user and group."""
    names: int = 1
    """Number of hard links of a file."""
    extended: tuple[tuple[str, bytes], ...] = ()
    """Extended attributes, see xattr(7), ACLs among them."""


def blob_id(content: bytes) -> str:
    """Git's id of this content."""
    return sha1_of(b"blob %d\0" % len(content), content)


def entry_of(mode: int, oid: str) -> StoredFile:
    """The entry of a file or link with this `st_mode` and content."""
    return StoredFile(git_mode(mode), oid, unusual_permissions(mode))


@cache
def unusual_permissions(mode: int) -> int | None:
    """The permissions in this `st_mode`, if they are unusual for git's mode."""
    name, permissions = git_mode(mode), stat.S_IMODE(mode)
    return None if name == LINK or permissions == USUAL[name] else permissions


def git_mode(mode: int) -> str:
    """Git's mode for this `st_mode`; only the owner's x counts."""
    if stat.S_ISLNK(mode):
        return LINK
    return EXECUTABLE if mode & stat.S_IXUSR else FILE
