"""Reads Python tracebacks: frames and the exception that ends them. Knows no test runner."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import filterfalse

from msgspec.structs import replace

from atlas_retry.diagnostics.blocks import matching
from atlas_retry.diagnostics.table import region_of
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
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
# A module that does not compile has no traceback above it.
_SYNTAX = re.compile(r'^  File "[^"]+", line \d{1,9}$')
MESSAGE_LINES = 40
"""A longer message keeps its head and its last quarter: assertions stand first, hints last."""

_OUTSIDE = re.compile(
    r"""
    (?:^|/)(?:site-packages|dist-packages|node_modules|\.cargo|rustc|\.rustup|\.m2)/
    | ^(?:/usr/|/opt/|/nix/|<|node:|internal/|java\.|jdk\.)
    | /lib/python3(?:\.\d+)?/
    | /pkg/mod/
    """,
    re.VERBOSE,
)


def inside(path: str) -> bool:
    """Whether a path can belong to the project: no library, no interpreter, no generated code."""
    return _OUTSIDE.search(path) is None


def shortened(lines: Sequence[str]) -> str:
    """The lines of a message joined, cut in the middle when there are very many."""
    if len(lines) <= MESSAGE_LINES:
        return "\n".join(lines).strip("\n")
    tail = MESSAGE_LINES // 4
    gone = len(lines) - MESSAGE_LINES
    return "\n".join((*lines[: MESSAGE_LINES - tail], f"... {gone} lines ...", *lines[-tail:]))


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
            return match[1].rpartition(".")[2], shortened(_said(lines[number:]))
    return None, ""


def _said(lines: Sequence[str]) -> list[str]:
    """The lines of a message: up to the next traceback, without the blank ones at the end."""
    kept: list[str] = []
    for line in lines:
        if line.startswith((_START, *_CHAINED)):
            break
        kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def place_of(frames: Sequence[Frame]) -> dict[str, str]:
    """Path and line of the innermost frame, as parts of a diagnostic."""
    return {"path": frames[-1].path, "line": str(frames[-1].line)} if frames else {}


def placed(
    told: Diagnostic, frames: tuple[Frame, ...], otherwise: Mapping[str, str | None]
) -> Diagnostic:
    """The diagnostic at its innermost frame; without frames where the runner says."""
    place = place_of(frames) or {name: part for name, part in otherwise.items() if part}
    return replace(told, path=place.get("path"), region=region_of(place), frames=frames)


def crash(tool: str, lines: Sequence[str]) -> Diagnostic | None:
    """The diagnostic of one traceback; None when no exception ends it.

    Of an exception group it is the last exception in it.
    """
    rest = [*filterfalse(_BETWEEN.match, lines)]
    plain = [_BAR.sub("", line) for line in rest] if len(rest) < len(lines) else lines
    rule, message = last_exception(plain)
    return None if rule is None else _told(tool, rule, message, frames_of(plain))


def _told(tool: str, rule: str, message: str, frames: tuple[Frame, ...]) -> Diagnostic:
    return placed(Diagnostic(tool=tool, rule_id=rule, message=message), frames, {})


def _read(log: Log) -> Reading:
    lines = log.lines
    found: list[Located] = []
    number = 0
    while number < len(lines):
        fatal = _FATAL.match(lines[number])
        if fatal:
            last = _paragraph(lines, number)
            frames = tuple(reversed(frames_of(lines[number : last + 1])))
            found.append(Located(_told("python", "fatal", fatal[1], frames), number, last))
        elif lines[number].startswith(_START) or _SYNTAX.match(lines[number]):
            last = _end(lines, number)
            diagnostic = crash("python", lines[number : last + 1])
            found += [Located(diagnostic, number, last)] if diagnostic else []
        else:
            last = number
        number = last + 1
    return Reading(found=tuple(found))


def _paragraph(lines: Sequence[str], start: int) -> int:
    """The last line of the frames below a fatal error; a blank line is before and behind them."""
    last = start
    for number in range(start + 1, len(lines)):
        if not lines[number].strip() and number > start + 1:
            break
        last = number
    return last


def _end(lines: Sequence[str], start: int) -> int:
    """The line with the exception of the traceback that starts here, chained ones included."""
    last = len(lines) - 1
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if line.startswith((" ", *_CHAINED, _START)) or not line:
            continue
        last = number
        if not any(x.startswith(_START) for x in lines[number + 1 : number + 5]):
            break
    return last


PYTHON = Parser(
    name="python",
    source="https://docs.python.org/3/library/traceback.html",
    commands=("python", "python3"),
    marks=(_START, "SyntaxError: ", "IndentationError: ", "Fatal Python error: "),
    read=_read,
)
