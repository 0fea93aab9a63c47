"""Reads files that atlas did not write. Never waits: opening a FIFO would wait for a writer."""

import errno
import os
import stat
from pathlib import Path

MAX_BYTES = 1 << 30
_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}


def read_file(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """The content of a regular file, or of the one that a link leads to.

    Raises OSError as opening does, and with a reason of its own if it is no regular file (EINVAL)
    or longer than `max_bytes` (EFBIG).
    """
    content = read_start(path, max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"longer than {max_bytes} bytes", str(path))
    return content


def read_start(path: Path, max_bytes: int) -> bytes:
    """Like `read_file`, but of a longer file only so many bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        reason = f"not a regular file but {_KINDS.get(kind, 'a device')}"
        raise OSError(errno.EINVAL, reason, str(path))
    with os.fdopen(descriptor, "rb") as file:
        return file.read(max_bytes)


def read_text(path: Path) -> str:
    """Like `read_file`, decoded as UTF-8 with replacement."""
    return read_file(path).decode("utf-8", "replace")
