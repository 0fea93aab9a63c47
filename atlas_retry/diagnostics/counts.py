"""Reads how many tests a runner says it ran. A row a runner; reads no failure."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import chain

from msgspec import Struct

from atlas_retry.diagnostics.values import Log, Parser, Reading


class Runner(Struct, frozen=True, kw_only=True):
    """A runner whose closing lines count tests.

    Groups of `counts`: numbers under `ran...` are added, those under `less...` did not run; a word
    in the place of a number is one test, nothing is none.
    """

    name: str
    counts: tuple[str, ...] = ()
    """Lines that say how many tests there were."""
    empty: str | None = None
    """A line that says in words that no test ran, whatever the exit code."""
    largest: bool = False
    """The same total is printed again and again: only the largest counts."""
    commands: tuple[str, ...] = ()
    """Words that start the runner; none = its name."""
    marks: tuple[str, ...] = ()


def parser_of(runner: Runner) -> Parser:
    """The parser of a runner's closing lines."""
    return Parser(
        name=runner.name,
        commands=runner.commands or (runner.name,),
        marks=runner.marks,
        read=partial(read, runner),
    )


def read(runner: Runner, log: Log) -> Reading:
    """Without a word for it, a count of 0 proves nothing of a command that failed."""
    counted = tuple(chain.from_iterable(_matches(pattern, log) for pattern in runner.counts))
    empty = tuple(i for i, _ in _matches(runner.empty, log)) if runner.empty else ()
    numbers = [_number(match) for _, match in counted]
    ran = max(0, max(numbers, default=0) if runner.largest else sum(numbers))
    is_counted = bool(empty) or (bool(counted) and log.exit_code == 0)
    return Reading(
        tests_run=ran if counted or empty else None,
        vacuous=is_counted and ran == 0,
    )


def _matches(pattern: str, log: Log) -> Iterator[tuple[int, re.Match[str]]]:
    search = re.compile(pattern).search
    for number, line in enumerate(log.lines):
        if match := search(line):
            yield number, match


def _number(match: re.Match[str]) -> int:
    total = 0
    for name, count in match.groupdict("").items():
        tests = int(count) if count.isdigit() else bool(count)
        total += -tests if name.startswith("less") else tests
    return total


MOCHA = Runner(
    name="mocha",
    # https://mochajs.org/running/reporters
    counts=(r"^\s+(?P<ran>\d+) (?:passing \(|failing$)",),
    empty=r"^Error: No test files found",
    marks=(" passing (", "Error: No test files found"),
)
RUNNERS = (
    Runner(
        name="ava",
        # https://github.com/avajs/ava/tree/main/lib/reporters
        counts=(
            r"^\s+(?P<ran>\d+) (?:tests? passed|tests? failed|known failures?)$",
            r"^\s+\d+(?P<ran>) tests? (?:skipped|todo)$",
        ),
        empty=r"^\s+✘ (?:Couldn.t find any (?:files to test|matching tests)|No tests found in )",
        marks=("  ✘ Couldn\u2019t find any", "  ✘ No tests found in ", "\n  ─\n"),
    ),
    Runner(
        name="playwright",
        # https://playwright.dev/docs/test-reporters
        counts=(
            r"^\s+(?P<ran>\d+) (?:passed|failed|flaky|interrupted)(?: \(.+\))?$",
            r"^\s+\d+(?P<ran>) (?:skipped|did not run)$",
        ),
        empty=r"^Error: No tests found",
        commands=("playwright test",),
        marks=(" test using ", " tests using ", "Error: No tests found\n"),
    ),
    Runner(
        name="tap",
        # https://node-tap.org/docs/reporter/
        counts=(r"^# \{ total: (?P<ran>\d+)(?:.*\bskip: (?P<less>\d+))?",),
        empty=r"^No test files found$",
        marks=("# { total: ", "No test files found\n"),
    ),
    Runner(
        name="bats",
        # https://bats-core.readthedocs.io/en/stable/usage.html
        counts=(
            r"^(?P<ran>(?:not )?ok) \d+ (?!.*# skip)",
            r"^ok \d+(?P<ran>) .*# skip",
            r"^(?P<ran>\d+) tests?, \d+ failures?(?:, (?P<less>\d+) skipped)?$",
        ),
        empty=r"^1\.\.0$",
        marks=("1..0\n", " # skip"),
    ),
    Runner(
        name="bun",
        # https://bun.com/docs/test
        counts=(r"^ (?P<ran>\d+) (?:pass|fail)$",),
        empty=r'^No tests found!$|^error: regex ".*" matched 0 tests',
        commands=("bun test",),
        marks=("bun test v",),
    ),
    Runner(
        name="deno",
        # https://docs.deno.com/runtime/reference/cli/test/
        counts=(r"^(?:ok|FAILED) \| (?P<ran>\d+) passed.* \| (?P<ran2>\d+) failed",),
        empty=r"^error: No test modules found",
        commands=("deno test",),
        marks=("\nok | ", "\nFAILED | ", "error: No test modules found"),
    ),
    Runner(
        name="karma",
        # https://karma-runner.github.io/latest/config/configuration-file.html
        counts=(r": Executed (?P<ran>\d+) of \d+",),
        empty=r": Executed 0 of (?:0|\d+ \(skipped \d+\)) SUCCESS",
        largest=True,
        commands=("karma start", "ng test"),
        marks=("): Executed ",),
    ),
    Runner(
        name="rspec",
        # https://rspec.info/features/3-13/rspec-core/command-line/
        counts=(r"^(?P<ran>\d+) examples?, \d+ failures?(?:, (?P<less>\d+) pending)?$",),
        empty=r"^No examples found\.$|^All examples were filtered out$",
        marks=(" examples, ", " example, "),
    ),
    Runner(
        name="minitest",
        # https://docs.seattlerb.org/minitest/
        counts=(
            r"^(?P<ran>\d+) (?:runs|tests), \d+ assertions, .*?(?P<less>\d+) (?:skips|pendings)",
        ),
        marks=(" assertions, ",),
    ),
    Runner(
        name="phpunit",
        # https://docs.phpunit.de/en/9.6/textui.html
        counts=(
            r"^OK \((?P<ran>\d+) tests?, ",
            r"^Tests: (?P<ran>\d+), Assertions: \d+(?:.*\bSkipped: (?P<less>\d+))?",
        ),
        empty=r"^No tests executed!",
        marks=("PHPUnit ",),
    ),
    Runner(
        name="ctest",
        # https://cmake.org/cmake/help/latest/manual/ctest.1.html
        counts=(
            r"^\d+% tests passed, \d+ tests failed out of (?P<ran>\d+)$",
            r"^\s+\d+ - .+ \((?P<less>S)kipped\)$",
        ),
        empty=r"^No tests were found!!!$",
        marks=(" tests failed out of ", "No tests were found!!!"),
    ),
    Runner(
        name="gradle",
        # https://docs.gradle.org/current/userguide/more_about_tasks.html#sec:task_outcomes
        counts=(r"^(?:> Task )?(?::[\w-]+)*:(?P<ran>(?:\w+T|t)est)(?: [UF][A-Z-]+)?$",),
        empty=r"^(?:> Task )?(?::[\w-]+)*:(?:\w+T|t)est (?:NO-SOURCE|SKIPPED)$"
        r"|No tests found for given includes",
        commands=("gradle", "gradlew"),
        marks=(":test ", ":test\n"),
    ),
    Runner(
        name="dotnet-test",
        # https://learn.microsoft.com/en-us/dotnet/core/tools/dotnet-test
        counts=(
            r"^(?:Passed|Failed|Skipped)!\s+- Failed:\s+(?P<ran>\d+), Passed:\s+(?P<ran2>\d+),",
            r"^ {4,5}(?:Passed|Failed): (?P<ran>\d+)$",
            r"^\s+(?:succeeded|failed): (?P<ran>\d+)$",
        ),
        empty=r"^No test (?:is available in|matches the given testcase filter) "
        r"|^Test run summary: Zero tests ran",
        commands=("dotnet test", "dotnet vstest"),
        marks=("No test is available in ", "! - Failed:", "! -  Failed:", "Test run summary: "),
    ),
    Runner(
        name="swift-test",
        # https://github.com/swiftlang/swift-corelibs-xctest and swift-testing
        counts=(
            r"^\s*Executed (?P<ran>\d+) tests?, with (?:(?P<less>\d+) tests? skipped and )?\d+ f",
            r"Test run with (?P<ran>\d+) tests?\b",
        ),
        empty=r"^error: no tests found; create a target in ",
        largest=True,
        commands=("swift test", "xcodebuild"),
        marks=(" (0 unexpected) in ", "Test run with "),
    ),
    Runner(
        name="nextest",
        # https://nexte.st/docs/running/
        counts=(r"^\s+Summary \[.*\] (?P<ran>\d+)(?:/\d+)? tests? run: ",),
        empty=r"^error: no tests to run$",
        commands=("cargo nextest",),
        marks=(" tests run: ", " test run: ", "error: no tests to run"),
    ),
    Runner(
        name="mix-test",
        # https://hexdocs.pm/mix/Mix.Tasks.Test.html
        counts=(
            (
                r"^(?:\d+ \w+, )*?(?P<ran>\d+) tests?, \d+ failures?\b"
                r"(?:.*?\b(?P<less>\d+) excluded)?(?:.*?\b(?P<less2>\d+) skipped)?"
            ),
        ),
        empty=r"^There are no tests to run$",
        commands=("mix test",),
        marks=(
            "There are no tests to run",
            "\nRandomized with seed ",
            "\nRunning ExUnit with seed",
        ),
    ),
    Runner(
        name="sbt",
        # https://www.scala-sbt.org/1.x/docs/Testing.html
        counts=(
            (
                r"^\[(?:info|error)\] (?:Passed|Failed|Error): Total \d+, "
                r"Failed (?P<ran>\d+), Errors (?P<ran2>\d+), Passed (?P<ran3>\d+)"
            ),
        ),
        empty=r"^\[info\] No tests (?:were executed\.|to run for )",
        marks=("[info] No tests ", ": Total "),
    ),
)
