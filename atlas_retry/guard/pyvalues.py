"""What an expression of literals comes to, worked out on its syntax. Runs nothing."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from atlas_retry.guard.words import words

MAX_ITEMS = 400
"""Members of a value worked out; beyond it nothing is known."""
MAX_NUMBER = 10**18


class UnknownValueError(ValueError):
    """Part of the expression is no literal, or not worth working out."""


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, whole: operator.contains(whole, item),
    ast.NotIn: lambda item, whole: not operator.contains(whole, item),
}
_TYPES = {
    kind.__name__: kind
    for kind in (int, float, str, list, dict, tuple, set, frozenset, bool, bytes, complex)
}
_CALLS: Mapping[str, Callable[..., object]] = {
    "len": len, "sum": sum, "min": min, "max": max, "sorted": sorted, "abs": abs, "any": any,
    "all": all, "round": round, "isinstance": isinstance, "repr": repr, "ord": ord, "chr": chr,
    "type": type, "divmod": divmod, "range": lambda *ends: list(range(*ends)),
    "zip": lambda *rows: list(zip(*rows, strict=False)),
    "enumerate": lambda *a: list(enumerate(*a)), "reversed": lambda a: list(reversed(a)), **_TYPES,
}  # fmt: skip
_METHODS = words(
    "startswith endswith lower upper strip lstrip rstrip split splitlines join replace count"
    " index keys values items get title capitalize isdigit isalpha encode decode"
)
_FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)


def value(node: ast.AST, bound: Mapping[str, object] | None = None) -> object:
    """The value of an expression; raises UnknownValueError where it hangs on anything else."""
    try:
        return _bounded(_value(node, bound or {}))
    except _FAULTS as error:
        raise UnknownValueError(ast.dump(node)[:80]) from error


def _bounded(found: object) -> object:
    if isinstance(found, str | bytes | list | tuple | set | frozenset | dict):
        if len(found) > MAX_ITEMS:
            raise UnknownValueError("too long")
    elif isinstance(found, int | float) and abs(found) > MAX_NUMBER:
        raise UnknownValueError("too large")
    return found


def _value(node: ast.AST, bound: Mapping[str, object]) -> object:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return bound[node.id] if node.id in bound else _TYPES[node.id]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        parts = [value(part, bound) for part in node.elts]
        return parts if isinstance(node, ast.List) else _kind(node)(parts)
    if isinstance(node, ast.Dict):
        return {
            value(key or node, bound): value(inner, bound)
            for key, inner in zip(node.keys, node.values, strict=True)
        }
    return _composed(node, bound)


def _kind(node: ast.Tuple | ast.Set) -> Callable[[Iterable[object]], object]:
    return tuple if isinstance(node, ast.Tuple) else set


def _composed(node: ast.AST, bound: Mapping[str, object]) -> object:
    reader = _READERS.get(type(node))
    return reader(node, bound) if reader else _called(node, bound)


def _binary(node: ast.BinOp, bound: Mapping[str, object]) -> object:
    left, right = value(node.left, bound), value(node.right, bound)
    _small_enough(node.op, left, right)
    return _BINARY[type(node.op)](left, right)


def _unary(node: ast.UnaryOp, bound: Mapping[str, object]) -> object:
    inner = value(node.operand, bound)
    return not inner if isinstance(node.op, ast.Not) else _signed(node.op, inner)


def _joined(node: ast.BoolOp, bound: Mapping[str, object]) -> bool:
    parts = [value(part, bound) for part in node.values]
    return all(parts) if isinstance(node.op, ast.And) else any(parts)


def _member(node: ast.Subscript, bound: Mapping[str, object]) -> object:
    whole: Any = value(node.value, bound)
    return whole[_index(node.slice, bound)]


def _text(node: ast.JoinedStr, bound: Mapping[str, object]) -> str:
    return "".join(_formatted(part, bound) for part in node.values)


def _comprehended(
    node: ast.ListComp | ast.GeneratorExp | ast.SetComp, bound: Mapping[str, object]
) -> object:
    found = [value(node.elt, inner) for inner in _rounds(node.generators, bound)]
    return set(found) if isinstance(node, ast.SetComp) else found


def _small_enough(op: ast.operator, left: object, right: object) -> None:
    """A text or list is not repeated without end."""
    sized = isinstance(left, str | bytes | list | tuple) or isinstance(right, str | list | tuple)
    if isinstance(op, ast.Mult) and sized and max(_size(left), _size(right)) > MAX_ITEMS:
        raise UnknownValueError("too long")
    plain = isinstance(left, str) and re.fullmatch(r"(?:[^%]|%[sd%])*", left)
    if isinstance(op, ast.Mod) and isinstance(left, str | bytes) and not plain:
        raise UnknownValueError("a format")


def _size(part: object) -> int:
    return part if isinstance(part, int) else len(part) if isinstance(part, str | list) else 0


def _signed(op: ast.unaryop, inner: object) -> object:
    if isinstance(op, ast.USub) and isinstance(inner, int | float):
        return -inner
    raise UnknownValueError("sign")


def _compared(node: ast.Compare, bound: Mapping[str, object]) -> bool:
    parts = [value(part, bound) for part in (node.left, *node.comparators)]
    pairs = zip(parts, node.ops, parts[1:], strict=False)
    return all(_COMPARE[type(op)](left, right) for left, op, right in pairs)


def _index(node: ast.expr, bound: Mapping[str, object]) -> object:
    if isinstance(node, ast.Slice):
        ends = [value(e, bound) if e else None for e in (node.lower, node.upper, node.step)]
        return slice(*ends)
    return value(node, bound)


def _formatted(part: ast.expr, bound: Mapping[str, object]) -> str:
    if isinstance(part, ast.FormattedValue):
        spec = str(value(part.format_spec, bound)) if part.format_spec is not None else ""
        if part.conversion != -1 or not re.fullmatch(r"[<>^0,]?\d{0,2}(\.\d)?[dfs%]?", spec):
            raise UnknownValueError("a format")
        return format(value(part.value, bound), spec)
    return str(value(part, bound))


def _rounds(
    generators: list[ast.comprehension], bound: Mapping[str, object]
) -> Iterator[Mapping[str, object]]:
    if not generators:
        yield bound
        return
    first, *rest = generators
    for item in islice(_members(value(first.iter, bound)), MAX_ITEMS):
        inner = {**bound, **dict(_bindings(first.target, item))}
        if all(value(condition, inner) for condition in first.ifs):
            yield from _rounds(rest, inner)


def _members(whole: object) -> Iterable[object]:
    if isinstance(whole, str | list | tuple | dict):
        return whole
    raise UnknownValueError("no order")


def _bindings(target: ast.expr, item: object) -> Iterator[tuple[str, object]]:
    if isinstance(target, ast.Name):
        yield target.id, item
    elif isinstance(target, ast.Tuple) and isinstance(item, tuple | list):
        for part, inner in zip(target.elts, item, strict=True):
            yield from _bindings(part, inner)
    else:
        raise UnknownValueError("target")


def _called(node: ast.AST, bound: Mapping[str, object]) -> object:
    if not isinstance(node, ast.Call) or any(k.arg is None for k in node.keywords):
        raise UnknownValueError("no literal")
    told = [value(part, bound) for part in node.args]
    named = {str(k.arg): value(k.value, bound) for k in node.keywords}
    if isinstance(node.func, ast.Name):
        if node.func.id == "range" and max(map(_size, told), default=0) > MAX_ITEMS:
            raise UnknownValueError("too long")
        return _CALLS[node.func.id](*told, **named)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _filled(value(node.func.value, bound), told, named)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        found = getattr(value(node.func.value, bound), node.func.attr)(*told, **named)
        return list(found) if node.func.attr in ("keys", "values", "items") else found
    raise UnknownValueError("no literal")


def _filled(text: object, told: list[object], named: Mapping[str, object]) -> str:
    """`"{} of {}".format(1, 2)`, where the fields hold nothing but names or numbers."""
    if not isinstance(text, str) or not re.fullmatch(r"(?:[^{}]|\{\w*\})*", text):
        raise UnknownValueError("a format")
    return text.format(*told, **named)


_READERS: Mapping[type[ast.AST], Callable[[Any, Mapping[str, object]], object]] = {
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compared,
    ast.BoolOp: _joined,
    ast.Subscript: _member,
    ast.JoinedStr: _text,
    ast.IfExp: lambda node, bound: value(
        node.body if value(node.test, bound) else node.orelse, bound
    ),
    ast.ListComp: _comprehended,
    ast.GeneratorExp: _comprehended,
    ast.SetComp: _comprehended,
}


def literal(node: ast.expr) -> ast.expr | None:
    """The expression as the literal it comes to; None where that is not known."""
    try:
        found = value(node)
        return ast.parse(repr(found), mode="eval").body if _is_plain(found) else None
    except (UnknownValueError, SyntaxError):
        return None


def _is_plain(found: object) -> bool:
    if isinstance(found, list | tuple | set | frozenset):
        return all(map(_is_plain, found)) and not isinstance(found, frozenset)
    if isinstance(found, dict):
        return all(_is_plain(part) for pair in found.items() for part in pair)
    return found is None or isinstance(found, str | bytes | int | float | bool)
