"""Rows of Python tests that are run for several values. Reads `ast`, runs nothing."""

import ast
from collections.abc import Iterator, Sequence

from atlas_retry.guard import pychecks
from atlas_retry.guard.pychecks import names_in
from atlas_retry.guard.pymarks import SKIPS, Function
from atlas_retry.guard.pyvalues import UnknownValueError, value


def of_loops(test: Function) -> tuple[tuple[str, ...], ...]:
    """Literals of each row that a loop of the test goes through."""
    return tuple(
        _row(row)
        for node in ast.walk(test)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple)
        for row in node.iter.elts
        if isinstance(row, ast.List | ast.Tuple)
    )


def is_empty(rows: ast.expr) -> bool:
    """Whether nothing is gone through, whatever the code does."""
    if isinstance(rows, ast.Subscript) and isinstance(rows.slice, ast.Slice):
        upper = rows.slice.upper
        return isinstance(upper, ast.Constant) and upper.value == 0
    try:
        found = value(rows)
    except UnknownValueError:
        return False
    return isinstance(found, list | tuple | dict | set | str) and not found


def of_decorators(
    decorators: Sequence[ast.expr], aliases: frozenset[str]
) -> tuple[tuple[tuple[str, ...], ...], list[str]]:
    """Literals of every parametrized row, and what switches rows off."""
    rows: list[tuple[str, ...]] = []
    markers: list[str] = []
    for decorator in decorators:
        if not isinstance(decorator, ast.Call) or pychecks.last(decorator.func) != "parametrize":
            continue
        for argument in decorator.args[1:2]:
            if is_empty(argument):
                markers.append("no cases")
            for row in argument.elts if isinstance(argument, ast.List | ast.Tuple) else ():
                rows.append(_row(row))
                markers += _marks(row, aliases)
    return tuple(rows), markers


def _row(row: ast.expr) -> tuple[str, ...]:
    parts = row.args if isinstance(row, ast.Call) and pychecks.last(row.func) == "param" else [row]
    return tuple(
        repr(node.value)
        for part in parts
        for node in ast.walk(part)
        if isinstance(node, ast.Constant)
    )


def _marks(row: ast.expr, aliases: frozenset[str]) -> Iterator[str]:
    if isinstance(row, ast.Call):
        for keyword in row.keywords:
            if keyword.arg == "marks" and names_in(keyword.value) & (SKIPS | aliases):
                yield f"row: {ast.unparse(keyword.value)[:60]}"
