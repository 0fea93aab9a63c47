"""Parses the output of PHPUnit, RSpec and CTest, which number the failing tests."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from atlas_retry.diagnostics.failures import (
    PHP_FRAME,
    RUBY_FRAME,
    above,
    failure,
    matching,
    php_frames,
    ruby_frames,
    titled,
)
from atlas_retry.diagnostics.values import Located, Log, parses
from atlas_retry.patterns import regex

# https://docs.phpunit.de; src/TextUI/Output/Default/ResultPrinter.php: printListHeader
_PHPUNIT_LIST = regex(r"There (?:was|were) \d+ (?:failures?|errors?):$")
_PHPUNIT_OTHER = regex(r"There (?:was|were) \d+ |\d+ tests? triggered ")
_PHPUNIT_TITLE = regex(
    r'\d+\) (?P<test>(?P<owner>[\w\\]+)::\w+(?: with data set (?:#\d+|"[^"]*"))?)'
)
_PHPUNIT_END = regex(r"(?:FAILURES|ERRORS|WARNINGS)!$|There (?:was|were) \d+ |--$")


@parses("phpunit", commands=("phpunit", "pest"), marks=("\nFAILURES!\n", "\nERRORS!\n"))
def phpunit(log: Log) -> Iterator[Located]:
    """The tests below the headings of failures and errors; others only warn."""
    lines = log.lines
    is_bad = {n: bool(_PHPUNIT_LIST.match(lines[n])) for n in matching(lines, _PHPUNIT_OTHER)}
    for first, last, title in titled(lines, _PHPUNIT_TITLE, _PHPUNIT_END):
        heading = max((number for number in is_bad if number < first), default=None)
        if heading is not None and is_bad[heading]:
            body = lines[first + 1 : last + 1]
            message = above(body, PHP_FRAME)
            problem = failure("phpunit", message, php_frames(body), title["test"], {})
            yield Located(problem, first, last)


# https://rspec.info; rspec-core, lib/rspec/core/formatters/exception_presenter.rb
_RSPEC_LIST = regex(r"Failures:$")
_RSPEC_TITLE = regex(r"  \d+\) (?P<test>\S.*)$")
_RSPEC_END = regex(r"Finished in |Failed examples:$|Top \d+ slowest |\d+ examples?, ")
_RSPEC_PLACE = regex(r"rspec (?P<path>\S+?):(?P<line>\d{1,9}) # (?P<test>.+)$")


@parses("rspec", commands=("rspec",), marks=("\nFailed examples:\n",))
def rspec(log: Log) -> Iterator[Located]:
    """The failures below their heading; above it are the pending examples, numbered as well."""
    start = max(matching(log.lines, _RSPEC_LIST), default=len(log.lines))
    lines = log.lines[start:]
    examples = {m["test"]: m for m in matching(lines, _RSPEC_PLACE).values()}
    for first, last, named in titled(lines, _RSPEC_TITLE, _RSPEC_END):
        title = named["test"]
        body = lines[first + 1 : last + 1]
        example = examples.get(title)
        place = {"path": example["path"], "line": example["line"]} if example else {}
        test_id = f"{example['path'].removeprefix('./')}::{title}" if example else title
        message = above(body, RUBY_FRAME)
        problem = failure("rspec", message, ruby_frames(body), test_id, place)
        yield Located(problem, start + first, start + last)


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


@parses("ctest", commands=("ctest",), marks=("\nThe following tests FAILED:\n",))
def ctest(log: Log) -> Iterator[Located]:
    """Each failing test with what it printed, unless another parser reads that."""
    for first, last, title in titled(log.lines, _CTEST_ENDED, _CTEST_END):
        if title["why"] not in _CTEST_UNTRIED:
            live = _ctest_live(log.lines[:first], f"{title['number']}: ")
            below = log.lines[first + 1 : last + 1]
            printed = [*filter(str.strip, (*live, *below))]
            places = matching(printed, _CTEST_PLACE)
            told = min(places, default=len(printed))
            where = places[told].groupdict() if places else {}
            message = [*printed[told:], title["how"] or title["why"]]
            problem = failure("ctest", message, (), title["test"], where)
            yield Located(problem, first - len(live), last, otherwise=True)


def _ctest_live(lines: Sequence[str], prefix: str) -> list[str]:
    """What `ctest -V` printed of a test while it ran: directly above the title, with its number."""
    own = takewhile(lambda line: line.startswith(prefix.rstrip()), reversed(lines))
    return [line.removeprefix(prefix) for line in own][::-1]
