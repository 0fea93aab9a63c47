"""Claims that went by the clock of the machine, and now hand the moment in. Runs nothing.

Only what is expected at that very moment is the same claim: `stamp() == str(date.today())` as
`stamp(date(2024, 3, 4)) == "2024-03-04"`.
"""

import ast
import datetime as dt
import re
from collections.abc import Iterable
from copy import deepcopy

from atlas_retry.guard.pychecks import last
from atlas_retry.guard.pyfacts import Fact
from atlas_retry.guard.pyvalues import UnknownValueError, value

_NOW = ("datetime.now", "datetime.today", "datetime.utcnow")
_KINDS = {"date": dt.date, "datetime": dt.datetime}
_PARTS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_FROZEN = re.compile(
    r"with (?:\w+\.)*(?:freeze_time|travel)\('([\d\-T: .+Z]+)'(?:, tick=False)?\)$"
)
_DAY = len("2024-03-04")
_FAULTS = (TypeError, ValueError, OverflowError)


def pinned(fact: Fact, facts: Iterable[Fact]) -> bool:
    """Whether a claim is made of the same call with the moment handed in."""
    said = _equation(fact)
    if said is None:
        return False
    there = list(facts)
    now = [equation for other in there if (equation := _equation(other)) is not None]
    texts = [other.text for other in there if other.is_effect]
    frozen = [moment for text in texts if (moment := _frozen_at(text)) is not None]
    return any(
        _is_at_a_moment(said, one) or (len(frozen) == 1 and _is_frozen(said, one, frozen[0]))
        for one in now
    )


def _frozen_at(text: str) -> dt.datetime | None:
    """The moment at which a test stops the clock."""
    found = _FROZEN.match(text)
    try:
        return dt.datetime.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def _is_frozen(
    old: tuple[ast.expr, ast.expr], new: tuple[ast.expr, ast.expr], now: dt.date
) -> bool:
    """Whether the same is expected as the stopped clock says."""
    was = _Moments(now)
    expected, claimed = _worked_out(old[1], was), _worked_out(new[1], _Moments(now))
    same = ast.unparse(old[0]) == ast.unparse(new[0])
    return same and was.found and expected is not None and expected == claimed


def _equation(fact: Fact) -> tuple[ast.expr, ast.expr] | None:
    said = fact.said
    if isinstance(said, ast.Compare) and isinstance(said.ops[0], ast.Eq):
        return said.left, said.comparators[0]
    return None


def _is_at_a_moment(old: tuple[ast.expr, ast.expr], new: tuple[ast.expr, ast.expr]) -> bool:
    calls = isinstance(old[0], ast.Call) and isinstance(new[0], ast.Call)
    handed = _handed(old[0], new[0]) if calls else None  # type: ignore[arg-type]
    moment = _Moments(None).moment(handed) if handed is not None else None
    if moment is None:
        return False
    was = _Moments(moment)
    expected, claimed = _worked_out(old[1], was), _worked_out(new[1], _Moments(moment))
    hangs = was.found or moment.isoformat()[:_DAY] in str(expected)
    return hangs and expected is not None and expected == claimed


def _handed(old: ast.Call, new: ast.Call) -> ast.expr | None:
    """The one thing that a call is handed and an earlier one was not."""
    if ast.unparse(old.func) != ast.unparse(new.func):
        return None
    was, is_ = ([ast.unparse(n) for n in (*c.args, *c.keywords)] for c in (old, new))
    parts: list[ast.expr | ast.keyword] = [*new.args, *new.keywords]
    more = [part for part in parts if ast.unparse(part) not in was]
    if len(more) != 1 or len(is_) != len(was) + 1 or [t for t in is_ if t in was] != was:
        return None
    only = more[0]
    return only.value if isinstance(only, ast.keyword) else only


def _worked_out(said: ast.expr, moments: "_Moments") -> object:
    try:
        return value(moments.visit(deepcopy(said)))
    except (UnknownValueError, *_FAULTS):
        return None


class _Moments(ast.NodeTransformer):
    """Puts for days and moments the text or number that is read off them, at a given one."""

    def __init__(self, now: dt.date | None) -> None:
        self.now = now
        self.found = False

    def visit(self, node: ast.AST) -> ast.AST:
        read = self._read(node)
        if read is None:
            return self.generic_visit(node)
        self.found = True
        return ast.Constant(value=read)

    def _read(self, node: ast.AST) -> str | int | None:
        if isinstance(node, ast.Call) and last(node.func) == "str" and len(node.args) == 1:
            moment = self.moment(node.args[0])
            return str(moment) if moment else None
        if isinstance(node, ast.FormattedValue) and node.conversion == -1:
            moment = self.moment(node.value)
            spec = str(value(node.format_spec)) if node.format_spec else ""
            return format(moment, spec) if moment else None
        if isinstance(node, ast.Attribute) and node.attr in _PARTS:
            moment = self.moment(node.value)
            found = getattr(moment, node.attr, None)
            return found if isinstance(found, int) else None
        return self._called(node)

    def _called(self, node: ast.AST) -> str | None:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        moment = self.moment(node.func.value)
        if moment is not None and node.func.attr == "isoformat" and not node.args:
            return moment.isoformat()
        if moment is not None and node.func.attr == "strftime" and node.args:
            return moment.strftime(str(value(node.args[0])))
        return None

    def moment(self, node: ast.expr) -> dt.date | None:
        """The day or moment that an expression is; None for another than the given one."""
        if not isinstance(node, ast.Call):
            return None
        word = ast.unparse(node.func)
        found: dt.date | None = None
        if word.endswith(_NOW) and isinstance(self.now, dt.datetime):
            found = self.now
        elif word.endswith("date.today"):
            found = _day(self.now)
        elif isinstance(node.func, ast.Attribute) and word.endswith(").date"):
            found = _day(self.moment(node.func.value))
        elif last(node.func).rpartition(".")[2] in _KINDS:
            found = _made(_KINDS[last(node.func).rpartition(".")[2]], node)
        return found if self.now is None or found in (self.now, _day(self.now)) else None


def _day(moment: dt.date | None) -> dt.date | None:
    return moment.date() if isinstance(moment, dt.datetime) else moment


def _made(kind: type[dt.date], call: ast.Call) -> dt.date | None:
    told = [a.value for a in call.args if isinstance(a, ast.Constant)]
    numbers = [part for part in told if isinstance(part, int)]
    try:
        return kind(*numbers) if len(numbers) == len(call.args) and not call.keywords else None
    except _FAULTS:
        return None
