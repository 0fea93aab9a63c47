"""Shortens a tool's output to its decisive lines, in order."""

import re
from bisect import bisect_right
from itertools import accumulate

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
_CAPTURED = regex(r"(?m)^-* ?(?:Captured std|Std(?:out|err):$|std(?:out|err) \|)|console\.\w+$")
MAX_LINE_CHARS = 240


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
    if _CAPTURED.search(text):  # what a test printed comes last, and the end of that says most
        ends = accumulate(min(len(line), MAX_LINE_CHARS) + 5 for line in reversed(lines))
        kept.update(range(len(lines) - bisect_right([*ends], room), len(lines)))
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
        if index not in kept:
            gap = gap or not _EMPTY.match(line)
            continue
        if gap and shown:
            shown.append("...")
        shown.append(shortened(line, min(MAX_LINE_CHARS, limit)))
        gap = False
    return "\n".join(shown)[:limit]
