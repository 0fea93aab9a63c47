"""Parses the output of PHPUnit, RSpec, Minitest and CTest, which number the failing tests."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from atlas_retry.diagnostics.failures import above, failure, inside, matching, titled
from atlas_retry.diagnostics.values import Located, Log, OwnParser
from atlas_retry.model import Frame
from atlas_retry.patterns import regex

# https://docs.phpunit.de; src/TextUI/Output/Default/ResultPrinter.php: printListHeader
_PHPUNIT_LIST = regex(r"There (?:was|were) \d+ (?:failures?|errors?):$")
_PHPUNIT_OTHER = regex(r"There (?:was|were) \d+ |\d+ tests? triggered ")
_PHPUNIT_TITLE = regex(
    r'\d+\) (?P<test>(?P<owner>[\w\\]+)::\w+(?: with data set (?:#\d+|"[^"]*"))?)'
)
_PHPUNIT_END = regex(r"(?:FAILURES|ERRORS|WARNINGS)!$|There (?:was|were) \d+ |--$")
_PHPUNIT_FRAME = regex(r"(?P<path>[^\s:]+\.(?:php|phpt|inc)):(?P<line>\d{1,9})$")


def _phpunit(log: Log) -> Iterator[Located]:
    """The tests below the headings of failures and errors; others only warn."""
    lines = log.lines
    is_bad = {n: bool(_PHPUNIT_LIST.match(lines[n])) for n in matching(lines, _PHPUNIT_OTHER)}
    for first, last in titled(lines, _PHPUNIT_TITLE, _PHPUNIT_END):
        heading = max((number for number in is_bad if number < first), default=None)
        title = _PHPUNIT_TITLE.match(lines[first])
        if title and heading is not None and is_bad[heading]:
            body = lines[first + 1 : last + 1]
            message = above(body, _PHPUNIT_FRAME)
            problem = failure("phpunit", message, _frames(body, _PHPUNIT_FRAME), title["test"], {})
            yield Located(problem, first, last)


def _frames(lines: Sequence[str], pattern: re.Pattern[str]) -> tuple[Frame, ...]:
    """The frames of the project, outermost first, of a stack that begins with the innermost."""
    matches = [m for m in matching(lines, pattern).values() if inside(m["path"])]
    return tuple(
        Frame(path=m["path"], line=int(m["line"]), function=m.groupdict().get("function"))
        for m in reversed(matches)
    )


PHPUNIT = OwnParser(
    name="phpunit",
    commands=("phpunit", "pest"),
    marks=("\nFAILURES!\n", "\nERRORS!\n"),
    by=_phpunit,
)


_RUBY_FRAME = regex(
    r" {3,9}(?:# )?(?P<path>[^\s:]+\.\w{1,9}):(?P<line>\d{1,9}):in [`'](?P<function>[^']+)'$"
)

# https://rspec.info; rspec-core, lib/rspec/core/formatters/exception_presenter.rb
_RSPEC_LIST = regex(r"Failures:$")
_RSPEC_TITLE = regex(r"  \d+\) (?P<test>\S.*)$")
_RSPEC_END = regex(r"Finished in |Failed examples:$|Top \d+ slowest |\d+ examples?, ")
_RSPEC_PLACE = regex(r"rspec (?P<path>\S+?):(?P<line>\d{1,9}) # (?P<test>.+)$")


def _rspec(log: Log) -> Iterator[Located]:
    """The failures below their heading; above it are the pending examples, numbered as well."""
    start = max(matching(log.lines, _RSPEC_LIST), default=len(log.lines))
    lines = log.lines[start:]
    examples = {m["test"]: m for m in matching(lines, _RSPEC_PLACE).values()}
    for first, last in titled(lines, _RSPEC_TITLE, _RSPEC_END):
        title = lines[first].partition(") ")[2]
        body = lines[first + 1 : last + 1]
        example = examples.get(title)
        place = {"path": example["path"], "line": example["line"]} if example else {}
        test_id = f"{example['path'].removeprefix('./')}::{title}" if example else title
        message = above(body, _RUBY_FRAME)
        problem = failure("rspec", message, _frames(body, _RUBY_FRAME), test_id, place)
        yield Located(problem, start + first, start + last)


RSPEC = OwnParser(name="rspec", commands=("rspec",), marks=("\nFailed examples:\n",), by=_rspec)

# https://docs.seattlerb.org/minitest; lib/minitest.rb: Test#result_label, Assertion#location
_MINITEST_TITLE = regex(r" {1,3}\d+\) (?:Failure|Error):$")
_MINITEST_NAME = regex(r"(?P<test>\S+#\S.*?)(?: \[(?P<path>[^\s\]]+):(?P<line>\d{1,9})\])?:$")
_MINITEST_END = regex(r"\d+ (?:runs|tests), \d+ assertions, | {1,3}\d+\) Skipped:$")


def _minitest(log: Log) -> Iterator[Located]:
    lines = log.lines
    for first, last in titled(lines, _MINITEST_TITLE, _MINITEST_END):
        name = _MINITEST_NAME.match(lines[first + 1]) if first < last else None
        if name:
            body = lines[first + 2 : last + 1]
            place = {"path": name["path"], "line": name["line"]}
            frames = _frames(body, _RUBY_FRAME)
            message = above(body, _RUBY_FRAME)
            yield Located(failure("minitest", message, frames, name["test"], place), first, last)


MINITEST = OwnParser(
    name="minitest",
    commands=("rails test",),
    marks=(") Failure:\n", ") Error:\n"),
    by=_minitest,
)


# https://cmake.org/cmake/help/latest/manual/ctest.1.html; Source/CTest/cmCTestTestHandler.cxx
_CTEST_ENDED = regex(
    r" {0,9}\d+/\d+ Test +#(?P<number>\d+): (?P<test>.+?) ?\.{3,}(?P<how>[^*]*)\*{3}(?P<why>\S.*?)"
    r" +[\d.]+ sec$"
)
_CTEST_END = regex(r" {0,9}(?:Start +\d+: |\d+/\d+ Test +#\d+: )|\d+% tests passed, ")
_CTEST_PLACE = regex(
    r".{0,300}?(?P<path>[^\s:\"'(<]{1,300}\.(?:c|cc|cpp|cxx|h|hh|hpp|hxx)):(?P<line>\d{1,9})\b"
    r"(?!:\w{1,200}:(?:PASS|IGNORE)\b)"  # Unity's
)
_CTEST_UNTRIED = ("Skipped", "Not Run (Disabled)")


def _ctest(log: Log) -> Iterator[Located]:
    """Each failing test with what it printed, unless another parser reads that."""
    for first, last in titled(log.lines, _CTEST_ENDED, _CTEST_END):
        title = _CTEST_ENDED.match(log.lines[first])
        if title and title["why"] not in _CTEST_UNTRIED:
            live = _ctest_live(log.lines[:first], f"{title['number']}: ")
            below = log.lines[first + 1 : last + 1]
            printed = [line for line in (*live, *below) if line.strip()]
            places = matching(printed, _CTEST_PLACE)
            start = min(places, default=len(printed))
            where = places[start].groupdict() if places else {}
            message = [f"{title['test']}: {title['how'] or title['why']}", *printed[start:]]
            problem = failure("ctest", message, (), title["test"], where)
            yield Located(problem, first - len(live), last, otherwise=True)


def _ctest_live(lines: Sequence[str], prefix: str) -> list[str]:
    """What `ctest -V` printed of a test while it ran: directly above the title, with its number."""
    own = takewhile(lambda line: line.startswith(prefix.rstrip()), reversed(lines))
    return [line.removeprefix(prefix) for line in own][::-1]


CTEST = OwnParser(
    name="ctest",
    commands=("ctest",),
    marks=("\nThe following tests FAILED:\n",),
    by=_ctest,
)
