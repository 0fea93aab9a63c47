"""Tests of a Python file as units: what pytest and unittest would collect. Runs nothing."""

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard import bindings, pychecks, pymarks, pypatching, pyrows
from atlas_retry.guard.fresh import imports, tree_of
from atlas_retry.guard.pychecks import Scope, literals_in, names_in
from atlas_retry.guard.pymarks import SKIPS, Function, is_fixture
from atlas_retry.guard.units import HELPER, VOID, Check, Suite, Unit, by_name

_SWALLOWING = frozenset({"Exception", "BaseException", "AssertionError"})
_SAID = frozenset({"fail", "AssertionError", "format", "skip", "xfail"})
_ENVIRONMENT = frozenset(
    ("pathlib", "Path", "os", "sys", "time", "sleep", "tempfile", "shutil", "logging", "random",
     "open", "print", "monkeypatch", "capsys", "warnings", "locale", "subprocess")
)  # fmt: skip


class _File(Struct, frozen=True, kw_only=True):
    path: str
    aliases: frozenset[str]
    """Names that stand for something that skips."""
    lookalikes: frozenset[str]
    """Names of the runner's own that come from somewhere else."""
    asserting: frozenset[str]
    """Functions beside the tests that assert."""
    scope: Scope


def read(path: str, source: bytes) -> Suite:
    """The tests of one file; `parsed` is false where Python cannot read it."""
    tree = tree_of(source)
    if tree is None:
        return Suite(path=path, parsed=False)
    file = _File(
        path=path,
        aliases=pymarks.aliases_in(tree),
        lookalikes=_lookalikes(tree),
        asserting=_asserting(tree),
        scope=Scope(truths=pymarks.truths_in(tree)),
    )
    tests = [node for node in tree.body if _is_test(node)]
    beside = [node for node in tree.body if node not in tests]
    helpers = [n for n in beside if isinstance(n, Function) and n.name in file.asserting]
    asserting = [_unit(node, file, HELPER, ()) for node in helpers if not is_fixture(node)]
    units = by_name([*_units(tree.body, file, prefix="", inherited=()), *asserting])
    for gone in _undone(tree.body):
        units.pop(gone, None)
    spoken = names_in(*tests)
    literals = literals_in(*(node for node in beside if _serves(node, spoken)))
    return Suite(
        path=path,
        units=tuple(replace(unit, literals=unit.literals | literals) for unit in units.values()),
        literals=literals,
        around="\n".join(map(ast.dump, beside)),
        inputs=frozenset().union(
            *(handed_by(n) for n in beside if isinstance(n, Function) and is_fixture(n))
        ),
        markers=tuple(pymarks.of_file(tree.body, file.aliases)),
    )


def _lookalikes(tree: ast.Module) -> frozenset[str]:
    """`raises` and its kin that are neither pytest's nor unittest's: nobody knows what they do."""
    origins = {n: o for n, o in imports(tree).items() if n in pychecks.RAISES}
    defined = {n.name for n in tree.body if isinstance(n, Function) and n.name in pychecks.RAISES}
    return frozenset(
        defined | {n for n, o in origins.items() if not o.startswith(pychecks.RUNNERS)}
    )


def _serves(node: ast.stmt, spoken: frozenset[str]) -> bool:
    """Whether something beside the tests takes part in them."""
    return not isinstance(node, Function) or is_fixture(node) or node.name in spoken


def _is_test(node: ast.stmt) -> bool:
    if isinstance(node, ast.ClassDef):
        bases = {pychecks.last(base) for base in node.bases}
        return node.name.startswith("Test") or any("Test" in base for base in bases)
    return isinstance(node, Function) and node.name.startswith("test") and not is_fixture(node)


def _units(
    body: Sequence[ast.stmt], file: _File, *, prefix: str, inherited: tuple[str, ...]
) -> Iterator[Unit]:
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            marker = f"if {ast.unparse(node.test)}" if isinstance(node, ast.If) else "block"
            inner = [*node.body, *getattr(node, "orelse", [])]
            yield from _units(inner, file, prefix=prefix, inherited=(*inherited, marker))
        elif isinstance(node, ast.ClassDef) and (_is_test(node) or prefix):
            markers = (*inherited, *pymarks.of_class(node, file.aliases))
            units = _units(node.body, file, prefix=f"{prefix}{node.name}::", inherited=markers)
            yield from (_with_methods(unit, node) for unit in units)
        elif isinstance(node, Function) and _is_test(node):
            yield _unit(node, file, prefix, inherited)


def _with_methods(unit: Unit, owner: ast.ClassDef) -> Unit:
    """With the literals of the methods beside a test that it calls."""
    called = [n for n in owner.body if isinstance(n, Function) and n.name in unit.names]
    return replace(unit, literals=unit.literals | literals_in(*called))


def _undone(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Names of tests that are deleted or bound to something else afterwards."""
    for node in body:
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Delete | ast.Assign):
            targets = node.targets
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr == "__test__":
                target = target.value  # noqa: PLW2901 - what is assigned to is the test's own
            if isinstance(target, ast.Name) and target.id.startswith(("test", "Test")):
                yield target.id


def _unit(node: Function, file: _File, prefix: str, inherited: tuple[str, ...]) -> Unit:
    walk = _Walk(file)
    checks = tuple(walk.statements(node.body, guarded=0, swallowed=False))
    rows, row_markers = pyrows.of_decorators(node.decorator_list, file.aliases)
    markers = [
        *inherited,
        *pymarks.of_decorators(node.decorator_list, file.aliases),
        *walk.markers,
        *row_markers,
    ]
    if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node)):
        markers.append("yield")
    if isinstance(node, ast.AsyncFunctionDef):
        markers.append("async")
    return Unit(
        path=file.path,
        name=prefix + node.name,
        line=node.lineno,
        checks=checks,
        markers=tuple(markers),
        rows=rows + pyrows.of_loops(node),
        literals=(own := literals_in(*node.body, *node.decorator_list, node.args)),
        own=own,
        inputs=_inputs(node),
        names=names_in(*node.body, *node.decorator_list),
        bound=tuple(bindings.in_python(node)),
        dump=ast.dump(_body_of(node)),
        is_hollow=all(map(_does_nothing, node.body)),
        helpers=_called_names(node) & file.asserting,
    )


def _does_nothing(node: ast.stmt) -> bool:
    said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return said or isinstance(node, ast.Pass) or (isinstance(node, ast.Return) and not node.value)


def _body_of(node: Function) -> ast.AST:
    """The function without its name and docstring: what a rename leaves as it is."""
    body = node.body
    if ast.get_docstring(node) is not None:
        body = body[1:]
    return ast.Module(body=[*body, *map(ast.Expr, node.decorator_list)], type_ignores=[])


def _called_names(node: ast.AST) -> frozenset[str]:
    return frozenset(
        pychecks.last(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)
    )


def _inputs(node: Function) -> frozenset[str]:
    """Literals within calls, but for those that speak to the environment."""
    found: set[str] = set()
    calls = (p for stmt in node.body for p in ast.walk(stmt) if isinstance(p, ast.Call))
    for part in calls:
        if not names_in(part.func) & (_ENVIRONMENT | _SAID):
            told = literals_in(*part.args, *(keyword.value for keyword in part.keywords))
            found |= told - pypatching.naming(part)
    return frozenset(found)


def handed_by(fixture: Function) -> frozenset[str]:
    """Literals that a fixture hands to the code and to the tests."""
    given = (n.value for n in ast.walk(fixture) if isinstance(n, ast.Return | ast.Yield))
    shown = literals_in(*(said for said in given if not isinstance(said, ast.JoinedStr)))
    return _inputs(fixture) | shown


class _Walk:
    """Goes through the body of one test, in order."""

    def __init__(self, file: _File) -> None:
        self.file = file
        self.markers: list[str] = []

    def statements(
        self, body: Sequence[ast.stmt], *, guarded: int, swallowed: bool
    ) -> Iterator[Check]:
        for node in body:
            for check in self.statement(node, guarded, swallowed=swallowed):
                yield replace(check, strength=VOID) if swallowed else check
            if isinstance(node, ast.Return | ast.Continue | ast.Break):
                if guarded:
                    self.markers.append("return")
                return

    def statement(self, node: ast.stmt, guarded: int, *, swallowed: bool) -> Iterator[Check]:
        if isinstance(node, ast.Assert):
            found = pychecks.of_assert(node.test, node.lineno, self.file.scope)
            yield from (replace(check, guarded=guarded) for check in found)
        elif isinstance(node, ast.With | ast.AsyncWith):
            yield from self._with(node, guarded, swallowed=swallowed)
        elif isinstance(node, ast.Try):
            yield from self._try(node, guarded, swallowed=swallowed)
        elif isinstance(node, ast.If | ast.While):
            dead = isinstance(node.test, ast.Constant) and not node.test.value
            yield from self.statements(node.body, guarded=guarded + 1, swallowed=swallowed or dead)
            yield from self.statements(node.orelse, guarded=guarded + 1, swallowed=swallowed)
        elif isinstance(node, ast.For | ast.AsyncFor):
            empty = pyrows.is_empty(node.iter)
            cut = {"a slice"} if any(isinstance(p, ast.Slice) for p in ast.walk(node.iter)) else {}
            for check in self.statements(node.body, guarded=guarded, swallowed=swallowed or empty):
                yield replace(check, loosening=check.loosening | frozenset(cut))
        else:
            yield from self._plain(node, guarded)

    def _plain(self, node: ast.stmt, guarded: int) -> Iterator[Check]:
        if isinstance(node, ast.Raise) and node.exc and names_in(node.exc) & SKIPS:
            self.markers.append(ast.unparse(node.exc)[:80])
        if isinstance(node, Function | ast.ClassDef):
            return
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                yield from self._call(part, guarded)

    def _call(self, call: ast.Call, guarded: int) -> Iterator[Check]:
        called = pychecks.last(call.func)
        if called in SKIPS | self.file.aliases or (
            called == "add_marker" and names_in(*call.args) & SKIPS
        ):
            self.markers.append(called)
        elif called in pychecks.RAISES and len(call.args) > 1 and called.startswith("assert"):
            yield replace(pychecks.of_raises(call, [], call.lineno), guarded=guarded)
        else:
            check = pychecks.of_call(call, call.lineno, self.file.scope)
            if check:
                yield replace(check, guarded=guarded)

    def _with(
        self, node: ast.With | ast.AsyncWith, guarded: int, *, swallowed: bool
    ) -> Iterator[Check]:
        for item in node.items:
            call = item.context_expr
            if not isinstance(call, ast.Call):
                continue
            called = pychecks.last(call.func)
            if called in pychecks.RAISES - self.file.lookalikes:
                yield replace(pychecks.of_raises(call, node.body, node.lineno), guarded=guarded)
            swallowed = swallowed or (called == "suppress" and _swallows(call.args))
        yield from self.statements(node.body, guarded=guarded, swallowed=swallowed)

    def _try(self, node: ast.Try, guarded: int, *, swallowed: bool) -> Iterator[Check]:
        quiet = any(
            (handler.type is None or _swallows([handler.type]))
            and not any(_fails(part) for stmt in handler.body for part in ast.walk(stmt))
            for handler in node.handlers
        )
        yield from self.statements(node.body, guarded=guarded, swallowed=swallowed or quiet)
        for handler in node.handlers:
            yield from self.statements(handler.body, guarded=guarded + 1, swallowed=swallowed)
        yield from self.statements(node.orelse, guarded=guarded, swallowed=swallowed)
        yield from self.statements(node.finalbody, guarded=guarded, swallowed=swallowed)


def _swallows(kinds: Sequence[ast.expr]) -> bool:
    return bool(names_in(*kinds) & _SWALLOWING)


def _fails(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.Assert):
        return True
    return isinstance(node, ast.Call) and pychecks.last(node.func) in ("fail", "xfail")


def _asserting(tree: ast.Module) -> frozenset[str]:
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, Function)
        and not node.name.startswith("test")
        and any(_fails(part) or _asserts(part) for part in ast.walk(node))
    )


def _asserts(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and pychecks.last(node.func).startswith("assert")
