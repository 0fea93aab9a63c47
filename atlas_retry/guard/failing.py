"""Lines of the failing tests, by the places that their gates reported."""

from collections.abc import Iterator
from functools import lru_cache

from atlas_retry.guard import decides, places
from atlas_retry.guard.case import Scene
from atlas_retry.model import GateResult, Kind
from atlas_retry.patterns import regex
from atlas_retry.source import ScopeKind, definitions, enclosing

Place = tuple[str, int]
_CHECKERS = (Kind.LINT, Kind.FORMAT, Kind.PRE_COMMIT)
_PLACE = regex(r"([\w.@/-]+\.\w+):(\d+)\b")


@lru_cache(maxsize=1)
def failing_tests(scene: Scene) -> tuple[tuple[str, ...], ...]:
    """Lines of each failing test, and those of its file that are in no other test."""
    results = [result for result in scene.case.failing if result.kind not in _CHECKERS]
    found = dict.fromkeys(place for result in results for place in _places(result, scene))
    return tuple(dict.fromkeys(_lines_around(*place, scene) for place in found))


def _places(result: GateResult, scene: Scene) -> Iterator[Place]:
    """Paths and lines in tests where a gate failed; line 0 for a test that is a script."""
    problems = result.diagnostics
    seen = [(one.path, one.region.start_line) for one in problems if one.path and one.region]
    seen += [(frame.path, frame.line) for one in problems for frame in one.frames]
    tests = [place for place in seen if places.is_test(place[0])] or _printed(result, scene)
    scripts = () if tests else decides.reached([result.command], scene).scripts
    yield from tests or ((path, 0) for path in scripts if places.is_test(path))


def _printed(result: GateResult, scene: Scene) -> list[Place]:
    """Places such as `/a/b_test.c:10` in the output of a gate."""
    printed = {match[1]: int(match[2]) for match in _PLACE.finditer(result.stdout + result.stderr)}
    tests = filter(places.is_test, scene.old_paths if printed else ())
    pairs = ((path, name) for path in tests for name in printed)
    return [(path, printed[name]) for path, name in pairs if f"/{name}".endswith(f"/{path}")]


def _lines_around(path: str, line: int, scene: Scene) -> tuple[str, ...]:
    source, lines = scene.case.before.read(path) or b"", scene.old_text(path).splitlines()
    test = enclosing(path, source, line)
    if test is None:
        return tuple(lines)
    kinds = (ScopeKind.FUNCTION, ScopeKind.TEST)
    others = [one for one in definitions(path, source) if one.kind in kinds and one != test]
    numbered = enumerate(lines, 1)
    return tuple(
        text for n, text in numbered if test.holds(n) or not any(o.holds(n) for o in others)
    )
