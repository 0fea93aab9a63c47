"""Ranks the definitions that may be at fault for failing tests. Guesses; says what each rests on.

The weights were fitted on seeded faults of ten Python projects, leaving out one project at a time.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from atlas_retry.model import Frame
from atlas_retry.prompt.failing import FailingTest, is_test_path, passing
from atlas_retry.prompt.flow import Edges, Weights, all_lines, led_to, mean, spread
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.links import resolved
from atlas_retry.prompt.words import Topic, name_share, overlap, quoted_share, stem_share, topic
from atlas_retry.syntax import ScopeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A definition, how likely it is at fault, and why it is thought so."""

    spot: Spot
    score: float
    """Likelihoods of all suspects add up to 1."""
    why: str
    lines: tuple[int, ...] = ()
    """Lines of it that a traceback names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What speaks for a definition; each figure grows with the likelihood or falls with it."""

    reach: float
    """Logarithm of how strongly the failing tests lead to it."""
    blame: float
    """Share of the failing tests in all that lead to it."""
    words: float
    name: float
    stem: float
    frame: float
    """In a traceback, 1 for the innermost."""
    owner: float
    """Its class is named by the test."""
    size: float
    """Logarithm of its lines: long ones hold more faults."""
    special: float
    """A method that Python calls by itself."""
    used: float
    """Logarithm of how many use it: what all use is seldom broken for one."""
    is_class: float
    in_tests: float
    traced: float
    quoted: float
    """It mentions the names that the messages quote."""


WEIGHTS = Evidence(
    reach=0.45,
    blame=1.0,
    words=1.4,
    name=0.7,
    stem=0.2,
    frame=1.2,
    owner=0.45,
    size=0.5,
    special=-0.2,
    used=-0.3,
    is_class=-1.5,
    in_tests=-2.0,
    traced=12.0,
    quoted=0.2,
)
FLOOR = 1e-4
FRAME_FADE = 0.75
Framed = dict[Spot, tuple[tuple[int, ...], float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """All that the evidence is taken from."""

    graph: Graph
    failing: Weights
    healthy: Weights
    framed: Framed
    about: Topic
    spoken: Weights
    traced: Weights
    callers: Counter[Spot]


def suspects(
    tests: tuple[FailingTest, ...], graph: Graph, trace: tuple[Frame, ...] = ()
) -> tuple[Suspect, ...]:
    """Candidates, likeliest first."""
    scene = _scene(tests, graph, trace)
    rated = {spot: _rating(gathered) for spot, gathered in evidence(tests, scene)}
    top = max(rated.values(), default=0.0)
    chances = {spot: math.exp(rating - top) for spot, rating in rated.items()}
    whole = sum(chances.values()) or 1.0
    found = [
        Suspect(
            spot=spot,
            score=chance / whole,
            why=_why(spot, scene),
            lines=scene.framed.get(spot, ((), 0.0))[0],
        )
        for spot, chance in chances.items()
    ]
    return tuple(sorted(found, key=lambda s: (-s.score, s.spot.path, s.spot.scope.start_line)))


def _scene(tests: tuple[FailingTest, ...], graph: Graph, trace: tuple[Frame, ...]) -> _Scene:
    edges = resolved(graph)
    others = passing(tests, graph)
    about = topic(tests, others, graph)
    failing = mean(led_to(test, graph, edges) for test in tests)
    healthy = mean(spread({spot: 1.0}, edges, all_lines) for spot in others)
    return _Scene(
        graph=graph,
        failing=failing,
        healthy=healthy,
        framed=_framed(tests, graph),
        about=about,
        spoken=overlap(about, graph),
        traced=_traced(trace, graph),
        callers=_callers({*failing, *healthy}, edges),
    )


def _callers(spots: set[Spot], edges: Edges) -> Counter[Spot]:
    found = Counter[Spot]()
    for spot in spots:
        found.update(
            {target for edge in edges(spot) if len(edge.targets) == 1 for target in edge.targets}
        )
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


def _traced(trace: tuple[Frame, ...], graph: Graph) -> Weights:
    found: Weights = {}
    for rank, frame in enumerate(trace):
        spot = graph.at(frame.path, frame.line)
        if spot:
            found.setdefault(spot, FRAME_FADE**rank)
    return found


def evidence(tests: tuple[FailingTest, ...], scene: _Scene) -> Iterator[tuple[Spot, Evidence]]:
    """What speaks for each definition that anything speaks for."""
    own = {test.spot for test in tests}
    for spot in {*scene.failing, *scene.framed, *scene.spoken, *scene.traced} - own:
        if spot and spot.scope.kind in (ScopeKind.FUNCTION, ScopeKind.CLASS):
            yield spot, _evidence(spot, scene)


def _evidence(spot: Spot, scene: _Scene) -> Evidence:
    reach = scene.failing.get(spot, 0.0)
    name, owner = spot.scope.name, (spot.scope.owner or "").rpartition(".")[2]
    return Evidence(
        reach=math.log(reach + FLOOR) - math.log(FLOOR),
        blame=reach / (reach + scene.healthy.get(spot, 0.0) + FLOOR),
        words=scene.spoken.get(spot, 0.0),
        name=name_share(spot, scene.about),
        stem=stem_share(spot, scene.about),
        frame=scene.framed.get(spot, ((), 0.0))[1],
        owner=float(owner in scene.about.asked),
        size=math.log(spot.scope.end_line - spot.scope.def_line + 1),
        special=float(name.startswith("__")),
        used=math.log(1 + scene.callers[spot]),
        is_class=float(spot.scope.kind is ScopeKind.CLASS),
        in_tests=float(is_test_path(spot.path)),
        traced=scene.traced.get(spot, 0.0),
        quoted=quoted_share(spot, scene.about, scene.graph),
    )


def _rating(gathered: Evidence) -> float:
    return sum(
        float(getattr(gathered, name) * getattr(WEIGHTS, name)) for name in Evidence.__slots__
    )


def _why(spot: Spot, scene: _Scene) -> str:
    if spot in scene.traced:
        return "traced"
    if spot in scene.framed:
        return "traceback"
    return "called" if spot in scene.failing else "same words"
