"""What error messages and failing lines give away about the code behind them. Ranks nothing."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable

from atlas_retry.prompt.failing import FailingTest
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.project import is_test_path
from atlas_retry.source import ScopeKind

Shares = dict[Spot, float]
"""By definition; 1 where everything that is looked for was found."""

MAX_TOLD_CHARS = 20_000
_READ = re.compile(r"\.([A-Za-z_]\w*)\b(?!\s*\()")
_STORED = re.compile(r"\.([A-Za-z_]\w*)(?:\[[^\]]*\])?\s*(?:[-+*/|&]|//|\*\*)?=(?!=)")


def functions(graph: Graph) -> tuple[Spot, ...]:
    """The functions outside the tests."""
    return tuple(
        spot
        for spot in graph.spots
        if spot.scope.kind is ScopeKind.FUNCTION and not is_test_path(spot.path)
    )


def lineage(name: str, graph: Graph) -> tuple[Spot, ...]:
    """The classes of a name, and what they are made from."""
    found = [spot for spot in graph.by_name.get(name, ()) if spot.scope.kind is ScopeKind.CLASS]
    for one in found:
        found += [base for base in graph.bases(one) if base not in found]
    return tuple(found)


def messages(tests: Iterable[FailingTest]) -> str:
    """What the tests complain of, without the source that is quoted with it."""
    told: list[str] = []
    for test in tests:
        lines = test.diagnostic.text.splitlines()
        told += [test.diagnostic.message, *(line[1:] for line in lines if line.startswith("E "))]
    return "\n".join(told)[:MAX_TOLD_CHARS]


def storing(tests: tuple[FailingTest, ...], graph: Graph) -> Shares:
    """Functions that set the attributes that the failing lines read."""
    asked = set[str]()
    for test in tests:
        places = [(frame.path, frame.line) for frame in test.frames[-1:]]
        if test.spot and test.line:
            places.append((test.spot.path, test.line))
        for path, line in places:
            asked |= set(_READ.findall(graph.text(path, line, line)))
    return _rare(graph, asked, lambda body: set(_STORED.findall(body)))


def _rare(graph: Graph, asked: set[str], of: Callable[[str], set[str]]) -> Shares:
    """The share of what is asked for that each function has, weighed by its rarity."""
    if not asked:
        return {}
    held = {spot: of(graph.body(spot)) & asked for spot in functions(graph)}
    spread = Counter(name for names in held.values() for name in names)
    weight = {name: 1 / math.sqrt(count) for name, count in spread.items()}
    whole = sum(weight.values()) or 1.0
    return {
        spot: sum(weight[name] for name in names) / whole for spot, names in held.items() if names
    }
