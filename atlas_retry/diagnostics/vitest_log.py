"""Reads what vitest prints: failed tests and suites, counts. Knows no reporter but the default."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics import counts, stacks
from atlas_retry.diagnostics.blocks import above, titled
from atlas_retry.diagnostics.traceback import placed, shortened
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic

# https://vitest.dev/guide/reporters#default-reporter
_TITLE = re.compile(r"^ ?FAIL  ?(?:\|[^|]+\| )?(?P<path>[^\s>]\S*\.\w+)(?P<names>(?: > .+)?|.*)$")
_RULE = re.compile(r"^⎯{3,}")
_CODE = re.compile(r"^ +\d*\|")
_STACK = re.compile(r"^ \u276f ")
_FILE = re.compile(r"^ +File: (?P<path>[^\s:]+)(?::(?P<line>\d+):(?P<column>\d+))?$")
_RAISED = re.compile(r"^([A-Z]\w*Error)(?: \[\w+\])?: ")
_TESTS = re.compile(r"^ +Tests {2}(?P<counts>.+)$")
_SUMMARY = re.compile(r"^ +(?:Test Files|Tests|Errors) {2}\S")
_NONE = "No test files found"


def _read(log: Log) -> Reading:
    lines = log.lines
    found = tuple(_failure(lines, first, last) for first, last in titled(lines, _TITLE, _RULE))
    return replace(counts.of_javascript(lines, _TESTS, _SUMMARY, _NONE), found=found)


def _failure(lines: Sequence[str], first: int, last: int) -> Located:
    title = _TITLE.match(lines[first])
    path = title["path"] if title else ""
    names = title["names"] if title else ""
    body = lines[first + 1 : last + 1]
    message = shortened("\n".join(above(body, _CODE, _STACK)).strip().split("\n"))
    raised = _RAISED.match(message)
    file = next(filter(None, map(_FILE.match, body)), None)
    told = Diagnostic(
        tool="vitest",
        rule_id=raised[1] if raised else None,
        message=message,
        test_id=f"{path}::{names.removeprefix(' > ')}" if names.startswith(" > ") else path,
    )
    place = file.groupdict() if file else {"path": path}
    return Located(placed(told, stacks.javascript(body), place), first, last)


VITEST = Parser(
    name="vitest",
    source="https://vitest.dev/guide/reporters#default-reporter",
    commands=("vitest",),
    marks=("\n Test Files  ", "\n  Test Files  ", "\nNo test files found", "⎯ Failed "),
    read=_read,
)
