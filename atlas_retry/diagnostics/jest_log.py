"""Reads what jest prints: failed tests and suites, counts. Knows no reporter but the default."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics import counts, stacks
from atlas_retry.diagnostics.blocks import above
from atlas_retry.diagnostics.table import region_of
from atlas_retry.diagnostics.traceback import placed, shortened
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic

# https://jestjs.io/docs/cli; @jest/reporters DefaultReporter and SummaryReporter
_FILE = re.compile(r"^(?:PASS|FAIL) (?:\S+ )?(\S+\.\w+)(?: \(.+\))?$")
_TITLE = re.compile(r"^ {2}● (?!Console$)(\S.*)$")
_CODE = re.compile(r"^ *>? *\d* \|")
_STACK = re.compile(r"^ +at ")
_RAISED = re.compile(r"^(?:\w+: )?([A-Z]\w*Error)\b: ?(.*)$")
_SYNTAX = re.compile(
    r"^ *SyntaxError: (?P<path>[^\s:]+): (?P<message>.+) \((?P<line>\d+):(?P<column>\d+)\)$"
)
_TESTS = re.compile(r"^Tests: +(?P<counts>.*\d total)$")
_AGAIN = re.compile(r"^Summary of all failing tests")
_END = re.compile(r"^(?:Test Suites: |Jest: |-{5,}\|)")
_SUMMARY = re.compile(r"^(?:Test Suites|Tests|Snapshots): +\S")
_NONE = "No tests found, exiting with code"
_SUITE = "Test suite failed to run"


def _read(log: Log) -> Reading:
    lines = log.lines
    found = tuple(_failure(lines, *block) for block in _blocks(above(lines, _AGAIN)))
    return replace(counts.of_javascript(lines, _TESTS, _SUMMARY, _NONE), found=found)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """File, first and last line of each failure; jest repeats them all when they are many."""
    path, start = "", None
    for number, line in enumerate(lines):
        file, title = _FILE.match(line), _TITLE.match(line)
        ends = file or title or _END.match(line)
        if start is not None and ends:
            yield path, start, number - 1
            start = None
        path = file[1] if file else path
        start = number if title and path else start
    if start is not None:
        yield path, start, len(lines) - 1


def _failure(lines: Sequence[str], path: str, first: int, last: int) -> Located:
    title = lines[first].removeprefix("  ● ").strip()
    body = lines[first + 1 : last + 1]
    syntax = next(filter(None, map(_SYNTAX.match, body)), None)
    if syntax:
        told = Diagnostic(
            tool="jest",
            rule_id="SyntaxError",
            message=syntax["message"],
            path=syntax["path"],
            region=region_of(syntax.groupdict()),
            test_id=path,
        )
        return Located(told, first, last)
    message = _message(body)
    raised = _RAISED.match(message)
    told = Diagnostic(
        tool="jest",
        rule_id=raised[1] if raised else None,
        message=message or title,
        test_id=path if title == _SUITE else f"{path}::{title}",
    )
    return Located(placed(told, stacks.javascript(body), {"path": path}), first, last)


def _message(body: Sequence[str]) -> str:
    """What was expected and what came, above the code and the stack."""
    said = textwrap.dedent("\n".join(above(body, _CODE, _STACK)))
    return shortened(said.strip().split("\n"))


JEST = Parser(
    name="jest",
    source="https://jestjs.io/docs/cli",
    commands=("jest", "react-scripts test"),
    marks=("\nTest Suites: ", _NONE, "\n  ● "),
    read=_read,
)
