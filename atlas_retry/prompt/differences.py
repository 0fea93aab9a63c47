"""What expected and actual values differ in, and who has it in a literal. Compares tokens."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from atlas_retry.prompt.failing import FailingTest
from atlas_retry.prompt.graph import Graph
from atlas_retry.prompt.signs import MAX_TOLD_CHARS, Shares, functions

MAX_COMPARED = 60
_TOKEN = re.compile(r"\w+|[^\w\s]+")
_CHANGED = re.compile(r"^[ \t]*(?:E[ \t]+)?([-+]) (.*)", re.MULTILINE)
_COMPARED = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^E\s+(?:\w+: )?assert (.*?) (?:==|!=|in|not in|is) (.*)$",
        r"^AssertionError: (.*?) (?:!=|not found in|is not) (.*)$",
        r"^[ \t]*Expected: (.*)\n\s*Received: (.*)$",
        r"^[ \t]*left: (.*)\n\s*right: (.*)$",
        r"\bgot:? (.{0,1000}?)[,;] want:? (.*)$",
        r"\bexpected:? ?<(.{0,1000}?)> but was:? ?<(.*?)>",
    )
)
"""Two values as pytest, unittest, Jest, Rust, Go by custom and JUnit put them side by side."""
_LITERAL = re.compile(
    r"\"((?:[^\"\\\n]|\\.){1,60})\"|'((?:[^'\\\n]|\\.){1,60})'|(?<![\w.])(\d+(?:\.\d+)?)\b"
)


def differing(tests: Iterable[FailingTest], graph: Graph) -> Shares:
    """Functions with literals that stand in one of two compared values only; rare ones count most.

    1 for the function with most of them.
    """
    odd = set[str]()
    for test in tuple(tests)[:MAX_COMPARED]:
        odd |= _odd(test.diagnostic.text[:MAX_TOLD_CHARS])
    if not odd:
        return {}
    held = {spot: set(_literals(graph.body(spot))) for spot in functions(graph)}
    spread = Counter(literal for literals in held.values() for literal in literals)
    scored = {
        spot: sum(
            math.log(1 + len(held) / spread[literal])
            for literal in literals
            if (tokens := set(_TOKEN.findall(literal))) and tokens <= odd
        )
        for spot, literals in held.items()
    }
    top = max(scored.values(), default=0.0) or 1.0
    return {spot: value / top for spot, value in scored.items() if value}


def _odd(text: str) -> set[str]:
    """Tokens of one side of a comparison alone."""
    sides: dict[str, set[str]] = {"-": set(), "+": set()}
    for sign, line in _CHANGED.findall(text):
        sides[sign].update(_TOKEN.findall(line))
    found = sides["-"] ^ sides["+"]
    for pattern in _COMPARED:
        for one, other in pattern.findall(text):
            found |= set(_TOKEN.findall(one)) ^ set(_TOKEN.findall(other))
    return found


def _literals(body: str) -> Iterator[str]:
    for match in _LITERAL.finditer(body):
        yield next(filter(None, match.groups()))
