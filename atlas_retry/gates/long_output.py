"""Reads output that is too long to be kept from its logs: the head and the tail of each."""

from contextlib import suppress
from pathlib import Path

from atlas_retry.process import Completed
from atlas_retry.text.redaction import clean

MAX_READ_BYTES = 4 << 20
"""Of one stream: its problems are read in 2 s and 120 MB, measured with ruff's concise lines."""
_GAP = b"\n... (not read)\n"


def logged(completed: Completed) -> tuple[str, str, bool]:
    """Text of stdout and stderr, and whether that is all that was printed.

    Cleaned of control sequences, not of secrets.
    """
    folder = completed.command.log_dir
    if folder is None:
        return clean(completed.stdout.text), clean(completed.stderr.text), False
    out, err = _read(folder / "stdout.log"), _read(folder / "stderr.log")
    sizes = completed.stdout.size_bytes, completed.stderr.size_bytes
    is_whole = (len(out), len(err)) == sizes and max(sizes) <= MAX_READ_BYTES
    return _text(out), _text(err), is_whole


def _read(log: Path) -> bytes:
    """All of a log, or the lines of its head and of its tail."""
    half = MAX_READ_BYTES // 2
    with suppress(OSError), log.open("rb") as file:
        head = file.read(MAX_READ_BYTES)
        size = log.stat().st_size
        if size <= MAX_READ_BYTES:
            return head
        file.seek(size - half)
        return head[:half].rpartition(b"\n")[0] + _GAP + file.read().partition(b"\n")[2]
    return b""


def _text(log: bytes) -> str:
    return clean(log.decode("utf-8", "replace"))
