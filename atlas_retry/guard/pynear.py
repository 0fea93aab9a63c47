"""Claims that a number is about another, and how far off it may be. Runs nothing.

The tolerance that a library has of its own is for noise in the last digits, and counts as none.
"""

import ast
import math
from collections.abc import Iterable

from atlas_retry.guard.pychecks import last
from atlas_retry.guard.pyvalues import UnknownValueError, value

_NOISE = 1e-9
_TOLD = frozenset({"abs", "rel", "abs_tol", "rel_tol", "atol", "rtol", "delta", "places"})
_PAIR = 2
Near = tuple[str, float, float]
"""What is claimed to be about a number, the number, and how far off it may be."""


def is_near(said: ast.expr, others: Iterable[ast.expr]) -> bool:
    """Whether one of the others claims the same number, no less closely."""
    wanted = _near(said)
    return wanted is not None and any(
        _is_as_close(wanted, found) for other in others if (found := _near(other)) is not None
    )


def _is_as_close(wanted: Near, found: Near) -> bool:
    text, number, off = wanted
    apart = abs(number - found[1])
    if apart <= _NOISE * max(abs(number), _NOISE):
        apart = 0.0
    return text == found[0] and apart + found[2] <= off


def _near(said: ast.expr) -> Near | None:
    if isinstance(said, ast.Compare) and len(said.ops) == 1:
        left, right = said.left, said.comparators[0]
        if isinstance(said.ops[0], ast.Eq):
            return _equal(left, right)
        if isinstance(said.ops[0], ast.Lt | ast.LtE):
            return _within(left, right)
    if isinstance(said, ast.Call) and last(said.func).endswith("isclose"):
        return _about(said.args[0], said, 1) if len(said.args) == _PAIR else None
    return None


def _equal(left: ast.expr, right: ast.expr) -> Near | None:
    if isinstance(right, ast.Call) and last(right.func).rpartition(".")[2] == "approx":
        return _about(left, right, 0)
    if isinstance(right, ast.Call) and last(right.func).rpartition(".")[2] == "Decimal":
        number = _number(right.args[0]) if right.args else None
    else:
        number = _number(right) if isinstance(right, ast.Constant | ast.UnaryOp) else None
        number = number if isinstance(_known(right), float) else None
    return (ast.unparse(left), number, 0.0) if number is not None else None


def _about(left: ast.expr, call: ast.Call, place: int) -> Near | None:
    """`approx(0.3)` and its kin, with the tolerance that they are told."""
    number = _number(call.args[place]) if len(call.args) == place + 1 else None
    told = {str(k.arg): _number(k.value) for k in call.keywords}
    if number is None or told.keys() - _TOLD or None in told.values():
        return None
    bounds = [
        abs(size or 0.0) * (abs(number) if name.startswith("r") else 1.0)
        for name, size in told.items()
    ]
    return ast.unparse(left), number, max(bounds, default=0.0)


def _within(left: ast.expr, right: ast.expr) -> Near | None:
    """`abs(x - 0.3) < 1e-9`."""
    off = _number(right)
    if not (isinstance(left, ast.Call) and last(left.func) == "abs" and len(left.args) == 1):
        return None
    apart = left.args[0]
    if off is None or not (isinstance(apart, ast.BinOp) and isinstance(apart.op, ast.Sub)):
        return None
    for one, other in ((apart.left, apart.right), (apart.right, apart.left)):
        number = _number(other)
        if number is not None:
            return ast.unparse(one), number, off
    return None


def _known(node: ast.expr) -> object:
    try:
        return value(node)
    except UnknownValueError:
        return None


def _number(node: ast.expr) -> float | None:
    found = _known(node)
    if isinstance(found, str):
        try:
            found = float(found)
        except ValueError:
            return None
    plain = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if plain and math.isfinite(found) else None  # type: ignore[arg-type]
