"""Drops from a log the lines that come by the hundred. Knows no tool."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

MIN_LINES = 200
"""A shorter log is not filtered."""
MAX_SHARE = 0.02
MIN_FAMILY = 40
_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{6,}\b|\d+|\b[\w.-]+(?:[/\\][\w.-]+)+\b")
_WORD = re.compile(r"[A-Za-z_]\w*")


def quiet(text: str) -> str:
    """The text without frequent families of lines."""
    lines = text.splitlines()
    if len(lines) < MIN_LINES:
        return text
    shapes = [_shape(line) for line in lines]
    sizes = Counter(shapes)
    limit = max(MIN_FAMILY, int(len(lines) * MAX_SHARE))
    return "\n".join(_kept(lines, shapes, sizes, limit))


def _kept(lines: list[str], shapes: list[str], sizes: Counter[str], limit: int) -> Iterator[str]:
    pairs = zip(lines, shapes, strict=True)
    for is_frequent, run in groupby(pairs, key=lambda pair: sizes[pair[1]] > limit):
        some = [line for line, _ in run]
        if is_frequent:
            yield f"... ({len(some)} lines of progress or repetition left out)"
        else:
            yield from some


def _shape(line: str) -> str:
    """A line without what varies from one to the next: numbers, paths, most words."""
    plain = _VARYING.sub("#", line.strip()[:200])
    words = _WORD.findall(plain)
    return f"{len(words)}:{' '.join(words[:2])}:{re.sub(r'[A-Za-z_]+', 'w', plain)[:40]}"
