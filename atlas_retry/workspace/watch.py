"""Ask the kernel whether anything was written in some folders (inotify, on Linux).

It does not report a write to a mapped page before the file is closed, nor one through a hard link
in another folder (inotify(7)): an answer that must be certain comes from stat data.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from weakref import finalize

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED, _CREATE, _DELETE, _SELF = 0xC0, 0x100, 0x200, 0xC00
_ONLY_FOLDERS = 0x1000000
_WRITES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _SELF | _ONLY_FOLDERS
"""Events and flags. Source: linux/inotify.h."""
_ANY_EVENT_BYTES = 1 << 12


class FolderWatch:
    """Watches folders from now until the first write; where that is impossible, it never is quiet.

    Entries of the folders are watched, but not what is in folders that are not named.
    """

    def __init__(self, root: Path, folders: Iterable[str]) -> None:
        self.folders = frozenset(folders)
        self._queue: int | None = None
        with suppress(OSError, AttributeError):
            self._queue = _watched(f"{root}/{folder}" for folder in ("", *self.folders))
            self._close = finalize(self, os.close, self._queue)

    def is_quiet(self) -> bool:
        """Whether nothing has been written since the watch began."""
        if self._queue is None:
            return False
        with suppress(BlockingIOError):
            os.read(self._queue, _ANY_EVENT_BYTES)
            self.end()
        return self._queue is not None

    def end(self) -> None:
        """Stop watching: the kernel watches only so many folders for a user."""
        if self._queue is not None:
            self._close()
            self._queue = None


def _watched(folders: Iterable[str]) -> int:
    """A queue of events, open to read. Raises OSError, and AttributeError without inotify."""
    import ctypes  # start-up

    libc = ctypes.CDLL(None, use_errno=True)
    queue: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    for folder in folders:
        if libc.inotify_add_watch(queue, os.fsencode(folder), _WRITES) < 0:
            os.close(queue)
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
    return queue
