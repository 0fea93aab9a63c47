"""Shortens a tool's output to its decisive lines, in order."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from atlas_retry.patterns import regex
from atlas_retry.source.excerpt import shortened

_ASSERTED = regex(r"^E\s+\S|^[\w./-]+\.\w+:\d+: \w+$")
_DECISIVE = regex(r"""(?x)
    ^\s*(FAIL|FAILED|ERROR|panic|thread[ ]'.*panicked|✕|✗|●
      |Expected|Received|expected|actual|got|want|left|right)\b
    | ^\s*assert
    | \b\w*(Error|Exception|Failure)\b\s*:
    | timed?[ ]?out
    | \berror(\[\w+\])?:
    | :[ ]error\b
    """)
_OUTSIDE = regex(
    r"^\s*(?:at )?.*(?:/rustc/|node:internal|/node_modules/|/site-packages/|\(native\))"
)
_NEXT = regex(r'^>|^\s*File "|^\S+:\d+(:\d+)?[: ]|^\s+at |^\s*-->')
_EMPTY = regex(r"^[\s_^~|=-]*$")
MAX_LINE_CHARS = 240
MIN_LINES = 200
"""Shorter logs are not filtered."""
MAX_SHARE = 0.02
MIN_FAMILY = 40
_RULER = regex(r"^([=_*~-]{3})[=_*~-]{2,}(?:( .*?) ?[=_*~-]{5,})?$", re.MULTILINE)
_DOTS = regex(r"^(\S+\.py )?[.FEsxX]+ *\[ *\d+%\]\n|^[FEsxX]*\.[.FEsxX]{3,}\n", re.MULTILINE)
_VARYING = regex(r"0x[0-9a-f]+|\b[0-9a-f]{6,}\b|\d+|\b[\w.-]+(?:[/\\][\w.-]+)+\b")
_WORD = regex(r"[A-Za-z_]\w*")


def condensed(text: str, limit: int) -> str:
    """The most relevant lines of a problem, in order, at most `limit` characters."""
    lines = [line.rstrip() for line in text.splitlines()]
    ranks = _ranks(lines)
    # the last line of the first group of decisive lines: the assertion
    centre = next((index for index, rank in enumerate(ranks) if rank == 0), len(ranks) - 1)
    kept = set[int]()
    room = limit
    for index in sorted(range(len(lines)), key=lambda i: (ranks[i], abs(i - centre))):
        line = lines[index]
        cost = min(len(line), MAX_LINE_CHARS, limit) + 5
        if ranks[index] < _DROPPED and cost <= room:
            kept.add(index)
            room -= cost
    return _joined(lines, kept, limit)


_DROPPED, SOURCE, NEAR = 9, 3, 2


def _ranks(lines: list[str]) -> list[int]:
    is_asserted = any(line.startswith("E  ") for line in lines)
    ranks = [_rank(line, _ASSERTED if is_asserted else _DECISIVE) for line in lines]
    near = 0 if is_asserted else NEAR
    for index, rank in enumerate(ranks if 0 in ranks else ()):
        # only source near a decisive line is kept, if a line is known to be decisive
        if rank == SOURCE and 0 not in ranks[max(0, index - near) : index + near + 1]:
            ranks[index] = _DROPPED
    return ranks


def _rank(line: str, decisive: re.Pattern[str]) -> int:
    """Priority of a line; 0 is the highest."""
    if _EMPTY.match(line) or _OUTSIDE.search(line):
        return _DROPPED
    if decisive.search(line):
        return 0
    return 1 if _NEXT.match(line) else SOURCE


def _joined(lines: list[str], kept: set[int], limit: int) -> str:
    shown: list[str] = []
    gap = False
    for index, line in enumerate(lines):
        if index in kept:
            if gap and shown:
                shown.append("...")
            shown.append(shortened(line, min(MAX_LINE_CHARS, limit)))
            gap = False
        else:
            gap = gap or not _EMPTY.match(line)
    return "\n".join(shown)[:limit]


def quiet(text: str) -> str:
    """The text without dots of progress, long rulers and families of similar lines."""
    text = _RULER.sub(r"\1\2", _DOTS.sub("", text))
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
    """A line without its variable parts: numbers, paths, most words."""
    plain = _VARYING.sub("#", line.strip()[:200])
    words = _WORD.findall(plain)
    return f"{len(words)}:{' '.join(words[:2])}:{re.sub(r'[A-Za-z_]+', 'w', plain)[:40]}"
