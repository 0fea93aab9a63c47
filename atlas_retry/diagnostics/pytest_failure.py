"""Reads one failure as pytest shows it, in every traceback style but the tests' own names."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics import traceback
from atlas_retry.diagnostics.failures import inside, placed, shortened
from atlas_retry.diagnostics.table import region_of
from atlas_retry.model import Diagnostic, Frame

# https://docs.pytest.org/en/stable/how-to/output.html#modifying-python-traceback-printing
CAPTURED = re.compile(r"^-{3,} Captured .+ -{3,}$")
ONE_LINE = re.compile(r"^([^\s:][^:]*):(\d{1,9}): (\S.*)$")
RAISED = re.compile(r"^(?:\w+\.)*([A-Z]\w*)(?:: |:?$)")
_SAID = re.compile(r"^E(?: {3}(.*)|\s*)$")
_LONG = re.compile(r"^([^\s:][^:]*):(\d{1,9}): ?([\w.]*)$")
_SHORT = re.compile(r"^([^\s:][^:]*):(\d{1,9}): in (.+)$")
_SYNTAX = re.compile(r'^E\s+File "([^"]+)", line (\d{1,9})')
_DEF = re.compile(r"^[ >] +(?:async )?def (\w+)")
_WORKER = re.compile(r"^\[gw\d+\] \w+ -- Python ")


def uncaptured(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a failure above what the test has printed."""
    for line in lines:
        if CAPTURED.match(line):
            return
        if not _WORKER.match(line):
            yield line


def explain(lines: Sequence[str]) -> Diagnostic:
    """What the lines say: the last exception of a chain, and every frame of the project."""
    frames: list[Frame] = []
    said: list[str] = []
    fresh, rule, function = True, None, None
    for line in lines:
        spoken, defined = _SAID.match(line), _DEF.match(line)
        short, long = _SHORT.match(line), _LONG.match(line)
        if spoken:
            said = [*said[: 0 if fresh else None], spoken[1] or ""]
        elif short:
            _add(frames, short, short[3])
        elif long:
            _add(frames, long, function)
            rule = long[3] or rule
        elif defined:
            function = defined[1]
        fresh = not spoken and bool(fresh or short or long)
    syntax = [*filter(None, map(_SYNTAX.match, lines))]
    if syntax:
        return _syntax_error(syntax[-1], said)
    return _diagnostic(frames or _one_line(lines), said, rule) if said else _without_marks(lines)


def _add(frames: list[Frame], place: re.Match[str], function: str | None) -> None:
    """One more frame, unless the last one is the same."""
    frame = Frame(path=place[1], line=int(place[2]), function=function)
    if frames[-1:] != [frame]:
        frames.append(frame)


def _one_line(lines: Sequence[str]) -> list[Frame]:
    """The place that `--tb=line` gives below the message."""
    places = filter(None, map(ONE_LINE.match, lines))
    return [Frame(path=m[1], line=int(m[2])) for m in places if inside(m[1])][:1]


def _syntax_error(place: re.Match[str], said: Sequence[str]) -> Diagnostic:
    kind = said[-1].strip()
    return Diagnostic(
        tool="pytest",
        rule_id=kind.partition(":")[0],
        message="\n".join((kind, *said[1:-1])),
        path=place[1],
        region=region_of({"line": place[2]}),
    )


def _without_marks(lines: Sequence[str]) -> Diagnostic:
    """A failure with a plain traceback (`--tb=native`, doctest), or none (`[XPASS(strict)]`)."""
    told = [line for line in lines if line.strip()]
    place = _LONG.match(told[-1]) if told else None
    native = traceback.crash("pytest", told[:-1] if place else lines)
    message = shortened(told[:-1] if place else told)
    rule = "XPASS(strict)" if message.startswith("[XPASS(strict)]") else None
    plain = native or Diagnostic(tool="pytest", message=message, rule_id=rule)
    if place is None or plain.path:
        return plain
    region = region_of({"line": place[2]})
    return replace(plain, rule_id=plain.rule_id or place[3], path=place[1], region=region)


def _diagnostic(frames: Sequence[Frame], said: Sequence[str], rule: str | None) -> Diagnostic:
    message = textwrap.dedent("\n".join(said)).split("\n")
    raised = RAISED.match(message[0])
    own = tuple(frame for frame in frames if inside(frame.path))
    failed = "AssertionError" if message[0].startswith("assert ") else None
    told = Diagnostic(
        tool="pytest",
        rule_id=(raised[1] if raised else None) or failed or rule,
        message=shortened(message),
    )
    return placed(told, own, {})
