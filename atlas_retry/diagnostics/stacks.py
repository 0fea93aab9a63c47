"""Reads the stack traces of JavaScript, Go and Java. Knows no test runner."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from atlas_retry.diagnostics.failures import inside
from atlas_retry.model import Frame

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
# https://docs.oracle.com/javase/8/docs/api/java/lang/Throwable.html#printStackTrace--
_JAVA = re.compile(
    r"^\s+at (?:[\w.@-]+/)?([\w.$<>]+)\.([\w$<>]+)\((\w+\.(?:java|kt|scala|groovy)):(\d+)\)$"
)


def javascript(lines: Iterable[str]) -> tuple[Frame, ...]:
    """The frames of the project, outermost first."""
    return _frames(lines, _JS.match)


def tap(lines: Iterable[str]) -> tuple[Frame, ...]:
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


def go(lines: Sequence[str]) -> tuple[Frame, ...]:
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


def java(lines: Iterable[str], owner: str) -> tuple[Frame, ...]:
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
