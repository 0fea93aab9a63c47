"""Reads output whose format is a row of patterns. Knows no tool."""

import re
from collections.abc import Iterator, Mapping

from atlas_retry.diagnostics.values import Located, Log, Parser
from atlas_retry.model import Diagnostic, Level, Region
from atlas_retry.patterns import regex

SLACK = 2
"""Foreign lines (another process writes to the same terminal) that may stand inside a block."""

NEVER = r"(?!)"
"""A pattern that no line matches."""
_DIGITS = regex(r"[0-9]{1,9}")

LEVELS: Mapping[str, Level] = {
    **dict.fromkeys(("error", "fatal error", "e", "f", "high", "✖", "\u00d7"), Level.ERROR),
    **dict.fromkeys(("warning", "warn", "w", "medium", "minor", "⚠"), Level.WARNING),
    **dict.fromkeys(("note", "notice", "info", "information", "style", "help"), Level.NOTE),
    **dict.fromkeys(("hint", "convention", "refactor", "c", "r", "i", "low", "\u2139"), Level.NOTE),
}
"""Words, letters and signs for severities, in lower case."""


class LineFormat(Parser, frozen=True, kw_only=True):
    """A tool whose problems are lines.

    Groups of the patterns: path, line, column, end_line, end_column, rule, level, message, test;
    rest is a message that goes on in the same sentence.
    """

    pattern: str
    """The first line of a problem."""
    heading: str | None = None
    """A line that gives what the problems below it leave out."""
    more: str | None = None
    """Lines that go on with a problem; their groups fill what is missing, messages are joined."""
    tool: str | None = None
    """Name in the diagnostic, when several rows serve one tool."""
    level: Level = Level.ERROR
    """Of a problem without a severity, or with one that is not in `LEVELS`."""
    message: str = ""
    """Of a problem that is nothing but a path."""
    rule: str | None = None
    """Same."""
    placed: bool = False
    """A problem without a path is none."""
    zero_based: bool = False
    """The tool counts columns from 0."""

    def read(self, log: Log) -> Iterator[Located]:
        """Raises re.error for a pattern that is none."""
        lines = log.lines
        begins = re.compile(self.pattern).match
        heads = re.compile(self.heading or NEVER).match
        above: dict[str, str] = {}
        number = 0
        while number < len(lines):
            match = begins(lines[number])
            if match is None:
                heading = heads(lines[number])
                above = groups(heading) or above
                number += 1
                continue
            parts = above | groups(match)
            last = _go_on(self, lines, number, parts)
            diagnostic = diagnostic_of(self, parts)
            if diagnostic is not None:
                yield Located(diagnostic, number, last)
            number = (last if diagnostic else number) + 1


def _go_on(row: LineFormat, lines: tuple[str, ...], first: int, parts: dict[str, str]) -> int:
    """The last line of the problem that begins at `first`; its parts are added to."""
    last = first
    if row.more is None:
        return last
    begins, goes_on = re.compile(row.pattern).match, re.compile(row.more).match
    for number in range(first + 1, len(lines)):
        line = lines[number]
        match = goes_on(line)
        if match is not None:
            _add(parts, groups(match))
            last = number
        elif number - last > SLACK or begins(line) or not line.strip():
            break
    return last


def _add(parts: dict[str, str], groups: Mapping[str, str]) -> None:
    for name, value in groups.items():
        if name in ("message", "rest") and parts.get("message"):
            joint = "\n" if name == "message" else " "
            parts["message"] = f"{parts['message']}{joint}{value.strip()}"
        else:
            parts.setdefault(name, value)


def groups(match: re.Match[str] | None) -> dict[str, str]:
    """The named groups that matched something."""
    every = match.groupdict() if match else {}
    return {name: value for name, value in every.items() if value}


def diagnostic_of(row: LineFormat, parts: Mapping[str, str]) -> Diagnostic | None:
    """The diagnostic that the parts say; None without message, or without a place that was due."""
    message = parts.get("message", "").strip() or row.message or parts.get("rule", "")
    if not message or ("path" not in parts and _needs_place(row)):
        return None
    return Diagnostic(
        tool=row.tool or row.name,
        message=message,
        rule_id=parts.get("rule", row.rule),
        level=LEVELS.get(parts.get("level", "").lower(), row.level),
        path=parts.get("path"),
        region=region_of(parts, zero_based=row.zero_based),
        test_id=parts.get("test"),
    )


def _needs_place(row: LineFormat) -> bool:
    """Whether the place comes in a line of its own, or the row says so."""
    apart = "(?P<path>" not in row.pattern and "(?P<path>" in f"{row.heading}{row.more}"
    return row.placed or apart


def region_of(parts: Mapping[str, str], *, zero_based: bool = False) -> Region | None:
    """The region that the parts say, 1-based; None without a line, 0 counts as unknown."""
    shift = 1 if zero_based else 0
    line = _positive(parts.get("line"))
    if line is None:
        return None
    return Region(
        start_line=line,
        start_column=_positive(parts.get("column"), shift),
        end_line=_positive(parts.get("end_line")),
        end_column=_positive(parts.get("end_column"), shift),
    )


def _positive(digits: str | None, shift: int = 0) -> int | None:
    return (int(digits) + shift or None) if digits and _DIGITS.fullmatch(digits) else None
