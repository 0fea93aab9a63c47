"""Parses the output of `go test`, also as events of `go test -json`."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.diagnostics.failures import failure, go_frames, matching
from atlas_retry.diagnostics.values import Located, Log, parses
from atlas_retry.patterns import regex

# https://pkg.go.dev/cmd/go#hdr-Test_packages; https://pkg.go.dev/cmd/test2json
_GO_FAIL = regex(r"^ *--- FAIL: (\S+) \([\d.]+s\)$")
_GO_ENDED = regex(r"^ *--- (?:PASS|FAIL|SKIP): \S+ \([\d.]+s\)$")
_GO_NOW = regex(r"^=== (?:RUN|CONT|NAME|PAUSE) +(\S+)$")
_GO_LINE = regex(r"^( +)(?P<path>[\w./-]+\.go):(?P<line>\d{1,9}): ?(.*)$")
_GO_PACKAGE = regex(r"^(?:FAIL|ok  )\t(\S+)(?:\t| \[)(.*)$")
_GO_PANIC = regex(r"^(?:panic|fatal error): (.*)$")
_GO_JSON = '"Action":"output"'
_HOSTS = ("github.com/", "gitlab.com/", "bitbucket.org/", "codeberg.org/")


class _GoTest(Struct):
    """Output of one test so far, as line numbers of the log."""

    name: str
    first: int
    last: int
    printed: list[str] = field(default_factory=list)
    place: dict[str, str | None] = field(default_factory=dict)
    failed: bool = False
    panic: tuple[int, int] | None = None


class _GoEvent(msgspec.Struct):
    """One line of `go test -json`."""

    Package: str = ""
    Output: str = ""


def go_text(text: str) -> str:
    """The text in `go test -json`, package by package; any other text unchanged."""
    if _GO_JSON not in text:
        return text
    packages: dict[str, list[str]] = {}
    for line in text.splitlines(keepends=True):
        event = _GoEvent(Output=line)
        if line.startswith("{"):
            with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                event = msgspec.json.decode(line, type=_GoEvent)
        packages.setdefault(event.Package, []).append(event.Output)
    return "".join(chain.from_iterable(packages.values()))


@parses(
    "go-test",
    commands=("go test", "gotestsum"),
    marks=("--- FAIL: ", "[no test files]", "[no tests to run]", "\nFAIL\t"),
)
def go_test(log: Log) -> Iterator[Located]:
    """The failing tests of each package."""
    lines = log.lines
    packages = matching(lines, _GO_PACKAGE)  # the line of a package comes last
    start = 0
    for end in (*packages, len(lines)):
        folder = _go_folder(packages[end][1] if end in packages else "")
        failed = [test for test in _go_tests(lines, start, end) if test.failed]
        start = end + 1
        for test in failed:
            # otherwise it says only that a subtest failed
            if test.printed or not any(o.name.startswith(f"{test.name}/") for o in failed):
                yield _go_failure(lines, test, folder)


def _go_folder(package: str) -> str:
    """Folder of a package in its module, whose path is host, owner and name, or host and name."""
    parts = package.split("/")
    known = 3 if package.startswith(_HOSTS) else 2 if "." in parts[0] else 1
    if len(parts) > known and re.fullmatch(r"v\d+", parts[known]):
        known += 1
    return "/".join(parts[known:])


def _go_tests(lines: Sequence[str], start: int, end: int) -> list[_GoTest]:
    tests: dict[str, _GoTest] = {}
    current: _GoTest | None = None
    indent = 0
    for number in range(start, end):
        line = lines[number]
        named = _GO_NOW.match(line) or _GO_FAIL.match(line)
        if named:
            current = tests.setdefault(named[1], _GoTest(named[1], number, number))
            current.failed = current.failed or line.lstrip().startswith("---")
        elif _GO_ENDED.match(line):
            current = None
        elif panic := _GO_PANIC.match(line):
            current = current or tests.setdefault("", _GoTest("", number, number))
            current.failed = True
            current.printed.append(f"panic: {panic[1]}")
            current.panic = (number, end)
            current.last = end - 1
            break
        elif current and (own := _GO_LINE.match(line)):
            indent = len(own[1])
            current.printed.append(own[4])
            current.place = own.groupdict()
            current.last = number
        elif current and current.printed and line.startswith(" " * (indent + 1)):
            current.printed.append(line.strip())
            current.last = number
    return list(tests.values())


def _go_failure(lines: Sequence[str], test: _GoTest, folder: str) -> Located:
    frames = go_frames(lines[test.panic[0] : test.panic[1]]) if test.panic else ()
    place = test.place
    if folder and place:
        place = place | {"path": f"{folder}/{place['path']}"}
    test_id = f"{folder or '.'}::{test.name}" if test.name else None
    problem = failure("go-test", test.printed, frames, test_id, place)
    rule = "panic" if test.panic else None
    return Located(replace(problem, rule_id=rule), test.first, max(test.last, test.first))
