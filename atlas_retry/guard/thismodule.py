"""Names that a test imported, replaced where they were imported or around the tests. Pure."""

import ast
import re
from collections.abc import Callable, Iterator

from atlas_retry.guard.fresh import Function, fresh, functions, root_of
from atlas_retry.guard.pychecks import names_in

Known = dict[str, str]
Patched = Callable[[ast.Call, Known, frozenset[str]], str | None]
_THIS = re.compile(r"__name__|\b__module__\b|\bglobals\(\)|\bsys\.modules\[")


def named(node: ast.Call, known: Known, own: frozenset[str]) -> str | None:
    """The project's own name that a patching call replaces within the module of the test."""
    if not _THIS.search(ast.unparse(node)):
        return None
    told = (k.value for k in node.keywords if k.arg in ("target", "values"))
    said = [
        str(part.value).rpartition(".")[2]
        for argument in (*node.args[:2], *told)
        for part in ast.walk(argument)
        if isinstance(part, ast.Constant)
    ]
    said += [keyword.arg for keyword in node.keywords if keyword.arg]
    return next((known[name] for name in said if _is_own(name, known, own)), None)


def _is_own(name: str, known: Known, own: frozenset[str]) -> bool:
    return known.get(name, "").lstrip(".").split(".")[0] in own


def replaced(
    old: ast.Module, new: ast.Module, known: Known, own: frozenset[str], patched: Patched
) -> Iterator[tuple[ast.AST, str]]:
    """What is replaced beside the tests that were there, or by a name of their own within."""
    came = set(map(id, fresh(old, new)))
    for part in _around(old, new):
        for node in ast.walk(part):
            if not isinstance(node, ast.Call) or id(node) not in came:
                continue
            target = patched(node, known, own)
            if target:
                yield node, target
    existing = functions(old)
    for name, function in functions(new).items():
        before = _taken(existing[name]) if name in existing else frozenset()
        for node in ast.walk(function) if before else ():
            if isinstance(node, ast.Assign) and id(node) in came:
                target = _bound(node, known, own)
                if target in before:
                    yield node, target


def _around(old: ast.Module, new: ast.Module) -> Iterator[ast.AST]:
    """What stands outside of tests: statements, decorators of classes, functions now used."""
    there = functions(old)
    classes = {node.name for node in old.body if isinstance(node, ast.ClassDef)}
    used: frozenset[str] = frozenset()
    for name, function in functions(new).items():
        if name in there and ast.dump(function) != ast.dump(there[name]):
            used |= names_in(function) - names_in(there[name])
    for node in new.body:
        if isinstance(node, ast.ClassDef):
            yield from node.decorator_list if node.name in classes else ()
        elif isinstance(node, Function):
            is_test = node.name.startswith("test")
            if not is_test and node.name not in there and node.name in used:
                yield node
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            yield node


def _taken(function: Function) -> frozenset[str]:
    """The names that a function takes from outside."""
    given = {arg.arg for arg in ast.walk(function) if isinstance(arg, ast.arg)}
    bound = (n for n in ast.walk(function) if isinstance(n, ast.Name))
    return names_in(function) - given - {n.id for n in bound if isinstance(n.ctx, ast.Store)}


def _bound(node: ast.Assign, known: Known, own: frozenset[str]) -> str:
    """The imported name that an assignment within a test gives to something else."""
    target = node.targets[0]
    if isinstance(target, ast.Subscript) and ast.unparse(target.value) == "globals()":
        target = ast.Name(id=str(getattr(target.slice, "value", "")))
    if not isinstance(target, ast.Name) or not _is_own(target.id, known, own):
        return ""
    inner = node.value.func if isinstance(node.value, ast.Call) else node.value
    invented = isinstance(node.value, ast.Lambda) or not _is_own(root_of(inner), known, own)
    return target.id if invented else ""
