"""Rules on sources that satisfy a check without doing what it is about."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import branches, places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.fresh import fresh, python
from atlas_retry.guard.pychecks import last, names_in
from atlas_retry.syntax import definitions


def swallowed(scene: Scene) -> Iterator[Finding]:
    """Every error caught and forgotten in the code itself."""
    for delta, old, new in python(scene):
        if places.is_test(delta.path):
            continue
        for node in fresh(old, new):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _speaks(node):
                detail = "every error is caught and forgotten"
                yield Finding(path=delta.path, line=node.lineno, detail=detail)
            elif isinstance(node, ast.Call) and _suppresses_all(node):
                detail = "every error is suppressed"
                yield Finding(path=delta.path, line=node.lineno, detail=detail)
    for delta in scene.files:
        if places.suffix(delta.path) in (
            ".js",
            ".ts",
            ".tsx",
            ".jsx",
            ".java",
            ".mjs",
        ) and not places.is_test(delta.path):
            fresh_catches = len(_EMPTY_CATCH.findall(delta.new_text)) - len(
                _EMPTY_CATCH.findall(delta.old_text)
            )
            if fresh_catches > 0:
                yield Finding(path=delta.path, line=1, detail="every error is caught and forgotten")


def _suppresses_all(node: ast.Call) -> bool:
    return last(node.func) == "suppress" and bool(names_in(*node.args) & _EVERYTHING)


_EVERYTHING = frozenset({"Exception", "BaseException"})
_EMPTY_CATCH = re.compile(r"catch\s*(\([^)]*\))?\s*\{\s*(//[^\n]*\s*|return[^;]*;?\s*)?\}")


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(names_in(handler.type) & {"Exception", "BaseException"})


def _speaks(handler: ast.ExceptHandler) -> bool:
    """Whether the handler raises, or uses what it caught."""
    for part in (part for stmt in handler.body for part in ast.walk(stmt)):
        if isinstance(part, ast.Raise) or (isinstance(part, ast.Name) and part.id == handler.name):
            return True
        if isinstance(part, ast.Call) and "log" in ast.unparse(part.func).lower():
            return True
    return False


_DISCARDED = re.compile(r"^(_\s*=|_,\s*_\s*=|_\s*,\s*err\s*:?=)\s*(?P<call>[\w.]+\(.*\))$")


def discarded(scene: Scene) -> Iterator[Finding]:
    """Go's results assigned to nothing, where a linter asked for the error to be handled."""
    if scene.tests_may_follow and scene.failing:
        return
    for delta in scene.files:
        if places.suffix(delta.path) != ".go":
            continue
        old = {line.strip() for line in delta.old_text.splitlines()}
        for number, line in enumerate(delta.new_text.splitlines(), 1):
            found = _DISCARDED.match(line.strip())
            if found and line.strip() not in old and found["call"] in old:
                detail = f"the error is assigned to nothing: `{line.strip()}`"
                yield Finding(path=delta.path, line=number, detail=detail)


def features_removed(scene: Scene) -> Iterator[Finding]:
    """Public functions and refusals dropped where style, types or coverage failed."""
    if scene.failing & {"test", "build", "custom"} and "coverage" not in scene.failing:
        return
    if not scene.failing:
        return
    there = {
        scope.name
        for delta in scene.files
        if not places.is_test(delta.path)
        for scope in definitions(delta.path, delta.after or b"")
    }
    for delta in scene.files:
        if places.is_test(delta.path) or not places.is_code(delta.path):
            continue
        for scope in definitions(delta.path, delta.before or b""):
            public = not scope.name.startswith("_") and scope.kind in ("function", "class")
            if public and scope.name not in there and not _may_go(scope.name, delta, scene):
                yield Finding(
                    path=delta.path, line=1, detail=f"`{scope.name}` was removed, not mended"
                )
        yield from _refusals_removed(delta, scene)
    yield from branches.outcomes_removed(scene)


def _may_go(name: str, delta: Delta, scene: Scene) -> bool:
    """Whether only the name went, or nothing spoke of it and a linter finds unused code."""
    count = sum(1 for _ in definitions(delta.path, delta.after or b""))
    if count >= sum(1 for _ in definitions(delta.path, delta.before or b"")):
        return True
    return "coverage" not in scene.failing and not _is_spoken_of(name, delta, scene)


def _is_spoken_of(name: str, delta: Delta, scene: Scene) -> bool:
    """Whether a function was used, tested or told of anywhere but in its definition."""
    word = re.compile(rf"\b{re.escape(name)}\b".encode())
    others = (path for path in sorted(scene.old_paths) if path != delta.path)
    own = len(word.findall(delta.before or b""))
    return own > 1 or any(word.search(scene.old(path) or b"") for path in others)


def _refusals_removed(delta: Delta, scene: Scene) -> Iterator[Finding]:
    if places.suffix(delta.path) != ".py":
        return
    after = "\n".join(d.new_text for d in scene.files)
    for message in re.findall(r"raise \w+\(\s*f?[\"']([^\"'{]+)", delta.old_text):
        if message not in after:
            yield Finding(path=delta.path, line=1, detail=f"the refusal “{message}” was removed")
