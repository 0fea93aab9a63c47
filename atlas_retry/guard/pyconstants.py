"""Names and functions of the standard library that stand for a plain value. Runs nothing of theirs.

`HTTPStatus.NOT_FOUND` is 404, and `json.dumps({"a": 1})` the text that it makes.
"""

import ast
import errno
import http
import inspect
import json
import logging
import textwrap
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from atlas_retry.guard.pyvalues import UnknownValueError, value

_MODULES: Mapping[str, ModuleType | type] = {
    "http.HTTPStatus": http.HTTPStatus,
    "errno": errno,
    "logging": logging,
}
_APPLIED: Mapping[str, Callable[[Any], object]] = {
    "textwrap.dedent": textwrap.dedent,
    "inspect.cleandoc": inspect.cleandoc,
    "json.dumps": json.dumps,
    "json.loads": json.loads,
}
_EXITS = {"os.EX_OK": 0, "os.EX_USAGE": 64, "os.EX_DATAERR": 65, "os.EX_NOINPUT": 66}
_REPLACING = frozenset({"dataclasses.replace", "copy.replace", "attrs.evolve"})


def plain(node: ast.expr) -> ast.expr | None:
    """The plain value of such an expression; None for any other."""
    if isinstance(node, ast.Slice):
        return _whole(node)
    if isinstance(node, ast.Attribute):
        found = _named(ast.unparse(node).removesuffix(".value"))
        return ast.Constant(value=found) if found is not None else None
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _changed(node) if node.keywords else _applied(node)
    return None


def _named(text: str) -> int | None:
    home, _, name = text.rpartition(".")
    found = getattr(_MODULES.get(home), name, None) if name.isupper() or "_" in name else None
    return int(found) if isinstance(found, int) else _EXITS.get(text)


def _applied(call: ast.Call) -> ast.expr | None:
    function = _APPLIED.get(ast.unparse(call.func))
    try:
        found = function(value(call.args[0])) if function is not None else None
        return ast.parse(repr(found), mode="eval").body if found is not None else None
    except (UnknownValueError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _changed(call: ast.Call) -> ast.expr | None:
    """`replace(Point(x=1, y=2), y=3)` as `Point(x=1, y=3)`."""
    made = call.args[0]
    if ast.unparse(call.func) not in _REPLACING or not isinstance(made, ast.Call):
        return None
    told = {keyword.arg: keyword.value for keyword in (*made.keywords, *call.keywords)}
    named = {keyword.arg for keyword in made.keywords}
    if None in told or {keyword.arg for keyword in call.keywords} - named:
        return None
    keywords = [ast.keyword(arg=name, value=said) for name, said in told.items()]
    return ast.Call(func=made.func, args=made.args, keywords=keywords)


def _whole(part: ast.Slice) -> ast.expr | None:
    """`[0:2]` as `[:2]`."""
    begins = isinstance(part.lower, ast.Constant) and part.lower.value == 0
    return ast.Slice(lower=None, upper=part.upper, step=None) if begins and not part.step else None
