"""Whether any test ran, by the summaries of all known runners.

Every line is matched against every pattern, because a script or `make test` hides the runner's
name. Sources: the runners' reporters, and the goldens.
"""

import re

from atlas_retry.diagnostics.values import Log
from atlas_retry.patterns import regex

_PYTEST_NOTHING = 5
"""https://docs.pytest.org/en/stable/reference/exit-codes.html; the same in unittest."""
_LONGEST = 200
"""Maximum characters of a line with test counts."""

_COUNTS = (
    r"(?:=+ )?(?:\d+ [a-z ]{1,40}, )*(?P<ran>\d+) x?(?:failed|passed)\b.* in [\d.]+s",  # pytest
    r"(?:=+ )?\d+ (?:skipped|deselected)(?:, \d+ [a-z ]{1,40})*(?P<ran>) in [\d.]+s",
    r"Ran (?P<ran>\d+) tests? in ",  # unittest
    r"(?:FAILED|OK|NO TESTS RAN) \(.*\bskipped=(?P<less>\d+)",
    r"Tests: +(?:.*?(?P<ran>\d+) (?:failed|passed))?.*\d total$",  # jest
    r" +Tests {2}(?:.*?(?P<ran>\d+) (?:failed|passed))?",  # vitest
    r"(?:#|\u2139) (?:pass (?P<ran>\d+)|(?:fail|cancelled) (?P<ran2>[1-9]\d*))$",  # node --test
    r"\s+(?P<ran>\d+) (?:passing \(|failing$)",  # mocha
    r"\s+(?P<ran>[1-9]\d*) (?:tests? passed|tests? failed|known failures?)$",  # ava
    r"\s+\d+(?P<ran>) tests? (?:skipped|todo)$",
    r"Running \d+(?P<ran>) tests? using ",  # playwright
    r"\s+(?P<ran>[1-9]\d*) (?:passed|failed|flaky|interrupted)(?: \(.+\))?$",
    r"# \{ total: (?P<ran>\d+)(?:.*\bskip: (?P<less>\d+))?",  # tap
    r"(?P<ran>(?:not )?ok) \d+ (?!- )(?!.*# skip)",  # bats
    r"ok \d+(?P<ran>) .*# skip",
    r"(?:\d+ \w+, )*?(?P<ran>\d+) tests?, \d+ failures?\b",  # as well as mix test
    r"(?:\d+ \w+, )*?\d+ tests?, \d+ f.*?\b(?P<less>\d+) excluded",
    r"(?:\d+ \w+, )*?\d+ tests?, \d+ f.*?\b(?P<less>\d+) skipped",
    r" (?P<ran>\d+) pass$| (?P<ran2>[1-9]\d*) fail$",  # bun
    r"(?:ok|FAILED) \| (?P<ran>\d+) passed.* \| (?P<ran2>\d+) failed",  # deno
    r".*: Executed (?P<ran>\d+) of \d+",  # karma
    r"(?P<ran>\d+) examples?, \d+ failures?(?:, (?P<less>\d+) pending)?$",  # rspec
    r"(?P<ran>\d+) (?:runs|tests), \d+ assertions, .*?(?P<less>\d+) (?:skips|pendings)",
    r"(?P<ran>\d+) scenarios? passed, (?P<ran2>\d+) failed",  # behave
    r"(?P<ran>\d+) scenarios?(?: \((?:.*?(?P<less>\d+) skipped)?.*\))?$",  # cucumber
    r"(?P<ran>\d+) specs?, \d+ failures?(?:, (?P<less>\d+) pending specs?)?$",  # jasmine
    r"(?P<ran>\d+) tests?, \d+ passed, \d+ failed(?:, (?P<less>\d+) skipped)?$",  # robot
    r" {2}(?:Total: +(?P<ran>\d+)|Skipped: +(?P<less>\d+))$",  # uvu
    r"OK \((?P<ran>\d+) tests?, ",  # phpunit; above it minitest
    r"Tests: (?P<ran>\d+), Assertions: \d+(?:.*\bSkipped: (?P<less>\d+))?",
    r"\d+% tests passed, \d+ tests failed out of (?P<ran>\d+)$",  # ctest
    r"\s+\d+ - .+ \((?P<less>S)kipped\)$",
    r"(?:> Task )?(?::[\w-]+)*:(?P<ran>(?:\w+T|t)est)(?: [UF][A-Z-]+)?$",  # gradle
    r"(?:Passed|Failed|Skipped)!\s+- Failed:\s+(?P<ran>\d+), Passed:\s+(?P<ran2>\d+),",
    r" {4,5}(?:Passed: (?P<ran>\d+)|Failed: (?P<ran2>[1-9]\d*))$",  # dotnet test
    r"\s+(?:succeeded: (?P<ran>\d+)|failed: (?P<ran2>[1-9]\d*))$",
    r"\s*Executed (?P<ran>\d+) tests?, with (?:(?P<less>\d+) tests? skipped and )?\d+ f",
    r".*Test run with (?P<ran>\d+) tests?\b",  # swift test
    r"\s+Summary \[.*\] (?P<ran>\d+)(?:/\d+)? tests? run: ",  # cargo nextest
    r"\[\w+\] .+: Total \d+, Failed (?P<ran>\d+), Errors (?P<ran2>\d+), Passed (?P<ran3>\d+)",
    r"(?P<ran>FAIL|ok  )\t(?!.*\[no tests to run\]$)",  # go test
    r"test result: \w+\. (?P<ran>\d+) passed; (?P<ran2>\d+) failed; ",  # cargo test
    r"(?:\[\w+\] )?Tests run: (?P<ran>\d+), .+, Skipped: (?P<less>\d+)$",  # Maven
)
"""Numbers in `ran...` are added, those in `less...` subtracted; a word counts as 1, an empty match
as 0. A pattern that accepts 0 must count all tests or those that passed, because no failed or
skipped tests tell nothing about the others."""

_NONE = regex(r"""(?x)
    (?:=+[ ])?no[ ]tests[ ]ran[ ]in[ ]                                       # pytest
    | (?:=+[ ])?\d+(?:/\d+)?[ ]tests?[ ]collected[ ](?:\(.+\)[ ])?in[ ]       # --collect-only
    | No[ ]tests[ ]found,[ ]exiting[ ]with[ ]code                            # jest
    | No[ ]test[ ]files[ ]found                                              # vitest, tap
    | Error:[ ]No[ ]tests?[ ](?:files[ ])?found                              # mocha, playwright
    | \s+✘[ ](?:Couldn.t[ ]find[ ]any[ ](?:files[ ]to[ ]test|matching[ ]tests)
                |No[ ]tests[ ]found[ ]in[ ])                                  # ava
    | 1\.\.0$                                                                # bats
    | No[ ]tests[ ]found!$ | error:[ ]regex[ ]".*"[ ]matched[ ]0[ ]tests    # bun
    | error:[ ](?:No[ ]test[ ]modules[ ]found|no[ ]tests[ ](?:to[ ]run$|found;))
    | .*:[ ]Executed[ ]0[ ]of[ ](?:0|\d+[ ]\(skipped[ ]\d+\))[ ]SUCCESS         # karma
    | No[ ]examples[ ]found\.$ | All[ ]examples[ ]were[ ]filtered[ ]out$    # rspec
    | No[ ]tests[ ]executed! | No[ ]tests[ ]were[ ]found!!!$                # phpunit, ctest
    | (?:>[ ]Task[ ])?(?::[\w-]+)*:(?:\w+T|t)est[ ](?:NO-SOURCE|SKIPPED)$    # gradle
    | .*No[ ]tests[ ]found[ ]for[ ]given[ ]includes
    | No[ ]test[ ](?:is[ ]available[ ]in|matches[ ]the[ ]given[ ]testcase[ ]filter)[ ]
    | Test[ ]run[ ]summary:[ ]Zero[ ]tests[ ]ran                             # dotnet test
    | There[ ]are[ ]no[ ]tests[ ]to[ ]run$                                   # mix test
    | \[info\][ ]No[ ]tests[ ](?:were[ ]executed\.|to[ ]run[ ]for[ ])        # sbt
    | \?[ ]{3}\t\S+\t\[no[ ]test[ ]files\]$ | ok[ ]{2}\t.*\[no[ ]tests[ ]to[ ]run\]$
    | (?:\[INFO\][ ])?No[ ]tests[ ]to[ ]run\.                                # Maven
    | (?:[^ ]+:[ ])?(?:0[ ]of[ ]0|0/0)[ ](?:tests?|specs?|checks?)\b
    | (?:[Ww]arning:[ ]|error:[ ])?No[ ]Python[ ]files[ ]found\b
    """)
"""Messages that no test ran."""
_IDLE = regex(r"g?make(\[\d+\])?: (['`\u2018].+['\u2019] is up to date\.$|Nothing to be done for )")
"""What make prints if it runs nothing."""
_GO_TEST = regex(r"^ *--- (PASS|FAIL|SKIP): ")
_ENDED = regex(r"\b(\d+) (?:tests? )?(?:pass|fail)(?:ed|ing)?\b")
_COUNTING = tuple(map(regex, _COUNTS))
_SAYS = regex("|".join(re.sub(r"\?P<\w+>", "?:", count) for count in _COUNTS))


def tests_ran(log: Log) -> bool | None:
    """Whether a runner reports that a test ran; None if none reports either.

    A count of 0, without a message, proves nothing if the command failed.
    """
    if not log.text:
        return None
    lines = _short(log)
    summary = [line for line in lines if _SAYS.match(line)]
    if sum(map(_ran, summary)) > 0:
        return True
    spoken = list(filter(str.strip, log.lines))
    is_idle = bool(spoken) and all(map(_IDLE.match, spoken))
    none = is_idle or any(map(_NONE.match, lines))
    has_passed = log.exit_code in (0, _PYTEST_NOTHING)
    return False if none or (summary and has_passed) else None


def tests_counted(text: str) -> int | None:
    """How many tests passed or failed by the summaries in an output; None if there is no summary.

    Comparable only between outputs of the same command, as some runners count packages.
    """
    summary = [line for line in _short(Log.of(text)) if _SAYS.match(line)]
    if not summary:
        return None
    return sum(sum(map(int, _ENDED.findall(line))) or _ran(line) for line in summary)


def _short(log: Log) -> list[str]:
    """The lines that may count tests.

    A Go package whose listed tests were all skipped is marked as one without.
    """
    short: list[str] = []
    listed = set[str]()
    for line in log.lines:
        listed.update(_GO_TEST.findall(line))
        is_end = line.startswith(("ok  \t", "FAIL\t"))
        marked = f"{line} [no tests to run]" if is_end and listed == {"SKIP"} else line
        listed -= listed if is_end else set()
        if len(marked) <= _LONGEST:
            short.append(marked)
    return short


def _ran(line: str) -> int:
    total = 0
    for match in filter(None, (count.match(line) for count in _COUNTING)):
        for name, count in match.groupdict("").items():
            tests = int(count) if count.isdigit() else bool(count)
            total += -tests if name.startswith("less") else tests
    return total
