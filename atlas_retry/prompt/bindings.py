"""Values of Python expressions and the statements that bind names to them. Infers nothing."""

import ast
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from atlas_retry.prompt.graph import Spot

MAX_VALUES = 6

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Form(StrEnum):
    """What a value is of the definition that it belongs to."""

    ITSELF = "itself"
    INSTANCE = "instance"


class Value(Struct, frozen=True):
    """A class or function as an object, or an instance of a class."""

    spot: Spot
    form: Form


Values = frozenset[Value]
NOTHING: Values = frozenset()
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Assigned(Struct, frozen=True):
    """Something that gives a name its classes."""

    expr: ast.expr
    is_annotation: bool = False
    is_entered: bool = False
    """Bound by `with`."""


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a definition; of a class, not its methods."""
    if not isinstance(node, ast.ClassDef):
        yield from ast.walk(node)
        return
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _INNER):
            yield from ast.walk(child)


def binding(part: ast.AST, prefix: str = "") -> dict[str, Assigned]:
    """The names that one statement binds, or the attributes of `self`."""
    match part:
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, Assigned(value)) for target in targets]
        case ast.AnnAssign(target=target, annotation=annotation):
            pairs = [(target, Assigned(annotation, is_annotation=True))]
        case ast.NamedExpr(target=target, value=value):
            pairs = [(target, Assigned(value))]
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            pairs = [(target, Assigned(value, is_entered=True))]
        case _:
            return {}
    found: dict[str, Assigned] = {}
    for target, given in pairs:
        name = _target(target, prefix)
        if name:
            found[name] = given
    return found


def _target(target: ast.expr, prefix: str) -> str | None:
    match target:
        case ast.Name(id=name) if not prefix:
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if prefix:
            return name
        case _:
            return None


def parsed(text: str) -> ast.expr | None:
    """The expression in a string annotation; None when it is none."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def root_of(expr: ast.expr) -> str:
    """The name that `name.attribute`, `name(...).attribute` and the like start with, or nothing.

    Goes down by itself: generated code has chains of more calls than `ast.unparse` can follow.
    """
    around: ast.expr | None = None
    while isinstance(expr, (ast.Attribute, ast.Call, ast.Subscript)):
        around = expr
        expr = expr.func if isinstance(expr, ast.Call) else expr.value
    is_item = isinstance(around, ast.Subscript)
    return expr.id if isinstance(expr, ast.Name) and not is_item else ""


def last_of(expr: ast.expr) -> str:
    """The last part of a dotted name, which may stand in quotes; nothing for what is no name."""
    match expr:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str(name)):
            return name.rpartition(".")[2]
        case _:
            return ""


def limited(values: Iterator[Value] | list[Value]) -> Values:
    """The first few of the values: more would say nothing."""
    return frozenset(list(dict.fromkeys(values))[:MAX_VALUES])
