"""Reads output that is too long to be kept from its logs, in parts of bounded size."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from atlas_retry.process import Completed
from atlas_retry.text.redaction import clean

PART_BYTES = 4 << 20
MAX_READ_BYTES = 32 << 20
MAX_READ_LINES = 200_000
"""Of one stream: nobody waits for the reading of more."""


def is_held(completed: Completed) -> bool:
    """Whether the logs hold all that was printed, and no more than is read."""
    folder = completed.command.log_dir
    outputs = (("stdout.log", completed.stdout), ("stderr.log", completed.stderr))
    return folder is not None and all(
        output.size_bytes == _size(folder / name) <= MAX_READ_BYTES
        and _lines(folder / name) <= MAX_READ_LINES
        for name, output in outputs
    )


def parts(completed: Completed, *, part_bytes: int = PART_BYTES) -> Iterator[tuple[str, str]]:
    """Text of stdout and stderr; both at once where they are short enough for one part.

    Cleaned of control sequences, not of secrets. What cannot be read is left out.
    """
    folder = completed.command.log_dir
    if folder is None:
        yield clean(completed.stdout.text), clean(completed.stderr.text)
        return
    out, err = (_texts(folder / name, part_bytes) for name in ("stdout.log", "stderr.log"))
    if completed.stdout.size_bytes + completed.stderr.size_bytes < part_bytes:
        yield "".join(out), "".join(err)
        return
    yield from ((text, "") for text in out)
    yield from (("", text) for text in err)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return -1


def _lines(log: Path) -> int:
    try:
        with log.open("rb") as file:
            return sum(data.count(b"\n") for data in iter(lambda: file.read(PART_BYTES), b""))
    except OSError:
        return 0


def _texts(log: Path, part_bytes: int) -> Iterator[str]:
    """The log up to the limits, each part ending where nothing is torn."""
    rest, left = b"", MAX_READ_LINES
    with suppress(OSError), log.open("rb") as file:
        for _ in range(0, MAX_READ_BYTES, part_bytes):
            read = file.read(part_bytes)
            some = b"\n".join(read.split(b"\n", left)[:left])
            left -= some.count(b"\n")
            data = rest + some
            end = _seam(data) if len(some) == part_bytes else len(data)
            rest = data[end:]
            if end:
                yield clean(data[:end].decode("utf-8", "replace"))
            if len(some) < part_bytes:
                return
        if rest:
            yield clean(rest.decode("utf-8", "replace"))


def _seam(data: bytes) -> int:
    """The last rule above a block, as test runners draw them; else the end of the last line."""
    half = len(data) // 2
    rules = (data.rfind(rule, half) for rule in (b"\n_____", b"\n====="))
    at = max(rules)
    return at + 1 if at >= 0 else data.rfind(b"\n") + 1 or len(data)
