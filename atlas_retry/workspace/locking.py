"""One run per work tree, by a kernel lock, which is released when its owner dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from atlas_retry.errors import WorkspaceError
from atlas_retry.workspace.discovery import Workspace


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds the lock, as it wrote itself: a hint for people."""

    pid: int
    started_at: str


@contextmanager
def held(ws: Workspace) -> Iterator[None]:
    """Be the only run in this work tree; each worktree of a repository has its own lock.

    Raises WorkspaceError at once, with the other run's pid and start time.
    """
    # without CLOEXEC a daemon that a gate leaves behind would hold it forever
    file = os.open(ws.home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(ws, file)
        yield
        os.ftruncate(file, 0)
    finally:
        os.close(file)


def holder(ws: Workspace) -> Holder | None:
    """The current holder of the lock, or None."""
    try:
        file = os.open(ws.home / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(file)
    finally:
        os.close(file)
    return None


def _acquire(ws: Workspace, file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        me = Holder(pid=os.getpid(), started_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        os.ftruncate(file, 0)
        os.pwrite(file, msgspec.json.encode(me), 0)
    except BlockingIOError as error:
        other = _read(file)
        who = f"process {other.pid}, since {other.started_at}" if other else "another process"
        raise WorkspaceError(
            f"{ws.root} is in use by another atlas run: {who}",
            remedy=f"wait for it, or: kill {other.pid}" if other else "wait for it",
        ) from error
    except OSError as error:
        raise WorkspaceError(
            f"{ws.home / 'lock'} cannot be locked: {error.strerror}",
            remedy="export ATLAS_HOME=/a/folder/on/a/local/disk",
        ) from error


def _read(file: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(file, 4096, 0), type=Holder)
    except msgspec.MsgspecError:
        return None  # it has just taken the lock
