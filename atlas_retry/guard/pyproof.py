"""Whether the changed tests of a Python project still claim all that a test claimed before.

Only ever speaks for a change: what it cannot follow it does not vouch for. Runs nothing.
"""

import ast
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard import places, renames
from atlas_retry.guard.case import Scene
from atlas_retry.guard.filenames import respelled
from atlas_retry.guard.fresh import tree_of
from atlas_retry.guard.pychecks import literals_in
from atlas_retry.guard.pyequations import Facts, Known, equations
from atlas_retry.guard.pyfacts import Fact, facts_of
from atlas_retry.guard.pyinline import TooMuchError
from atlas_retry.guard.pylibrary import Library, library_of
from atlas_retry.guard.pymarks import Function
from atlas_retry.guard.pyvalues import UnknownValueError, value
from atlas_retry.guard.units import Unit

Read = Callable[[str], bytes | None]
Key = tuple[str, str]
"""File and name of a test."""


class Proof(Struct, frozen=True, kw_only=True, eq=False):
    """The facts of the tests that changed, as they were and as they are, by test."""

    before: Mapping[Key, Facts]
    now: Mapping[Key, Facts]
    known: "Callable[[Facts], Known]"
    """What the tests claim that do certain things first."""
    scene: Scene

    def holds(self, unit: Unit) -> bool:
        """Whether each fact of a test as it was is one still, or follows from those there are.

        Where a test does something first, only tests that do it as well speak of what comes after.
        """
        wanted = self.before.get((unit.path, unit.name), frozenset())
        telling = {fact for fact in wanted if not _is_settled(fact)}
        effects = frozenset(fact for fact in telling if fact.is_effect)
        claims = telling - effects
        return bool(claims) and all(map(self.known(effects).proves, claims))

    def contradicted(self, unit: Unit, successor: Unit) -> frozenset[str]:
        """What a test claims now to be another value than it claimed before."""
        before, now = (facts.get((unit.path, unit.name)) for facts in (self.before, self.now))
        if before is None or now is None:
            return frozenset()
        was, is_ = equations(before), equations(now)
        there = {fact.text for fact in now}
        alike = unit.own == successor.own and _shapes(before) == _shapes(now)
        around = self.gone(unit) if alike else frozenset()
        return around | frozenset(
            text
            for text, said in was.items()
            if text in is_
            and ast.unparse(is_[text]) != ast.unparse(said)
            and f"{text} == {ast.unparse(said)}" not in there
        )

    def denied(self, unit: Unit) -> frozenset[str]:
        """What a test claimed to be one value, and any test there is claims to be another."""
        was, is_ = (
            equations(frozenset().union(*facts.values())) for facts in (self.before, self.now)
        )
        own = equations(self.before.get((unit.path, unit.name), frozenset()))
        return frozenset(
            text
            for text in own.keys() & was.keys() & is_.keys()
            if ast.unparse(is_[text]) != ast.unparse(own[text])
        )

    def strayed(self, unit: Unit, successor: Unit) -> frozenset[str]:
        """What a test claimed values of, and claims them of something like it instead."""
        before = self.before.get((unit.path, unit.name))
        now = self.now.get((successor.path, successor.name))
        if before is None or now is None or self.holds(unit):
            return frozenset()
        was, is_ = ({_called(text) for text in equations(facts)} for facts in (before, now))
        alike = {_shape(text) for text in is_ - was}
        return frozenset(text for text in was - is_ if _shape(text) in alike)

    def gone(self, unit: Unit) -> frozenset[str]:
        """Literals that a test claimed something with, and that no longer stand in its claims."""
        before, now = (facts.get((unit.path, unit.name)) for facts in (self.before, self.now))
        if before is None or now is None or self.holds(unit):
            return frozenset()
        was, is_ = _literals(before), _literals(now)
        there = _literals(frozenset().union(*self.now.values()))
        lost = was - there
        if lost & _expected(before):
            return lost
        return respelled(lost, is_ - was, there, unit.path, self.scene)


def _literals(facts: Iterable[Fact]) -> frozenset[str]:
    return literals_in(*(fact.said for fact in facts if fact.said is not None))


def _expected(facts: Iterable[Fact]) -> frozenset[str]:
    """Literals that values themselves are compared with, and that say no file to be read."""
    shown = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict)
    said = (fact.said for fact in facts)
    sides = (c for s in said if isinstance(s, ast.Compare) for c in (s.left, *s.comparators))
    return literals_in(*(side for side in sides if isinstance(side, shown)))


def _is_settled(fact: Fact) -> bool:
    """Whether a claim hangs on nothing but literals."""
    if fact.said is None:
        return False
    try:
        value(fact.said)
    except UnknownValueError:
        return False
    return True


def proofs(
    scene: Scene, old: Iterable[Unit], live: Iterable[Unit], paths: Iterable[str]
) -> tuple[Proof, ...]:
    """The facts of the tests in the files that changed; only those that run speak for a change.

    Once with the values of fixtures in their place, once with their names.
    """
    before, running = (frozenset((unit.path, unit.name) for unit in units) for units in (old, live))
    chosen = tuple(path for path in paths if places.suffix(path) == ".py")
    return tuple(
        _proof(scene, before, running, chosen, with_fixtures=with_fixtures)
        for with_fixtures in (True, False)
    )


def _proof(
    scene: Scene,
    old: frozenset[Key],
    live: frozenset[Key],
    paths: Sequence[str],
    *,
    with_fixtures: bool,
) -> Proof:
    before: dict[Key, Facts] = {}
    now: dict[Key, Facts] = {}

    def was(path: str) -> bytes | None:
        return renames.spelled(path, scene.old(path), scene)

    for path in paths:
        before |= _of_file(path, was, old, with_fixtures=with_fixtures)
        now |= _of_file(path, scene.new, live, with_fixtures=with_fixtures)
    fields = _fields_of(scene)

    @cache
    def known(effects: Facts) -> Known:
        alike = (facts for facts in now.values() if effects <= facts)
        return Known(frozenset().union(*alike), fields)

    return Proof(before=before, now=now, known=known, scene=scene)


def _of_file(
    path: str, read: Read, wanted: frozenset[Key], *, with_fixtures: bool
) -> dict[Key, Facts]:
    tree = tree_of(read(path))
    if tree is None or not any(name[0] == path for name in wanted):
        return {}
    library = _library(path, tree, read)
    if not with_fixtures:
        library = replace(library, values={})
    found = {}
    for name, test, owner in _tests(tree, "", None):
        if (path, name) in wanted:
            try:
                found[path, name] = facts_of(test, owner, library)
            except (TooMuchError, RecursionError):
                continue
    return found


def _tests(
    node: ast.Module | ast.ClassDef, prefix: str, owner: ast.ClassDef | None
) -> Iterator[tuple[str, Function, ast.ClassDef | None]]:
    for part in node.body:
        if isinstance(part, Function) and part.name.startswith("test"):
            yield prefix + part.name, part, owner
        elif isinstance(part, ast.ClassDef):
            yield from _tests(part, f"{prefix}{part.name}::", part)


def _library(path: str, tree: ast.Module, read: Read) -> Library:
    """With what the tests import from beside them, and the conftest files above them."""
    trees = [tree]
    folder = posixpath.dirname(path)
    beside = [*_beside(tree, folder, read)]
    for other in (*(path for _, path in beside), *_conftests(folder)):
        found = tree_of(read(other)) if other != path else None
        if found is not None:
            trees.append(found)
    return library_of(trees, frozenset(module for module, _ in beside))


def _beside(tree: ast.Module, folder: str, read: Read) -> Iterator[tuple[str, str]]:
    """The modules of tests that are imported from, with their files."""
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").replace(".", "/")
        for root in ("", folder):
            path = posixpath.join(root, f"{parts}.py")
            if parts and places.is_test(path) and read(path) is not None:
                yield node.module or "", path


def _conftests(folder: str) -> Iterator[str]:
    while folder:
        yield posixpath.join(folder, "conftest.py")
        folder = posixpath.dirname(folder)
    yield "conftest.py"


def _called(text: str) -> str:
    """The method at the end of an expression, whatever it is called on."""
    found = re.search(r"\.(\w+\([^()]*\))$", text)
    return found[1] if found else text


def _shape(text: str) -> str:
    """An expression without its literals."""
    return re.sub(r"'(?:\\.|[^'\\])*'|\b\d[\w.]*", "_", text)


def _shapes(facts: Iterable[Fact]) -> frozenset[str]:
    return frozenset(_shape(fact.text) for fact in facts)


def _fields_of(scene: Scene) -> Callable[[str], tuple[str, ...]]:
    """The annotated fields of the project's classes, by name; looked up when asked for."""

    @cache
    def fields(name: str) -> tuple[str, ...]:
        for path in sorted(scene.new_paths):
            if places.suffix(path) != ".py" or places.is_test(path):
                continue
            source = scene.new(path) or b""
            if f"class {name}".encode() in source and (tree := tree_of(source)) is not None:
                return tuple(_annotated(tree, name))
        return ()

    return fields


def _annotated(tree: ast.Module, name: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    yield part.target.id
