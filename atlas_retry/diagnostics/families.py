"""Families of similar lines: what one statement of a tool prints about many things. Pure."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import groupby, product
from typing import TypeVar

from atlas_retry.patterns import regex

_VARYING = regex(r"0x[0-9a-f]+|\b[0-9a-f]{6,}\b|\d+|\b[\w.-]+(?:[/\\][\w.-]+)+\b")
_WORD = regex(r"[A-Za-z_]\w*")
MAX_FORM_CHARS = 200
T = TypeVar("T")


def form(line: str) -> str:
    """A line without numbers, paths and words: equal for lines that one statement prints."""
    return _WORD.sub("w", _VARYING.sub("#", line.strip()[:MAX_FORM_CHARS]))


def _opening(line: str) -> str:
    """The form of a line and its first two words: equal for lines that say the same."""
    words = _WORD.findall(_VARYING.sub("#", line.strip()[:MAX_FORM_CHARS]))
    return f"{len(words)}:{' '.join(words[:2])}:{form(line)[:40]}"


def sampled(text: str, room: int) -> str | None:
    """The text in at most `room` characters, families of similar lines cut in the middle.

    Each family keeps its first and last lines, as many as there is room for. None if not even one
    line of each fits.
    """
    if len(text) <= room:
        return text
    lines = [*filter(str.strip, text.splitlines())]
    for least, family in product((2, 1), (_opening, form)):
        cut = partial(_sampled, lines, [family(line) for line in lines])
        most = bisect_right(range(len(lines)), room, lo=1, key=lambda quota: len(cut(quota))) - 1
        if most >= least:
            return cut(most)
    return None


def both_ends(items: Sequence[T]) -> list[T]:
    """The first, the last, the second, the last but one, and so on."""
    last = len(items) - 1
    return [items[index] for index in sorted(range(last + 1), key=lambda i: min(i, last - i))]


def _sampled(lines: Sequence[str], families: Sequence[str], quota: int) -> str:
    """At most `quota` lines of each family, from both ends."""
    sizes, seen = Counter(families), Counter[str]()
    kept: list[str | None] = []
    for line, family in zip(lines, families, strict=True):
        is_left_out = (quota + 1) // 2 <= seen[family] < sizes[family] - quota // 2
        seen[family] += 1
        kept.append(None if is_left_out else line)
    runs = ([*run] for _, run in groupby(kept, key=lambda line: line is None))
    gap = "... ({} similar lines left out)"
    return "\n".join(
        gap.format(len(run)) if run[0] is None else "\n".join(filter(None, run)) for run in runs
    )
