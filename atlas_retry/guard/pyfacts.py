"""What a Python test claims, spelled out: helpers, loops, cases and variables written in full.

Two tests with the same facts prove the same, however they are arranged. Runs nothing.
"""

import ast
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product

from atlas_retry.guard import pychecks, pyraising
from atlas_retry.guard.pychecks import last
from atlas_retry.guard.pyinline import (
    Inlined,
    Names,
    TooMuchError,
    arguments,
    bind,
    each,
    imported,
    letters,
    name_for,
    none_of,
    resolved,
    zipped,
)
from atlas_retry.guard.pylibrary import Library
from atlas_retry.guard.pymarks import Function
from atlas_retry.guard.pyspelling import claims, of_unittest
from atlas_retry.guard.words import words

MAX_FACTS = 400
"""Facts of one test; a test with more is not spelled out."""
_MAX_DEPTH = 4
_QUIET = words("print debug info warning log sleep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One claim: `said` has to be true; without it the text is all there is."""

    text: str
    said: ast.expr | None = field(default=None, compare=False, hash=False)

    @property
    def is_effect(self) -> bool:
        """Whether it is no claim but something that is done."""
        return self.said is None and not self.text.startswith("raises ")


def facts_of(test: Function, owner: ast.ClassDef | None, library: Library) -> frozenset[Fact]:
    """The facts of one test, over all its cases. Raises TooMuchError."""
    found: set[Fact] = set()
    for case in _cases(test, library):
        walk = _Walk(library, owner)
        names = {**library.names, **walk.prepared(test), **case}
        found |= {*_clocks(test, owner, names), *walk.block(test.body, names)}
    return frozenset(found)


def _cases(test: Function, library: Library) -> Iterator[Names]:
    """What every row of the `parametrize` decorators binds."""
    tables = [
        list(_rows(decorator, library))
        for decorator in test.decorator_list
        if isinstance(decorator, ast.Call) and last(decorator.func) == "parametrize"
    ]
    count = 1
    for table in tables:
        count *= len(table)
    if count > MAX_FACTS:
        raise TooMuchError
    for rows in product(*tables):
        yield {name: said for row in rows for name, said in row.items()}


def _rows(decorator: ast.Call, library: Library) -> Iterator[Names]:
    if len(decorator.args) < 2:  # noqa: PLR2004 - names and rows
        raise TooMuchError
    said = resolved(decorator.args[0], {})
    names = _named(said)
    rows = resolved(decorator.args[1], dict(library.names))
    if not isinstance(rows, ast.List | ast.Tuple):
        raise TooMuchError
    for row in rows.elts:
        parts = [row]
        if isinstance(row, ast.Call) and last(row.func).endswith("param"):
            parts = row.args
        elif len(names) > 1 and isinstance(row, ast.Tuple | ast.List):
            parts = row.elts
        yield dict(zip(names, parts, strict=False))


def _named(said: ast.expr) -> list[str]:
    if isinstance(said, ast.Constant) and isinstance(said.value, str):
        return [name.strip() for name in said.value.split(",")]
    if isinstance(said, ast.Tuple | ast.List):
        return [str(part.value) for part in said.elts if isinstance(part, ast.Constant)]
    raise TooMuchError


class _Walk:
    """Goes through a test in order, with what its names stand for."""

    def __init__(self, library: Library, owner: ast.ClassDef | None) -> None:
        self.library = library
        self.methods = {p.name: p for p in owner.body if isinstance(p, Function)} if owner else {}
        self.depth = 0
        self.count = 0
        self.ended = False

    def prepared(self, test: Function) -> Names:
        """What fixtures that the test asks for and `setUp` bind."""
        names: Names = {}
        for name in ("setUp", "setup_method", "asyncSetUp"):
            if name in self.methods:
                scope = {**self.library.names}
                list(self.block(self.methods[name].body, scope))
                names |= {k: v for k, v in scope.items() if k.startswith("self.")}
        for arg in test.args.args:
            said = self._of_fixture(arg.arg)
            if said is not None:
                names[arg.arg] = said
        self.ended = False
        return names

    def _of_fixture(self, name: str) -> ast.expr | None:
        """The value of a fixture that only computes one."""
        fixture = self.library.values.get(name)
        if fixture is None or fixture.args.args:
            return None
        scope = {**self.library.names}
        for node in fixture.body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self._assign(node, scope)
            elif isinstance(node, ast.Return) and node.value:
                return resolved(node.value, scope)
            elif not isinstance(node, ast.Expr | ast.Import | ast.ImportFrom):
                return None
        return None

    def block(self, body: Sequence[ast.stmt], names: Names) -> Iterator[Fact]:
        for node in body:
            if self.ended:
                return
            for fact in self._statement(node, names):
                self.count += 1
                if self.count > MAX_FACTS:
                    raise TooMuchError
                yield fact

    def _statement(self, node: ast.stmt, names: Names) -> Iterator[Fact]:
        if isinstance(node, ast.Assert):
            yield from _facts(resolved(node.test, names))
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._assign(node, names)
        elif isinstance(node, ast.Expr):
            yield from self._expression(node.value, names)
        elif isinstance(node, ast.For):
            yield from self._loop(node, names)
        elif isinstance(node, ast.With | ast.AsyncWith):
            yield from self._with(node, names)
        elif isinstance(node, Function):
            names[node.name] = name_for(f"local {ast.dump(node)}")
        elif isinstance(node, ast.Return):
            self.ended = True
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= imported(node)
        elif (tried := pyraising.tried(node)) is not None:
            call, body, handler = tried
            yield from self._raised(call, body, names, None)
            if handler.name:
                names[handler.name] = pyraising.error(call.args[0], body, names)
            yield from self.block(handler.body, names)
        elif not isinstance(node, ast.Pass):
            yield Fact(text=f"block {_whole(node, names)}")

    def _raised(
        self, call: ast.Call, body: Sequence[ast.stmt], names: Names, caught: ast.expr | None
    ) -> Iterator[Fact]:
        """That an error is raised, and what it says."""
        yield Fact(text=pyraising.raising(call, body, names))
        for claim in pyraising.messages(call, body, names):
            yield from _facts(claim)
        if isinstance(caught, ast.Name) and call.args:
            names |= pyraising.bound(caught.id, pyraising.error(call.args[0], body, names))

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, names: Names) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is None:
            return
        said = resolved(node.value, names)
        for target in targets:
            if isinstance(node, ast.AugAssign):
                before = resolved(ast.parse(ast.unparse(target), mode="eval").body, names)
                said = ast.BinOp(left=before, op=node.op, right=said)
            bind(target, said, names)

    def _expression(self, node: ast.expr, names: Names) -> Iterator[Fact]:
        node = node.value if isinstance(node, ast.Await) else node
        if not isinstance(node, ast.Call):
            return
        helper = self._helper(node)
        if helper is not None and self.depth < _MAX_DEPTH:
            yield from self._within(helper, node, names)
            return
        said = of_unittest(node)
        if said is not None:
            yield from _facts(resolved(said, names))
        elif last(node.func) in pychecks.RAISES and len(node.args) > 1:
            first = 2 if last(node.func).endswith("Regex") else 1
            called = ast.Call(func=node.args[first], args=node.args[first + 1 :], keywords=[])
            yield from self._raised(node, [ast.Expr(called)], names, None)
        elif (raised := pyraising.caught(node, names)) is not None:
            for claim in pyraising.of_pattern(resolved(node.args[0], names), raised):
                yield from _facts(claim)
        elif last(node.func) not in _QUIET:
            yield Fact(text=f"do {ast.unparse(resolved(node, names))}")

    def _helper(self, call: ast.Call) -> Function | None:
        """The function beside the tests that a statement calls: its claims are the test's."""
        word = last(call.func)
        if isinstance(call.func, ast.Attribute):
            own = isinstance(call.func.value, ast.Name) and call.func.value.id in ("self", "cls")
            return self.methods.get(word) if own else self.library.functions.get(word)
        if word in self.library.fixtures:
            return _inner(self.library.fixtures[word])
        return self.library.functions.get(word)

    def _within(self, helper: Function, call: ast.Call, names: Names) -> Iterator[Fact]:
        given = arguments(helper.args, call)
        if given is None:
            raise TooMuchError
        own = {name: said for name, said in names.items() if name.startswith("self.")}
        told = {name: resolved(said, names) for name, said in given.items()}
        scope = {**self.library.names, **own, **told}
        self.depth += 1
        yield from self.block(helper.body, scope)
        self.depth -= 1
        self.ended = False

    def _loop(self, node: ast.For, names: Names) -> Iterator[Fact]:
        through = zipped(letters(resolved(node.iter, names)))
        if not isinstance(through, ast.List | ast.Tuple) or not _is_straight(node):
            named = {**names}
            bind(node.target, name_for(each(through)), named)
            yield from self.block(node.body, named)
            return
        for item in through.elts:
            bind(node.target, item, names)
            yield from self.block(node.body, names)

    def _with(self, node: ast.With | ast.AsyncWith, names: Names) -> Iterator[Fact]:
        quiet = False
        for item in node.items:
            call = item.context_expr
            word = last(call.func) if isinstance(call, ast.Call) else ""
            known = word in pychecks.RAISES and isinstance(call, ast.Call)
            if known and isinstance(call, ast.Call) and pyraising.is_known(call, names):
                yield from self._raised(call, node.body, names, item.optional_vars)
            elif word != "subTest":
                quiet = quiet or word == "suppress" or word in self.library.functions
                yield Fact(text=f"with {ast.unparse(resolved(call, names))}")
                if item.optional_vars is not None:
                    bind(item.optional_vars, resolved(call, names), names)
        inside = list(self.block(node.body, names))
        yield from () if quiet else inside


def _clocks(test: Function, owner: ast.ClassDef | None, names: Names) -> Iterator[Fact]:
    """The clocks that decorators stop, as if a block stopped them."""
    for node in (*test.decorator_list, *(owner.decorator_list if owner else ())):
        if isinstance(node, ast.Call) and last(node.func) in ("freeze_time", "travel"):
            yield Fact(text=f"with {ast.unparse(resolved(node, names))}")


def _facts(said: ast.expr) -> Iterator[Fact]:
    for part in none_of(said) or [said]:
        for claim in claims(part):
            yield Fact(text=ast.unparse(claim), said=claim)


def _whole(node: ast.AST, names: Names) -> str:
    return ast.unparse(Inlined(names).visit(deepcopy(node)))


def _inner(fixture: Function) -> Function | None:
    """The function that a fixture hands out, when it is defined within it."""
    given = [n.value for n in fixture.body if isinstance(n, ast.Return | ast.Expr) and n.value]
    parts = [part.value if isinstance(part, ast.Yield) else part for part in given]
    named = {last(part) for part in parts if part is not None}
    return next((n for n in fixture.body if isinstance(n, Function) and n.name in named), None)


def _is_straight(node: ast.For) -> bool:
    left = (ast.Break, ast.Continue, ast.Return)
    return not node.orelse and not any(isinstance(part, left) for part in ast.walk(node))
