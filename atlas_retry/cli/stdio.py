"""Standard streams that survive any locale, a closed pipe and a full disk."""

import codecs
import errno
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

GONE = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})


class _Lossy(io.FileIO):
    """A file that drops what cannot be written, so that a run continues without a reader."""

    lost: int | None = None
    """errno of the last failed write."""
    has_written: bool = False

    def write(self, data: "ReadableBuffer", /) -> int:
        self.has_written = True
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in GONE:
                raise
            self.lost = error.errno
            return memoryview(data).nbytes


def settle() -> None:
    """Open closed streams, escape unencodable characters, and ignore failed writes."""
    codecs.register_error("atlas-escaped", escaped)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # in this order: open() takes the lowest free descriptor
            null = os.open(os.devnull, os.O_RDWR)
            # the wrapper below uses the descriptor, which must stay open
            setattr(sys, name, os.fdopen(null, "w" if number else "r", closefd=False))
    for number, name in ((1, "stdout"), (2, "stderr")):
        with suppress(OSError):  # no file behind it: the calling program captures the output
            stream = getattr(sys, name)
            if stream.fileno() == number:
                lossy = io.TextIOWrapper(
                    io.BufferedWriter(_Lossy(number, "w", closefd=False)),
                    encoding=stream.encoding,
                    errors="atlas-escaped",
                    line_buffering=stream.line_buffering,
                )
                setattr(sys, name, lossy)


def escaped(error: UnicodeError) -> tuple[str, int]:
    r"""Error handler that writes unencodable characters as \uXXXX, which keeps JSON valid."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


def has_written() -> bool:
    """Whether anything was written to stdout, also if it was lost."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return not isinstance(raw, _Lossy) or raw.has_written


def lost() -> str | None:
    """Why output on stdout was lost; None if it was not, or if its reader closed the pipe."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    why = raw.lost if isinstance(raw, _Lossy) else None
    return None if why in {None, errno.EPIPE} else os.strerror(why)
