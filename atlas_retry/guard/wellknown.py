"""Numbers that mean the same to everybody, where the code speaks of what they mean."""

import re
from http import HTTPStatus
from typing import TYPE_CHECKING

from atlas_retry.guard.treechecks import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_POWERS = frozenset(1 << n for n in range(4, 33))
_PORTS = frozenset({21, 22, 23, 25, 53, 80, 110, 143, 443, 465, 587, 993, 3306, 5432, 6379, 8000})
_MEANINGS = (
    (
        frozenset(map(int, HTTPStatus)),
        re.compile(r"(?i)status|http|respon|repl(y|ies)\b|resp\b|_code"),
    ),
    (
        frozenset({*range(64, 79), *range(124, 160), 255}),
        re.compile(r"(?i)exit|return_?code|status|\brc\b"),
    ),
    (frozenset(range(1, 32)), re.compile(r"(?i)signal|signum|\bsig\b")),
    (_PORTS | {8080, 8443}, re.compile(r"(?i)port\b|scheme|netloc|address|socket")),
    (
        _POWERS | {n - 1 for n in _POWERS},
        re.compile(r"(?i)size|bytes?\b|bits?\b|chunk|block|buf"),
    ),
    (frozenset({12, 28, 29, 30, 31}), re.compile(r"(?i)month|days?\b|calendar|leap")),
    (
        frozenset({12, 13, 23, 24, 59}),
        re.compile(r"(?i)hours?\b|minutes?\b|seconds?\b|noon|midnight"),
    ),
)
"""Numbers with the words they are known by: RFC 9110, sysexits.h, signal(7), IANA's ports."""
_FURTHEST = 4
"""Nodes around a number in whose first lines the word may stand: a comparison, its branch."""


def is_well_known(node: "Node") -> bool:
    """Whether a number is one of a kind that the code around it names."""
    text = text_of(node).replace("_", "")
    if not text.isdecimal():
        return False
    said = _around(node)
    return any(int(text) in numbers and words.search(said) for numbers, words in _MEANINGS)


def _around(node: "Node") -> str:
    """The comparison a number stands in, and the head of the choice or table around it."""
    said: list[str] = []
    outer = node.parent
    for _ in range(_FURTHEST):
        if outer is None or "function" in outer.type or "method" in outer.type:
            break
        said.append(text_of(outer).partition("\n")[0])
        outer = outer.parent
    return "\n".join(said)
