"""Merge two contents of a file that come from a third one. Pure.

Git refuses changes of neighbouring lines; here only changes of the same lines exclude each other,
because what is merged is shown to a person.
"""

from difflib import SequenceMatcher
from itertools import pairwise

_Edit = tuple[int, int, tuple[bytes, ...]]
"""The first line of the base, the line after the last, and what stands there instead."""


def merged(*, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """The base with the changes of both; None if they changed the same lines in other ways."""
    lines = base.splitlines(keepends=True)
    both = sorted({*_edits(lines, ours), *_edits(lines, theirs)})
    for one, other in pairwise(both):
        if one[1] > other[0] or one[:2] == other[:2]:
            return None
    content, at = list[bytes](), 0
    for start, end, instead in both:
        content += [*lines[at:start], *instead]
        at = end
    return b"".join((*content, *lines[at:]))


def _edits(base: list[bytes], changed: bytes) -> list[_Edit]:
    there = changed.splitlines(keepends=True)
    matcher = SequenceMatcher(None, base, there, autojunk=False)
    codes = (code for code in matcher.get_opcodes() if code[0] != "equal")
    return [(start, end, tuple(there[a:b])) for _, start, end, a, b in codes]
