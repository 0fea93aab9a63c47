"""Reads what `go test` prints, as text and as JSON. What the compiler says is a row."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.diagnostics import stacks
from atlas_retry.diagnostics.failures import matching, placed, shortened
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic

# https://pkg.go.dev/cmd/go#hdr-Test_packages; https://pkg.go.dev/cmd/test2json
_FAIL = re.compile(r"^ *--- FAIL: (\S+) \([\d.]+s\)$")
_ENDED = re.compile(r"^ *--- (?:PASS|FAIL|SKIP): \S+ \([\d.]+s\)$")
_NOW = re.compile(r"^=== (?:RUN|CONT|NAME|PAUSE) +(\S+)$")
_SAID = re.compile(r"^( +)([\w./-]+\.go):(\d{1,9}): ?(.*)$")
_PACKAGE = re.compile(r"^(?:FAIL|ok  )\t(\S+)(?:\t| \[)(.*)$")
_EMPTY = re.compile(r"^\?   \t\S+\t\[no test files\]$|^ok  \t.*\[no tests to run\]$")
_PANIC = re.compile(r"^(?:panic|fatal error): (.*)$")
_JSON = '"Action":"output"'
_HOSTS = ("github.com/", "gitlab.com/", "bitbucket.org/", "codeberg.org/")


class _Test(Struct):
    """What one test has said so far; lines are numbers of the log."""

    name: str
    first: int
    last: int
    said: list[str] = field(default_factory=list)
    place: tuple[str, int] | None = None
    failed: bool = False
    panic: tuple[int, int] | None = None


class _Event(msgspec.Struct):
    """One line of `go test -json`."""

    Package: str = ""
    Output: str = ""


def _read(log: Log) -> Reading:
    lines, numbers = _plain(log.lines)
    found: list[Located] = []
    for start, end, package in _packages(lines):
        found += [_found(lines, test, _folder(package)) for test in _telling(lines, start, end)]
    empty = matching(lines, _EMPTY)
    others = [i for i in matching(lines, _PACKAGE) if i not in empty]
    failed = [i for i in others if lines[i].startswith("FAIL")]
    if numbers is not None:
        found = [_at(f, lines, numbers) for f in found]
        failed = []
    nothing = bool(empty) and not others
    return Reading(
        found=tuple(found),
        summary=tuple(failed),
        tests_run=0 if nothing else _ended(lines),
        vacuous=nothing,
    )


def _ended(lines: Sequence[str]) -> int | None:
    """How many tests have ended; None where only failures are listed."""
    if not any(map(_NOW.match, lines)):
        return None
    return len(matching(lines, _ENDED))


def _telling(lines: Sequence[str], start: int, end: int) -> list[_Test]:
    """The failed tests of a package, but those that only say that a subtest failed."""
    failed = [test for test in _tests(lines, start, end) if test.failed]
    parents = {*chain.from_iterable(_parents(test.name) for test in failed)}
    silent = {test.name for test in failed if not test.said}
    return [test for test in failed if test.name not in parents & silent]


def _plain(lines: Sequence[str]) -> tuple[Sequence[str], list[int] | None]:
    """The text behind `-json`, package after package, and where each line of it came from.

    Text that is no JSON stays as it is, without numbers.
    """
    events = [(i, _event(line)) for i, line in enumerate(lines) if _JSON in line]
    told = [(i, event) for i, event in events if event]
    if not told:
        return lines, None
    told.sort(key=lambda pair: pair[1].Package)
    return [e.Output.rstrip("\n") for _, e in told], [i for i, _ in told]


def _event(line: str) -> _Event | None:
    """What a package printed; None for any other line."""
    try:
        event = msgspec.json.decode(line, type=_Event)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return event if event.Output and event.Package else None


def _at(found: Located, lines: Sequence[str], numbers: Sequence[int]) -> Located:
    """What was found in the text, at the lines of the JSON, with its own lines beside it."""
    own = numbers[found.first : found.last + 1]
    text = "\n".join(lines[found.first : found.last + 1])
    return Located(replace(found.diagnostic, text=text), min(own), max(own))


def _packages(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Start, end and import path of each package: its line comes last."""
    start = 0
    for number, line in enumerate(lines):
        match = _PACKAGE.match(line)
        if match:
            yield start, number, match[1]
            start = number + 1
    yield start, len(lines), ""


def _folder(package: str) -> str:
    """Where in its module a package lies: behind host, owner and name, or host and name."""
    parts = package.split("/")
    known = 3 if package.startswith(_HOSTS) else 2 if "." in parts[0] else 1
    if len(parts) > known and re.fullmatch(r"v\d+", parts[known]):
        known += 1
    return "/".join(parts[known:])


def _tests(lines: Sequence[str], start: int, end: int) -> list[_Test]:
    tests: dict[str, _Test] = {}
    current: _Test | None = None
    indent = 0
    for number in range(start, end):
        line = lines[number]
        named = _NOW.match(line) or _FAIL.match(line)
        if named:
            current = tests.setdefault(named[1], _Test(named[1], number, number))
            current.failed = current.failed or line.lstrip().startswith("---")
        elif _ENDED.match(line):
            current = None
        elif panic := _PANIC.match(line):
            current = current or tests.setdefault("", _Test("", number, number))
            _panic(current, panic[1], number, end)
            break
        elif current and (said := _SAID.match(line)):
            indent = len(said[1])
            current.said.append(said[4])
            current.place = (said[2], int(said[3]))
            current.last = number
        elif current and current.said and line.startswith(" " * (indent + 1)):
            current.said.append(line.strip())
            current.last = number
    return list(tests.values())


def _panic(test: _Test, message: str, number: int, end: int) -> None:
    test.failed = True
    test.said.append(f"panic: {message}")
    test.panic = (number, end)
    test.last = end - 1


def _parents(name: str) -> Iterator[str]:
    """Tests that fail only because this one does."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _found(lines: Sequence[str], test: _Test, folder: str) -> Located:
    frames = stacks.go(lines[test.panic[0] : test.panic[1]]) if test.panic else ()
    place: dict[str, str | None] = {}
    if test.place:
        file, line = test.place
        place = {"path": f"{folder}/{file}" if folder else file, "line": str(line)}
    told = Diagnostic(
        tool="go-test",
        rule_id="panic" if test.panic else None,
        message=shortened(test.said) or "failed",
        test_id=f"{folder or '.'}::{test.name}" if test.name else None,
    )
    return Located(placed(told, frames, place), test.first, max(test.last, test.first))


GO_TEST = Parser(
    name="go-test",
    commands=("go test", "gotestsum"),
    marks=("--- FAIL: ", "[no test files]", "[no tests to run]", "\nFAIL\t", '"Action":"fail"'),
    read=_read,
)
