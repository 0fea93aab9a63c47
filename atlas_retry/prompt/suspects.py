"""Ranks the definitions that may be at fault for failing tests. Guesses; explains each guess."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from atlas_retry.model import Frame
from atlas_retry.prompt.failing import FailingTest, is_test_path, passing, supporting
from atlas_retry.prompt.graph import Edge, Graph, Spot
from atlas_retry.prompt.inference import resolved
from atlas_retry.syntax import ScopeKind, uses


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A definition, how likely it is at fault, and why it is thought so."""

    spot: Spot
    score: float
    why: str
    lines: tuple[int, ...] = ()
    """Lines of it that a traceback names."""


HOPS = 4
DECAY = 0.6
SPREAD = 0.5
BLAME = 1.5
LEXICAL = 0.35
FRAME = 1.2
FRAME_FADE = 0.8
PASSED_LINE = 0.35
SLICED_LINE = 0.8
SUPPORT = 0.5
IN_TESTS = 0.1
Weights = dict[Spot, float]
Edges = Callable[[Spot], tuple[Edge, ...]]
Weigh = Callable[[Spot, Edge], float]
Framed = dict[Spot, tuple[tuple[int, ...], float]]


def suspects(
    tests: tuple[FailingTest, ...], graph: Graph, trace: tuple[Frame, ...] = ()
) -> tuple[Suspect, ...]:
    """Candidates, likeliest first."""
    edges = resolved(graph)
    frames = _framed(tests, graph)
    failing = _mean([_activation(test, graph, edges) for test in tests])
    healthy = _mean([_spread({spot: 1.0}, edges, _all_lines) for spot in passing(tests, graph)])
    words = _overlap(tests, graph)
    traced = _traced(trace, graph)
    found: list[Suspect] = []
    for spot in {*failing, *frames, *words, *traced}:
        if _worth(spot, tests):
            reach = failing.get(spot, 0.0)
            blame = (reach / (reach + healthy.get(spot, 0.0) + 1e-9)) ** BLAME
            score = reach * (0.25 + blame) + LEXICAL * words.get(spot, 0.0)
            lines, weight = frames.get(spot, ((), 0.0))
            score += FRAME * weight + traced.get(spot, 0.0)
            if is_test_path(spot.path):
                score *= IN_TESTS
            found.append(
                Suspect(
                    spot=spot, score=score, why=_why(spot, frames, failing, traced), lines=lines
                )
            )
    return tuple(sorted(found, key=lambda s: (-s.score, s.spot.path, s.spot.scope.start_line)))


def _worth(spot: Spot, tests: tuple[FailingTest, ...]) -> bool:
    kinds = (ScopeKind.FUNCTION, ScopeKind.CLASS)
    return spot.scope.kind in kinds and all(test.spot != spot for test in tests)


def _why(spot: Spot, frames: Framed, failing: Weights, traced: Weights) -> str:
    if spot in traced:
        return "run by the failing tests only"
    if spot in frames:
        return "in the traceback"
    return "reached from the failing test" if spot in failing else "speaks of the same things"


def _traced(trace: tuple[Frame, ...], graph: Graph) -> Weights:
    found: Weights = {}
    for rank, frame in enumerate(trace):
        spot = graph.at(frame.path, frame.line)
        if spot and spot not in found:
            found[spot] = 3.0 * 0.9**rank
    return found


def _framed(tests: tuple[FailingTest, ...], graph: Graph) -> Framed:
    """Functions in the tracebacks: the innermost weigh most."""
    found: Framed = {}
    for test in tests:
        for depth, frame in enumerate(reversed(test.frames)):
            spot = graph.at(frame.path, frame.line)
            if spot:
                lines, weight = found.get(spot, ((), 0.0))
                more = max(weight, FRAME_FADE**depth)
                found[spot] = (tuple(dict.fromkeys((*lines, frame.line))), more)
    return found


def _all_lines(_spot: Spot, _edge: Edge) -> float:
    return 1.0


def _activation(test: FailingTest, graph: Graph, edges: Edges) -> Weights:
    """How strongly a failing test leads to each definition."""
    seeds: Weights = {test.spot: 1.0} if test.spot else {}
    for spot in supporting(test, graph):
        seeds[spot] = SUPPORT
    stops: dict[Spot, int] = {}
    for depth, frame in enumerate(reversed(test.frames)):
        framed = graph.at(frame.path, frame.line)
        if framed:
            seeds[framed] = max(seeds.get(framed, 0.0), 0.9 * FRAME_FADE**depth)
            stops[framed] = max(stops.get(framed, 0), frame.line)
    slices = _slice(test, graph)

    def weigh(spot: Spot, edge: Edge) -> float:
        if spot == test.spot:
            return slices.get(edge.line, 0.0) if slices else 1.0
        if spot in stops:
            return 1.0 if edge.line == stops[spot] else 0.5 if edge.line < stops[spot] else 0.2
        return 1.0

    return _spread(seeds, edges, weigh)


def _slice(test: FailingTest, graph: Graph) -> dict[int, float]:
    """Weight of each line of the test: the failing one, what it depends on, what ran before."""
    if test.spot is None or test.line is None:
        return {}
    source = graph.project.source(test.spot.path) or b""
    scope = test.spot.scope
    by_line: dict[int, set[str]] = defaultdict(set)
    for use in uses(test.spot.path, source, scope.start_line, scope.end_line):
        by_line[use.line].add(use.name)
    wanted = set(by_line[test.line])
    weights = {test.line: 1.0, test.line + 1: 0.5, test.line + 2: 0.3}
    for line in range(test.line - 1, scope.start_line - 1, -1):
        related = bool(by_line[line] & wanted)
        weights[line] = SLICED_LINE if related else PASSED_LINE
        if related:
            wanted |= by_line[line]
    return weights


def _spread(seeds: Weights, edges_of: Edges, weigh: Weigh) -> Weights:
    """Activation that flows from the seeds along what they use, fading with every hop."""
    total: Weights = dict(seeds)
    front = seeds
    for _ in range(HOPS):
        flow: Weights = defaultdict(float)
        for spot, amount in front.items():
            if amount < 0.003:
                continue
            edges = edges_of(spot)
            mass = sum(edge.weight for edge in edges) or 1.0
            for edge in edges:
                part = amount * DECAY * edge.weight * weigh(spot, edge) / mass**SPREAD
                for target, share in _shares(edge, total):
                    flow[target] = max(flow[target], part * share)
        front = {spot: amount for spot, amount in flow.items() if amount > total.get(spot, 0.0)}
        for spot, amount in front.items():
            total[spot] = amount
    return total


def _shares(edge: Edge, known: Mapping[Spot, float]) -> Iterator[tuple[Spot, float]]:
    """One target gets all; of several, those whose class is in play get more."""
    if len(edge.targets) == 1:
        yield edge.targets[0], 1.0
        return
    owners = {(s.path, s.scope.qualified_name): w for s, w in known.items()}
    weights = [0.05 + owners.get((t.path, t.scope.owner or ""), 0.0) for t in edge.targets]
    whole = sum(weights)
    for target, weight in zip(edge.targets, weights, strict=True):
        yield target, weight / whole


def _mean(parts: list[Weights]) -> Weights:
    found: Weights = defaultdict(float)
    for part in parts:
        for spot, amount in part.items():
            found[spot] += amount / len(parts)
    return found


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")


def _words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        yield word
        parts = re.findall(r"[A-Z]?[a-z0-9]{3,}|[A-Z]{2,}", word)
        if len(parts) > 1:
            yield from (part.lower() for part in parts)


def _overlap(tests: tuple[FailingTest, ...], graph: Graph) -> Weights:
    """How much each definition speaks of what the failing tests speak of; at most 1."""
    asked = Counter[str]()
    for test in tests:
        asked.update(set(_words(_question(test, graph))))
    if not asked:
        return {}
    bodies = {
        spot: Counter(_words(_text(spot, graph)))
        for spot in graph.spots
        if spot.scope.kind is ScopeKind.FUNCTION and not is_test_path(spot.path)
    }
    spread = Counter(word for body in bodies.values() for word in body)
    scored: Weights = {}
    for spot, body in bodies.items():
        common = asked.keys() & body.keys()
        named = set(_words(spot.scope.name))
        value = sum(
            math.log(1 + len(bodies) / spread[word])
            * (2.0 if word in named else 1.0)
            * min(1.0, asked[word] / len(tests))
            for word in common
        )
        scored[spot] = value / (10 + len(body)) ** 0.5
    top = max(scored.values(), default=0.0)
    return {spot: value / top for spot, value in scored.items() if value} if top else {}


def _question(test: FailingTest, graph: Graph) -> str:
    told = "\n".join(
        line for line in test.diagnostic.text.splitlines() if line.startswith(("E ", ">"))
    )
    own = ""
    if test.spot:
        last = (test.line or test.spot.scope.end_line) + 1
        own = _lines(test.spot.path, test.spot.scope.start_line, last, graph)
    return f"{test.diagnostic.message}\n{told}\n{own}"


def _text(spot: Spot, graph: Graph) -> str:
    return _lines(spot.path, spot.scope.start_line, spot.scope.end_line, graph)


def _lines(path: str, start: int, end: int, graph: Graph) -> str:
    source = graph.project.source(path) or b""
    return b"\n".join(source.splitlines()[start - 1 : end]).decode("utf-8", "replace")
