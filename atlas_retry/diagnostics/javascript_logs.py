"""Reads what jest, vitest, mocha and `node --test` print by their default reporters."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from atlas_retry.diagnostics import stacks
from atlas_retry.diagnostics.failures import (
    above,
    failure,
    first_match,
    matching,
    titled,
)
from atlas_retry.diagnostics.lines import NODE
from atlas_retry.diagnostics.table import parser_of
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic, Frame

_STACK = re.compile(r"^ +at | \u276f ")

# https://jestjs.io/docs/cli; @jest/reporters DefaultReporter and SummaryReporter
_JEST_FILE = re.compile(r"^(?:PASS|FAIL) (?:\S+ )?(\S+\.\w+)(?: \(.+\))?$")
_JEST_TITLE = re.compile(r"^ {2}● (?!Console$)(\S.*)$")
_JEST_CODE = re.compile(r"^ *>? *\d* \|")
_JEST_SYNTAX = re.compile(
    r"^ *SyntaxError: (?P<path>[^\s:]+): (?P<message>.+) \((?P<line>\d+):(?P<column>\d+)\)$"
)
_JEST_AGAIN = re.compile(r"^Summary of all failing tests")
_JEST_END = re.compile(r"^(?:Test Suites: |Jest: |-{5,}\|)")
_JEST_SUITE = "Test suite failed to run"


def _jest(log: Log) -> Reading:
    blocks = _jest_blocks(above(log.lines, _JEST_AGAIN))  # many failures are listed twice
    return Reading(problems=tuple(_jest_failure(log.lines, *block) for block in blocks))


def _jest_blocks(lines: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """File, first and last line of each failure."""
    path, start = "", None
    for number, line in enumerate(lines):
        file, title = _JEST_FILE.match(line), _JEST_TITLE.match(line)
        ends = file or title or _JEST_END.match(line)
        if start is not None and ends:
            yield path, start, number - 1
            start = None
        path = file[1] if file else path
        start = number if title and path else start
    if start is not None:
        yield path, start, len(lines) - 1


def _jest_failure(lines: Sequence[str], path: str, first: int, last: int) -> Located:
    title = lines[first].removeprefix("  ● ").strip()
    body = lines[first + 1 : last + 1]
    test_id = path if title == _JEST_SUITE else f"{path}::{title}"
    syntax = first_match(_JEST_SYNTAX, body)
    if syntax:
        message = [f"SyntaxError: {syntax['message']}"]
        return Located(failure("jest", message, (), test_id, syntax.groupdict()), first, last)
    message = above(body, _JEST_CODE, _STACK)
    frames = stacks.javascript(body)
    return Located(failure("jest", message, frames, test_id, {"path": path}), first, last)


# https://vitest.dev/guide/reporters#default-reporter
_VITEST_TITLE = re.compile(
    r"^ ?FAIL  ?(?:\|[^|]+\| )?(?P<path>[^\s>]\S*\.\w+)(?P<names>(?: > .+)?|.*)$"
)
_VITEST_RULE = re.compile(r"^⎯{3,}")
_VITEST_CODE = re.compile(r"^ +\d*\|")
_VITEST_FILE = re.compile(r"^ +File: (?P<path>[^\s:]+)(?::(?P<line>\d+):(?P<column>\d+))?$")


def _vitest(log: Log) -> Reading:
    lines = log.lines
    blocks = titled(lines, _VITEST_TITLE, _VITEST_RULE)
    return Reading(problems=tuple(_vitest_failure(lines, *block) for block in blocks))


def _vitest_failure(lines: Sequence[str], first: int, last: int) -> Located:
    title = _VITEST_TITLE.match(lines[first])
    path, names = title.group("path", "names") if title else ("", "")
    body = lines[first + 1 : last + 1]
    file = first_match(_VITEST_FILE, body)
    test_id = f"{path}::{names.removeprefix(' > ')}" if names.startswith(" > ") else path
    place = file.groupdict() if file else {"path": path}
    message = above(body, _VITEST_CODE, _STACK)
    problem = failure("vitest", message, stacks.javascript(body), test_id, place)
    return Located(problem, first, last)


# https://mochajs.org/running/reporters; lib/reporters/base.js: Base.list, epilogue
_MOCHA_LIST = re.compile(r"^  \d+ failing$")
_MOCHA_TITLE = re.compile(r"^  \d+\) (\S.*)$")
_MOCHA_END = re.compile(r"^(?:-{5,}|={5,}|npm (?:ERR!|error) )")
_MOCHA_HOOK = re.compile(r'^"(?:before|after)(?: each| all)?" hook(?:: .+)? for "(.+)"$')
_MOCHA_TIMED_OUT = re.compile(r"^ *Error: Timeout of .+ \((\S+)\)$")


def _mocha(log: Log) -> Reading:
    """The failures of the list at the end: the titles above it have no messages."""
    start = max(matching(log.lines, _MOCHA_LIST), default=len(log.lines))
    blocks = titled(log.lines[start:], _MOCHA_TITLE, _MOCHA_END)
    failures = (_mocha_failure(log.lines, start + a, start + b) for a, b in blocks)
    return Reading(problems=tuple(failures))


def _mocha_failure(lines: Sequence[str], first: int, last: int) -> Located:
    names = _mocha_names(lines[first : last + 1])
    body = lines[first + len(names) : last + 1]
    frames = stacks.javascript(body)
    timed_out = first_match(_MOCHA_TIMED_OUT, body)
    file = frames[0].path if frames else timed_out[1] if timed_out else ""
    title = " > ".join(names)
    test_id = f"{file}::{title}" if file else title
    problem = failure("mocha", above(body, _STACK), frames, test_id, {"path": file})
    return Located(problem, first, last)


def _mocha_names(lines: Sequence[str]) -> list[str]:
    """Suites and test, one a line; the last ends with a colon. Of a hook the test it is for."""
    title = _MOCHA_TITLE.match(lines[0])
    names = [title[1] if title else lines[0].strip()]
    for line in lines[1:]:
        if names[-1].endswith(":") or not line.strip():
            break
        names.append(line.strip())
    names[-1] = names[-1].removesuffix(":")
    hook = _MOCHA_HOOK.match(names[-1])
    return [*names[:-1], hook[1]] if hook else names


# https://nodejs.org/api/test.html#test-reporters; https://testanything.org
_NODE_AT = re.compile(r"^test at (?P<path>.+?):(?P<line>\d+):(?P<column>\d+)$")
_NODE_SPEC = re.compile(r"^✖ (.+?) \([\d.]+ms\)$")
_TAP = re.compile(r"^ *not ok \d+(?: - (.+))?$")
_TAP_END = re.compile(r"^ *\.\.\.$")
_TAP_PLACE = re.compile(r"^ *location: '?(?P<path>[^']+?):(?P<line>\d+):(?P<column>\d+)'?$")
_TAP_ERROR = re.compile(r"^( *)error: (?:\|-?|'(.*)'|\"(.*)\"|(.*))$")
_MAX_TAP_LINES = 200
_NODE_CRASH = parser_of(NODE)
_NODE_FILE_FAILED = "test failed"


def _node_test(log: Log) -> Reading:
    lines = log.lines
    failures = [*_node_spec(lines), *_tap(lines)]
    if any(f.diagnostic.message == _NODE_FILE_FAILED for f in failures):
        plain = tuple(line.removeprefix("# ") for line in lines)
        failures += _NODE_CRASH.read(Log(plain, "")).problems
    return Reading(problems=tuple(failures))


def _node_spec(lines: Sequence[str]) -> Iterator[Located]:
    """The failures below `failing tests:`, where each comes with its place."""
    places = matching(lines, _NODE_AT)
    for first, after in pairwise((*places, len(lines))):
        title = _NODE_SPEC.match(lines[first + 1]) if first + 1 < after else None
        if title:
            body = lines[first + 2 : after]
            frames = stacks.javascript(body)
            message = [line for line in above(body, _STACK) if line.strip()]
            if len(message) == 1:  # a string that was thrown
                message = [message[0].strip().strip("'")]
            problem = _node_failure(title[1], message, frames, places[first].groupdict())
            yield Located(problem, first, after - 1)


def _tap(lines: Sequence[str]) -> Iterator[Located]:
    for first, title in matching(lines, _TAP).items():
        end = min(matching(lines[first : first + _MAX_TAP_LINES], _TAP_END), default=0)
        body = lines[first : first + end + 1]
        place = first_match(_TAP_PLACE, body)
        where = place.groupdict() if place else {}
        if not any("subtestsFailed" in line for line in body):
            problem = _node_failure(title[1] or "", _tap_error(body), stacks.tap(body), where)
            yield Located(problem, first, first + end)


def _tap_error(body: Sequence[str]) -> list[str]:
    """The scalar behind `error:`, or the lines of a block."""
    for number, match in matching(body, _TAP_ERROR).items():
        inline = match[2] or match[3] or match[4]
        deeper = re.compile(rf"(?!{match[1]}  |\s*$)")
        return [inline] if inline else above(body[number + 1 :], deeper)
    return []


def _node_failure(
    title: str, message: Sequence[str], frames: tuple[Frame, ...], place: dict[str, str]
) -> Diagnostic:
    file = place.get("path", "")
    test_id = file if not file or title.endswith(file) else f"{file}::{title}"
    return failure("node-test", message, frames, test_id, place)


JEST = Parser(
    name="jest",
    commands=("jest", "react-scripts test"),
    marks=("\nTest Suites: ", "\n  ● "),
    read=_jest,
)
VITEST = Parser(
    name="vitest",
    commands=("vitest",),
    marks=("\n Test Files  ", "\n  Test Files  ", "⎯ Failed "),
    read=_vitest,
)
MOCHA = Parser(name="mocha", commands=("mocha",), marks=(" passing (",), read=_mocha)
NODE_TEST = Parser(
    name="node-test",
    commands=("--test",),
    marks=("TAP version 1", "\n\u2139 tests "),
    read=_node_test,
)
