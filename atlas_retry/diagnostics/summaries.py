"""How many failures a test runner counts in its last summary, whatever the exit code is.

Only summaries count, never a list of problems: a suite may print what it likes. The last summary of
an output is that of the outermost runner, as runners print it after what their tests have printed.
Sources: the runners' reporters, and the goldens.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product

from msgspec import Struct

from atlas_retry.patterns import regex

_LONGEST = 300

_PYTEST = (
    r"(?:=+ )?(?=\d+ [a-z]+\b.* in [\d.]+s)(?:(?P<n>\d+) failed\b)?"
    r"(?:(?:, )?\d+ (?!errors?\b)[a-z]+)*(?:(?:, )?(?P<n2>\d+) errors?\b)?.* in [\d.]+s"
)
_UNITTEST = (
    r"(?:FAILED \((?:failures=(?P<n>\d+))?(?:, )?(?:errors=(?P<n2>\d+))?[^)]*\)"
    r"|(?:OK|NO TESTS RAN)(?: \([^)]*\))?)$"
)
_PHPUNIT = (
    r"OK \(\d+ tests?, "
    r"|Tests: \d+, Assertions: \d+(?:, Errors: (?P<n>\d+))?(?:, Failures: (?P<n2>\d+))?"
)
_SUMMARIES: Mapping[str, tuple[str, ...]] = {
    "pytest": (_PYTEST,),
    "unittest": (_UNITTEST,),
    "jest": (r"Tests: +(?:(?P<n>\d+) failed)?.*\d total$",),
    "jest suites": (r"Test Suites: +(?:(?P<n>\d+) failed)?.*\d total$",),
    "vitest": (r" +Tests {2}(?:(?P<n>\d+) failed)?.*\(\d+\)$",),
    "node": (r"(?:#|\u2139) fail (?P<n>\d+)$", r"(?:#|\u2139) cancelled (?P<n>\d+)$"),
    "mocha": (r"\s+\d+ passing \(", r"\s+(?P<n>\d+) failing$"),
    "ava": (
        r"\s+(?P<n>\d+) tests? failed$",
        r"\s+\d+ tests? passed$",
        r"\s+(?P<n>\d+) (?:uncaught exceptions?|unhandled rejections?)$",
    ),
    "playwright": (r"\s+(?P<n>\d+) failed$", r"\s+\d+ passed \(.+\)$", r"\s+\d+ flaky$"),
    "bun": (r" (?P<n>\d+) fail$", r" \d+ pass$"),
    "deno": (r"(?:ok|FAILED) \| \d+ passed.* \| (?P<n>\d+) failed",),
    "mix": (r"(?:\d+ \w+, )*?\d+ tests?, (?P<n>\d+) failures?\b",),
    "rspec": (r"\d+ examples?, (?P<n>\d+) failures?\b",),
    "minitest": (r"\d+ (?:runs|tests), \d+ assertions, (?P<n>\d+) failures, (?P<n2>\d+) errors",),
    "phpunit": (_PHPUNIT,),
    "ctest": (r"\d+% tests passed, (?P<n>\d+) tests failed out of \d+$",),
    "dotnet": (
        r"(?:Passed|Failed|Skipped)!\s+- Failed:\s+(?P<n>\d+), Passed:",
        r"Test Run (?P<bad>Failed)\.$|Test Run Successful\.$",
    ),
    "swift": (r"\s*Executed \d+ tests?, with (?:\d+ tests? skipped and )?(?P<n>\d+) failures?",),
    "nextest": (r"\s+Summary \[.*\] \d+(?:/\d+)? tests? run: (?:.*?(?P<n>\d+) failed)?",),
    "cargo": (
        r"test result: \w+\. \d+ passed; (?P<n>\d+) failed; ",
        r"error: (?P<bad>test failed|\d+ targets? failed)",
    ),
    "go": (r"(?P<bad>FAIL)$|ok  \t|PASS$",),
    "prove": (r"Result: (?:PASS|NOTESTS|(?P<bad>FAIL))$",),
    "gradle": (r"BUILD (?:(?P<bad>FAILED)|SUCCESSFUL) in ",),
    "maven": (r"(?:\[\w+\] )?BUILD (?:(?P<bad>FAILURE)|SUCCESS)$",),
    "sbt": (r"\[\w+\] .+: Total \d+, Failed (?P<n>\d+), Errors (?P<n2>\d+), Passed \d+",),
    "gtest": (r"\[  PASSED  \] \d+ tests?\.$", r" ?(?P<n>\d+) FAILED TESTS?$"),
}
"""Lines of the summaries by runner, each of which occurs once in a summary. `n...` count failures,
and `bad` is a word for failures that are not counted. `make` and `tox` say that they ignore one."""
_PAIRS = chain.from_iterable(product([runner], rows) for runner, rows in _SUMMARIES.items())
_ROWS = {pair: regex(pair[1]) for pair in _PAIRS}
_ANY = regex("|".join(re.sub(r"\?P<\w+>", "?:", row.pattern) for row in _ROWS.values()))
_IGNORED = regex(r"(?m)^make(\[\d+\])?: \[.*\] Error \d+ \(ignored\)|: IGNORED FAIL code \d+")
"""What make and tox print of a failure that they were asked to ignore."""
_TAP = regex(r"(?P<bad>not )?ok (?P<number>\d+)\b(?P<rest>.*)$")
_TAP_PLAN = regex(r"1\.\.(\d+)\b")
_TAP_EXCUSED = regex(r"(?i)#\s*(?:todo|skip)\b")


class Summary(Struct, frozen=True):
    """The last summary of an output."""

    runner: str
    failures: int
    word: str = ""
    """The runner's own word, if it does not count failures: `FAIL`."""

    def __str__(self) -> str:
        return f"{self.failures} failed" if self.failures else self.word


def failures_counted(stdout: str, stderr: str) -> Summary | None:
    """The last summary, if it counts failures that no tool was asked to ignore.

    The order of lines in different streams is unknown, so a last summary without failures in one
    of them is believed: a test may print what it likes into the other.
    """
    if _IGNORED.search(stdout) or _IGNORED.search(stderr):
        return None
    spoken = [*filter(None, map(last_summary, (stdout, stderr)))]
    failing = [*filter(str, spoken)]
    if len(failing) == len(spoken):
        return next(iter(failing), None)
    # cargo's word on all targets is on stderr, below the results of the last one on stdout
    runners = {one.runner for one in spoken}
    worded = [one for one in failing if one.word]
    return worded[0] if worded and len(runners) == 1 else None


def last_summary(text: str) -> Summary | None:
    """The last summary in a text; None if there is none."""
    lines = [line.rstrip("\r") for line in text.split("\n") if len(line) <= _LONGEST]
    found, tap = [*_found(lines)], _tap(lines)
    if tap and (not found or tap[0] > found[-1].line):
        return tap[1]
    return _joined(found) if found else None


def _joined(found: Sequence["_Found"]) -> Summary:
    """The last summary: lines of one runner, up to a second one of the same row."""
    rows: dict[str, _Found] = {}
    for one in reversed(found):
        if one.runner != found[-1].runner or one.row in rows:
            break
        rows[one.row] = one
    words = (one.word for one in rows.values())
    failures = sum(one.failures for one in rows.values())
    return Summary(found[-1].runner, failures, next(filter(None, words), ""))


class _Found(Struct, frozen=True):
    """A line of a summary."""

    line: int
    runner: str
    row: str
    failures: int
    word: str


def _found(lines: Iterable[str]) -> Iterator[_Found]:
    for at, line in enumerate(lines):
        if not _ANY.match(line):
            continue
        for (runner, row), pattern in _ROWS.items():
            if match := pattern.match(line):
                named = match.groupdict("")
                word = named.pop("bad", "")
                yield _Found(at, runner, row, sum(map(int, filter(None, named.values()))), word)
                break


def _matches(pattern: re.Pattern[str], lines: list[str]) -> list[tuple[int, re.Match[str]]]:
    found = ((at, pattern.match(line)) for at, line in enumerate(lines))
    return [(at, match) for at, match in found if match]


def _tap(lines: list[str]) -> tuple[int, Summary] | None:
    """Line and count of the last complete Test Anything Protocol: a plan and all its results."""
    plans, results = _matches(_TAP_PLAN, lines), _matches(_TAP, lines)
    planned = int(plans[-1][1][1]) if plans else 0
    if not planned:
        return None
    last = results[-planned:]
    if [int(match["number"]) for _, match in last] != [*range(1, planned + 1)]:
        return None
    bad = [match for _, match in last if match["bad"]]
    failures = sum(not _TAP_EXCUSED.search(match["rest"]) for match in bad)
    return max(last[-1][0], plans[-1][0]), Summary("tap", failures)
