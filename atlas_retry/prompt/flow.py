"""How strongly tests lead to definitions, along what these use. Reads no message."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from atlas_retry.prompt.failing import FailingTest
from atlas_retry.prompt.graph import Edge, Graph, Spot
from atlas_retry.source import uses

HOPS = 10
DECAY = 0.8
SPREAD = 0.4
"""0: every use gets all of the flow; 1: they divide it."""
MIN_FLOW = 0.0003
FRAME, FRAME_FADE = 0.9, 0.85
PASSED_LINE, SLICED_LINE = 0.35, 0.8
NEXT_LINES = (0.5, 0.3)
"""A failing statement may go on."""
FLOOR = 1e-4
"""A flow that is as good as none."""

Weights = dict[Spot, float]
Edges = Callable[[Spot], tuple[Edge, ...]]
Weigh = Callable[[Spot, Edge], float]


def all_lines(_spot: Spot, _edge: Edge) -> float:
    """The weight of an edge in what ran to its end."""
    return 1.0


def led_to(test: FailingTest, graph: Graph) -> Weights:
    """What one failing test leads to: itself, and the frames of its traceback."""
    seeds: Weights = {test.spot: 1.0} if test.spot else {}
    for depth, frame in enumerate(reversed(test.frames)):
        framed = graph.at(frame.path, frame.line)
        if framed:
            seeds[framed] = max(seeds.get(framed, 0.0), FRAME * FRAME_FADE**depth)
    slices = _slice(test, graph)

    def weigh(spot: Spot, edge: Edge) -> float:
        return slices.get(edge.line, 0.0) if spot == test.spot and slices else 1.0

    return spread(seeds, graph.edges, weigh)


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
    weights = {test.line: 1.0}
    weights |= {test.line + n: weight for n, weight in enumerate(NEXT_LINES, start=1)}
    for line in range(test.line - 1, scope.start_line - 1, -1):
        related = bool(by_line[line] & wanted)
        weights[line] = SLICED_LINE if related else PASSED_LINE
        if related:
            wanted |= by_line[line]
    return weights


def spread(seeds: Weights, edges: Edges, weigh: Weigh = all_lines) -> Weights:
    """Flow from the seeds along what they use, fading with every hop; the strongest way counts."""
    total: Weights = dict(seeds)
    front: Mapping[Spot, float] = seeds
    for _ in range(HOPS):
        reached: Weights = defaultdict(float)
        for spot, amount in front.items():
            for target, part in _passed_on(spot, amount, edges(spot), weigh):
                reached[target] = max(reached[target], part)
        front = {
            spot: part
            for spot, part in reached.items()
            if part > max(total.get(spot, 0.0), MIN_FLOW)
        }
        total |= front
    return total


def _passed_on(
    spot: Spot, amount: float, used: tuple[Edge, ...], weigh: Weigh
) -> Iterator[tuple[Spot, float]]:
    mass = sum(edge.weight for edge in used) or 1.0
    for edge in used:
        part = amount * DECAY * edge.weight * weigh(spot, edge) / mass**SPREAD
        for target in edge.targets:
            yield target, part / len(edge.targets)


def common(parts: Collection[Weights]) -> Weights:
    """The average of the logarithms: high for what every test leads to, not for what one does."""
    found: Weights = defaultdict(float)
    for part in parts:
        for spot, amount in part.items():
            found[spot] += math.log(1 + amount / FLOOR) / len(parts)
    return found
