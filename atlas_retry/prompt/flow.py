"""How strongly tests lead to definitions in the call graph."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from atlas_retry.prompt.failing import FailingTest
from atlas_retry.prompt.graph import Graph, Spot

DECAY = 0.8
SPREAD = 0.4
"""0: every use gets the whole flow; 1: the uses share it."""
MIN_FLOW = 0.0003
FRAME, FRAME_FADE = 0.9, 0.85
FLOOR = 1e-4
"""Flow below which it counts as none."""

Weights = dict[Spot, float]
Edges = Callable[[Spot], tuple[tuple[Spot, ...], ...]]


def led_to(test: FailingTest, graph: Graph) -> Weights:
    """Start of the flow of one failing test: itself, and the frames of its traceback."""
    seeds: Weights = {test.spot: 1.0} if test.spot else {}
    for depth, frame in enumerate(reversed(test.frames)):
        framed = graph.at(frame.path, frame.line)
        if framed:
            seeds[framed] = max(seeds.get(framed, 0.0), FRAME * FRAME_FADE**depth)
    return spread(seeds, graph.edges)


def spread(seeds: Weights, edges: Edges) -> Weights:
    """Flow from the seeds along uses, weaker with every hop; the strongest path counts."""
    total: Weights = dict(seeds)
    front: Mapping[Spot, float] = seeds
    while front:
        reached: Weights = defaultdict(float)
        for spot, amount in front.items():
            for target, flow in _passed_on(amount, edges(spot)):
                reached[target] = max(reached[target], flow)
        front = {
            spot: flow
            for spot, flow in reached.items()
            if flow > max(total.get(spot, 0.0), MIN_FLOW)
        }
        total |= front
    return total


def _passed_on(amount: float, used: tuple[tuple[Spot, ...], ...]) -> Iterator[tuple[Spot, float]]:
    for targets in used:
        flow = amount * DECAY / len(used) ** SPREAD
        for target in targets:
            yield target, flow / len(targets)


def averaged(parts: Collection[Weights]) -> Weights:
    """Logarithm of the mean: high for definitions that any test leads to."""
    sums: Weights = defaultdict(float)
    for weights in parts:
        for spot, amount in weights.items():
            sums[spot] += amount
    return {spot: math.log(1 + amount / len(parts) / FLOOR) for spot, amount in sums.items()}
