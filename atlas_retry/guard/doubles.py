"""Python tests whose name something after them takes: they stand there, and are never run."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from atlas_retry.guard import places
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.fresh import python
from atlas_retry.guard.pymarks import Function

Tests = Mapping[str, Function]
"""Tests by their name, with the classes around them."""


def hidden(scene: Scene) -> Iterator[Finding]:
    """Tests that ran before, and whose name stands for something else that claims less now."""
    for delta, old, new in python(scene):
        if not places.is_test(delta.path):
            continue
        was, is_ = _left(old), _left(new)
        taken = [*_taken(new.body, ""), *_detached(new)]
        known = Counter(name for name, _, _ in (*_taken(old.body, ""), *_detached(old)))
        fresh = Counter(name for name, _, _ in taken) - known
        kept = {_body(test) for test in is_.values()}
        for name, line, later in taken:
            lost = (n for n, test in was.items() if _within(n, name) and _body(test) not in kept)
            if fresh[name] and any(not _claims_as_much(is_.get(n), was[n]) for n in lost):
                detail = f"`{name}` is never run: line {later} gives its name to something else"
                yield Finding(path=delta.path, line=line, detail=detail)


def _within(test: str, name: str) -> bool:
    return test == name or test.startswith(f"{name}::")


def _left(tree: ast.Module) -> Tests:
    gone = {name for name, _, _ in _detached(tree)}
    return {name: test for name, test in _tests(tree.body, "") if name not in gone}


def _detached(tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """Methods of test classes that are taken from them afterwards, with the lines of both."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr.startswith("test"):
                yield f"{ast.unparse(target.value)}::{target.attr}", node.lineno, node.lineno


def _tests(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    """The tests that are left when all of a body has been defined."""
    taken = {id(node) for node, _ in _doubles(body)}
    for node in body:
        if id(node) in taken:
            continue
        if isinstance(node, Function) and node.name.startswith("test"):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _tests(node.body, f"{prefix}{node.name}::")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _tests([*node.body, *getattr(node, "orelse", [])], prefix)


def _taken(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, int, int]]:
    """Tests and classes that something after them replaces, with the lines of both."""
    for test, taker in _doubles(body):
        yield prefix + test.name, test.lineno, taker.lineno
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _taken(node.body, f"{prefix}{node.name}::")


def _doubles(
    body: Sequence[ast.stmt],
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, ast.stmt]]:
    after: dict[str, ast.stmt] = {}
    for node in reversed(body):
        is_test = isinstance(node, Function) and node.name.startswith("test")
        if isinstance(node, ast.ClassDef) or (is_test and isinstance(node, Function)):
            taker = after.get(node.name)
            if taker is not None and not _speaks_of(taker, node.name):
                yield node, taker
        for name in _bound(node):
            after.setdefault(name, node)


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.ClassDef | Function):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)


def _speaks_of(later: ast.stmt, name: str) -> bool:
    """Whether what takes a name is made of what had it: decorated, or a class built on it."""
    return any(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
        for part in ast.walk(later)
    )


def _claims_as_much(now: Function | None, test: Function) -> bool:
    """Whether a test does all that another one did, and asserts at all."""
    if now is None:
        return False
    left = Counter(map(ast.dump, now.body))
    return not Counter(map(ast.dump, test.body)) - left


def _body(test: Function) -> str:
    return ast.dump(ast.Module(body=[*test.body], type_ignores=[]))
