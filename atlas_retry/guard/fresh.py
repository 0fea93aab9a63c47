"""What a change adds to Python files: nodes that were not there before, whatever their place."""

import ast
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Scene

Function = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=256)
def tree_of(source: bytes | None) -> ast.Module | None:
    """The syntax tree; None where there is no file or Python cannot read it."""
    if source is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def python(scene: Scene) -> Iterator[tuple[Delta, ast.Module, ast.Module]]:
    """Changed Python files with their trees before and after; a missing side is empty.

    What a new source file took over from others was there before.
    """
    nothing = ast.Module(body=[], type_ignores=[])
    for delta in scene.files:
        if places.suffix(delta.path) == ".py" and not delta.is_deleted:
            after = tree_of(delta.after)
            if after is not None:
                came = nothing if places.is_test(delta.path) else left_over(scene)
                yield delta, tree_of(delta.before) or (came if delta.is_added else nothing), after


@lru_cache(maxsize=4)
def left_over(scene: Scene) -> ast.Module:
    """What stood in source files and does not stand there any more, at the top of a module."""
    sources = [d for d in scene.texts if _is_source(d) and not d.is_added]
    body: list[ast.stmt] = []
    for delta in sources if any(_is_source(d) and d.is_added for d in scene.texts) else ():
        before, after = tree_of(delta.before), tree_of(delta.after)
        there = {ast.dump(node) for node in after.body} if after is not None else set()
        kept = before.body if before is not None else []
        body += (node for node in kept if ast.dump(node) not in there)
    return ast.Module(body=body, type_ignores=[])


@lru_cache(maxsize=4)
def left_lines(scene: Scene) -> frozenset[str]:
    """Lines that stood in source files, of whatever language, and do not stand there any more."""
    sources = [d for d in scene.texts if places.is_source(d.path)]
    return frozenset().union(*({*_bare(d.old_text)} - {*_bare(d.new_text)} for d in sources))


def _bare(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines())


def _is_source(delta: Delta) -> bool:
    return places.suffix(delta.path) == ".py" and not places.is_test(delta.path)


@lru_cache(maxsize=64)
def fresh(old: ast.AST, new: ast.AST) -> tuple[ast.AST, ...]:
    """Statements, calls, handlers and decorators of `new` that `old` has fewer of."""
    there = Counter(ast.dump(node) for node in ast.walk(old) if isinstance(node, _WANTED))
    found: list[ast.AST] = []
    for node in ast.walk(new):
        if isinstance(node, _WANTED):
            dump = ast.dump(node)
            there[dump] -= 1
            if there[dump] < 0:
                found.append(node)
    return tuple(found)


_WANTED = (
    ast.stmt,
    ast.Call,
    ast.ExceptHandler,
    ast.Compare,
    ast.Dict,
    ast.match_case,
    ast.Subscript,
)


def functions(tree: ast.AST, prefix: str = "") -> dict[str, Function]:
    """Functions and methods by qualified name; the last one of a name counts."""
    found: dict[str, Function] = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            found[prefix + node.name] = node
            found |= functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            found |= functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            found |= functions(node, prefix)
    return found


def imports(tree: ast.Module) -> dict[str, str]:
    """Name in the file to dotted origin."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level
            for alias in node.names:
                found[alias.asname or alias.name] = f"{dots}{node.module or ''}.{alias.name}"
    return found


def own_modules(scene: Scene) -> frozenset[str]:
    """Names under which the project's own modules, its tests aside, are imported."""
    return _own(scene.new_paths | scene.old_paths)


@lru_cache(maxsize=8)
def _own(paths: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for path in paths:
        if path.endswith(".py") and not places.is_test(path):
            parts = path.removesuffix(".py").split("/")
            found |= {part for part in parts if part not in ("src", "lib", "__init__")}
    return frozenset(found)


def local_nodes(tree: ast.Module) -> set[int]:
    """Ids of nodes that do not run on import: within functions, or behind `__main__`."""
    found: set[int] = set()
    for node in ast.walk(tree):
        inner = isinstance(node, Function | ast.Lambda)
        main = isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
        if inner or main:
            found |= {id(part) for part in ast.walk(node) if part is not node}
    return found


def root_of(node: ast.AST) -> str:
    """The name that a dotted or subscripted expression begins with; empty when there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def targets_of(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[ast.expr]:
    """What an assignment assigns to."""
    return node.targets if isinstance(node, ast.Assign) else [node.target]
