"""What Python's own messages say about where a fault is. Knows no other language."""

import re
from collections.abc import Iterator
from typing import Any

from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.signs import Shares, functions, lineage
from atlas_retry.prompt.unbound import may_be_unbound
from atlas_retry.source import ScopeKind

_LACKS = re.compile(r"'(?:[\w.]{0,200}\.)?(\w+)' object has no attribute '(\w+)'")
_UNBOUND = re.compile(r"local variable '(\w+)'")
_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
_CALL = re.compile(r"\b(?:(\w+)\.)?(\w+)\(\) (?:missing|takes|got)\b")
_BUILDERS = frozenset({"__init__", "__new__", "__post_init__", "__getattr__", "__init_subclass__"})
_NONE = re.compile(r"NoneType|\bNone\b (?:==|!=|is)|assert None|== None|is None|, None\b")
_RETURN = re.compile(r"^[ \t]+return\b(.*)$", re.MULTILINE)
MAX_NAMES = 40
"""Names of one kind in the messages; more say little more."""
FADE = 0.3
"""How much less each of many functions that fit a message is blamed."""


def blamed(told: str, graph: Graph) -> Shares:
    """Functions that messages point at, 1 for those that they leave little doubt about."""
    found: Shares = {}
    for spot, share in _blamed(told, graph):
        found[spot] = max(found.get(spot, 0.0), share)
    return found


def _blamed(told: str, graph: Graph) -> Iterator[tuple[Spot, float]]:
    for owner, name in _told(_LACKS, told):
        yield from ((spot, 1.0) for spot in _without(owner, name, graph))
    for name in _told(_UNKNOWN, told):
        reading = re.compile(rf"(?<![\w.'\"]){name}\b(?!['\"])(?!\s*=[^=])")
        found = [s for s in functions(graph) if reading.search(graph.body(s))]
        yield from _shared([s for s in found if not graph.bare(s.path, name)])
    for owner, name in _told(_CALL, told):
        for spot in graph.by_name.get(name, ()):
            if spot.scope.kind is ScopeKind.FUNCTION and (spot.scope.owner or "").endswith(owner):
                yield spot, 1.0


def _told(pattern: re.Pattern[str], told: str) -> list[Any]:
    """What a pattern finds, each once."""
    return list(dict.fromkeys(pattern.findall(told)))[:MAX_NAMES]


def _shared(found: list[Spot]) -> Iterator[tuple[Spot, float]]:
    return ((spot, 1 / len(found) ** FADE) for spot in found)


def _without(owner: str, name: str, graph: Graph) -> Iterator[Spot]:
    """What builds an object that lacks an attribute, and what would have set it."""
    setting = re.compile(rf"\bself\.{name}\b[^=\n]*=[^=]")
    for one in lineage(owner, graph):
        for member in graph.members(one):
            builds = member.scope.name in _BUILDERS or setting.search(graph.body(member))
            if builds and member.scope.kind is ScopeKind.FUNCTION:
                yield member


def unbound(told: str, graph: Graph) -> frozenset[Spot]:
    """Functions that may read the local variable that a message says has no value yet."""
    names = _told(_UNBOUND, told)
    return frozenset(
        spot
        for spot in (functions(graph) if names else ())
        if spot.path.endswith(".py")
        and any(
            name in body and may_be_unbound(body, name)
            for body in (graph.body(spot),)
            for name in names
        )
    )


def tells_none(told: str) -> bool:
    """Whether a message speaks of a value that is None."""
    return _NONE.search(told) is not None


def may_be_none(body: str) -> bool:
    """Whether a function can end without a value."""
    told = [match.strip() for match in _RETURN.findall(body)]
    return "yield" not in body and (not told or any(one in ("", "None") for one in told))
