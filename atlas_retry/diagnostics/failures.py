"""Shared parts of the parsers of test runners: blocks, stacks, Python tracebacks, unittest."""

import posixpath
import re
import textwrap
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import filterfalse, takewhile

from msgspec.structs import replace

from atlas_retry.diagnostics.table import region_of
from atlas_retry.diagnostics.values import Located, Log, parses
from atlas_retry.model import Diagnostic, Frame
from atlas_retry.patterns import regex

MESSAGE_LINES = 40
"""Longer messages keep the head and the last quarter: assertions come first, hints last."""
RAISED = regex(r"^(?:\w+: )?(\w*Error)(?: \[\w+\])?:")
_OUTSIDE = regex(r"""(?x)
    (?:^|/)(?:site-packages|dist-packages|node_modules|\.cargo|rustc|\.rustup|\.m2)/
    | ^(?:/usr/|/opt/|/nix/|<|node:|internal/|java\.|jdk\.)
    | /lib/python3(?:\.\d+)?/
    | /pkg/mod/
    """)


def inside(path: str) -> bool:
    """Whether a path may be the project's, not of a library, interpreter or generated code."""
    return _OUTSIDE.search(path) is None


def matching(lines: Sequence[str], pattern: re.Pattern[str]) -> dict[int, re.Match[str]]:
    """Matches of the pattern at the start of lines, by line number."""
    return {i: match for i, line in enumerate(lines) if (match := pattern.match(line))}


def first_match(pattern: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    """The first match of the pattern at the start of a line."""
    return next(filter(None, map(pattern.match, lines)), None)


def titled(
    lines: Sequence[str], title: re.Pattern[str], end: re.Pattern[str]
) -> Iterator[tuple[int, int, re.Match[str]]]:
    """First and last line of each block, and its title; it ends before the next one or `end`."""
    start, begun = 0, None
    for number, line in enumerate(lines):
        begins = title.match(line)
        if begun and (begins or end.match(line)):
            yield start, number - 1, begun
            begun = None
        if begins:
            start, begun = number, begins
    if begun:
        yield start, len(lines) - 1, begun


def above(lines: Sequence[str], *stops: re.Pattern[str]) -> list[str]:
    """The lines before the first match of any of `stops`."""
    return list(takewhile(lambda line: not any(stop.match(line) for stop in stops), lines))


def shortened(lines: Sequence[str]) -> str:
    """The lines of a message joined, cut in the middle if there are many."""
    if len(lines) <= MESSAGE_LINES:
        return "\n".join(lines).strip("\n")
    tail = MESSAGE_LINES // 4
    gone = len(lines) - MESSAGE_LINES
    return "\n".join((*lines[: MESSAGE_LINES - tail], f"... {gone} lines ...", *lines[-tail:]))


def failure(
    tool: str,
    message: Sequence[str],
    frames: tuple[Frame, ...],
    test_id: str | None,
    place: Mapping[str, str | None],
) -> Diagnostic:
    """A failed test; its rule is the exception at the start of the message."""
    text = shortened(textwrap.dedent("\n".join(message)).strip().split("\n"))
    raised = RAISED.match(text)
    problem = Diagnostic(
        tool=tool,
        rule_id=raised[1] if raised else None,
        message=text or "failed",
        test_id=test_id,
    )
    return placed(problem, frames, place)


def placed(
    problem: Diagnostic, frames: tuple[Frame, ...], otherwise: Mapping[str, str | None]
) -> Diagnostic:
    """The problem at its innermost frame; without frames, at the runner's place.

    Where that place is one of the frames, seen from another folder, all frames are in that folder:
    cargo names a panic from the workspace's root, and its backtrace from the crate's.
    """
    place = {name: value for name, value in otherwise.items() if value}
    named = place.get("path", "")
    alike = (posixpath.normpath(frame.path) for frame in frames)
    same = next((path for path in alike if named.endswith(f"/{path}")), None)
    if same:
        folder = named.removesuffix(same)
        frames = tuple(
            frame
            if frame.path.startswith("/")
            else replace(frame, path=posixpath.normpath(folder + frame.path))
            for frame in frames
        )
    if frames:
        place = {"path": frames[-1].path, "line": str(frames[-1].line)}
    return replace(problem, path=place.get("path"), region=region_of(place), frames=frames)


# https://v8.dev/docs/stack-trace-api; vitest marks its frames with an arrow.
_JS = regex(r"""(?mx)^
    [ \t#]*(?:at|\u276f)[ ](?:async[ ])?
    (?:(?P<function>[^\s(:][^(:\n]{0,200}?)[ ]\(?)?
    (?:file://)?(?P<path>[^\s:()]+):(?P<line>\d{1,9}):\d{1,9}\)?
    $""")
_JS_BARE = regex(r"""(?mx)^
    [ \t]+(?:async[ ])?(?P<function>[^\s(:][^(:\n]{0,200}?)
    [ ]\((?:file://)?(?P<path>[^\s:()]+):(?P<line>\d{1,9}):\d+\)
    $""")
# https://pkg.go.dev/runtime/debug#Stack: the function, then its place behind a tab.
_GO = regex(r"""(?mx)^
    (?:\S*/)?[^./\s]*\.(?P<function>\S+)\([^()\n]*\)\n
    \t(?P<path>\S+\.go):(?P<line>\d{1,9})(?:[ ]\+0x[0-9a-f]+)?
    $""")
# https://doc.rust-lang.org/std/backtrace/index.html
_RUST = regex(r"""(?mx)^
    [ ]+\d+:[ ](?:0x[0-9a-f]+[ ]-[ ])?(?P<function>.+)\n
    [ ]+at[ ](?P<path>\S+?):(?P<line>\d{1,9})(?::\d+)?
    $""")
RUBY_AT = (
    r"(?m)^ {3,9}(?:# )?(?P<path>[^\s:]+\.\w{1,9}):(?P<line>\d{1,9}):in [`'](?P<function>[^']+)'$"
)
RUBY_FRAME = regex(RUBY_AT)
PHP_FRAME = regex(r"(?m)^(?P<path>[^\s:]+\.(?:php|phpt|inc)):(?P<line>\d{1,9})$")
# https://docs.oracle.com/javase/8/docs/api/java/lang/Throwable.html#printStackTrace--
_JAVA = regex(
    r"^\s+at (?:[\w.@-]+//?)?([\w.$<>]+)\.([\w$<>]+)\((\w+\.(?:java|kt|scala|groovy)):(\d+)\)$"
)


def _frames(lines: Iterable[str], pattern: re.Pattern[str]) -> tuple[Frame, ...]:
    """The frames of the project, outermost first, of a stack that begins with the innermost."""
    matches = [m for m in pattern.finditer("\n".join(lines)) if inside(m["path"])]
    return tuple(
        Frame(path=m["path"], line=int(m["line"]), function=m.groupdict().get("function"))
        for m in reversed(matches)
    )


javascript_frames = partial(_frames, pattern=_JS)
tap_frames = partial(_frames, pattern=_JS_BARE)
rust_frames = partial(_frames, pattern=_RUST)
ruby_frames = partial(_frames, pattern=RUBY_FRAME)
php_frames = partial(_frames, pattern=PHP_FRAME)


def go_frames(lines: Sequence[str]) -> tuple[Frame, ...]:
    """The frames of the first goroutine that has any."""
    goroutines = re.split(r"(?m)^goroutine ", "\n".join(lines))
    return next(filter(None, (_frames([one], _GO) for one in goroutines)), ())


def java_frames(lines: Iterable[str], owner: str) -> tuple[Frame, ...]:
    """The frames in the packages of the class `owner`, outermost first."""
    common = ".".join(owner.split(".")[:2]) if owner.count(".") > 1 else owner.partition(".")[0]
    matches = [*filter(None, map(_JAVA.match, lines))]
    return tuple(
        Frame(path=java_path(m[1], m[3]), line=int(m[4]), function=m[2])
        for m in reversed(matches)
        if f"{m[1]}.".startswith(f"{common}.")
    )


_JAVA_LIBRARIES = regex(
    r"(?:java|javax|jdk|sun|kotlin|groovy|scala)\.|org\.(?:junit|opentest4j|assertj|gradle|hamcrest"
    r"|mockito|testng|codehaus|spockframework)\.|com\.sun\."
)


def own_java_frames(lines: Iterable[str]) -> tuple[Frame, ...]:
    """The frames of a stack of Java that are not those of well-known libraries."""
    matches = [*filter(None, map(_JAVA.match, lines))]
    return tuple(
        Frame(path=java_path(m[1], m[3]), line=int(m[4]), function=m[2])
        for m in reversed(matches)
        if not _JAVA_LIBRARIES.match(m[1])
    )


def no_frames(_: Sequence[str]) -> tuple[Frame, ...]:
    """Of a runner whose failures have one place."""
    return ()


def java_path(owner: str, file: str) -> str:
    """Path of the source of a class for Maven and Gradle."""
    stem, _, language = file.partition(".")
    test = stem.startswith("Test") or stem.endswith(("Test", "Tests", "TestCase", "IT"))
    folder = {"kt": "kotlin"}.get(language, language)
    package = owner.rpartition(".")[0].replace(".", "/")
    return "/".join(filter(None, ("src", "test" if test else "main", folder, package, file)))


# https://docs.python.org/3/library/traceback.html
_FRAME = regex(r'^ *File "([^"]+)", line (\d{1,9})(?:,? in (.+))?$')
_EXCEPTION = regex(r"^([A-Za-z_][\w.]{0,200})(?:: (.*))?$")
_BAR = regex(r"^ *\| ?")
_BETWEEN = regex(r"^ *\+(?:-[-+]*(?: [\d.]+ -+)?| Exception Group .*)$")
# https://docs.python.org/3/library/faulthandler.html: the innermost frame comes first.
_FATAL = regex(r"^Fatal Python error: (.+)$")
_DUMP_LINES = 2_000
_START = "Traceback (most recent call last):"
_CHAINED = ("During handling of", "The above exception")
_NEXT = (_START, *_CHAINED)
_BLANK = regex(r"\s*$")
# A module that does not compile has no traceback above it.
_SYNTAX = regex(r'^  File "[^"]+", line \d{1,9}$')


def python_frames(lines: Iterable[str]) -> tuple[Frame, ...]:
    """Every frame of the project in the lines, outermost first, without repetitions in a row."""
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
    """The diagnostic of one traceback; None if it does not end with an exception.

    For an exception group it is the last exception of the group.
    """
    rest = [*filterfalse(_BETWEEN.match, lines)]
    plain = [_BAR.sub("", line) for line in rest] if len(rest) < len(lines) else lines
    rule, message = last_exception(plain)
    return None if rule is None else _problem(tool, rule, message, python_frames(plain))


def _problem(tool: str, rule: str, message: str, frames: tuple[Frame, ...]) -> Diagnostic:
    return placed(Diagnostic(tool=tool, rule_id=rule, message=message), frames, {})


@parses(
    "python",
    commands=("python", "python3"),
    marks=(_START, "SyntaxError: ", "IndentationError: ", "Fatal Python error: "),
)
def python(log: Log) -> Iterator[Located]:
    """Each traceback, and the stack of an interpreter that crashed."""
    lines = log.lines
    number = 0
    while number < len(lines):
        last = number
        fatal = _FATAL.match(lines[number])
        diagnostic = None
        if fatal:
            diagnostic, last = _fatal(lines, number, fatal[1])
        elif lines[number].startswith(_START) or _SYNTAX.match(lines[number]):
            last = _end(lines, number)
            diagnostic = crash("python", lines[number : last + 1])
        if diagnostic:
            yield Located(diagnostic, number, last)
        number = last + 1


def _fatal(lines: Sequence[str], number: int, message: str) -> tuple[Diagnostic, int]:
    """The problem of a crashed interpreter, and the last line of the current thread's stack."""
    dump = range(number + 1, min(number + _DUMP_LINES, len(lines)))
    start = next((n for n in dump if lines[n].startswith("Current thread ")), number)
    last = start + 1 + len(above(lines[start + 2 :], _BLANK))
    frames = tuple(reversed(python_frames(lines[start : last + 1])))
    test = next((f for f in frames if (f.function or "").startswith("test_")), None)
    test_id = f"{test.path}::{test.function}" if test else None
    return replace(_problem("python", "fatal", message, frames), test_id=test_id), last


def _end(lines: Sequence[str], start: int) -> int:
    """The last line, with the exception, of the traceback that starts here, chained ones too."""
    last = len(lines) - 1
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if line.startswith((" ", *_NEXT)) or not line:
            continue
        last = number
        if not any(x.startswith(_START) for x in lines[number + 1 : number + 5]):
            break
    return last


# https://docs.python.org/3/library/unittest.html; unittest/runner.py: printErrorList
_UNITTEST_TITLE = regex(r"^(ERROR|FAIL|UNEXPECTED SUCCESS): (\S+)(?: \(([^()\s]+)\))?(?: (.*))?$")
_UNITTEST_RULE = regex(r"^(?:={70}|-{70})$")
_UNITTEST_RAN = regex(r"^Ran (\d{1,9}) tests? in ")


@parses(
    "unittest",
    commands=("-m unittest", "manage.py test"),
    marks=("\nFAILED (failures=", "\nFAILED (errors=", "\nNO TESTS RAN", "\nRan "),
)
def unittest(log: Log) -> Iterator[Located]:
    """The failures, each from below its ruler to above the next one, or to the counts."""
    lines = log.lines
    rules, counts = matching(lines, _UNITTEST_RULE), matching(lines, _UNITTEST_RAN)
    stops = sorted((*rules, *counts, len(lines)))
    for title, match in matching(lines, _UNITTEST_TITLE).items():
        if title - 1 in rules:
            below = bisect(stops, title)
            below += stops[below] in rules and lines[stops[below]].startswith("-")
            yield _unittest_failure(lines[title : stops[below]], title, match)


def _unittest_failure(lines: Sequence[str], first: int, title: re.Match[str]) -> Located:
    word, name, owner, case = title.groups()
    problem = crash("unittest", lines)
    test_id = name
    # the dotted name for unittest's command line; before 3.11 without the method
    if owner and not owner.startswith("unittest.loader."):
        test_id = owner if owner.endswith(f".{name}") else f"{owner}.{name}"
    if problem is None:
        problem = Diagnostic(tool="unittest", message=word.lower(), rule_id=word.lower())
    elif case and case.startswith(("(", "[")):
        problem = replace(problem, message=f"{case} {problem.message}")
    return Located(replace(problem, test_id=test_id), first, first + len(lines) - 1)
