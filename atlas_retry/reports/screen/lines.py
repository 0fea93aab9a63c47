"""A line on a screen: its text and style, with control characters escaped."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from atlas_retry.patterns import regex
from atlas_retry.text.redaction import is_plain
from atlas_retry.text.units import first_few, labelled

Line = tuple[str, str]
"""Text and the name of its style, a key of `STYLES`; `gate` heads the output of a gate, up to the
next empty line."""

STYLES = {
    "": "",
    "good": "\x1b[32m",
    "bad": "\x1b[1;31m",
    "gate": "\x1b[1;31m",
    "warn": "\x1b[33m",
    "dim": "\x1b[2m",
    "head": "\x1b[1m",
    "code": "\x1b[36m",
}
"""Source: ECMA-48 §8.3.117, SGR."""

MAX_MESSAGE_CHARS = 240
MAX_NAMES = 4
_CONTROLS = regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters except tab and line feed, and those that change the text direction."""


def harmless(text: str) -> str:
    """The text with control characters escaped."""
    if is_plain(text):
        return text
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def coloured(text: str, style: str) -> str:
    """A line with control characters escaped, in its colour."""
    return f"{STYLES[style]}{harmless(text)}\x1b[0m" if style and text else harmless(text)


def printable(text: str) -> str:
    """A name with surrogates and control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def names_of(names: Iterable[str]) -> str:
    """The first few names, and the number of others."""
    return first_few(map(printable, names), limit=MAX_NAMES)


def command_lines(label: str, *commands: str) -> Iterator[Line]:
    """A label and commands to type, one a line."""
    head, *rest = labelled(label, *commands)
    yield head, ""
    yield from ((line, "code") for line in rest)


def below_others(lines: Iterable[Line], *, verbosity: int) -> Iterable[Line]:
    """The last lines; quiet leaves the first of them that has text, twice quiet none."""
    if verbosity >= 0:
        return lines
    return islice((line for line in lines if line[0]), 1 if verbosity == -1 else 0)


def aligned(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    """A table with one line a row; `numbers`: right-align all columns except the first."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [first.ljust(widths[0])]
        for text, width in zip(rest, widths[1:], strict=True):
            cells.append(text.rjust(width) if numbers else text.ljust(width))
        lines.append(printable("  ".join(cells).rstrip()) + "\n")
    return "".join(lines)
