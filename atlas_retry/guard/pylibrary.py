"""What Python tests can call and name beside them: functions, fixtures, constants. Runs nothing."""

import ast
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from atlas_retry.guard.pychecks import last
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


def library_of(trees: Sequence[ast.Module], beside: Collection[str] = ()) -> Library:
    """What the modules define beside tests; those named first win.

    What is imported from one of the modules `beside` is what that one defines.
    """
    functions: dict[str, Function] = {}
    fixtures: dict[str, Function] = {}
    names: Names = {}
    made: Names = {}
    for tree in reversed(trees):
        for node in ast.walk(tree):
            if isinstance(node, Function) and not node.name.startswith("test"):
                (fixtures if is_fixture(node) else functions)[node.name] = node
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module in beside:
                for name, origin in imported(node).items():
                    _bring_in(name, origin, names, made)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names |= imported(node)
            elif (assigned := _assigned(node)) is not None:
                target, value = assigned
                if isinstance(target, ast.Name) and (said := _worked_out(value, names, made)):
                    names[target.id] = said
            elif isinstance(node, Function) and not is_fixture(node):
                made.pop(node.name, None)
                if (computed := _computing(node, names)) is not None:
                    made[node.name] = computed
    plain = {name: said for name, f in functions.items() if (said := _computing(f, names))}
    return Library(
        functions=functions, fixtures=fixtures, values=fixtures, names={**plain, **names}
    )


def _worked_out(node: ast.expr, names: Names, made: Names) -> ast.expr | None:
    """With the functions defined so far applied, where that stays within bounds."""
    return _known(node, {**made, **names}) or _known(node, names)


def _bring_in(name: str, origin: ast.expr, names: Names, made: Names) -> None:
    """Bind what comes from a module that has been read: as it is there, under its own name."""
    own = isinstance(origin, ast.Name) and origin.id.endswith(f".{name}")
    if own and name in made:
        names.pop(name, None)
    elif not own or name not in names:
        names[name] = origin


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
    said = _given(body, scope)
    return ast.Lambda(args=function.args, body=said) if said is not None else None


def _given(body: Sequence[ast.stmt], scope: Names) -> ast.expr | None:
    """What a body that only computes hands back; None for any other."""
    for number, node in enumerate(body):
        if isinstance(node, ast.With):
            rest = [*node.body, *body[number + 1 :]]
            return _given(rest, scope) if _opens(node, scope) else None
        if isinstance(node, ast.Return) and node.value is not None:
            return _known(node.value, scope)
        assigned = _assigned(node)
        said = _known(assigned[1], scope) if assigned is not None else None
        if assigned is None or said is None:
            return None
        bind(assigned[0], said, scope)
    return None


def _assigned(node: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """The single target of an assignment, and what it is bound to."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return node.targets[0], node.value
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return node.target, node.value
    return None


def _opens(node: ast.With, scope: Names) -> bool:
    """Whether all that is entered is files, which stand for themselves; binds their names."""
    for item in node.items:
        call = item.context_expr
        closing = isinstance(call, ast.Call) and last(call.func) == "closing" and call.args
        if not isinstance(call, ast.Call) or not (closing or last(call.func) == "open"):
            return False
        said = _known(call.args[0] if closing else call, scope)
        if said is None:
            return False
        if item.optional_vars is not None:
            bind(item.optional_vars, said, scope)
    return True
