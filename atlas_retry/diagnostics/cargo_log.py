"""Reads what Rust's test harness prints. What the compiler says is a row."""

import re
from collections.abc import Sequence

from atlas_retry.diagnostics.failures import above, inside, matching, placed, shortened, titled
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic, Frame

# https://doc.rust-lang.org/rustc/tests/index.html; library/test/src/formatters/pretty.rs
_TITLE = re.compile(r"^---- (.+) stdout ----$")
_END = re.compile(r"^(?:failures:|test result: )")
_PANIC = re.compile(
    r"^thread '.*'(?: \(\d+\))? panicked at (?P<path>[^:]+):(?P<line>\d+):(?P<column>\d+):$"
)
_OLD_PANIC = re.compile(
    r"^thread '.*' panicked at '(?P<message>.*)', (?P<path>[^:]+):(?P<line>\d+):(?P<column>\d+)$"
)
_STOP = re.compile(r"^(?:note: run with |stack backtrace:)")
_FUNCTION = re.compile(r"^ +\d+: (?:0x[0-9a-f]+ - )?(.+)$")
_PLACE = re.compile(r"^ +at (\S+?):(\d{1,9})(?::\d+)?$")
_NOT_PANICKED = re.compile(
    r"^note: test did not panic as expected at (?P<path>[^:]+):(?P<line>\d+):\d+$"
)
_DOCTEST = re.compile(r"^(\S+\.rs) - (?:\S+ )?\(line (\d+)\)$")
_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; ")


def _read(log: Log) -> Reading:
    lines = log.lines
    results = matching(lines, _RESULT)
    ran = sum(int(m[1]) + int(m[2]) for m in results.values()) if results else None
    return Reading(
        found=tuple(_failure(lines, first, last) for first, last in titled(lines, _TITLE, _END)),
        summary=tuple(i for i, m in results.items() if m[2] != "0"),
        tests_run=ran,
        vacuous=ran == 0,
    )


def _failure(lines: Sequence[str], first: int, last: int) -> Located:
    title = _TITLE.match(lines[first])
    name = title[1] if title else ""
    body = lines[first + 1 : last + 1]
    place, message = _said(body)
    frames = _frames(body)
    doctest = _DOCTEST.match(name)
    where = {"path": doctest[1], "line": doctest[2]} if doctest else place
    told = Diagnostic(
        tool="cargo-test",
        rule_id="panic" if "path" in place else None,
        message=message or "failed",
        test_id=name,
    )
    return Located(placed(told, frames, where), first, last)


def _said(body: Sequence[str]) -> tuple[dict[str, str], str]:
    """Place and message of the panic; without one all that the test printed."""
    for number, line in enumerate(body):
        match = _PANIC.match(line) or _OLD_PANIC.match(line)
        if match:
            old = match.groupdict().get("message")
            place = {name: value for name, value in match.groupdict().items() if name != "message"}
            return place, old or _printed(body[number + 1 :])
    silent = next(filter(None, map(_NOT_PANICKED.match, body)), None)
    place = {"path": silent["path"], "line": silent["line"]} if silent else {}
    return place, _printed(body)


def _printed(lines: Sequence[str]) -> str:
    return shortened([line for line in above(lines, _STOP) if line.strip()])


def _frames(body: Sequence[str]) -> tuple[Frame, ...]:
    frames = []
    function = None
    for line in body:
        named, place = _FUNCTION.match(line), _PLACE.match(line)
        function = named[1] if named else function
        if place and inside(place[1]):
            frames.append(Frame(path=place[1], line=int(place[2]), function=function))
    return tuple(reversed(frames))


CARGO_TEST = Parser(
    name="cargo-test",
    commands=("cargo test", "cargo t"),
    marks=("\ntest result: ", " stdout ----\n"),
    read=_read,
)
