"""Ranks definitions that may cause failing tests, by a table of signals.

Weights: the best fit to seeded and human faults together, without signals whose removal costs
nothing on human fixes. The trace's was tuned on human fixes; that of recent changes is a guess.
"""

import math
from collections.abc import Callable, Mapping
from itertools import chain

from msgspec import Struct

from atlas_retry.patterns import regex
from atlas_retry.prompt.brief import Traced
from atlas_retry.prompt.failing import FailingTest, each_once
from atlas_retry.prompt.flow import Weights, averaged, led_to, spread
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.words import Topic, bm25, is_namesake, said_share, stems, topic, words
from atlas_retry.source import ScopeKind
from atlas_retry.source.origin import is_test_path

Changed = Mapping[str, tuple[range, ...]]
"""Recently changed lines by path."""
_DECIDING = regex(r"\b(?:if|elif|while|for|and|or|not|return|in|is|except)\b|[<>=!]=|[<>+\-*/%]")
CALLED, SAME_WORDS, JUST_CHANGED = "called", "same words", "; just changed"
"""Reason to show a definition that nothing but words links to the failures."""
RANKED = (ScopeKind.FUNCTION, ScopeKind.CLASS, ScopeKind.VARIABLE)


class Suspect(Struct, frozen=True, kw_only=True):
    """A definition with the likelihood that it is at fault, and the reason."""

    spot: Spot
    score: float
    """Relative likelihood; only ratios are meaningful."""
    why: str

    @property
    def is_named(self) -> bool:
        """Whether the failures or the change say its place, or a message its name."""
        return not self.why.startswith((CALLED, SAME_WORDS)) or self.why.endswith(JUST_CHANGED)


class RankingScene(Struct, frozen=True, kw_only=True):
    """Input of the signals."""

    graph: Graph
    about: Topic
    framed: frozenset[Spot]
    """Functions in the tracebacks."""
    raising: frozenset[Spot]
    """Those of the innermost lines of the tracebacks."""
    common: Weights
    """How strongly the failing tests lead to a definition."""
    healthy: Weights
    """How strongly the passing tests next to them lead to it."""
    pressing: Weights
    titles: Weights
    traced: Weights
    changed: Changed


class Signal(Struct, frozen=True):
    """Evidence for a definition, or against it if the weight is negative."""

    source: str
    """Description of the evidence."""
    weight: float
    of: Callable[[Spot, RankingScene], float]


def _touched(spot: Spot, scene: RankingScene) -> float:
    if is_test_path(spot.path):
        return 0.0  # a test that is new says what is wanted
    first, last = spot.scope.start_line, spot.scope.end_line
    changed = scene.changed.get(spot.path, ())
    return float(any(lines.start <= last and first < lines.stop for lines in changed))


SIGNALS = (
    Signal("call graph: what failing tests lead to", 0.3,
           lambda spot, scene: scene.common.get(spot, 0.0)),
    Signal("call graph: what works for passing tests works", -0.17,
           lambda spot, scene: scene.healthy.get(spot, 0.0)),
    Signal("words of the messages and failing lines, by BM25", 1.0,
           lambda spot, scene: scene.pressing.get(spot, 0.0)),
    Signal("words of the failing tests' names, by BM25", 1.3,
           lambda spot, scene: scene.titles.get(spot, 0.0)),
    Signal("names: how much of its own the failing tests say", 1.35,
           lambda spot, scene: said_share(spot, scene.about.asked)),
    Signal("names: its file is named like the test file", 0.8,
           lambda spot, scene: float(is_namesake(spot, scene.about))),
    Signal("source: conditions and operators; where there are many, there are faults", 0.2,
           lambda spot, scene: math.log(1 + len(_DECIDING.findall(scene.graph.body(spot))))),
    Signal("source: a class, table or constant is at fault less often than a function", -1.5,
           lambda spot, _: float(spot.scope.kind is not ScopeKind.FUNCTION)),
    Signal("source: tests are at fault still less often", -2.0,
           lambda spot, _: float(is_test_path(spot.path))),
    Signal("traceback: the function of the line that raises", 3.0,
           lambda spot, scene: float(spot in scene.raising)),
    Signal("trace: what failing tests ran and passing ones did not", 5.0,
           lambda spot, scene: scene.traced.get(spot, 0.0)),
    Signal("git: changed recently", 4.5, _touched),
)  # fmt: skip


def suspects(
    tests: tuple[FailingTest, ...],
    passed: tuple[Spot, ...],
    graph: Graph,
    trace: tuple[Traced, ...],
    changed: Changed,
) -> tuple[Suspect, ...]:
    """The project's definitions, ranked, without the failing tests themselves.

    Most likely first; a rating is the logarithm of a likelihood.
    """
    about = topic(tests, passed, graph)
    frames = chain.from_iterable(test.frames for test in tests)
    # what only reports a failure, as a helper of Go's tests, has a place and no traceback
    raised = chain.from_iterable(test.frames[-1:] for test in tests if test.diagnostic.frames)
    sources = _sources(graph)
    texts = {spot: f"{spot.scope.qualified_name}\n{graph.body(spot)}" for spot in sources}
    scene = RankingScene(
        graph=graph,
        about=about,
        framed=frozenset(filter(None, (graph.at(one.path, one.line) for one in frames))),
        raising=frozenset(filter(None, (graph.at(one.path, one.line) for one in raised))),
        common=averaged([led_to(test, graph) for test in each_once(tests)]),
        healthy=averaged([spread({spot: 1.0}, graph.edges) for spot in passed]),
        pressing=bm25(about.pressing, {spot: tuple(words(text)) for spot, text in texts.items()}),
        titles=bm25(about.titles, {spot: tuple(stems(text)) for spot, text in texts.items()}),
        traced=_traced(trace, graph),
        changed=changed,
    )
    spots = {*sources, *scene.common, *scene.framed, *scene.traced}
    spots -= {test.spot for test in tests if test.spot}
    rated = {
        spot: sum(signal.weight * signal.of(spot, scene) for signal in SIGNALS)
        for spot in spots
        if spot.scope.kind in RANKED
    }
    top = max(rated.values(), default=0.0)
    chances = {spot: math.exp(rating - top) for spot, rating in rated.items()}
    unordered = [
        Suspect(spot=spot, score=chance, why=_why(spot, scene)) for spot, chance in chances.items()
    ]
    return tuple(sorted(unordered, key=lambda s: (-s.score, s.spot.path, s.spot.scope.start_line)))


def _sources(graph: Graph) -> list[Spot]:
    """Functions, tables and constants outside the tests."""
    code = (spot for spot in graph.spots if not is_test_path(spot.path))
    return [spot for spot in code if spot.scope.kind in (ScopeKind.FUNCTION, ScopeKind.VARIABLE)]


def _traced(trace: tuple[Traced, ...], graph: Graph) -> Weights:
    suspicions: Weights = {}
    for one in trace:
        frame = one.frame
        spot = graph.at(frame.path, frame.line) or graph.named(frame.path, frame.function or "")
        if spot:
            suspicions[spot] = max(suspicions.get(spot, 0.0), one.suspicion)
    return suspicions


def _why(spot: Spot, scene: RankingScene) -> str:
    if spot in scene.traced:
        way = "traced"
    elif spot in scene.framed:
        way = "traceback"
    else:
        way = CALLED if spot in scene.common else SAME_WORDS
    return f"{way}{JUST_CHANGED}" if _touched(spot, scene) else way
