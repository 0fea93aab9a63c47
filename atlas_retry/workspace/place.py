"""Write one file, link or folder in a work tree; never through a link, never half written.

Everything is done below an open folder, component by component, so that a link in the way is
replaced and not followed. A file is replaced by a new one of the same name, so hard links to the
old one keep its content.
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from atlas_retry.digests import sha256_of
from atlas_retry.errors import WorkspaceError
from atlas_retry.workspace.files import (
    LINK,
    TEMPORARY,
    USUAL,
    Attributes,
    StoredFile,
    Unheld,
    blob_id,
    differing,
    entry_of,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _LinkedError(OSError):
    """A link where a folder should be."""


_NOT_THERE = (FileNotFoundError, NotADirectoryError, _LinkedError)


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Raise WorkspaceError where the system refuses a change; `what` says what cannot be done."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"{what}: {error.filename}: {error.strerror}",
            remedy="make room (permissions, disk space, what is in the way) and try again",
        ) from error


def put(root: Path, path: str, entry: StoredFile, content: bytes) -> None:
    """Write `path` as `entry` says, with a later time than the file that it replaces.

    Raises OSError, also for a folder that is not empty.
    """
    with _parent(root, path) as (folder, name), _writable(folder), _cleaned(folder):
        replaced = _status_in(folder, name)
        with suppress(FileNotFoundError):
            os.unlink(TEMPORARY, dir_fd=folder)
        if entry.mode == LINK:
            os.symlink(os.fsdecode(content), TEMPORARY, dir_fd=folder)
        else:
            with os.fdopen(os.open(TEMPORARY, _NEW, 0o600, dir_fd=folder), "wb") as file:
                file.write(content)
                own = entry.permissions
                os.fchmod(file.fileno(), USUAL[entry.mode] if own is None else own)
        # a rename replaces everything but a folder
        with suppress(FileNotFoundError, NotADirectoryError):
            os.rmdir(name, dir_fd=folder)
        if replaced:
            _date_after(folder, TEMPORARY, replaced.st_mtime)
        os.replace(TEMPORARY, name, src_dir_fd=folder, dst_dir_fd=folder)


def look(root: Path, path: str) -> StoredFile | None:
    """The file or link at `path`, even if snapshots would leave it out."""
    file = _open_and_read(root, path, reading=_blob_digest)
    if file is None:
        return None
    mode, content = file
    return entry_of(mode, blob_id(content) if stat.S_ISLNK(mode) else content.hex())


def read(root: Path, path: str, max_bytes: int | None = None) -> bytes | None:
    """Content of a file or target of a link; None if there is neither, or it is too large."""
    file = _open_and_read(root, path, max_bytes)
    return file[1] if file else None


def digest(root: Path, path: str, max_bytes: int) -> tuple[int, str] | None:
    """Mode and SHA-256 of a file or of the target of a link, read in pieces; None as `read`."""
    file = _open_and_read(
        root, path, max_bytes, lambda file: hashlib.file_digest(file, "sha256").digest()
    )
    if file is None:
        return None
    mode, content = file
    return mode, sha256_of(content) if stat.S_ISLNK(mode) else content.hex()


def _blob_digest(file: FileIO) -> bytes:
    """Digest of git's id of this content."""
    start = b"blob %d\0" % os.fstat(file.fileno()).st_size
    return hashlib.file_digest(file, lambda: hashlib.sha1(start, usedforsecurity=False)).digest()


def status(root: Path, path: str) -> os.stat_result | None:
    """Stat of the file or link at `path`; None if there is none, or a folder."""
    with suppress(*_NOT_THERE), _parent(root, path, make=False) as (folder, name):
        return _status_in(folder, name)
    return None


def is_there(root: Path, path: str) -> bool:
    """Whether there is a file, link or folder at `path`."""
    with suppress(*_NOT_THERE), _parent(root, path, make=False) as (folder, name):
        return bool(os.stat(name, dir_fd=folder, follow_symlinks=False))
    return False


def moved_since(root: Path, then: Mapping[str, Unheld]) -> list[str]:
    """The files that have another size or time, or are gone, in order."""
    there = ((path, status(root, path)) for path in then)
    now = {path: (one.st_size, one.st_mtime_ns) for path, one in there if one}
    return sorted(differing(then, now))


def is_later(file: Path, run_ended_s: float) -> bool:
    """Whether a file was changed after `run_ended_s`, by its ctime, which cannot be set back."""
    with suppress(OSError):
        return file.lstat().st_ctime > run_ended_s
    return False


def _status_in(folder: int, name: str) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return None if stat.S_ISDIR(status.st_mode) else status
    return None


def date_after(root: Path, path: str, other: os.stat_result | None) -> None:
    """Give a file an mtime in a later second than another's. Raises OSError."""
    if other:
        with _parent(root, path, make=False) as (folder, name):
            _date_after(folder, name, other.st_mtime)


def _date_after(folder: int, name: str, other_s: float) -> bool:
    """Give a file an mtime in a later second, if it has none; returns whether it had none.

    Python uses old bytecode if a file has the same size and the same second.
    """
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if int(status.st_mtime) > int(other_s):
        return False
    later_s = max(time.time(), int(other_s) + 1)
    os.utime(name, (status.st_atime, later_s), dir_fd=folder, follow_symlinks=False)
    return True


def _open_and_read(
    root: Path,
    path: str,
    max_bytes: int | None = None,
    reading: Callable[[FileIO], bytes] = FileIO.read,
) -> tuple[int, bytes] | None:
    if not _OUTSIDE.isdisjoint(path.split("/")):
        return None
    try:
        with _parent(root, path, make=False) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            mode = status.st_mode
            if stat.S_ISLNK(mode):
                return mode, os.fsencode(os.readlink(name, dir_fd=folder))
            if not stat.S_ISREG(mode) or (max_bytes is not None and status.st_size > max_bytes):
                return None
            with os.fdopen(os.open(name, _OLD, dir_fd=folder), "rb", buffering=0) as file:
                return mode, reading(file)
    except OSError:
        return None


def make_folder(root: Path, path: str) -> None:
    """Create a folder and those above it; a file or link in the way is removed."""
    with _parent(root, f"{path}/{TEMPORARY}"):
        pass


def set_folder_mode(root: Path, path: str, mode: int) -> None:
    """Set the permissions of a folder; does nothing if there is none."""
    with suppress(*_NOT_THERE), _parent(root, f"{path}/{TEMPORARY}", make=False) as (folder, _):
        os.fchmod(folder, mode)


_EXTENDED = ("user.", "system.posix_acl_", "security.capability")
"""Those that people set; others are of the system, such as the label of SELinux on every file."""


def extended(file: str) -> tuple[tuple[str, bytes], ...]:
    """Extended attributes of a file or folder, in order; none where there are no such."""
    try:
        names = os.listxattr(file, follow_symlinks=False)
        ours = sorted(name for name in names if name.startswith(_EXTENDED))
        return tuple((name, os.getxattr(file, name, follow_symlinks=False)) for name in ours)
    except OSError:
        return ()


def set_attributes(root: Path, path: str, wanted: Attributes) -> None:
    """Give a file or folder its owner and extended attributes. Raises OSError."""
    with _parent(root, path, make=False) as (folder, name):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if (status.st_uid, status.st_gid) != wanted.owner:
            os.chown(name, *wanted.owner, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISLNK(status.st_mode):  # a new owner takes the setuid bit
                os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=folder)
        file = f"/proc/self/fd/{folder}/{name}"
        now, then = dict(extended(file)), dict(wanted.extended)
        for one in now.keys() - then.keys():
            os.removexattr(file, one, follow_symlinks=False)
        for one, value in then.items():
            if now.get(one) != value:
                os.setxattr(file, one, value, follow_symlinks=False)


def remove(root: Path, path: str) -> None:
    """Remove a file or link; does nothing if there is none, or if it is a folder."""
    with (
        suppress(*_NOT_THERE, IsADirectoryError),
        _parent(root, path, make=False) as (folder, name),
        _writable(folder),
    ):
        os.unlink(name, dir_fd=folder)


def remove_folder(root: Path, path: str) -> None:
    """Remove a folder if it is empty."""
    with (
        suppress(*_NOT_THERE),
        _parent(root, path, make=False) as (folder, name),
        _writable(folder),
    ):
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY}:
                raise


_OUTSIDE = frozenset({"", ".", "..", ".git"})
"""Parts of paths that are not in the work tree, which tools often print."""


def require_inside(path: str) -> None:
    """Raise ValueError for a path that cannot be in the work tree."""
    if not _OUTSIDE.isdisjoint(path.split("/")):
        raise ValueError(f"{path!r} is not a file path in the work tree")


@contextmanager
def _parent(root: Path, path: str, *, make: bool = True) -> Iterator[tuple[int, str]]:
    *above, name = path.split("/")
    folder = os.open(root, _FOLDER)
    try:
        for folder_name in above:
            inner = _open(folder, folder_name, make=make)
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def _open(folder: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            raise
        if not make:
            raise _LinkedError from error
        with _writable(folder):
            os.unlink(name, dir_fd=folder)
    with _writable(folder):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


@contextmanager
def _writable(folder: int) -> Iterator[None]:
    """Let us write in a folder of ours for a moment, if its permissions forbid that."""
    status = os.fstat(folder)
    is_open = os.access(".", os.W_OK | os.X_OK, dir_fd=folder)
    if is_open or status.st_uid != os.geteuid():
        yield
        return
    os.fchmod(folder, stat.S_IMODE(status.st_mode) | stat.S_IRWXU)
    try:
        yield
    finally:
        os.fchmod(folder, stat.S_IMODE(status.st_mode))


@contextmanager
def _cleaned(folder: int) -> Iterator[None]:
    """Leave no half-written file behind if it cannot be put in its place."""
    try:
        yield
    except OSError:
        with suppress(OSError):
            os.unlink(TEMPORARY, dir_fd=folder)
        raise


def refresh(root: Path, since_s: Mapping[str, float]) -> list[str]:
    """Give each file an mtime in a later second than its own; returns those that had none."""
    older = list[str]()
    for path, earlier_s in since_s.items():
        # nor can the times of another user's file be set
        with suppress(OSError), _parent(root, path, make=False) as (folder, name):
            if _status_in(folder, name) and _date_after(folder, name, earlier_s):
                older.append(path)
    return older


def parents(path: str) -> Iterator[str]:
    """The folders that a path is in, the nearest first."""
    while path := path.rpartition("/")[0]:
        yield path


def folders_above(paths: Iterable[str]) -> set[str]:
    """All folders that any of the paths is in."""
    nearest = {path.rpartition("/")[0] for path in paths} - {""}
    return nearest.union(*map(parents, nearest))
