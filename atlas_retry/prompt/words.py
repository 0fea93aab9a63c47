"""Similarity of words between definitions and failing tests."""

import math
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from atlas_retry.patterns import regex
from atlas_retry.prompt.failing import FailingTest
from atlas_retry.prompt.graph import Graph, Spot

_WORD = regex(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_SHOWN = regex(r"^\w+ = ")
_PART = regex(r"[A-Z]?[a-z0-9]{3,}|[A-Z]{2,}")
_NAME_PART = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TEST_WORDS = frozenset({"test", "tests", "spec", "should", "case"})
_SAYING_NOTHING = _TEST_WORDS | {
    *("self", "none", "true", "false", "assert", "with", "for", "and"),
    *("not", "the", "can", "when", "from"),
}
_ENDINGS = ("ing", "ed", "es", "s")
MIN_STEM_CHARS = 3
SATURATION, LENGTH = 1.2, 0.5
"""k1 and b of BM25 (Robertson and Zaragoza, 2009): saturation and length normalisation."""


class Topic(Struct, frozen=True, kw_only=True):
    """Weighted words of the failing tests, with higher weights if passing tests lack them."""

    asked: dict[str, float]
    """Words of their lines and messages."""
    pressing: dict[str, float]
    """Words of only the messages, failing lines and reported values."""
    titles: dict[str, float]
    """Words of the tests' names, without endings."""
    stems: frozenset[str]
    """Parts of the test files' names."""


def topic(tests: tuple[FailingTest, ...], healthy: tuple[Spot, ...], graph: Graph) -> Topic:
    """The words of the failing tests, up to the line that failed."""
    asked, pressing = Counter[str](), Counter[str]()
    usual = _spread(words(graph.body(spot)) for spot in healthy)
    for test in tests:
        lines, ran = test.diagnostic.text.splitlines(), ""
        quoted = [line for line in lines if line.startswith(("E ", ">"))]
        messages = "\n".join((test.diagnostic.message, *quoted))
        # arguments in pytest's output, and parameters in the test's id
        shown = "\n".join((test.diagnostic.test_id or "", *filter(_SHOWN.match, lines)))
        if test.spot:
            last = (test.line or test.spot.scope.end_line) + 1
            ran = graph.project.text(test.spot.path, test.spot.scope.start_line, last)
        asked.update(set(words(f"{messages}\n{ran}")))
        pressing.update(set(words(f"{messages}\n{shown}")))
    spots = list(dict.fromkeys(test.spot for test in tests if test.spot))

    def weighed(counted: Counter[str], usual: Counter[str], count: int) -> dict[str, float]:
        return {
            word: times / count * math.log(2 + len(healthy) / (1 + usual[word]))
            for word, times in counted.items()
        }

    return Topic(
        asked=weighed(asked, usual, len(tests)),
        pressing=weighed(pressing, usual, len(tests)),
        titles=weighed(_titles(spots), _titles(healthy), max(len(spots), 1)),
        stems=frozenset(chain.from_iterable(_stem_words(spot.path) for spot in spots)),
    )


def _titles(spots: Iterable[Spot]) -> Counter[str]:
    """Number of tests with each word in their names."""
    counts = _spread(stems(spot.scope.qualified_name) for spot in spots)
    return Counter({word: count for word, count in counts.items() if word not in _SAYING_NOTHING})


def _spread(texts: Iterable[Iterable[str]]) -> Counter[str]:
    """Number of texts with each word."""
    return Counter(chain.from_iterable(map(set, texts)))


def words(text: str) -> Iterator[str]:
    """Identifiers and their parts, in lower case."""
    for word in _WORD.findall(text):
        yield word
        parts = _PART.findall(word)
        if len(parts) > 1:
            yield from (piece.lower() for piece in parts)


def stems(text: str) -> Iterator[str]:
    """Words of identifiers, in lower case and without endings."""
    for piece in _NAME_PART.findall(text):
        if len(piece) >= MIN_STEM_CHARS:
            yield _stem(piece.lower())


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM_CHARS:
            return word.removesuffix(ending)
    return word


def _stem_words(path: str) -> frozenset[str]:
    stem = posixpath.basename(path).partition(".")[0].lower()
    return frozenset(_stem(word) for word in re.findall(r"[a-z0-9]{2,}", stem)) - _TEST_WORDS


def bm25(asked: Mapping[str, float], texts: Mapping[Spot, Sequence[str]]) -> dict[Spot, float]:
    """BM25 score with weighted query words for every text with one of them; 1 for the best."""
    held = {spot: Counter(filter(asked.__contains__, text)) for spot, text in texts.items()}
    spread = _spread(held.values())
    usual = sum(map(len, texts.values())) / max(len(texts), 1) or 1.0
    weights = {word: asked[word] * math.log(1 + len(texts) / spread[word]) for word in spread}
    scored: dict[Spot, float] = {}
    for spot, own in held.items():
        if own:
            slack = SATURATION * (1 - LENGTH + LENGTH * len(texts[spot]) / usual)
            gains = (weights[word] * count / (count + slack) for word, count in own.items())
            scored[spot] = (SATURATION + 1) * sum(gains)
    top = max(scored.values(), default=0.0) or 1.0
    return {spot: value / top for spot, value in scored.items()}


def is_namesake(spot: Spot, about: Topic) -> bool:
    """Whether its file is named like a test file: `utils` and `test_utils`."""
    own = _stem_words(spot.path)
    return bool(own) and own <= about.stems


def said_share(spot: Spot, asked: dict[str, float]) -> float:
    """Share of a definition's qualified name that occurs in the failing tests."""
    own = {word.lower() for word in _PART.findall(spot.scope.qualified_name)}
    whole = max(asked.values(), default=0.0) or 1.0
    return sum(asked.get(word, 0.0) for word in own) / whole / len(own) if own else 0.0
