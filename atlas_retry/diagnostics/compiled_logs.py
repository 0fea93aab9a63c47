"""Reads what `go test`, Rust's test harness and Maven print. What compilers say is a row."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.diagnostics import stacks
from atlas_retry.diagnostics.failures import above, failure, first_match, inside, matching, titled
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Frame

# https://pkg.go.dev/cmd/go#hdr-Test_packages; https://pkg.go.dev/cmd/test2json
_GO_FAIL = re.compile(r"^ *--- FAIL: (\S+) \([\d.]+s\)$")
_GO_ENDED = re.compile(r"^ *--- (?:PASS|FAIL|SKIP): \S+ \([\d.]+s\)$")
_GO_NOW = re.compile(r"^=== (?:RUN|CONT|NAME|PAUSE) +(\S+)$")
_GO_LINE = re.compile(r"^( +)(?P<path>[\w./-]+\.go):(?P<line>\d{1,9}): ?(.*)$")
_GO_PACKAGE = re.compile(r"^(?:FAIL|ok  )\t(\S+)(?:\t| \[)(.*)$")
_GO_PANIC = re.compile(r"^(?:panic|fatal error): (.*)$")
_GO_JSON = '"Action":"output"'
_HOSTS = ("github.com/", "gitlab.com/", "bitbucket.org/", "codeberg.org/")


class _GoTest(Struct):
    """What one test has printed so far; lines are numbers of the log."""

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
    """The text behind `go test -json`, package after package; any other text as it is."""
    if _GO_JSON not in text:
        return text
    packages: dict[str, list[str]] = {}
    for line in text.splitlines(keepends=True):
        event = _go_event(line) or _GoEvent(Output=line)
        packages.setdefault(event.Package, []).append(event.Output)
    return "".join(chain.from_iterable(packages.values()))


def _go_event(line: str) -> _GoEvent | None:
    try:
        return msgspec.json.decode(line, type=_GoEvent) if line.startswith("{") else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _go(log: Log) -> Reading:
    lines = log.lines
    failures: list[Located] = []
    for start, end, package in _go_packages(lines):
        folder = _go_folder(package)
        failures += [_go_failure(lines, test, folder) for test in _go_failed(lines, start, end)]
    return Reading(problems=tuple(failures))


def _go_packages(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Start, end and import path of each package: its line comes last."""
    start = 0
    for number, match in matching(lines, _GO_PACKAGE).items():
        yield start, number, match[1]
        start = number + 1
    yield start, len(lines), ""


def _go_folder(package: str) -> str:
    """Where in its module a package lies: behind host, owner and name, or host and name."""
    parts = package.split("/")
    known = 3 if package.startswith(_HOSTS) else 2 if "." in parts[0] else 1
    if len(parts) > known and re.fullmatch(r"v\d+", parts[known]):
        known += 1
    return "/".join(parts[known:])


def _go_failed(lines: Sequence[str], start: int, end: int) -> list[_GoTest]:
    """The failed tests of a package, but those that only say that a subtest failed."""
    failed = [test for test in _go_tests(lines, start, end) if test.failed]
    names = [test.name for test in failed]
    return [test for test in failed if _tells(test, names)]


def _tells(test: _GoTest, names: Sequence[str]) -> bool:
    """Whether it says something itself, or no subtest of it fails."""
    return bool(test.printed) or not any(name.startswith(f"{test.name}/") for name in names)


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
            _go_panic(current, panic[1], number, end)
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


def _go_panic(test: _GoTest, message: str, number: int, end: int) -> None:
    test.failed = True
    test.printed.append(f"panic: {message}")
    test.panic = (number, end)
    test.last = end - 1


def _go_failure(lines: Sequence[str], test: _GoTest, folder: str) -> Located:
    frames = stacks.go(lines[test.panic[0] : test.panic[1]]) if test.panic else ()
    place = test.place
    if folder and place:
        place = place | {"path": f"{folder}/{place['path']}"}
    test_id = f"{folder or '.'}::{test.name}" if test.name else None
    problem = failure("go-test", test.printed, frames, test_id, place)
    rule = "panic" if test.panic else None
    return Located(replace(problem, rule_id=rule), test.first, max(test.last, test.first))


GO_TEST = Parser(
    name="go-test",
    commands=("go test", "gotestsum"),
    marks=("--- FAIL: ", "[no test files]", "[no tests to run]", "\nFAIL\t"),
    read=_go,
)

# https://doc.rust-lang.org/rustc/tests/index.html; library/test/src/formatters/pretty.rs
_CARGO_TITLE = re.compile(r"^---- (.+) stdout ----$")
_CARGO_END = re.compile(r"^(?:failures:|test result: )")
_CARGO_PLACE = re.compile(
    r"""^
    (?:thread[ ]'.*'(?:[ ]\(\d+\))?[ ]panicked | note:[ ]test[ ]did[ ]not[ ]panic[ ]as[ ]expected)
    [ ]at[ ](?P<path>[^:]+):(?P<line>\d+):(?P<column>\d+):?
    $""",
    re.VERBOSE,
)
_CARGO_STOP = re.compile(r"^(?:note: run with |stack backtrace:)")
_CARGO_FUNCTION = re.compile(r"^ +\d+: (?:0x[0-9a-f]+ - )?(.+)$")
_CARGO_FRAME = re.compile(r"^ +at (\S+?):(\d{1,9})(?::\d+)?$")
_DOCTEST = re.compile(r"^(?P<path>\S+\.rs) - (?:\S+ )?\(line (?P<line>\d+)\)$")


def _cargo(log: Log) -> Reading:
    blocks = titled(log.lines, _CARGO_TITLE, _CARGO_END)
    return Reading(problems=tuple(_cargo_failure(log.lines, *block) for block in blocks))


def _cargo_failure(lines: Sequence[str], first: int, last: int) -> Located:
    name = lines[first].removeprefix("---- ").removesuffix(" stdout ----")
    body = lines[first + 1 : last + 1]
    place = first_match(_CARGO_PLACE, body)
    where = _DOCTEST.match(name) or place
    start = body.index(place.string) + 1 if place and place.string.startswith("thread") else 0
    message = [line for line in above(body[start:], _CARGO_STOP) if line.strip()]
    groups: Mapping[str, str | None] = where.groupdict() if where else {}
    problem = failure("cargo-test", message, _cargo_frames(body), name, groups)
    return Located(replace(problem, rule_id="panic" if place else None), first, last)


def _cargo_frames(body: Sequence[str]) -> tuple[Frame, ...]:
    frames = []
    function = None
    for line in body:
        named, place = _CARGO_FUNCTION.match(line), _CARGO_FRAME.match(line)
        function = named[1] if named else function
        if place and inside(place[1]):
            frames.append(Frame(path=place[1], line=int(place[2]), function=function))
    return tuple(reversed(frames))


CARGO_TEST = Parser(
    name="cargo-test",
    commands=("cargo test", "cargo t"),
    marks=("\ntest result: ", " stdout ----\n"),
    read=_cargo,
)

# https://maven.apache.org/surefire/maven-surefire-plugin/
_MAVEN_TITLE = re.compile(
    r"""^
    (?:\[ERROR\][ ])?
    (?P<name>[\w.$]+(?:\(.*?\))?(?:\[[^\]]*\])?)  # a method, its parameters and their number
    (?:\((?P<owner>[\w.$]+)\))?
    (?:[ ]--|)[ ]{1,2}Time[ ]elapsed:[ ][\d.,]+[ ]s(?:ec)?
    [ ]+<<<[ ](?:FAILURE|ERROR)!
    $""",
    re.VERBOSE,
)
_MAVEN_RAISED = re.compile(r"^([\w.$]+)(?::|$)")
_MAVEN_STACK = re.compile(r"\tat ")


def _maven(log: Log) -> Reading:
    lines = log.lines
    titles = matching(lines, _MAVEN_TITLE)
    return Reading(problems=tuple(_maven_failure(lines, *title) for title in titles.items()))


def _maven_failure(lines: Sequence[str], first: int, title: re.Match[str]) -> Located:
    last = first
    for number in range(first + 1, len(lines)):
        if _MAVEN_TITLE.match(lines[number]) or _ends_stack(lines, number):
            break
        last = number
    name = title["name"]
    owner = title["owner"] or name.partition("(")[0].partition("[")[0].rpartition(".")[0]
    body = lines[first + 1 : last + 1]
    raised = first_match(_MAVEN_RAISED, body[:1])
    test_id = name if name.startswith(owner) else f"{owner}.{name}"
    message = above(body, _MAVEN_STACK)
    problem = failure("maven", message, stacks.java(body, owner), test_id, {})
    rule = raised[1].rpartition(".")[2] if raised else None
    return Located(replace(problem, rule_id=rule), first, last)


def _ends_stack(lines: Sequence[str], number: int) -> bool:
    """Whether a line is the blank one behind the stack, and not one inside the message."""
    below = lines[number + 1] if number + 1 < len(lines) else ""
    is_over = not below.strip() or below.startswith("[") or _MAVEN_TITLE.match(below)
    return not lines[number].strip() and bool(is_over)


MAVEN = Parser(
    name="maven",
    commands=("mvn", "mvnw", "mvnd"),
    marks=("Tests run: ", "No tests to run."),
    read=_maven,
)
