"""The special methods behind Python's operators, statements and built-ins.

Source: Python language reference, section 3.3, special method names.
"""

import ast
from collections.abc import Iterator

_BINARY: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("__add__", "__radd__"),
    ast.Sub: ("__sub__", "__rsub__"),
    ast.Mult: ("__mul__", "__rmul__"),
    ast.Div: ("__truediv__",),
    ast.FloorDiv: ("__floordiv__",),
    ast.Mod: ("__mod__",),
    ast.Pow: ("__pow__",),
    ast.MatMult: ("__matmul__",),
    ast.BitAnd: ("__and__", "__rand__"),
    ast.BitOr: ("__or__", "__ror__"),
    ast.BitXor: ("__xor__", "__rxor__"),
    ast.LShift: ("__lshift__",),
    ast.RShift: ("__rshift__",),
}
_COMPARED: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Eq: ("__eq__",),
    ast.NotEq: ("__ne__", "__eq__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.LtE: ("__le__", "__lt__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.GtE: ("__ge__", "__lt__"),
    ast.In: ("__contains__", "__iter__"),
    ast.NotIn: ("__contains__", "__iter__"),
}
_UNARY: dict[type[ast.unaryop], tuple[str, ...]] = {
    ast.Not: ("__bool__", "__len__"),
    ast.Invert: ("__invert__",),
    ast.USub: ("__neg__",),
}
_ITERATION = ("__iter__", "__next__", "__getitem__")
_SUBSCRIPT: dict[type[ast.expr_context], tuple[str, ...]] = {
    ast.Load: ("__getitem__", "__missing__"),
    ast.Store: ("__setitem__",),
    ast.Del: ("__delitem__",),
}
_BUILTINS: dict[str, tuple[str, ...]] = {
    "len": ("__len__",),
    "repr": ("__repr__",),
    "str": ("__str__", "__repr__"),
    "format": ("__format__", "__str__"),
    "print": ("__str__", "__repr__"),
    "hash": ("__hash__",),
    "bool": ("__bool__", "__len__"),
    "int": ("__int__",),
    "float": ("__float__",),
    "bytes": ("__bytes__",),
    "next": ("__next__",),
    "reversed": ("__reversed__",),
    "getattr": ("__getattr__",),
    "setattr": ("__setattr__",),
    "dict": ("keys", "__iter__", "__getitem__"),
    "copy": ("__copy__", "__reduce__"),
    "deepcopy": ("__deepcopy__", "__reduce__"),
    "dumps": ("__reduce__", "__getstate__"),
} | dict.fromkeys(
    ("list", "tuple", "set", "sorted", "enumerate", "zip", "map", "iter", "sum", "any", "all"),
    _ITERATION,
)

Implied = tuple[ast.expr, tuple[str, ...]]
"""An operand, and the methods of it that may be called."""


def implied(node: ast.AST) -> Iterator[Implied]:
    """The operands of a node whose special methods it calls."""
    match node:
        case (
            ast.BinOp(left=left, op=op, right=right)
            | ast.AugAssign(target=left, op=op, value=right)
        ):
            names = _BINARY.get(type(op), ())
            if isinstance(node, ast.AugAssign) and names:
                names = (names[0].replace("__", "__i", 1), *names)
            yield left, names
            yield right, names[-1:]
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            yield from _comparison(left, ops, comparators)
        case ast.UnaryOp(op=op, operand=operand):
            yield operand, _UNARY.get(type(op), ())
        case ast.Subscript(value=value, ctx=ctx):
            yield value, _SUBSCRIPT[type(ctx)]
        case (
            ast.For(iter=iterated) | ast.AsyncFor(iter=iterated) | ast.comprehension(iter=iterated)
        ):
            yield iterated, _ITERATION
        case ast.withitem(context_expr=expr):
            yield expr, ("__enter__", "__exit__", "__aenter__", "__aexit__")
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, ("__bool__", "__len__")
        case ast.Assert(test=test):
            yield test, ("__bool__", "__len__")
        case ast.FormattedValue(value=value):
            yield value, ("__str__", "__format__", "__repr__")
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]):
            yield first, _BUILTINS.get(name, ())
        case _:
            return


def _comparison(
    left: ast.expr, ops: list[ast.cmpop], comparators: list[ast.expr]
) -> Iterator[Implied]:
    for op, right in zip(ops, comparators, strict=True):
        names = _COMPARED.get(type(op), ())
        if isinstance(op, (ast.In, ast.NotIn)):
            yield right, names
        else:
            yield left, names
            yield right, names
        left = right
