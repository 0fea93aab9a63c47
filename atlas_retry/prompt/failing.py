"""Locates failing tests and the passing tests next to them."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import PurePosixPath

from msgspec import Struct

from atlas_retry.model import Diagnostic, Frame
from atlas_retry.patterns import regex
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.project import Project
from atlas_retry.source import Scope, ScopeKind
from atlas_retry.source.origin import is_test_path

_TEST_NAME = regex(r"^(test|Test|it$|should|spec)|_test$|Test$")
_PLACES = (
    regex(r'File "([^"\n]+)", line (\d+)(?:, in ([\w<>.]+))?'),
    regex(r"(?:^|[\s(\[])((?:[\w.@+-]+/)*[\w.@+-]+\.\w{1,5}):(\d+)", re.MULTILINE),
)
_PARAMETER = regex(r"\[.*\]$", re.DOTALL)
_BETWEEN = regex(r"::|/| [>\u203a] ")
MAX_PASSING = 20
"""Maximum of passing tests, sampled evenly."""


class FailingTest(Struct, frozen=True, kw_only=True):
    """One failed test and its place in the source."""

    diagnostic: Diagnostic
    spot: Spot | None
    """Definition of the test; None if not found."""
    line: int | None
    """The line of the test that failed; later lines did not run."""
    frames: tuple[Frame, ...]
    """Frames in the project outside the tests, outermost first."""


def places(text: str, known: frozenset[str]) -> Iterator[Frame]:
    """Every `path:line` in a text for a file of the project, in order."""
    matches = chain.from_iterable(pattern.finditer(text) for pattern in _PLACES)
    for match in sorted(matches, key=lambda match: match.start()):
        path = known_path(match[1], known)
        if path:
            function = match[3] if match.re is _PLACES[0] else None
            yield Frame(path=path, line=int(match[2]), function=function)


def known_path(path: str | None, known: frozenset[str]) -> str | None:
    """A tool's path relative to the root; None if it is not in the project."""
    plain = posixpath.normpath(path or "")
    if plain in known:
        return plain
    parts = plain.strip("/").split("/")
    for skip in range(1, len(parts) - 1):
        tail = "/".join(parts[skip:])
        if tail in known:
            return tail
    return None


def locate(diagnostic: Diagnostic, project: Project, graph: Graph) -> FailingTest:
    """The test of a diagnostic, by its id or by the first frame in a test file."""
    path, frames = _placed(diagnostic, project)
    spot = _by_id(diagnostic, path, graph) if path else None
    in_test = [frame.line for frame in frames if frame.path == path]
    if spot is None and path and in_test:
        spot = graph.at(path, in_test[0])
    inside = [*filter(spot.scope.holds, in_test)] if spot else []
    return FailingTest(
        diagnostic=diagnostic,
        spot=spot,
        line=inside[-1] if inside else None,
        frames=tuple(frame for frame in frames if not is_test_path(frame.path)),
    )


def each_once(tests: Iterable[FailingTest]) -> tuple[FailingTest, ...]:
    """One failure per test, which may fail with many parameters."""
    first: dict[Spot | None, FailingTest] = {}
    for test in tests:
        first.setdefault(test.spot, test)
    return tuple(first.values())


def involved_files(diagnostic: Diagnostic, project: Project) -> Iterator[str]:
    """Files of the project in a diagnostic, its test's file first."""
    path, frames = _placed(diagnostic, project)
    if path:
        yield path
        fixtures = (f"{folder}/conftest.py" for folder in PurePosixPath(path).parents)
        yield from filter(project.paths.__contains__, map(posixpath.normpath, fixtures))
    yield from (frame.path for frame in frames)


def _placed(diagnostic: Diagnostic, project: Project) -> tuple[str | None, tuple[Frame, ...]]:
    """The file of its test, and the frames in the project, outermost first."""
    frames = [
        Frame(path=path, line=frame.line, function=frame.function)
        for frame in diagnostic.frames
        if (path := known_path(frame.path, project.paths))
    ]
    if not frames:
        frames = list(places(diagnostic.text, project.paths))
    path = known_path(diagnostic.path, project.paths)
    if path and diagnostic.region:
        own = Frame(path=path, line=diagnostic.region.start_line)
        if not any((frame.path, frame.line) == (own.path, own.line) for frame in frames):
            frames.insert(0, own) if is_test_path(path) else frames.append(own)
    return _test_file(diagnostic, frames, project), tuple(frames)


def _test_file(diagnostic: Diagnostic, frames: list[Frame], project: Project) -> str | None:
    place, _, name = (diagnostic.test_id or "").partition("::")
    named = known_path(place, project.paths)
    if named:
        return named
    tests = [frame.path for frame in frames if is_test_path(frame.path)]
    if tests:
        return tests[0]
    # Go names the package's folder, and a place that may be in a helper
    if name and (defining := project.test_file_of(place, name.partition("/")[0])):
        return defining
    return diagnostic.path if diagnostic.path in project.paths else None


def _by_id(diagnostic: Diagnostic, path: str, graph: Graph) -> Spot | None:
    """The definition with the full name of the test id; a guess could be a passing test."""
    test_id = diagnostic.test_id or ""
    name = _PARAMETER.sub("", test_id.partition("::")[2] or test_id)
    dotted = f".{_BETWEEN.sub('.', name)}."
    named = [scope for scope in graph.project.definitions(path) if _is_named(scope, dotted)]
    best = max(named, key=lambda scope: (scope.depth, len(scope.qualified_name)), default=None)
    return Spot(path, best) if best else None


def _is_named(scope: Scope, dotted: str) -> bool:
    if scope.kind is ScopeKind.FUNCTION:
        # the test is the last part of the id, or the function around a subtest
        name = f".{scope.qualified_name}."
        return dotted.endswith(name) or dotted.startswith(name)
    return scope.kind is ScopeKind.TEST and f".{_BETWEEN.sub('.', scope.name)}." in dotted


def passing(failed: Iterable[FailingTest], graph: Graph) -> tuple[Spot, ...]:
    """The other tests in the files of the failed ones, which passed."""
    broken = tuple(dict.fromkeys(test.spot for test in failed if test.spot))
    names = {spot.scope.qualified_name for spot in broken}
    others: list[Spot] = []
    for path in dict.fromkeys(spot.path for spot in broken):
        tests = filter(_is_test, graph.project.definitions(path))
        others += [Spot(path, scope) for scope in tests if scope.qualified_name not in names]
    return tuple(others[:: 1 + len(others) // MAX_PASSING])


def _is_test(scope: Scope) -> bool:
    is_named = scope.kind is ScopeKind.FUNCTION and _TEST_NAME.search(scope.name)
    return scope.kind is ScopeKind.TEST or bool(is_named)
