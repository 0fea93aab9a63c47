"""What keeps a Python test from running or from counting. Reads `ast`, runs nothing."""

import ast
from collections.abc import Iterator, Sequence

from atlas_retry.guard import pychecks
from atlas_retry.guard.pychecks import names_in
from atlas_retry.guard.words import words

Function = ast.FunctionDef | ast.AsyncFunctionDef
SKIPS = words(
    "skip skipif skipIf skipUnless xfail expectedFailure skipTest SkipTest importorskip"
    " expected_failure skip_if exit _exit abort"
)
"""Names that say: this test does not have to pass."""
_HARMLESS = words(
    "parametrize usefixtures patch object dict multiple given settings example filterwarnings"
    " staticmethod classmethod asyncio anyio override freeze_time timeout wraps pytest_asyncio"
    " django_db"
)


def is_fixture(node: Function) -> bool:
    """Whether pytest hands its value to tests."""
    return any("fixture" in names_in(decorator) for decorator in node.decorator_list)


def of_decorators(decorators: Sequence[ast.expr], aliases: frozenset[str]) -> Iterator[str]:
    """Decorators that skip, and those nobody knows: they may swallow what the test says."""
    for decorator in decorators:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        names = names_in(call)
        if names & (SKIPS | aliases):
            yield _without_reason(decorator)
        elif names & _HARMLESS or _last_is_parametrize(decorator):
            continue
        elif "mark" in names:
            yield f"mark {pychecks.last(call)}"
        else:
            yield f"decorator {ast.unparse(call)}"


def _last_is_parametrize(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and pychecks.last(decorator.func) == "parametrize"


def _without_reason(decorator: ast.expr) -> str:
    if not isinstance(decorator, ast.Call):
        return ast.unparse(decorator)
    said = [ast.unparse(a) for a in decorator.args if not isinstance(a, ast.Constant)]
    kept = [f"{k.arg}={ast.unparse(k.value)}" for k in decorator.keywords if k.arg != "reason"]
    return f"{ast.unparse(decorator.func)}({', '.join(said + kept)})"


def of_class(node: ast.ClassDef, aliases: frozenset[str]) -> Iterator[str]:
    """What switches a class of tests off."""
    yield from of_decorators(node.decorator_list, aliases)
    for part in node.body:
        if isinstance(part, Function) and part.name == "__init__":
            yield "__init__"
        if isinstance(part, ast.Assign) and "failureException" in names_in(*part.targets):
            yield f"failureException {ast.unparse(part.value)}"
    yield from of_file(node.body, aliases)


def of_file(body: Sequence[ast.stmt], aliases: frozenset[str]) -> Iterator[str]:
    """`pytestmark`, `__test__`, and calls that leave the file as it is imported."""
    for node in body:
        if isinstance(node, ast.Assign):
            targets = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if "pytestmark" in targets and names_in(node.value) & (SKIPS | aliases):
                yield f"pytestmark {ast.unparse(node.value)[:60]}"
            if targets & {"__test__", "__unittest_skip__"}:
                yield f"__test__ {ast.unparse(node.value)[:60]}"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if pychecks.last(node.value.func) in SKIPS:
                yield ast.unparse(node.value)[:80]
        elif isinstance(node, ast.Raise):
            yield ast.unparse(node)[:80]
        elif isinstance(node, ast.If) and not _is_main(node.test):
            yield from of_file(node.body, aliases)


def _is_main(test: ast.expr) -> bool:
    return "__name__" in names_in(test)


def aliases_in(tree: ast.Module) -> frozenset[str]:
    """Names bound to something that skips, through imports and assignments."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and names_in(node.value) & (SKIPS | found):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            found |= {a.asname for a in node.names if a.asname and a.name in SKIPS}
        elif isinstance(node, Function) and _skips_for_others(node):
            found.add(node.name)
    return frozenset(found - {"pytestmark"})


def _skips_for_others(node: Function) -> bool:
    plain = not node.name.startswith("test") and not is_fixture(node)
    return plain and bool(names_in(*node.body) & SKIPS)


def truths_in(tree: ast.Module) -> frozenset[str]:
    """Names that a file binds to True."""
    return frozenset(
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
        for target in node.targets
        if isinstance(target, ast.Name)
    )
