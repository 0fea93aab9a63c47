"""Days, moments and spans that a test spells out in literals, worked out. Runs nothing.

`datetime.fromtimestamp(0, tz=timezone.utc)` is `datetime(1970, 1, 1, tzinfo=timezone.utc)`; what
hangs on the clock or on the zone of the machine is left as it stands.
"""

import ast
import datetime as dt
from collections.abc import Callable, Mapping

from atlas_retry.guard.pyvalues import UnknownValueError, value

Moment = dt.date | dt.time | dt.timedelta | dt.tzinfo
_MADE: Mapping[str, Callable[..., Moment]] = {
    "datetime.datetime": dt.datetime,
    "datetime.date": dt.date,
    "datetime.time": dt.time,
    "datetime.timedelta": dt.timedelta,
    "datetime.timezone": dt.timezone,
    "datetime.datetime.combine": dt.datetime.combine,
    "datetime.datetime.fromisoformat": dt.datetime.fromisoformat,
    "datetime.datetime.strptime": dt.datetime.strptime,
    "datetime.datetime.utcfromtimestamp": lambda at: dt.datetime.fromtimestamp(
        at, tz=dt.UTC
    ).replace(tzinfo=None),
    "datetime.date.fromisoformat": dt.date.fromisoformat,
    "datetime.time.fromisoformat": dt.time.fromisoformat,
}
_UTC = frozenset({"datetime.timezone.utc", "datetime.UTC", "zoneinfo.ZoneInfo('UTC')"})
_READ = frozenset({"isoformat", "timestamp", "total_seconds", "strftime", "weekday", "isoweekday"})
_TURNED = frozenset({"date", "time", "replace", "astimezone"})
_FAULTS = (TypeError, ValueError, OverflowError, AttributeError)


def spelled(node: ast.expr) -> ast.expr | None:
    """A moment, or what is read off one, in one spelling; None where it is not known."""
    if not isinstance(node, ast.Call | ast.BinOp):
        return None
    try:
        found = _moment(node) or _read(node)
    except (UnknownValueError, *_FAULTS):
        return None
    if found is None or isinstance(found, dt.tzinfo):
        return None
    return ast.parse(repr(found), mode="eval").body


def _moment(node: ast.expr) -> Moment | None:
    if isinstance(node, ast.BinOp):
        return _sum(node)
    if not isinstance(node, ast.Call) or ast.unparse(node) in _UTC:
        return dt.UTC if ast.unparse(node) in _UTC else None
    word = ast.unparse(node.func)
    if word in _MADE:
        return _MADE[word](*_args(node), **_named(node))
    if word == "datetime.datetime.fromtimestamp" and len([*node.args, *node.keywords]) > 1:
        return dt.datetime.fromtimestamp(*_args(node), **_named(node))  # type: ignore[arg-type]  # noqa: DTZ006 - a zone is told
    if isinstance(node.func, ast.Attribute) and node.func.attr in _TURNED:
        return _turned(node, node.func)
    return None


def _turned(node: ast.Call, func: ast.Attribute) -> Moment | None:
    of = _moment(func.value)
    local = func.attr == "astimezone" and (not node.args or getattr(of, "tzinfo", None) is None)
    if of is None or local:
        return None
    found = getattr(of, func.attr)(*_args(node), **_named(node))
    return found if isinstance(found, Moment) else None


def _sum(node: ast.BinOp) -> Moment | None:
    left, right = _moment(node.left), _moment(node.right)
    if left is None or right is None:
        return None
    parts: tuple[object, object] = (left, right)
    found = _OPERATORS[type(node.op)](*parts) if type(node.op) in _OPERATORS else None
    return found if isinstance(found, Moment) else None


_OPERATORS: Mapping[type[ast.operator], Callable[..., object]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
}


def _read(node: ast.expr) -> str | float | None:
    """The text or number that a moment without the machine's zone in it is read as."""
    if not isinstance(node, ast.Call):
        return None
    if ast.unparse(node.func) == "str" and len(node.args) == 1:
        of = _moment(node.args[0])
        return str(of) if of is not None else None
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _READ:
        return None
    of = _moment(node.func.value)
    local = node.func.attr == "timestamp" and getattr(of, "tzinfo", None) is None
    if of is None or local:
        return None
    found = getattr(of, node.func.attr)(*_args(node), **_named(node))
    return found if isinstance(found, str | int | float) else None


def _args(call: ast.Call) -> list[object]:
    return [_told(part) for part in call.args]


def _named(call: ast.Call) -> dict[str, object]:
    return {str(keyword.arg): _told(keyword.value) for keyword in call.keywords}


def _told(node: ast.expr) -> object:
    found = _moment(node)
    return found if found is not None else value(node)
