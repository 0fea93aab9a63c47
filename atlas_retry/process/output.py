"""Head and tail of a stream in bounded memory, the whole stream in a file."""

import os
import re
from contextlib import suppress
from pathlib import Path

from atlas_retry.process.values import Output, Sink

HEAD_BYTES = 64 << 10
TAIL_BYTES = 64 << 10
MARGIN_BYTES = 4 << 10
"""Longest escape sequence that is never cut."""
READ_BYTES = 64 << 10
READS_AT_ONCE = 16
"""Limit of reads in a row, so that one command with much output does not delay the others."""
_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC

# ECMA-48 §5.4 and §8.3: control sequences, strings up to BEL or ST, and the short escapes.
_ESCAPE = rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
_UNFINISHED = rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\Z"


def seam(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """The nearest positions before and after `at` where a cut is safe; `at` itself if it is.

    Safe means not inside a code point or an escape sequence.
    """
    unfinished = re.compile(_UNFINISHED).search(data, max(0, at - MARGIN_BYTES), at)
    if unfinished:
        whole = re.compile(_ESCAPE).match(data, unfinished.start())
        return unfinished.start(), max(at, whole.end() if whole else at)
    start = end = at
    while start > max(0, at - 3) and _continues(data, start):
        start -= 1
    if _continues(data, start) or data[start : start + 1] < b"\xc0":
        return at, at
    while end < at + 3 and _continues(data, end):
        end += 1
    return start, end


def _continues(data: bytes | bytearray, at: int) -> bool:
    return data[at : at + 1] >= b"\x80" and data[at : at + 1] < b"\xc0"


class HeadAndTail:
    """Keeps the head and the tail of a stream."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        kept = TAIL_BYTES + MARGIN_BYTES
        self.size_bytes += len(data)
        self._head += data[: HEAD_BYTES + MARGIN_BYTES - len(self._head)]
        self._tail += data[-kept:]
        if len(self._tail) > 2 * kept:
            del self._tail[:-kept]

    def output(self) -> Output:
        beyond = self.size_bytes - len(self._head)
        if self.size_bytes <= HEAD_BYTES + TAIL_BYTES:
            whole = bytes(self._head) + (bytes(self._tail[-beyond:]) if beyond else b"")
            return Output(head=_decode(whole), size_bytes=self.size_bytes)
        head = self._head[: seam(self._head, HEAD_BYTES)[0]]
        tail = self._tail[seam(self._tail, len(self._tail) - TAIL_BYTES)[1] :]
        return Output(
            head=_decode(head),
            tail=_decode(tail),
            omitted_bytes=self.size_bytes - len(head) - len(tail),
            size_bytes=self.size_bytes,
        )

    def last_line(self) -> str:
        """The last line that is not blank; a carriage return ends a line, too."""
        lines = _decode(self._tail[-1024:]).replace("\r", "\n").rstrip().rsplit("\n", 1)
        return lines[-1].strip()


def _decode(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace")


def open_log(path: Path) -> int:
    """A descriptor of an empty log; creates its folder if needed. Raises OSError."""
    os.makedirs(path.parent, mode=0o700, exist_ok=True)  # noqa: PTH103 - start-up
    return os.open(path, _LOG_FLAGS, 0o600)


class Stream:
    """Copies the output of a command to its log, excerpt and sink.

    The source is a pipe, read without blocking. A command that may outlive us writes to the log
    itself (`direct`), which is then read: a daemon would die of a pipe that nobody reads.
    """

    def __init__(self, source: int, *, log: Path | None, direct: bool, room: int) -> None:
        """`log` is created on the first output; `room` is its size limit in bytes."""
        self.source = source
        self._log = log
        self._log_end = -1
        self.direct = direct
        self.room = room
        self.sink: Sink | None = None
        self.lost: str | None = None
        """Why the log does not hold everything."""
        self.excerpt = HeadAndTail()

    @property
    def is_open(self) -> bool:
        return self.source >= 0

    def pump(self) -> bool:
        """Read what is available without waiting; returns whether there was anything."""
        before = self.excerpt.size_bytes
        for _ in range(READS_AT_ONCE if self.is_open else 0):
            data = self._read()
            if not data:
                break
            self._keep(data)
        return self.excerpt.size_bytes > before

    def _read(self) -> bytes:
        try:
            data = os.read(self.source, READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data and not self.direct:
            self.close()
        return data

    def _keep(self, data: bytes) -> None:
        self.excerpt.feed(data)
        if self._log and self.room > 0:
            self._write(self._log, memoryview(data)[: self.room])
        self.room -= len(data)
        if self.sink:
            self.sink(data)

    def _write(self, log: Path, data: memoryview) -> None:
        try:
            if self._log_end < 0:
                self._log_end = open_log(log)
            while data:
                data = data[os.write(self._log_end, data) :]
        except OSError as error:
            self.lost = f"the log is incomplete: {error.strerror}"
            self._close_log()

    def close(self) -> None:
        """Stop reading; later writes to the pipe fail."""
        if self.is_open:
            os.close(self.source)
            self.source = -1
        self._close_log()

    def _close_log(self) -> None:
        if self._log_end >= 0:
            with suppress(OSError):  # a full disk may be reported only here
                os.close(self._log_end)
        self._log, self._log_end = None, -1
