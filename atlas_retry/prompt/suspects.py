"""Ranks definitions that may be at fault for failing tests. Guesses; says what each rests on."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from atlas_retry.prompt.brief import Traced
from atlas_retry.prompt.differences import differing
from atlas_retry.prompt.evidence import Evidence, rating
from atlas_retry.prompt.failing import FailingTest, each_once
from atlas_retry.prompt.flow import (
    FLOOR,
    Edges,
    Weights,
    all_lines,
    common,
    led_to,
    logarithm,
    mean,
    spread,
)
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.inference import Inference
from atlas_retry.prompt.links import resolved
from atlas_retry.prompt.oddities import oddities
from atlas_retry.prompt.project import is_test_path
from atlas_retry.prompt.signs import messages, storing
from atlas_retry.prompt.slips import Slip
from atlas_retry.prompt.verdicts import blamed, may_be_none, tells_none, unbound
from atlas_retry.prompt.words import (
    Topic,
    bags,
    is_namesake,
    name_share,
    overlap,
    said_share,
    stems,
    topic,
)
from atlas_retry.source import ScopeKind


class Suspect(Struct, frozen=True, kw_only=True):
    """A definition, how likely it is at fault, and why it is thought so."""

    spot: Spot
    score: float
    """Likelihoods of all suspects add up to 1."""
    why: str
    lines: tuple[int, ...] = ()
    """Lines of it that a traceback names."""


_DECIDING = re.compile(
    r"\b(?:if|elif|while|for|and|or|not|return|in|is|except)\b|[<>=!]=|[<>+\-*/%]"
)
Changed = Mapping[str, tuple[range, ...]]
Framed = dict[Spot, tuple[int, ...]]


class _Scene(Struct, frozen=True, kw_only=True):
    """All that the evidence is taken from."""

    graph: Graph
    failing: Weights
    common: Weights
    healthy: Weights
    framed: Framed
    about: Topic
    spoken: Weights
    traced: Weights
    callers: Counter[Spot]
    pressing: Weights
    titles: Weights
    storing: Weights
    near: Weights
    innermost: frozenset[Spot]
    blamed: Weights
    unbound: frozenset[Spot]
    differing: Weights
    noneness: float
    """Share of the tests that speak of None."""
    oddities: dict[Spot, tuple[Slip, ...]]
    changed: Changed

    def touches(self, spot: Spot) -> bool:
        """Whether somebody has just changed it."""
        first, last = spot.scope.start_line, spot.scope.end_line
        changed = self.changed.get(spot.path, ())
        return any(lines.start <= last and first < lines.stop for lines in changed)


def suspects(
    tests: tuple[FailingTest, ...],
    passed: tuple[Spot, ...],
    graph: Graph,
    trace: tuple[Traced, ...],
    changed: Changed,
) -> tuple[Suspect, ...]:
    """Candidates, likeliest first."""
    scene = _scene(tests, passed, graph, trace, changed)
    rated = {spot: rating(gathered) for spot, gathered in evidence(tests, scene)}
    top = max(rated.values(), default=0.0)
    chances = {spot: math.exp(rating - top) for spot, rating in rated.items()}
    whole = sum(chances.values()) or 1.0
    found = [
        Suspect(
            spot=spot,
            score=chance / whole,
            why=_why(spot, scene),
            lines=scene.framed.get(spot, ()),
        )
        for spot, chance in chances.items()
    ]
    return tuple(sorted(found, key=lambda s: (-s.score, s.spot.path, s.spot.scope.start_line)))


def _scene(
    tests: tuple[FailingTest, ...],
    passed: tuple[Spot, ...],
    graph: Graph,
    trace: tuple[Traced, ...],
    changed: Changed,
) -> _Scene:
    inference = Inference(graph)
    edges = resolved(inference)
    about = topic(tests, passed, graph)
    bodies = bags(graph)
    told = messages(tests)
    ways = [led_to(test, graph, edges) for test in each_once(tests)]
    calm = [spread({spot: 1.0}, edges, all_lines) for spot in passed]
    failing, healthy = mean(ways), mean(calm)
    last = _innermost(tests, graph)
    near = spread(dict.fromkeys(last, 1.0), edges, all_lines)
    return _Scene(
        graph=graph,
        failing=failing,
        common=common(ways),
        healthy=healthy,
        framed=_framed(tests, graph),
        about=about,
        spoken=overlap(about.asked, bodies),
        traced=_traced(trace, graph),
        callers=_callers({*failing, *healthy}, edges),
        pressing=overlap(about.pressing, bodies),
        titles=overlap(about.titles, bags(graph, stems)),
        storing=storing(tests, graph),
        near=near,
        innermost=last,
        blamed=blamed(told, graph),
        unbound=unbound(told, graph),
        differing=differing(tests, graph),
        noneness=sum(tells_none(messages((test,))) for test in tests) / len(tests),
        oddities=oddities({*failing, *near}, inference),
        changed=changed,
    )


def _innermost(tests: tuple[FailingTest, ...], graph: Graph) -> frozenset[Spot]:
    ends = [test.frames[-1] for test in tests if test.frames]
    spots = (graph.at(frame.path, frame.line) for frame in ends)
    return frozenset(spot for spot in spots if spot)


def _callers(spots: set[Spot], edges: Edges) -> Counter[Spot]:
    found = Counter[Spot]()
    for spot in spots:
        found.update(
            {target for edge in edges(spot) if len(edge.targets) == 1 for target in edge.targets}
        )
    return found


def _framed(tests: tuple[FailingTest, ...], graph: Graph) -> Framed:
    """Functions in the tracebacks, with their lines there, the innermost first."""
    found: Framed = {}
    for test in tests:
        for frame in reversed(test.frames):
            spot = graph.at(frame.path, frame.line)
            if spot:
                found[spot] = tuple(dict.fromkeys((*found.get(spot, ()), frame.line)))
    return found


def _traced(trace: tuple[Traced, ...], graph: Graph) -> Weights:
    found: Weights = {}
    for one in trace:
        spot = graph.at(one.frame.path, one.frame.line)
        if spot:
            found[spot] = max(found.get(spot, 0.0), one.suspicion)
    return found


def evidence(tests: tuple[FailingTest, ...], scene: _Scene) -> Iterator[tuple[Spot, Evidence]]:
    """What speaks for each definition that anything speaks for."""
    own = {test.spot for test in tests}
    for spot in {*scene.failing, *scene.framed, *scene.spoken, *scene.traced, *scene.near} - own:
        if spot and spot.scope.kind in (ScopeKind.FUNCTION, ScopeKind.CLASS):
            yield spot, _evidence(spot, scene)


def _evidence(spot: Spot, scene: _Scene) -> Evidence:
    reach, healthy = scene.failing.get(spot, 0.0), scene.healthy.get(spot, 0.0)
    owner = (spot.scope.owner or "").rpartition(".")[2]
    body = scene.graph.body(spot)
    return Evidence(
        common=scene.common.get(spot, 0.0),
        blame=reach / (reach + healthy + FLOOR),
        healthy=logarithm(healthy),
        words=scene.spoken.get(spot, 0.0),
        pressing=scene.pressing.get(spot, 0.0),
        titles=scene.titles.get(spot, 0.0),
        name=name_share(spot, scene.about),
        said=said_share(spot, scene.about.asked),
        owner=float(owner in scene.about.asked),
        namesake=float(is_namesake(spot, scene.about)),
        branches=math.log(1 + len(_DECIDING.findall(body))),
        used=math.log(1 + scene.callers[spot]),
        is_class=float(spot.scope.kind is ScopeKind.CLASS),
        in_tests=float(is_test_path(spot.path)),
        traced=scene.traced.get(spot, 0.0),
        storing=scene.storing.get(spot, 0.0),
        near=logarithm(scene.near.get(spot, 0.0)),
        home=float(any(spot.path == other.path for other in scene.innermost)),
        kin=float(any(_is_kin(spot, other) for other in scene.innermost)),
        blamed=scene.blamed.get(spot, 0.0),
        unbound=float(spot in scene.unbound),
        empty=scene.noneness * may_be_none(body) if reach else 0.0,
        differing=scene.differing.get(spot, 0.0),
        slip=sum(slip.weight for slip in scene.oddities.get(spot, ())),
        touched=float(scene.touches(spot)),
    )


def _is_kin(spot: Spot, other: Spot) -> bool:
    own, others = spot.scope.owner, other.scope.owner
    return spot.path == other.path and own is not None and own == others


def _why(spot: Spot, scene: _Scene) -> str:
    told = ["just changed"] if scene.touches(spot) else []
    told += [slip.what for slip in scene.oddities.get(spot, ())]
    return "; ".join((_way(spot, scene), *told))


def _way(spot: Spot, scene: _Scene) -> str:
    if spot in scene.traced:
        return "traced"
    if spot in scene.framed:
        return "traceback"
    return "called" if spot in scene.failing else "same words"
