"""Cuts the text of a passage: whole, or around its marks."""

import re

from msgspec import Struct

from atlas_retry.source import comment_of
from atlas_retry.source.excerpt.places import Passage, shortened

MAX_LINE_CHARS = 400
MAX_SIGNATURE_LINES = 12
MIN_TOLD = 4
"""Characters of words; a line with fewer says nothing."""
_WORD_CHAR = re.compile(r"\w")


class Excerpt(Struct, frozen=True, kw_only=True):
    """A passage as text; `omitted_lines` of it were left out."""

    passage: Passage
    text: str
    omitted_lines: int = 0
    shown_share: float = 1.0
    """Share of the lines that say something which are shown."""


def excerpt(passage: Passage, source: bytes, *, max_chars: int) -> Excerpt | None:
    """The passage within `max_chars`: whole, else its signature and windows around the marks.

    White space is exact, for agents edit by exact text.
    None where not even the marked lines fit, or the source is binary.
    """
    if b"\0" in source[:8192]:
        return None
    lines = _decorated(passage, source)
    kept = set(range(len(lines)))
    if _size(lines, kept) > max_chars:
        kept = _windows(passage, lines, max_chars)
    if not kept:
        return None
    shown = sorted(kept)
    telling = _telling(lines)
    return Excerpt(
        passage=passage,
        text=_joined(lines, shown),
        omitted_lines=len(lines) - len(kept),
        shown_share=len(telling & kept) / len(telling) if telling else 1.0,
    )


def _decorated(passage: Passage, source: bytes) -> list[str]:
    notes = {mark.line: mark.note for mark in passage.marks}
    comment = comment_of(passage.path)
    wanted = source.splitlines()[passage.start_line - 1 : passage.end_line]
    return [
        shortened(raw.decode("utf-8", "replace"), MAX_LINE_CHARS)
        + (f"  {comment} <-- ERROR: {notes[number]}" if notes.get(number) else "")
        for number, raw in enumerate(wanted, start=passage.start_line)
    ]


def _size(lines: list[str], kept: set[int]) -> int:
    gap = len(_GAP) + 3 if len(kept) < len(lines) else 0
    return sum(len(lines[index]) + 1 for index in kept) + gap


def _telling(lines: list[str]) -> set[int]:
    return {i for i, line in enumerate(lines) if len(_WORD_CHAR.findall(line)) >= MIN_TOLD}


def _windows(passage: Passage, lines: list[str], max_chars: int) -> set[int]:
    """Indices of the lines that are shown of what does not fit."""
    marks = [mark.line - passage.start_line for mark in passage.marks]
    head = _signature(passage, lines)
    spent, kept = 0, set[int]()
    for index in _by_distance(len(lines), [*marks, *head] if marks else head, marks):
        cost = len(lines[index]) + 1 + _gap_cost(index, kept)
        if spent + cost > max_chars:
            break
        spent += cost
        kept.add(index)
    return kept if kept.issuperset(marks[:1] or head[:1]) else set()


def _signature(passage: Passage, lines: list[str]) -> list[int]:
    first = passage.def_line - passage.start_line
    for index in range(first, min(len(lines), first + MAX_SIGNATURE_LINES)):
        if lines[index].rstrip().endswith((":", "{", "do", ")", ";")) or index == first + 11:
            return list(range(first, index + 1))
    return [first] if first < len(lines) else []


def _by_distance(count: int, first: list[int], centres: list[int]) -> list[int]:
    """The lines named first, then all others, nearest to a centre first."""
    around = centres or first[-1:] or [0]
    rest = sorted(
        set(range(count)) - set(first),
        key=lambda index: (min(abs(index - centre) for centre in around), index),
    )
    return [*dict.fromkeys(index for index in first if 0 <= index < count), *rest]


_GAP = "    ... ({} lines left out)"
_GAP_CHARS = len(_GAP) + 6


def _gap_cost(index: int, kept: set[int]) -> int:
    """A line with no neighbour opens a gap on both sides; one with two closes it."""
    neighbours = (index - 1 in kept) + (index + 1 in kept)
    return (2 - 2 * neighbours) * _GAP_CHARS if neighbours < 2 else 0  # noqa: PLR2004 - both sides


def _joined(lines: list[str], kept: list[int]) -> str:
    shown: list[str] = []
    expected = 0
    for index in kept:
        if index > expected:
            shown.append(_GAP.format(index - expected))
        shown.append(lines[index])
        expected = index + 1
    if expected < len(lines):
        shown.append(_GAP.format(len(lines) - expected))
    return "\n".join(shown)
