"""Files as git, snapshots and looks describe them: mode, content, stat data. Reads no content."""

import os
import stat
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TypeVar

from msgspec import Struct

from atlas_retry.digests import sha1_of
from atlas_retry.patterns import words

K = TypeVar("K", str, tuple[str, ...])

FILE, EXECUTABLE, LINK = "100644", "100755", "120000"
USUAL = {FILE: 0o644, EXECUTABLE: 0o755}
USUAL_FOLDER = 0o755
TEMPORARY = ".atlas-restore.tmp"
"""Name of a file that a restore is writing; never part of a snapshot."""
CACHES = words("""
    node_modules bower_components .yarn .pnpm-store Pods DerivedData .venv venv virtualenv .tox
    .nox .eggs .direnv site-packages __pycache__ .mypy_cache .pytest_cache .ruff_cache
    .hypothesis target .gradle .m2 .ivy2 .bundle .cargo .dart_tool .terraform .cache .next .nuxt
    .turbo .parcel-cache .svelte-kit .angular
    """)
"""Names of dependency and cache folders, whose content can be made again."""
CACHE = "dependency or cache folder"
"""Reason to leave a folder out that can be made again."""

Stat = tuple[int, int, int, int, int]
"""Stat data of a file or link: mode, size, mtime in ns, ctime in ns, inode."""

SURELY_SETTLED_NS, _FINE_NS = 2_000_000_000, 100_000_000

Unheld = tuple[int, int]
"""Size and mtime in ns of a file that is too big to be held."""


class StoredFile(Struct, frozen=True, gc=False):
    """One file or link in a snapshot."""

    mode: str
    oid: str
    permissions: int | None = None
    """Permissions, if not 0644 or 0755."""


class GitFile(Struct, frozen=True):
    """One of git's own files, or a link among them."""

    mode: int
    """As in `st_mode`."""
    content: bytes
    """For a link, its target."""

    @property
    def entry(self) -> StoredFile:
        return entry_of(self.mode, blob_id(self.content))


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


def stat_of(status: os.stat_result) -> Stat:
    """The stat data that show a change of the content."""
    return (
        status.st_mode,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
    )


def differing(old: Mapping[K, object], new: Mapping[K, object]) -> set[K]:
    """The keys whose values differ."""
    moved = {key for key, value in new.items() if old.get(key) != value}
    return moved | (old.keys() - new.keys())


def is_settled(seen: Stat, now_ns: int) -> bool:
    """Whether a later change gets another timestamp, even if the file system's clock is coarse."""
    margin = _FINE_NS if seen[3] % 1_000_000 else SURELY_SETTLED_NS
    return max(seen[2], seen[3]) + margin < now_ns


def unsettled(files: Mapping[str, Stat], paths: Iterable[str], taken_ns: int) -> frozenset[str]:
    """The files among these that may change after a look without a change of their stat data."""
    return frozenset(path for path in paths if not is_settled(files[path], taken_ns))
