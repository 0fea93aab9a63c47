"""What Python tests can call and name beside them: functions, fixtures, constants. Runs nothing."""

import ast
from collections.abc import Mapping, Sequence

from msgspec import Struct

from atlas_retry.guard.pyinline import Names, TooMuchError, bind, imported, resolved
from atlas_retry.guard.pymarks import Function, is_fixture


class Library(Struct, frozen=True, kw_only=True, eq=False):
    """What the tests of a file can call and name: functions, fixtures and constants."""

    functions: Mapping[str, Function] = {}
    fixtures: Mapping[str, Function] = {}
    values: Mapping[str, Function] = {}
    """The fixtures whose values are put in their place."""
    names: Mapping[str, ast.expr] = {}
    """Imported names by their origin, constants by their value."""


def library_of(trees: Sequence[ast.Module]) -> Library:
    """What the modules define beside tests; those named first win."""
    functions: dict[str, Function] = {}
    fixtures: dict[str, Function] = {}
    names: Names = {}
    for tree in reversed(trees):
        for node in ast.walk(tree):
            if isinstance(node, Function) and not node.name.startswith("test"):
                (fixtures if is_fixture(node) else functions)[node.name] = node
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names |= imported(node)
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Name) and (said := _known(node.value, names)):
                    names[target.id] = said
    plain = {name: value for name, f in functions.items() if (value := _computing(f, names))}
    return Library(
        functions=functions, fixtures=fixtures, values=fixtures, names={**plain, **names}
    )


def _known(node: ast.expr, names: Names) -> ast.expr | None:
    try:
        return resolved(node, names)
    except TooMuchError:
        return None


def _computing(function: Function, names: Names) -> ast.Lambda | None:
    """A function that only computes a value, as an expression; None for any other."""
    own = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    scope = {name: said for name, said in names.items() if name not in own}
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    for node in body:
        value = node.value if isinstance(node, ast.Return | ast.Assign) else None
        said = _known(value, scope) if value is not None else None
        if said is None:
            return None
        if isinstance(node, ast.Return):
            return ast.Lambda(args=function.args, body=said)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            bind(node.targets[0], said, scope)
    return None
