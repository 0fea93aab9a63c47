"""What a Python definition uses, each call led to the methods that it may reach."""

import ast
from collections.abc import Callable, Iterator
from functools import cache

from atlas_retry.prompt.bindings import Form, parts
from atlas_retry.prompt.graph import Edge, Spot
from atlas_retry.prompt.inference import Inference
from atlas_retry.prompt.special import implied
from atlas_retry.source import ScopeKind

RESOLVED, MENTIONED, OPERATOR, BY_NAME, UNKNOWN_OPERATOR = 1.0, 0.5, 0.8, 0.5, 0.15
OVERRIDDEN = 0.7
DUCK_TYPED = 0.2
MAX_BY_NAME = 40


def resolved(inference: Inference) -> Callable[[Spot], tuple[Edge, ...]]:
    """What a definition uses: by its classes in Python that parses, by names elsewhere."""

    @cache
    def of(spot: Spot) -> tuple[Edge, ...]:
        told = edges(inference, spot)
        return inference.graph.edges(spot) if told is None else told

    return of


def edges(known: Inference, spot: Spot) -> tuple[Edge, ...] | None:
    """What a definition uses; None when it is not Python that parses."""
    node = known.node(spot)
    if node is None:
        return None
    found: dict[tuple[int, tuple[Spot, ...]], float] = {}
    for part in parts(node):
        for weight, targets in _used(known, part, spot):
            line = getattr(part, "lineno", None) or spot.scope.def_line
            others = tuple(target for target in targets if target != spot)
            if others:
                place = (line, others)
                found[place] = max(found.get(place, 0.0), weight)
    for target in _construction(known, spot):
        found[(spot.scope.def_line, (target,))] = RESOLVED
    return tuple(Edge(line, weight, targets) for (line, targets), weight in found.items())


def _construction(known: Inference, spot: Spot) -> Iterator[Spot]:
    if spot.scope.kind is ScopeKind.CLASS:
        for name in ("__init__", "__new__", "__post_init__", "__init_subclass__"):
            yield from known.method(spot, name)
        yield from known.graph.bases(spot)


def _used(known: Inference, part: ast.AST, spot: Spot) -> Iterator[tuple[float, tuple[Spot, ...]]]:
    match part:
        case ast.Call(func=func):
            yield from _called(known, func, spot)
        case ast.Attribute(value=value, attr=name):
            for target in known.member(known.infer(value, spot), name):
                yield MENTIONED, (target,)
                yield from _dispatched(known, target, MENTIONED)
        case ast.Name(id=name, ctx=ast.Load()):
            for meant in known.infer(part, spot):
                if meant.form is Form.ITSELF:
                    yield MENTIONED, (meant.spot,)
            for variable in known.graph.bare(spot.path, name):
                if variable.scope.kind is ScopeKind.VARIABLE:
                    yield MENTIONED, (variable,)
        case _:
            pass
    for operand, names in implied(part):
        yield from _operated(known, operand, names, spot)


def _called(
    known: Inference, func: ast.expr, spot: Spot
) -> Iterator[tuple[float, tuple[Spot, ...]]]:
    values = known.infer(func, spot)
    for value in values:
        if value.form is Form.INSTANCE:
            for target in known.method(value.spot, "__call__"):
                yield RESOLVED, (target,)
        else:
            yield RESOLVED, (value.spot,)
    if isinstance(func, ast.Attribute):
        owners = known.infer(func.value, spot)
        members = known.member(owners, func.attr)
        for target in members:
            yield RESOLVED, (target,)
            yield from _dispatched(known, target, RESOLVED)
        if members and not _is_self(func.value):
            yield from _by_name(known, spot, func.attr, DUCK_TYPED)
        if not values and not members:
            forwarded = [t for v in owners for t in known.method(v.spot, "__getattr__")]
            yield from ((RESOLVED, (target,)) for target in forwarded)
            yield from _by_name(known, spot, func.attr, BY_NAME)
    elif not values and isinstance(func, ast.Name) and func.id in known.names(spot):
        yield from _by_name(known, spot, "__call__", UNKNOWN_OPERATOR)


def _operated(
    known: Inference, operand: ast.expr, names: tuple[str, ...], spot: Spot
) -> Iterator[tuple[float, tuple[Spot, ...]]]:
    if not names or isinstance(operand, ast.Constant):
        return
    owners = [v for v in known.infer(operand, spot) if v.form is Form.INSTANCE]
    for value in owners:
        for name in names:
            for target in known.method(value.spot, name):
                yield OPERATOR, (target,)
    if not owners:
        yield from _by_name(known, spot, names[0], UNKNOWN_OPERATOR)


def _dispatched(
    known: Inference, target: Spot, weight: float
) -> Iterator[tuple[float, tuple[Spot, ...]]]:
    """Methods of subclasses that may run instead."""
    others = known.graph.overriding(target)
    if others:
        yield weight * OVERRIDDEN, others


def _by_name(
    known: Inference, spot: Spot, name: str, weight: float
) -> Iterator[tuple[float, tuple[Spot, ...]]]:
    found = [
        other
        for other in known.graph.by_name.get(name, ())
        if other.scope.owner and other.path.endswith(".py") and other != spot
    ]
    if 0 < len(found) <= MAX_BY_NAME:
        yield weight, tuple(found)


def _is_self(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Name) and expr.id in ("self", "cls")
