"""Test runners that report failures as blocks, one row each: title, message, code, stack."""

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics.failures import (
    RUBY_AT,
    above,
    failure,
    first_match,
    javascript_frames,
    matching,
    no_frames,
    own_java_frames,
    ruby_frames,
    rust_frames,
    titled,
)
from atlas_retry.diagnostics.table import NEVER, groups
from atlas_retry.diagnostics.values import Located, Log, Parser
from atlas_retry.model import Diagnostic, Frame


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
    """Line of the failure with its place, or with what its title lacks."""
    rule: str | None = None
    """Rule of a failure with a place."""
    head: str = NEVER
    """Line above the message; by default the title."""
    stop: str
    """Line below the message."""
    drop: str = NEVER
    """Line below the title of what is no failure."""
    by_file: bool = True
    """Whether the test id includes the file."""
    frames: Callable[[Sequence[str]], tuple[Frame, ...]] = javascript_frames

    def read(self, log: Log) -> Iterator[Located]:
        lines: Sequence[str] = above(log.lines, re.compile(self.over))
        if not matching(lines, re.compile(self.title)):
            lines = log.lines
        headings = matching(lines, re.compile(self.heading))
        numbers = [*headings]
        end = re.compile(f"{self.heading}|{self.end}")
        body: Sequence[str] = ()
        below = len(lines)
        for first, last, _ in reversed([*titled(lines, re.compile(self.title), end)]):
            before = bisect(numbers, first)
            named = groups(headings[numbers[before - 1]]) if before else {}
            # vitest shows one error of several tests below the titles of all
            is_shared = first == last == below - 1
            body = body if is_shared else lines[first + 1 : last + 1]
            below = first
            if body and re.match(self.drop, body[0]):
                continue
            yield Located(self._failure([lines[first], *body], named), first, last)

    def _failure(self, block: Sequence[str], heading: dict[str, str]) -> Diagnostic:
        title = groups(re.match(self.title, block[0]))
        parts = {"path": ""} | heading | title
        place = groups(first_match(re.compile(self.place), block))
        named = (parts["path"] if self.by_file else "", parts.get("test") or place.get("test"))
        where = parts if "line" in parts else parts | place
        body = block[1:]
        head = min(matching(body, re.compile(self.head)), default=-1)
        message = above(body[head + 1 :], re.compile(self.stop))
        message = [title["message"], *message] if "message" in title else message
        if "message" in place:
            message = [place["message"]]
        test_id = "::".join(filter(None, named))
        problem = failure(self.name, message, self.frames(body), test_id, where)
        return replace(problem, rule_id=self.rule) if place and self.rule else problem


_STACK = r" +at | \u276f "
_AT = r"(?P<line>\d+):(?P<column>\d+)"
_PANIC_HEAD = r"thread '.*' (?:\(\d+\) )?panicked at "
_PANICKED = (
    r"(?:thread '.*' (?:\(\d+\) )?panicked|(?P<message>note: test did not panic as expected))"
    rf" at (?P<path>[^:]+):{_AT}:?$"
)

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
        place=_PANICKED,
        rule="panic",
        head=_PANIC_HEAD,
        stop=r"note: run with |stack backtrace:",
        by_file=False,
        frames=rust_frames,
    ),
    BlockFormat(
        name="nextest",
        # https://nexte.st/docs/reporting/
        commands=("cargo nextest", "nextest"),
        title=r"[\u2500-]{3,} STDERR: +\S+ (?P<test>\S+)",
        end=r" +Summary \[| +(?:PASS|FAIL) \[|[\u2500-]{3,}",
        place=_PANICKED,
        rule="panic",
        head=_PANIC_HEAD,
        stop=r"note: run with |stack backtrace:",
        by_file=False,
        frames=rust_frames,
    ),
    BlockFormat(
        name="exunit",
        # https://hexdocs.pm/ex_unit/ExUnit.CLIFormatter.html
        commands=("mix test",),
        title=r" {1,4}\d+\) (?P<test>.+)$",
        end=r"Finished in |\d+ tests?, ",
        place=r" +(?P<path>\S+\.exs?):(?P<line>\d+)(?:: .*)?$",
        head=r" +\S+\.exs?:\d+$",
        stop=r" +stacktrace:",
        by_file=False,
        frames=no_frames,
    ),
    BlockFormat(
        name="minitest",
        # https://docs.seattlerb.org/minitest; lib/minitest.rb: Test#result_label
        commands=("rails test",),
        marks=(") Failure:\n", ") Error:\n"),
        title=r" {1,3}\d+\) (?:Failure|Error):$",
        end=r"\d+ (?:runs|tests), \d+ assertions, | {1,3}\d+\) Skipped:$",
        place=r"(?P<test>\S+#\S.*?)(?: \[(?P<path>[^\s\]]+):(?P<line>\d{1,9})\])?:$",
        head=r"\S+#\S.*:$",
        stop=RUBY_AT,
        by_file=False,
        frames=ruby_frames,
    ),
    BlockFormat(
        name="jasmine",
        # https://jasmine.github.io; jasmine, lib/reporters/console_reporter.js
        marks=("\n  Message:\n",),
        title=r"\d+\) (?P<test>\S.*)$",
        end=r"Suite error: |Pending:$|\d+ specs?, |Ran \d+ of ",
        drop=r"(?!  Message:$)",  # a pending one
        place=NEVER,
        head=r"  Message:$",
        stop=r"  Stack:$",
    ),
    BlockFormat(
        name="uvu",
        # https://github.com/lukeed/uvu, src/index.js: format
        marks=("\n  Total:     ",),
        title=r" +FAIL +\"(?P<test>.+)\"$",
        end=r" +FAIL |  Total: ",
        place=NEVER,
        stop=_STACK,
    ),
    BlockFormat(
        name="robot",
        # https://robotframework.org/robotframework/latest/RobotFrameworkUserGuide.html
        marks=(" | FAIL |\n",),
        title=r"(?P<test>\S.*?) +\| FAIL \|$",
        end=r"(?:={78}|-{78})$",
        place=NEVER,
        # counts are of a suite
        drop=r"\d+ tests?, \d+ passed, \d+ failed",
        stop=NEVER,
        frames=no_frames,
    ),
    BlockFormat(
        name="gtest",
        # https://google.github.io/googletest/
        commands=("gtest",),
        marks=("[ RUN      ] ",),
        heading=r"\[ RUN +\] (?P<test>\S+)",
        title=r"(?P<path>[^\s:(]\S*?)[:(](?P<line>\d+)\)?: (?:error: )?(?P<message>Failure)$",
        end=r"\[ +(?:FAILED|OK|PASSED) +\]|\[[-=]+\]|$",
        place=NEVER,
        stop=NEVER,
        by_file=False,
        frames=no_frames,
    ),
    BlockFormat(
        name="bun",
        # https://bun.sh/docs/cli/test
        commands=("bun test",),
        marks=("\nbun test v",),
        heading=r"(?P<path>\S+\.[cm]?[jt]sx?):$",
        title=r"error: (?!regex \")(?P<message>.+)$",
        end=r"\((?:pass|skip|todo)\) | \d+ (?:pass|fail)$|\d+ \| ",
        place=r"\(fail\) (?P<test>.+?)(?: \[[\d.]+m?s\])?$",
        stop=rf"\(fail\) |{_STACK}",
    ),
    BlockFormat(
        name="dotnet-test",
        # https://learn.microsoft.com/en-us/dotnet/core/tools/dotnet-test
        commands=("dotnet test",),
        title=r" +Failed (?P<test>\S.*?) \[[\d<].*s\]$",
        end=r"(?:Failed|Passed|Skipped)!|Total tests:|Test Run |  +(?:Passed|Skipped) \S.*s\]$",
        place=r" +at .+ in (?P<path>.+):line (?P<line>\d+)$",
        head=r" *Error Message:$",
        stop=r" *(?:Stack Trace|Standard (?:Output|Error) Messages):$",
        by_file=False,
        frames=no_frames,
    ),
    BlockFormat(
        name="gradle-test",
        # https://docs.gradle.org/current/userguide/java_testing.html
        commands=("gradle", "gradlew"),
        title=r"(?P<test>[\w.$]+ > .+) FAILED$",
        end=r"\d+ tests? completed|> Task |\S+ > .+ [A-Z_]{4,}$|FAILURE: |BUILD ",
        place=r".*\bat (?:\S+\()?(?P<path>\w+\.(?:java|kt|groovy|scala)):(?P<line>\d+)\)?$",
        stop=r"\s+at ",
        by_file=False,
        frames=own_java_frames,
    ),
)
