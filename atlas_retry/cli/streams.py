"""Standard streams that no locale, closed pipe or full disk can turn into a failure of a run."""

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
    """Drops what cannot be written: a run that has begun goes on without a reader."""

    lost: int | None = None
    """Why, as an errno."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in GONE:
                raise
            self.lost = error.errno
            return memoryview(data).nbytes


def settle() -> None:
    """Open what is closed, escape what the encoding lacks, and let nothing fail on writing."""
    codecs.register_error("atlas-escaped", escaped)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # in this order, for the lowest free number is taken
            null = os.open(os.devnull, os.O_RDWR)
            # what replaces it below goes by the number, which has to outlive it
            setattr(sys, name, os.fdopen(null, "w" if number else "r", closefd=False))
    for number, name in ((1, "stdout"), (2, "stderr")):
        with suppress(OSError):  # no file behind it: the program that called us captures the output
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
    """What an encoding lacks, as JSON escapes it: a document stays one in any locale."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


def lost() -> str | None:
    """Why output on stdout is lost although its reader may still wait for it."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    why = raw.lost if isinstance(raw, _Lossy) else None
    return None if why in {None, errno.EPIPE} else os.strerror(why)
