"""Parses output whose format is a row of patterns."""

import re
from collections.abc import Iterator, Mapping

from atlas_retry.diagnostics.values import Located, Log, Parser
from atlas_retry.model import Diagnostic, Level, Region
from atlas_retry.patterns import regex

SLACK = 2
"""Lines of other processes that may interrupt a block."""

NEVER = r"(?!)"
"""A pattern that no line matches."""
_IN_MESSAGE = regex(r": (?P<line>\d{1,7}):(?P<column>\d{1,5}): ")
"""A place that a message holds: black's `Cannot parse: 1:3: x`."""
_DIGITS = regex(r"[0-9]{1,9}")

LEVELS: Mapping[str, Level] = {
    **dict.fromkeys(("error", "err", "fatal error", "internal error", "fatal"), Level.ERROR),
    **dict.fromkeys(("syntax error", "parse error", "failure"), Level.ERROR),
    **dict.fromkeys(("e", "f", "high", "✖", "\u00d7"), Level.ERROR),
    **dict.fromkeys(("warning", "warn", "w", "medium", "minor", "⚠"), Level.WARNING),
    **dict.fromkeys(("note", "notice", "info", "information", "style", "help"), Level.NOTE),
    **dict.fromkeys(("remark", "suggestion", "debug", "trace"), Level.NOTE),
    **dict.fromkeys(("hint", "convention", "refactor", "c", "r", "i", "low", "\u2139"), Level.NOTE),
}
"""Severities by lower-case word, letter or sign."""


class LineFormat(Parser, frozen=True, kw_only=True):
    """A tool that reports problems as lines.

    Groups of the patterns: path, line, column, end_line, end_column, rule, level, message, test;
    rest, which continues the message.
    """

    pattern: str
    """First line of a problem."""
    heading: str | None = None
    """Line with parts that the problems below it share."""
    more: str | None = None
    """Lines that continue a problem; their groups fill missing parts, messages are joined."""
    tool: str | None = None
    """Name in the diagnostic, if one tool has several rows."""
    level: Level = Level.ERROR
    """Level of a problem without a severity in `LEVELS`."""
    message: str = ""
    """Message of a problem that is only a path."""
    rule: str | None = None
    """Rule of a problem that is only a path."""
    placed: bool = False
    """Whether to ignore problems without a path."""
    zero_based: bool = False
    """Whether the tool counts columns from 0."""
    compiles: bool = False
    """Whether it is a compiler: a warning that fails it is reported as an error."""

    def read(self, log: Log) -> Iterator[Located]:
        """Raises re.error for an invalid pattern."""
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
            last = self._continued(lines, number, parts)
            diagnostic = self._diagnostic(parts)
            if diagnostic is not None:
                yield Located(diagnostic, number, last)
            number = (last if diagnostic else number) + 1

    def _continued(self, lines: tuple[str, ...], first: int, parts: dict[str, str]) -> int:
        """The last line of the problem that begins at `first`; extends `parts`."""
        last = first
        begins = re.compile(self.pattern).match
        continues = re.compile(self.more or NEVER).match
        for number in range(first + 1, len(lines) if self.more else 0):
            line = lines[number]
            match = continues(line)
            if match is not None:
                more = groups(match)
                said = [parts.pop("message", ""), more.pop("message", "").strip()]
                said = ["\n".join(filter(None, said)), more.pop("rest", "").strip()]
                parts |= {"message": " ".join(filter(None, said))} | more | parts
                last = number
            elif number - last > SLACK or begins(line) or not line.strip():
                break
        return last

    def _diagnostic(self, parts: Mapping[str, str]) -> Diagnostic | None:
        """None without a message, or without a required place."""
        message = parts.get("message", "").strip() or self.message or parts.get("rule", "")
        is_apart = "(?P<path>" in f"{self.heading}{self.more}" and "(?P<path>" not in self.pattern
        is_nowhere = "path" not in parts and (self.placed or is_apart)
        if not message or is_nowhere:
            return None
        inner = None if "line" in parts else _IN_MESSAGE.search(message)
        if inner:
            parts = {**parts, **inner.groupdict()}
            before, after = message[: inner.start()], message[inner.end() :]
            message = f"{before}{inner[0][:1]} {after}".strip(": ")
        return Diagnostic(
            tool=self.tool or self.name,
            message=message,
            rule_id=parts.get("rule", self.rule),
            level=LEVELS.get(parts.get("level", "").lower(), self.level),
            path=parts.get("path"),
            region=region_of(parts, zero_based=self.zero_based),
            test_id=parts.get("test"),
        )


def groups(match: re.Match[str] | None) -> dict[str, str]:
    """The named groups that matched something."""
    every = match.groupdict() if match else {}
    return {name: value for name, value in every.items() if value}


def region_of(parts: Mapping[str, str], *, zero_based: bool = False) -> Region | None:
    """The region of the parts, 1-based; None without a line; 0 counts as unknown."""
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
