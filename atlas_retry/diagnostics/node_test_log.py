"""Reads what `node --test` prints, as spec and as TAP."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise

from atlas_retry.diagnostics import stacks
from atlas_retry.diagnostics.blocks import above, matching
from atlas_retry.diagnostics.lines import NODE
from atlas_retry.diagnostics.table import parser_of
from atlas_retry.diagnostics.traceback import placed, shortened
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic, Frame

# https://nodejs.org/api/test.html#test-reporters; https://testanything.org
_AT = re.compile(r"^test at (?P<path>.+?):(?P<line>\d+):(?P<column>\d+)$")
_BELOW = re.compile(r"^\s*at |^test at ")
_SPEC = re.compile(r"^✖ (.+?) \([\d.]+ms\)$")
_TAP = re.compile(r"^ *not ok \d+(?: - (.+))?$")
_TAP_END = re.compile(r"^ *\.\.\.$")
_LOCATION = re.compile(r"^ *location: '?(?P<path>[^']+?):(?P<line>\d+):(?P<column>\d+)'?$")
_ERROR = re.compile(r"^( *)error: (?:\|-?|'(.*)'|\"(.*)\"|(.*))$")
_RAISED = re.compile(r"^(\w*Error)(?: \[\w+\])?: ")
_COUNT = re.compile(r"^(?:#|\u2139) (tests|pass|fail|cancelled|skipped|todo) (\d+)$")
_CRASH = parser_of(NODE)
_FILE_FAILED = "test failed"


def _read(log: Log) -> Reading:
    lines = log.lines
    found = [*_spec(lines), *_tap(lines)]
    if any(f.diagnostic.message == _FILE_FAILED for f in found):
        plain = tuple(line.removeprefix("# ") for line in lines)
        found += _CRASH.read(Log(plain, "")).found
    counts = matching(lines, _COUNT)
    ended = [int(m[2]) for m in counts.values() if m[1] in ("pass", "fail", "cancelled")]
    ran = sum(ended) if counts else None
    return Reading(
        found=tuple(found),
        summary=tuple(counts),
        tests_run=ran,
        vacuous=ran == 0,
    )


def _spec(lines: Sequence[str]) -> Iterator[Located]:
    """The failures below `failing tests:`, where each comes with its place."""
    places = matching(lines, _AT)
    for first, after in pairwise((*places, len(lines))):
        title = _SPEC.match(lines[first + 1]) if first + 1 < after else None
        if title:
            body = lines[first + 2 : after]
            message = _message(body)
            frames = stacks.javascript(body)
            yield Located(
                _told(title[1], message, frames, places[first].groupdict()), first, after - 1
            )


def _message(body: Sequence[str]) -> str:
    text = textwrap.dedent("\n".join(above(body, _BELOW))).strip()
    return shortened(text.strip("'").split("\n"))


def _tap(lines: Sequence[str]) -> Iterator[Located]:
    for first, line in enumerate(lines):
        title = _TAP.match(line)
        if title is None:
            continue
        last = first
        while last + 1 < len(lines) and not _TAP_END.match(lines[last]) and last - first < 200:  # noqa: PLR2004 - no failure is that long
            last += 1
        body = lines[first : last + 1]
        place = next((m.groupdict() for x in body if (m := _LOCATION.match(x))), {})
        if not any("subtestsFailed" in x for x in body):
            yield Located(_told(title[1] or "", _error(body), stacks.tap(body), place), first, last)


def _error(body: Sequence[str]) -> str:
    """The scalar behind `error:`, a block of it dedented."""
    for number, line in enumerate(body):
        match = _ERROR.match(line)
        if match is None:
            continue
        inline = match[2] or match[3] or match[4]
        if inline:
            return inline
        deeper = f"{match[1]}  "
        block = []
        for below in body[number + 1 :]:
            if below.strip() and not below.startswith(deeper):
                break
            block.append(below)
        return shortened(textwrap.dedent("\n".join(block)).strip().split("\n"))
    return "failed"


def _told(title: str, message: str, frames: tuple[Frame, ...], place: dict[str, str]) -> Diagnostic:
    raised = _RAISED.match(message)
    file = place.get("path", "")
    told = Diagnostic(
        tool="node-test",
        rule_id=raised[1] if raised else None,
        message=message,
        test_id=file if not file or title.endswith(file) else f"{file}::{title}",
    )
    return placed(told, frames, place)


NODE_TEST = Parser(
    name="node-test",
    source="https://nodejs.org/api/test.html#test-reporters",
    commands=("--test",),
    marks=("TAP version 1", "\n\u2139 tests "),
    read=_read,
)
