"""What in a Python function looks unfinished: a result promised and not returned, a name unused.

Linters know these as unused variables and inconsistent returns. Judges no style.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from atlas_retry.prompt.bindings import Function

NO_RESULT, UNUSED, UNEVEN, PARAMETER = 1.0, 0.55, 0.5, 0.4
"""In relation to each other, as fitted with the weights of the other evidence."""

_NOTHING = re.compile(r"None|NoReturn|Never|Optional|Any\b|Iterator|Iterable|Generator")
_PROMISING = re.compile(r"_*(get|is|has|to|make|find|parse|compute|calc|build|create|format)_")
_DOCUMENTED = re.compile(r":returns?:|\bReturns?\b|:rtype:")
_DECLARING = frozenset({"overload", "abstractmethod"})
_READING = frozenset({"property", "cached_property"})
_CALLED = re.compile(r"\bdef \w+|^[ \t]*(?:await +)?(?:\w+\.)*\w+\(|\b(\w+)\(", re.MULTILINE)
_ALL = frozenset({"locals", "vars"})
"""They read every name."""
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_ENDING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_EFFECTLESS = (ast.Compare, ast.BinOp, ast.Name, ast.Attribute, ast.UnaryOp, ast.BoolOp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """One oddity of a function."""

    weight: float
    what: str
    """For a reader, two or three words."""


def used_results(source: str) -> Iterator[str]:
    """The names of what is called for its result, not as a statement of its own."""
    yield from filter(None, _CALLED.findall(source))


def slips(function: Function, used: frozenset[str], shared: frozenset[str]) -> Iterator[Slip]:
    """The oddities of one function.

    `used`: names that are called for a result and defined once. `shared`: names that several
    classes define, whose parameters are not their own choice.
    """
    if _decorators(function) & _DECLARING or _is_stub(function):
        return
    ends = tuple(_ends(function))
    told = [end for end in ends if not _is_none(end.value)]
    if not any(isinstance(end, (ast.Yield, ast.YieldFrom)) for end in ends):
        if not told and _promises(function, used):
            yield Slip(weight=NO_RESULT, what="returns nothing")
        elif told and _is_uneven(function, ends):
            yield Slip(weight=UNEVEN, what="returns not always")
    nodes = tuple(ast.walk(function))
    read = _read(nodes)
    if _is_wasteful(nodes, read):
        yield Slip(weight=UNUSED, what="value unused")
    if not read & _ALL and any(name not in read for name in _parameters(function)):
        weight = PARAMETER * (0.9 if function.name in shared else 1.0)
        yield Slip(weight=weight, what="parameter unused")


def _decorators(function: Function) -> set[str]:
    named = (ast.unparse(one).partition("(")[0] for one in function.decorator_list)
    return {name.rpartition(".")[2] for name in named}


def _is_stub(function: Function) -> bool:
    body = [one for one in function.body if not _is_text(one)]
    return all(isinstance(one, (ast.Pass, ast.Raise)) for one in body)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _ends(function: Function) -> Iterator[ast.Return | ast.Yield | ast.YieldFrom]:
    """What the function itself returns and yields."""
    queue: list[ast.AST] = list(function.body)
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)):
            yield node
        if not isinstance(node, _INNER):
            queue += ast.iter_child_nodes(node)


def _promises(function: Function, used: frozenset[str]) -> bool:
    """Whether its signature, its name, its documentation or its callers speak of a result."""
    if function.returns is not None:
        return not _NOTHING.search(ast.unparse(function.returns))
    return bool(
        _PROMISING.match(function.name)
        or _DOCUMENTED.search(ast.get_docstring(function) or "")
        or _decorators(function) & _READING
        or (function.name in used and not function.name.startswith("__"))
    )


def _is_uneven(
    function: Function, ends: tuple[ast.Return | ast.Yield | ast.YieldFrom, ...]
) -> bool:
    """Whether some ways through it return a value and others none."""
    if any(end.value is None for end in ends) or _falls_through(function.body):
        return True
    told = ast.unparse(function.returns) if function.returns else "None"
    return not _NOTHING.search(told) and any(_is_none(end.value) for end in ends)


def _falls_through(body: list[ast.stmt]) -> bool:
    """Whether the end of a block can be reached."""
    return not any(_is_last(one) for one in body)


def _is_last(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(body=body, orelse=other):
            is_last = bool(other) and not _falls_through(body) and not _falls_through(other)
        case ast.While(test=ast.Constant(value=value)):
            leaves = any(isinstance(node, ast.Break) for node in ast.walk(statement))
            is_last = bool(value) and not leaves
        case ast.With(body=body) | ast.AsyncWith(body=body):
            is_last = not _falls_through(body)
        case ast.Try(body=body, orelse=other, handlers=handlers, finalbody=final):
            ways = ([*body, *other], *(handler.body for handler in handlers))
            is_last = not any(map(_falls_through, ways)) or not _falls_through(final)
        case ast.Match(cases=cases):
            is_last = not any(_falls_through(case.body) for case in cases)
        case _:
            is_last = isinstance(statement, _ENDING)
    return is_last


def _is_wasteful(nodes: tuple[ast.AST, ...], read: frozenset[str]) -> bool:
    """Whether a value is bound and never read, compared for nothing, or code is never reached."""
    if any(_is_idle(node) for node in nodes if isinstance(node, ast.stmt)):
        return True
    outer = {
        name
        for node in nodes
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }
    bound = {
        target.id
        for node in nodes
        for target in _targets(node)
        if isinstance(target, ast.Name) and not target.id.startswith("_")
    }
    return not read & _ALL and bool(bound - outer - read)


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        return [node.target]
    return []


def _is_idle(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, _EFFECTLESS)
    blocks = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
    return any(
        isinstance(one, _ENDING)
        for block in blocks
        if isinstance(block, list)
        for one in block[:-1]
    )


def _parameters(function: Function) -> Iterator[str]:
    given = function.args
    for one in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if not one.arg.startswith("_") and one.arg not in ("self", "cls", "mcs"):
            yield one.arg


def _read(nodes: tuple[ast.AST, ...]) -> frozenset[str]:
    """The names that a function mentions other than to bind them."""
    return frozenset(
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
    )
