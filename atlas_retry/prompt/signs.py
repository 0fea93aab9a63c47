"""What error messages and failing lines give away about the code behind them. Ranks nothing."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable

from atlas_retry.prompt.failing import FailingTest, is_test_path
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.syntax import ScopeKind

Shares = dict[Spot, float]
"""By definition; 1 where everything that is looked for was found."""

MIN_LITERAL_CHARS = 8
MAX_TOLD_CHARS = 20_000
_LITERAL = re.compile(r"\"([^\"\\\n]{8,})\"|'([^'\\\n]{8,})'|`([^`\\\n]{8,})`")
_PLACEHOLDER = re.compile(r"\{[^}]*\}|%(?:\(\w+\))?[-#0 +\d.]*[a-zA-Z]|\$\{[^}]*\}")
_NAMED = re.compile(r"['`\"\u2018]([A-Za-z_]\w+)['`\"\u2019]|\b([A-Za-z_]\w+)\(\)")
_READ = re.compile(r"\.([A-Za-z_]\w*)\b(?!\s*\()")
_STORED = re.compile(r"\.([A-Za-z_]\w*)(?:\[[^\]]*\])?\s*(?:[-+*/|&]|//|\*\*)?=(?!=)")
_RAISED = re.compile(r"\b(?:raise|throw new|throw|panic|Err)\b[\s(]*([\w.:]*)")


def functions(graph: Graph) -> tuple[Spot, ...]:
    """The functions outside the tests."""
    return tuple(
        spot
        for spot in graph.spots
        if spot.scope.kind is ScopeKind.FUNCTION and not is_test_path(spot.path)
    )


def messages(tests: Iterable[FailingTest]) -> str:
    """What the tests complain of, without the source that is quoted with it."""
    told: list[str] = []
    for test in tests:
        lines = test.diagnostic.text.splitlines()
        told += [test.diagnostic.message, *(line[1:] for line in lines if line.startswith("E "))]
    return "\n".join(told)[:MAX_TOLD_CHARS]


def worded(graph: Graph, told: str) -> Shares:
    """Functions that hold a text of the messages, by the length of the longest."""
    plain = " ".join(told.split())
    found: Shares = {}
    for spot in functions(graph):
        longest = max(map(len, _pieces(graph.body(spot), plain)), default=0)
        if longest:
            found[spot] = min(1.0, longest / 24)
    return found


def _pieces(body: str, told: str) -> Iterable[str]:
    for groups in _LITERAL.findall(body):
        for piece in _PLACEHOLDER.split("".join(groups)):
            text = " ".join(piece.split())
            if len(text) >= MIN_LITERAL_CHARS and " " in text and text in told:
                yield text


def raising(tests: tuple[FailingTest, ...], graph: Graph) -> Shares:
    """Functions that raise what the tests ended with; less the more do."""
    kinds = {(test.diagnostic.rule_id or "").rpartition(".")[2] for test in tests} - {""}
    return _rare(
        graph,
        kinds - {"AssertionError"},
        lambda body: {name.rpartition(".")[2] for name in _RAISED.findall(body)},
    )


def naming(told: str, graph: Graph) -> Shares:
    """Functions that mention the names in the messages; rare names count most."""
    asked = {"".join(pair) for pair in _NAMED.findall(told)}
    return _rare(graph, asked, lambda body: set(re.findall(r"[A-Za-z_]\w+", body)))


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
