"""Whether the changed tests of a Python project still claim all that a test claimed before.

Only ever speaks for a change: what it cannot follow it does not vouch for. Runs nothing.
"""

import ast
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard import places
from atlas_retry.guard.case import Scene
from atlas_retry.guard.fresh import tree_of
from atlas_retry.guard.pychecks import last, literals_in
from atlas_retry.guard.pyfacts import Fact, facts_of
from atlas_retry.guard.pyinline import TooMuchError, is_each, of_each, resolved
from atlas_retry.guard.pylibrary import Library, library_of
from atlas_retry.guard.pymarks import Function
from atlas_retry.guard.pyvalues import UnknownValueError, value
from atlas_retry.guard.units import Unit

Read = Callable[[str], bytes | None]
Key = tuple[str, str]
"""File and name of a test."""
Facts = frozenset[Fact]
_SAME = (ast.Eq, ast.Is)


class Proof(Struct, frozen=True, kw_only=True, eq=False):
    """The facts of the tests that changed, as they were and as they are, by test."""

    before: Mapping[Key, Facts]
    now: Mapping[Key, Facts]
    known: "Callable[[Facts], _Known]"
    """What the tests claim that do certain things first."""

    def holds(self, unit: Unit) -> bool:
        """Whether each fact of a test as it was is one still, or follows from those there are.

        Where a test does something first, only tests that do it as well speak of what comes after.
        """
        wanted = self.before.get((unit.path, unit.name), frozenset())
        telling = {fact for fact in wanted if not _is_settled(fact)}
        effects = frozenset(fact for fact in telling if fact.is_effect)
        claims = telling - effects
        return bool(claims) and all(map(self.known(effects).proves, claims))

    def contradicted(self, unit: Unit) -> frozenset[str]:
        """What a test claims now to be another value than it claimed before."""
        before, now = (facts.get((unit.path, unit.name)) for facts in (self.before, self.now))
        if before is None or now is None:
            return frozenset()
        was, is_ = _equations(before), _equations(now)
        there = {fact.text for fact in now}
        return frozenset(
            text
            for text, said in was.items()
            if text in is_
            and ast.unparse(is_[text]) != ast.unparse(said)
            and f"{text} == {ast.unparse(said)}" not in there
        )

    def gone(self, unit: Unit) -> frozenset[str]:
        """Literals that a test claimed something with, and that no longer stand in its claims."""
        before, now = (facts.get((unit.path, unit.name)) for facts in (self.before, self.now))
        if before is None or now is None or self.holds(unit):
            return frozenset()
        return _literals(before) - _literals(frozenset().union(*self.now.values()))


class _Known(ast.NodeTransformer):
    """Puts for an expression what it is claimed to be equal to, largest expressions first."""

    def __init__(self, facts: Facts, fields: Callable[[str], tuple[str, ...]]) -> None:
        self.facts = facts
        self.equations = _equations(facts)
        self.fields = fields

    def proves(self, fact: Fact) -> bool:
        """Whether a fact is there, or comes out true with what the others claim put in it."""
        if fact in self.facts:
            return True
        if fact.said is None:
            narrower = f"{fact.text} "
            open_ = fact.text.endswith(" saying")
            return open_ and any(other.text.startswith(narrower) for other in self.facts)
        try:
            return all(_is_true(self._with_members(said)) for said in self._rounds(fact.said))
        except TooMuchError:
            return False

    def _rounds(self, said: ast.expr) -> list[ast.expr]:
        """A claim about each member of something, for the members that it is claimed to have."""
        names = {n.id for n in ast.walk(said) if isinstance(n, ast.Name) and is_each(n.id)}
        for name in names:
            whole = self.equations.get(of_each(name))
            if isinstance(whole, ast.List | ast.Tuple):
                return [self._put(resolved(said, {name: member})) for member in whole.elts]
        return [self._put(said)]

    def _put(self, said: ast.expr) -> ast.expr:
        found = self.visit(deepcopy(said))
        return resolved(found, {}) if isinstance(found, ast.expr) else said

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Call | ast.Attribute | ast.Subscript | ast.Name):
            found = self.equations.get(ast.unparse(node))
            if found is not None:
                return deepcopy(found)
        return self.generic_visit(node)

    def _with_members(self, said: ast.expr) -> ast.expr:
        """`Money(34, "EUR").minor` as 34, where the class says what it is made from."""
        for node in ast.walk(said):
            for name, part in ast.iter_fields(node):
                if isinstance(part, ast.expr):
                    setattr(node, name, self._member(part))
                elif isinstance(part, list):
                    members = [self._member(p) if isinstance(p, ast.expr) else p for p in part]
                    setattr(node, name, members)
        return said

    def _member(self, node: ast.expr) -> ast.expr:
        made = node.value if isinstance(node, ast.Attribute) else None
        if not isinstance(node, ast.Attribute) or not isinstance(made, ast.Call):
            return node
        fields = self.fields(ast.unparse(made.func).rpartition(".")[2])
        told = dict(zip(fields, made.args, strict=False))
        told |= {str(keyword.arg): keyword.value for keyword in made.keywords}
        return told.get(node.attr, node)


def _literals(facts: Iterable[Fact]) -> frozenset[str]:
    return literals_in(*(fact.said for fact in facts if fact.said is not None))


def _is_true(said: ast.expr) -> bool:
    try:
        return bool(value(said))
    except UnknownValueError:
        return False


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
    for path in paths:
        before |= _of_file(path, scene.old, old, with_fixtures=with_fixtures)
        now |= _of_file(path, scene.new, live, with_fixtures=with_fixtures)
    fields = _fields_of(scene)

    @cache
    def known(effects: Facts) -> _Known:
        alike = (facts for facts in now.values() if effects <= facts)
        return _Known(frozenset().union(*alike), fields)

    return Proof(before=before, now=now, known=known)


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
    for other in (*_beside(tree, folder, read), *_conftests(folder)):
        found = tree_of(read(other)) if other != path else None
        if found is not None:
            trees.append(found)
    return library_of(trees)


def _beside(tree: ast.Module, folder: str, read: Read) -> Iterator[str]:
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").replace(".", "/")
        for root in ("", folder):
            path = posixpath.join(root, f"{parts}.py")
            if parts and places.is_test(path) and read(path) is not None:
                yield path


def _conftests(folder: str) -> Iterator[str]:
    while folder:
        yield posixpath.join(folder, "conftest.py")
        folder = posixpath.dirname(folder)
    yield "conftest.py"


def _equations(facts: Facts) -> dict[str, ast.expr]:
    """What expressions are claimed to be equal to, where only one thing is claimed of them."""
    found: dict[str, dict[str, ast.expr]] = {}
    for fact in facts:
        said = fact.said
        if isinstance(said, ast.Compare) and isinstance(said.ops[0], _SAME):
            right = said.comparators[0]
            if _is_made(right):
                found.setdefault(ast.unparse(said.left), {})[ast.unparse(right)] = right
    return {text: next(iter(v.values())) for text, v in found.items() if len(v) == 1}


def _is_made(node: ast.expr) -> bool:
    """Whether a value is spelled out: literals, and objects made of them."""
    if isinstance(node, ast.Call):
        name = last(node.func).rpartition(".")[2]
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        return name[:1].isupper() and all(map(_is_made, parts))
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return all(map(_is_made, node.elts))
    try:
        value(node)
    except UnknownValueError:
        return False
    return True


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
