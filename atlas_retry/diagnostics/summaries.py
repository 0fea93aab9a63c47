"""How many failures a test runner counts in its last summary, whatever the exit code is.

Only summaries count, never a list of problems: a suite may print what it likes. The last summary of
an output is that of the outermost runner, as runners print it after what their tests have printed.
Sources: the runners' reporters, and the goldens.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import chain, product

from msgspec import Struct

from atlas_retry.diagnostics.failures import matching
from atlas_retry.diagnostics.sections import by_source
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
    "playwright": (r"\s+(?P<n>\d+) failed$", r"\s+\d+ flaky$", r"\s+\d+ passed \(.+\)$"),
    "bun": (r" \d+ pass$", r" (?P<n>\d+) fail$"),
    "deno": (r"(?:ok|FAILED) \| \d+ passed.* \| (?P<n>\d+) failed",),
    "mix": (r"(?:\d+ \w+, )*?\d+ tests?, (?P<n>\d+) failures?\b",),
    "rspec": (r"\d+ examples?, (?P<n>\d+) failures?\b",),
    "minitest": (r"\d+ (?:runs|tests), \d+ assertions, (?P<n>\d+) failures, (?P<n2>\d+) errors",),
    "behave": (r"\d+ scenarios? passed, (?P<n>\d+) failed(?:, (?P<n2>\d+) error)?",),
    "cucumber": (r"\d+ scenarios?(?: \((?:(?P<n>\d+) failed)?.*\))?$",),
    "jasmine": (r"\d+ specs?, (?P<n>\d+) failures?",),
    "robot": (r"\d+ tests?, \d+ passed, (?P<n>\d+) failed",),
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
"""Lines of the summaries by runner, in the order in which it prints them, each at most once.
`n...` count failures, and `bad` is a word for failures that are not counted."""
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
    of them is believed: a test may print what it likes into the other. Of several containers, as
    `docker compose up` shows them and ends with 0, each has its own.
    """
    if _IGNORED.search(stdout) or _IGNORED.search(stderr):
        return None
    spoken = [*filter(None, map(last_summary, (stdout, stderr)))]
    if not spoken:
        apart = chain.from_iterable(map(by_source, (stdout, stderr)))
        return next(filter(str, filter(None, map(last_summary, apart))), None)
    failing = [*filter(str, spoken)]
    if len(failing) == len(spoken):
        return next(iter(failing), None)
    # cargo's word on all targets is on stderr, below the results of the last one on stdout
    runners = {one.runner for one in spoken}
    worded = [one for one in failing if one.word]
    return worded[0] if worded and len(runners) == 1 else None


class _Found(Struct, frozen=True):
    """A line of a summary."""

    line: int
    runner: str
    failures: int
    word: str


def last_summary(text: str) -> Summary | None:
    """The last summary in a text; None if there is none."""
    lines = [line.rstrip("\r") for line in text.split("\n") if len(line) <= _LONGEST]
    found, tap = _last_found(lines), _tap(lines)
    if tap and (not found or tap[0] > found[0].line):
        return tap[1]
    if not found:
        return None
    words = (one.word for one in found)
    failures = sum(one.failures for one in found)
    return Summary(found[0].runner, failures, next(filter(None, words), ""))


def _last_found(lines: Sequence[str]) -> list[_Found]:
    """The lines of the last summary, the last one first: all before them are an earlier one's."""
    found: list[_Found] = []
    left: Sequence[str] = ()
    numbered = [(at, line) for at, line in enumerate(lines) if _ANY.match(line)]
    for at, line in reversed(numbered):
        matches = ((key, pattern.match(line)) for key, pattern in _ROWS.items())
        (runner, row), match = next((key, match) for key, match in matches if match)
        left = left if found else _SUMMARIES[runner]
        if row not in left:
            break
        left = left[: left.index(row)]
        named = match.groupdict("")
        word = named.pop("bad", "")
        count = sum(map(int, filter(None, named.values())))
        found.append(_Found(at, runner, count, word))
    return found


def _tap(lines: list[str]) -> tuple[int, Summary] | None:
    """Line and count of the last complete Test Anything Protocol: a plan and all its results."""
    plans, results = matching(lines, _TAP_PLAN), matching(lines, _TAP)
    plan = max(plans, default=None)
    planned = 0 if plan is None else int(plans[plan][1])
    last = [*results.values()][-planned:]
    numbers = [int(match["number"]) for match in last]
    if plan is None or not planned or numbers != [*range(1, planned + 1)]:
        return None
    bad = [match for match in last if match["bad"]]
    failures = sum(not _TAP_EXCUSED.search(match["rest"]) for match in bad)
    return max(plan, *results), Summary("tap", failures)
