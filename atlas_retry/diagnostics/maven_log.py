"""Reads what Maven's surefire and failsafe print. What the compiler says is a row."""

import re
from collections.abc import Iterator, Sequence

from atlas_retry.diagnostics import stacks
from atlas_retry.diagnostics.failures import above, matching, placed, shortened
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic

# https://maven.apache.org/surefire/maven-surefire-plugin/
_TITLE = re.compile(
    r"""^
    (?:\[ERROR\][ ])?
    (?P<name>[\w.$]+(?:\(.*?\))?(?:\[[^\]]*\])?)  # a method, its parameters and their number
    (?:\((?P<owner>[\w.$]+)\))?
    (?:[ ]--|)[ ]{1,2}Time[ ]elapsed:[ ][\d.,]+[ ]s(?:ec)?
    [ ]+<<<[ ](?:FAILURE|ERROR)!
    $""",
    re.VERBOSE,
)
_RAISED = re.compile(r"^(?:Caused by: )?([\w.$]+)(?:: (.*))?$")
_STACK = re.compile(r"\tat ")
_TOTAL = re.compile(
    r"^(?:\[\w+\] )?Tests run: (?P<run>\d+), Failures: \d+, Errors: \d+, Skipped: (?P<skipped>\d+)$"
)
_NONE = re.compile(r"^(?:\[INFO\] )?No tests to run\.")


def _read(log: Log) -> Reading:
    lines = log.lines
    totals = matching(lines, _TOTAL)
    none = any(map(_NONE.match, lines))
    counts = [int(m["run"]) - int(m["skipped"]) for m in totals.values()]
    ran = sum(counts) if counts or none else None
    return Reading(
        found=tuple(_failure(lines, first, last) for first, last in _blocks(lines)),
        summary=tuple(totals),
        tests_run=ran,
        vacuous=ran == 0,
    )


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last line of each failure: the stack below it ends at a blank line."""
    for first, line in enumerate(lines):
        if not _TITLE.match(line):
            continue
        last = first
        for number in range(first + 1, len(lines)):
            if _TITLE.match(lines[number]) or (not lines[number].strip() and _over(lines, number)):
                break
            last = number
        yield first, last


def _over(lines: Sequence[str], number: int) -> bool:
    """Whether a blank line is behind the stack, and not inside the message."""
    below = lines[number + 1] if number + 1 < len(lines) else ""
    return not below.strip() or below.startswith("[") or bool(_TITLE.match(below))


def _failure(lines: Sequence[str], first: int, last: int) -> Located:
    title = _TITLE.match(lines[first])
    name = title["name"] if title else ""
    plain = name.partition("(")[0].partition("[")[0]
    owner = (title["owner"] if title else None) or plain.rpartition(".")[0]
    body = lines[first + 1 : last + 1]
    raised = _RAISED.match(body[0]) if body else None
    told = Diagnostic(
        tool="maven",
        rule_id=raised[1].rpartition(".")[2] if raised else None,
        message=shortened(above(body, _STACK)) or "failed",
        test_id=name if name.startswith(owner) else f"{owner}.{name}",
    )
    return Located(placed(told, stacks.java(body, owner), {}), first, last)


MAVEN = Parser(
    name="maven",
    commands=("mvn", "mvnw", "mvnd"),
    marks=("Tests run: ", "No tests to run."),
    read=_read,
)
