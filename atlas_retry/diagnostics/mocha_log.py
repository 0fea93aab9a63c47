"""Reads what mocha prints: failed tests and hooks. Its counts are a row of `counts`."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics import counts, stacks
from atlas_retry.diagnostics.blocks import above, matching, titled
from atlas_retry.diagnostics.traceback import placed, shortened
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic

# https://mochajs.org/running/reporters; lib/reporters/base.js: Base.list, epilogue
_LIST = re.compile(r"^  \d+ failing$")
_TITLE = re.compile(r"^  \d+\) (\S.*)$")
_END = re.compile(r"^(?:-{5,}|={5,}|npm (?:ERR!|error) )")
_STACK = re.compile(r"^ +at ")
_RAISED = re.compile(r"^(\w*Error)(?: \[\w+\])?: ")
_HOOK = re.compile(r'^"(?:before|after)(?: each| all)?" hook(?:: .+)? for "(.+)"$')
_TIMED_OUT = re.compile(r"^ *Error: Timeout of .+ \((\S+)\)$")
_COUNTS = counts.parser_of(counts.MOCHA)


def _read(log: Log) -> Reading:
    return replace(_COUNTS.read(log), found=tuple(_failures(log.lines)))


def _failures(lines: Sequence[str]) -> Iterator[Located]:
    """The failures of the list at the end: the titles above it have no messages."""
    start = max(matching(lines, _LIST), default=len(lines))
    for first, last in titled(lines[start:], _TITLE, _END):
        yield _failure(lines, start + first, start + last)


def _failure(lines: Sequence[str], first: int, last: int) -> Located:
    names = _names(lines[first : last + 1])
    body = lines[first + len(names) : last + 1]
    frames = stacks.javascript(body)
    timed_out = next(filter(None, map(_TIMED_OUT.match, body)), None)
    file = frames[0].path if frames else timed_out[1] if timed_out else ""
    message = textwrap.dedent("\n".join(above(body, _STACK))).strip()
    raised = _RAISED.match(message)
    title = " > ".join(names)
    told = Diagnostic(
        tool="mocha",
        rule_id=raised[1] if raised else None,
        message=shortened(message.split("\n")) or "failed",
        test_id=f"{file}::{title}" if file else title,
    )
    return Located(placed(told, frames, {"path": file}), first, last)


def _names(lines: Sequence[str]) -> list[str]:
    """Suites and test, one a line; the last ends with a colon. Of a hook the test it is for."""
    title = _TITLE.match(lines[0])
    names = [title[1] if title else lines[0].strip()]
    for line in lines[1:]:
        if names[-1].endswith(":") or not line.strip():
            break
        names.append(line.strip())
    names[-1] = names[-1].removesuffix(":")
    hook = _HOOK.match(names[-1])
    return [*names[:-1], hook[1]] if hook else names


MOCHA = Parser(
    name="mocha",
    source="https://mochajs.org/running/reporters",
    commands=counts.MOCHA.commands or ("mocha",),
    marks=counts.MOCHA.marks,
    read=_read,
)
