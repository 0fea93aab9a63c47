"""What the readers of test runners share: blocks, messages, places, stacks. Knows no runner."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile

from msgspec.structs import replace

from atlas_retry.diagnostics.table import region_of
from atlas_retry.model import Diagnostic, Frame

MESSAGE_LINES = 40
"""A longer message keeps its head and its last quarter: assertions stand first, hints last."""
RAISED = re.compile(r"^(?:\w+: )?(\w*Error)(?: \[\w+\])?:")
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


def matching(lines: Sequence[str], pattern: re.Pattern[str]) -> dict[int, re.Match[str]]:
    """The lines whose start the pattern matches, in order, by their number."""
    return {i: match for i, line in enumerate(lines) if (match := pattern.match(line))}


def first_match(pattern: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    """What the pattern makes of the first line whose start it matches."""
    return next(filter(None, map(pattern.match, lines)), None)


def titled(
    lines: Sequence[str], title: re.Pattern[str], end: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    """First and last line of each block: from its title to before the next one, or the end."""
    start: int | None = None
    for number, line in enumerate(lines):
        begins = title.match(line)
        if start is not None and (begins or end.match(line)):
            yield start, number - 1
            start = None
        start = number if begins else start
    if start is not None:
        yield start, len(lines) - 1


def above(lines: Sequence[str], *stops: re.Pattern[str]) -> list[str]:
    """The lines before the first that any of `stops` matches."""
    return list(takewhile(lambda line: not any(stop.match(line) for stop in stops), lines))


def shortened(lines: Sequence[str]) -> str:
    """The lines of a message joined, cut in the middle when there are very many."""
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
    """A failed test; its rule is the exception that the message begins with."""
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
    """The problem at its innermost frame; without frames where the runner says."""
    place = {name: value for name, value in otherwise.items() if value}
    if frames:
        place = {"path": frames[-1].path, "line": str(frames[-1].line)}
    return replace(problem, path=place.get("path"), region=region_of(place), frames=frames)


# https://v8.dev/docs/stack-trace-api; vitest marks its frames with an arrow.
_JS = re.compile(
    r"""^
    [\s#]*(?:at|\u276f)[ ](?:async[ ])?
    (?:(?P<function>[^\s(:][^(:]{0,200}?)[ ]\(?)?
    (?:file://)?(?P<path>[^\s:()]+):(?P<line>\d{1,9}):\d{1,9}\)?
    $""",
    re.VERBOSE,
)
_JS_BARE = re.compile(
    r"^\s+(?:async )?(?P<function>[^\s(:][^(:]{0,200}?) \((?:file://)?(?P<path>[^\s:()]+):(?P<line>\d{1,9}):\d+\)$"
)
# https://pkg.go.dev/runtime/debug#Stack: the function, then its place behind a tab.
_GO_CALL = re.compile(r"^(\S+)\([^()]*\)$")
_GO_PLACE = re.compile(r"^\t(\S+\.go):(\d{1,9})(?: \+0x[0-9a-f]+)?$")
# https://doc.rust-lang.org/std/backtrace/index.html
_RUST_FUNCTION = re.compile(r"^ +\d+: (?:0x[0-9a-f]+ - )?(.+)$")
_RUST_PLACE = re.compile(r"^ +at (\S+?):(\d{1,9})(?::\d+)?$")
# https://docs.oracle.com/javase/8/docs/api/java/lang/Throwable.html#printStackTrace--
_JAVA = re.compile(
    r"^\s+at (?:[\w.@-]+/)?([\w.$<>]+)\.([\w$<>]+)\((\w+\.(?:java|kt|scala|groovy)):(\d+)\)$"
)


def javascript_frames(lines: Iterable[str]) -> tuple[Frame, ...]:
    """The frames of the project, outermost first."""
    return _frames(lines, _JS.match)


def tap_frames(lines: Iterable[str]) -> tuple[Frame, ...]:
    """The frames of a stack in TAP's YAML, outermost first."""
    return _frames(lines, _JS_BARE.match)


def _frames(
    lines: Iterable[str], match: Callable[[str], re.Match[str] | None]
) -> tuple[Frame, ...]:
    matches = [*filter(None, map(match, lines))]
    return tuple(
        Frame(path=m["path"], line=int(m["line"]), function=m["function"])
        for m in reversed(matches)
        if inside(m["path"])
    )


def go_frames(lines: Sequence[str]) -> tuple[Frame, ...]:
    """The frames of the project of the first goroutine, outermost first."""
    frames = []
    for call, place in pairwise(lines):
        at, function = _GO_PLACE.match(place), _GO_CALL.match(call)
        if at and function and inside(at[1]):
            name = function[1].rpartition("/")[2].partition(".")[2]
            frames.append(Frame(path=at[1], line=int(at[2]), function=name))
        elif place.startswith("goroutine ") and frames:
            break
    return tuple(reversed(frames))


def rust_frames(lines: Sequence[str]) -> tuple[Frame, ...]:
    """The frames of the project, outermost first."""
    frames = []
    for call, at in pairwise(lines):
        place, function = _RUST_PLACE.match(at), _RUST_FUNCTION.match(call)
        if place and function and inside(place[1]):
            frames.append(Frame(path=place[1], line=int(place[2]), function=function[1]))
    return tuple(reversed(frames))


def java_frames(lines: Iterable[str], owner: str) -> tuple[Frame, ...]:
    """The frames in the packages of the class `owner`, outermost first."""
    common = ".".join(owner.split(".")[:2]) if owner.count(".") > 1 else owner.partition(".")[0]
    matches = [*filter(None, map(_JAVA.match, lines))]
    return tuple(
        Frame(path=java_path(m[1], m[3]), line=int(m[4]), function=m[2])
        for m in reversed(matches)
        if f"{m[1]}.".startswith(f"{common}.")
    )


def java_path(owner: str, file: str) -> str:
    """Where Maven and Gradle keep the source of a class."""
    stem, _, language = file.partition(".")
    test = stem.startswith("Test") or stem.endswith(("Test", "Tests", "TestCase", "IT"))
    folder = {"kt": "kotlin"}.get(language, language)
    package = owner.rpartition(".")[0].replace(".", "/")
    return "/".join(filter(None, ("src", "test" if test else "main", folder, package, file)))
