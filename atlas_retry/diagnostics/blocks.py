"""Test runners that report failures as blocks, one row each: title, message, code, stack."""

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics.failures import (
    above,
    failure,
    first_match,
    javascript_frames,
    matching,
    rust_frames,
    titled,
)
from atlas_retry.diagnostics.table import NEVER, groups
from atlas_retry.diagnostics.values import Located, Log, Parser
from atlas_retry.model import Frame


class BlockFormat(Parser, frozen=True, kw_only=True):
    """A test runner. Groups of the patterns: path, test, line, column, message."""

    title: str
    """First line of a failure."""
    heading: str = NEVER
    """Line with the file of the failures below it."""
    end: str
    over: str = NEVER
    """Line from which the failures are repeated."""
    place: str
    """Line of the failure with its place."""
    rule: str | None = None
    """Rule of a failure with a place."""
    head: str = NEVER
    """Line above the message; by default the title."""
    stop: str
    """Line below the message."""
    by_file: bool = True
    """Whether the test id includes the file."""
    frames: Callable[[Sequence[str]], tuple[Frame, ...]] = javascript_frames

    def read(self, log: Log) -> Iterator[Located]:
        lines = above(log.lines, re.compile(self.over))
        headings = matching(lines, re.compile(self.heading))
        numbers = [*headings]
        end = re.compile(f"{self.heading}|{self.end}")
        body: Sequence[str] = ()
        below = len(lines)
        for first, last in reversed([*titled(lines, re.compile(self.title), end)]):
            before = bisect(numbers, first)
            path = headings[numbers[before - 1]]["path"] if before else ""
            # vitest shows one error of several tests below the titles of all
            is_shared = first == last == below - 1
            body = body if is_shared else lines[first + 1 : last + 1]
            below = first
            yield replace(_failure(self, [lines[first], *body], path, first), last=last)


def _failure(row: BlockFormat, block: Sequence[str], path: str, first: int) -> Located:
    parts = {"path": path} | groups(re.match(row.title, block[0]))
    named = (parts["path"] if row.by_file else "", parts.get("test"))
    place = groups(first_match(re.compile(row.place), block))
    where = parts if "line" in parts else parts | place
    body = block[1:]
    head = min(matching(body, re.compile(row.head)), default=-1)
    message = above(body[head + 1 :], re.compile(row.stop))
    if "message" in place:
        message = [place["message"]]
    test_id = "::".join(filter(None, named))
    problem = failure(row.name, message, row.frames(body), test_id, where)
    problem = replace(problem, rule_id=row.rule) if place and row.rule else problem
    return Located(problem, first, first + len(block) - 1)


_STACK = r" +at | \u276f "
_AT = r"(?P<line>\d+):(?P<column>\d+)"

ROWS = (
    BlockFormat(
        name="jest",
        # https://jestjs.io/docs/cli; @jest/reporters DefaultReporter and SummaryReporter
        commands=("jest", "react-scripts test"),
        marks=("\nTest Suites: ", "\n  ● "),
        heading=r"(?:PASS|FAIL) (?:\S+ )?(?P<path>\S+\.\w+)(?: \(.+\))?$",
        title=r" {2}● (?!Console$)(?:Test suite failed to run|(?P<test>\S.*))$",
        end=r"Test Suites: |Jest: |-{5,}\|",
        over=r"Summary of all failing tests",
        place=rf" *(?P<message>SyntaxError: (?P<path>[^\s:]+): .+) \({_AT}\)$",
        stop=rf" *>? *\d* \||{_STACK}",
    ),
    BlockFormat(
        name="vitest",
        # https://vitest.dev/guide/reporters#default-reporter
        marks=("\n Test Files  ", "\n  Test Files  ", "⎯ Failed "),
        title=(r" ?FAIL  ?(?:\|[^|]+\| )?(?P<path>[^\s>]\S*\.\w+)(?: > (?P<test>.+)|(?! > ).*)$"),
        end=r"⎯{3,}",
        place=rf" +File: (?P<path>[^\s:]+)(?::{_AT})?$",
        stop=rf" +\d*\||{_STACK}",
    ),
    BlockFormat(
        name="cargo-test",
        # https://doc.rust-lang.org/rustc/tests/index.html; library/test/src/formatters/pretty.rs
        commands=("cargo test", "cargo t"),
        marks=("\ntest result: ", " stdout ----\n"),
        title=(
            r"---- (?P<test>(?P<path>\S+\.rs) - (?:\S+ )?\(line (?P<line>\d+)\)|.+) stdout ----$"
        ),
        end=r"failures:|test result: ",
        place=(
            r"(?:thread '.*' (?:\(\d+\) )?panicked"
            r"|(?P<message>note: test did not panic as expected))"
            rf" at (?P<path>[^:]+):{_AT}:?$"
        ),
        rule="panic",
        head=r"thread '.*' (?:\(\d+\) )?panicked at ",
        stop=r"note: run with |stack backtrace:",
        by_file=False,
        frames=rust_frames,
    ),
)
