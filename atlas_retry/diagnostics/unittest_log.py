"""Reads what Python's unittest prints, Django's test runner included."""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics import traceback
from atlas_retry.diagnostics.failures import matching
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic

# https://docs.python.org/3/library/unittest.html; unittest/runner.py: printErrorList
_TITLE = re.compile(r"^(ERROR|FAIL|UNEXPECTED SUCCESS): (\S+)(?: \(([^()\s]+)\))?(?: (.*))?$")
_RULE = re.compile(r"^(?:={70}|-{70})$")
_RAN = re.compile(r"^Ran (\d{1,9}) tests? in ")
_END = re.compile(r"^(?:FAILED \(.+\)|OK(?: \(.+\))?|NO TESTS RAN(?: \(.+\))?)$")

_SKIPPED = re.compile(r"\bskipped=(\d{1,9})")


def _read(log: Log) -> Reading:
    lines = log.lines
    failures = tuple(_failure(lines, first, last) for first, last in _blocks(lines))
    ran = matching(lines, _RAN)
    ends = matching(lines, _END) if ran else {}
    skipped = sum(int(m[1]) for i in ends if (m := _SKIPPED.search(lines[i])))
    count = max(0, sum(int(m[1]) for m in ran.values()) - skipped) if ran else None
    return Reading(
        problems=failures,
        summary=tuple(sorted((*ran, *ends))),
        tests_run=count,
        vacuous=count == 0 and not failures,
    )


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last line of each failure, from below its rule to above the next one."""
    rules = matching(lines, _RULE)
    for title in matching(lines, _TITLE):
        if title - 1 in rules:
            yield title, _last_line(lines, title)


def _last_line(lines: Sequence[str], title: int) -> int:
    """Above the second rule of dashes, a rule of another failure, or the counts."""
    below = False
    for number in range(title + 1, len(lines)):
        is_rule = _RULE.match(lines[number]) is not None
        is_end = is_rule and (below or lines[number].startswith("="))
        if is_end or _RAN.match(lines[number]):
            return number - 1
        below = below or is_rule
    return len(lines) - 1


def _failure(lines: Sequence[str], first: int, last: int) -> Located:
    match = _TITLE.match(lines[first])
    word, name, owner, case = match.groups() if match else ("FAIL", lines[first], None, None)
    problem = traceback.crash("unittest", lines[first : last + 1])
    test_id = _test_id(name, owner)
    if problem is None:
        problem = Diagnostic(tool="unittest", message=word.lower(), rule_id=word.lower())
    elif case and case.startswith(("(", "[")):
        problem = replace(problem, message=f"{case} {problem.message}")
    return Located(replace(problem, test_id=test_id), first, last)


def _test_id(name: str, owner: str | None) -> str:
    """The dotted name that unittest takes on its command line; before 3.11 without the method."""
    if owner is None or owner.startswith("unittest.loader."):
        return name
    return owner if owner.endswith(f".{name}") else f"{owner}.{name}"


UNITTEST = Parser(
    name="unittest",
    commands=("-m unittest", "manage.py test"),
    marks=("\nFAILED (failures=", "\nFAILED (errors=", "\nNO TESTS RAN", "\nRan "),
    read=_read,
)
