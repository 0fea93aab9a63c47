"""Reads Python tracebacks, frames and exceptions, and unittest, which prints little else."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import filterfalse, takewhile

from msgspec.structs import replace

from atlas_retry.diagnostics.failures import above, inside, matching, placed, shortened
from atlas_retry.diagnostics.values import Located, Log, Parser
from atlas_retry.model import Diagnostic, Frame

# https://docs.python.org/3/library/traceback.html
_FRAME = re.compile(r'^ *File "([^"]+)", line (\d{1,9})(?:,? in (.+))?$')
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]{0,200})(?:: (.*))?$")
_BAR = re.compile(r"^ *\| ?")
_BETWEEN = re.compile(r"^ *\+(?:-[-+]*(?: [\d.]+ -+)?| Exception Group .*)$")
# https://docs.python.org/3/library/faulthandler.html: the innermost frame comes first.
_FATAL = re.compile(r"^Fatal Python error: (.+)$")
_START = "Traceback (most recent call last):"
_CHAINED = ("During handling of", "The above exception")
_NEXT = (_START, *_CHAINED)
_BLANK = re.compile(r"\s*$")
# A module that does not compile has no traceback above it.
_SYNTAX = re.compile(r'^  File "[^"]+", line \d{1,9}$')


def frames_of(lines: Iterable[str]) -> tuple[Frame, ...]:
    """Every frame of the project in the lines, outermost first, each once in a row."""
    frames: list[Frame] = []
    for line in lines:
        match = _FRAME.match(line)
        if match and inside(match[1]):
            frame = Frame(path=match[1], line=int(match[2]), function=match[3])
            if not frames or frames[-1] != frame:
                frames.append(frame)
    return tuple(frames)


def last_exception(lines: Sequence[str]) -> tuple[str | None, str]:
    """Type and text of the exception that ends the last traceback in the lines."""
    start = max(matching(lines, _FRAME), default=-1)
    for number in range(start + 1, len(lines)):
        line = lines[number]
        match = None if line.startswith("    ") else _EXCEPTION.match(line)
        if match:
            rest = takewhile(lambda line: not line.startswith(_NEXT), lines[number:])
            return match[1].rpartition(".")[2], shortened("\n".join(rest).rstrip().split("\n"))
    return None, ""


def crash(tool: str, lines: Sequence[str]) -> Diagnostic | None:
    """The diagnostic of one traceback; None when no exception ends it.

    Of an exception group it is the last exception in it.
    """
    rest = [*filterfalse(_BETWEEN.match, lines)]
    plain = [_BAR.sub("", line) for line in rest] if len(rest) < len(lines) else lines
    rule, message = last_exception(plain)
    return None if rule is None else _problem(tool, rule, message, frames_of(plain))


def _problem(tool: str, rule: str, message: str, frames: tuple[Frame, ...]) -> Diagnostic:
    return placed(Diagnostic(tool=tool, rule_id=rule, message=message), frames, {})


def _read(log: Log) -> Iterator[Located]:
    lines = log.lines
    number = 0
    while number < len(lines):
        fatal = _FATAL.match(lines[number])
        if fatal:
            last = number + 1 + len(above(lines[number + 2 :], _BLANK))
            frames = tuple(reversed(frames_of(lines[number : last + 1])))
            yield Located(_problem("python", "fatal", fatal[1], frames), number, last)
        elif lines[number].startswith(_START) or _SYNTAX.match(lines[number]):
            last = _end(lines, number)
            diagnostic = crash("python", lines[number : last + 1])
            if diagnostic:
                yield Located(diagnostic, number, last)
        else:
            last = number
        number = last + 1


def _end(lines: Sequence[str], start: int) -> int:
    """The line with the exception of the traceback that starts here, chained ones included."""
    last = len(lines) - 1
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if line.startswith((" ", *_NEXT)) or not line:
            continue
        last = number
        if not any(x.startswith(_START) for x in lines[number + 1 : number + 5]):
            break
    return last


PYTHON = Parser(
    name="python",
    commands=("python", "python3"),
    marks=(_START, "SyntaxError: ", "IndentationError: ", "Fatal Python error: "),
    read=_read,
)

# https://docs.python.org/3/library/unittest.html; unittest/runner.py: printErrorList
_UNITTEST_TITLE = re.compile(
    r"^(ERROR|FAIL|UNEXPECTED SUCCESS): (\S+)(?: \(([^()\s]+)\))?(?: (.*))?$"
)
_UNITTEST_RULE = re.compile(r"^(?:={70}|-{70})$")
_UNITTEST_RAN = re.compile(r"^Ran (\d{1,9}) tests? in ")


def _read_unittest(log: Log) -> Iterator[Located]:
    """The failures, each from below its rule to above the next one."""
    lines = log.lines
    rules = matching(lines, _UNITTEST_RULE)
    for title in matching(lines, _UNITTEST_TITLE):
        if title - 1 in rules:
            yield _unittest_failure(lines, title, _last_line(lines, title))


def _last_line(lines: Sequence[str], title: int) -> int:
    """Above the second rule of dashes, a rule of another failure, or the counts."""
    below = False
    for number in range(title + 1, len(lines)):
        is_rule = _UNITTEST_RULE.match(lines[number]) is not None
        is_end = is_rule and (below or lines[number].startswith("="))
        if is_end or _UNITTEST_RAN.match(lines[number]):
            return number - 1
        below = below or is_rule
    return len(lines) - 1


def _unittest_failure(lines: Sequence[str], first: int, last: int) -> Located:
    match = _UNITTEST_TITLE.match(lines[first])
    word, name, owner, case = match.groups() if match else ("FAIL", lines[first], None, None)
    problem = crash("unittest", lines[first : last + 1])
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
    read=_read_unittest,
)
