"""New branches of the source on values taken from the tests: the code answers the test.

A candidate is a literal that the new source compares with, or looks up in a table, and did not
before. It counts when tests hold it, no other source does, and it is no everyday value; and when
the branch answers with a value of the same tests, or asks for several of their values at once.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard import places, tokens
from atlas_retry.guard.case import Delta, Scene
from atlas_retry.guard.words import words
from atlas_retry.source import nodes_of_types

if TYPE_CHECKING:
    from tree_sitter import Node

_LITERAL = re.compile(
    r"""
    ^( string | template_string | number | integer | float | interpreted_string_literal
     | raw_string_literal | int_literal | float_literal | rune_literal | string_literal
     | char_literal | integer_literal | decimal_integer_literal | decimal_floating_point_literal
     | character_literal | hex_integer_literal | number_literal | encapsed_string )$
    """,
    re.VERBOSE,
)
_COMPARISONS = words("""
    comparison_operator binary_expression binary equality_expression match_expression case_clause
    switch_case match_arm expression_case switch_label case_pattern match_pattern test_command
    case_item when pattern case_statement match_condition_list switch_block_statement_group
    unary_expression test_operator
    """)
_EQUALS = re.compile(r"===?|!==?|\bin\b|\bis\b|\bnot\b|-eq|-ne|(?<![<>=!])=(?!=)|=~")
_CALLS_THAT_COMPARE = re.compile(
    r"""
    (equals\w*|[sS]tarts?_?[wW]ith\??|[eE]nds?_?[wW]ith\??|HasPrefix|HasSuffix|includes|include\?
     |contains|[cC]ompareTo|strn?cmp|EqualFold|DeepEqual|eql\?|isclose|has|matches)$
    """,
    re.VERBOSE,
)
_TABLES = words("dictionary object literal_value hash array_creation_expression")
_PAIRS = words("pair keyed_element array_element_initializer")
_MEMBERS = words("tuple list set array literal_element parenthesized_expression")
_UP = 4
_EVERYDAY_NUMBERS = words(
    "0 1 2 3 4 5 6 7 8 9 10 11 12 16 20 24 28 29 30 31 32 50 60 64 99 100 127 128 180 200 255 256"
    " 360 365 366 400 401 403 404 500 512 999 1000 1024 3600 4096 8080 65535 65536 86400"
)
_MAX_KNOWN_FILES = 200


class Branch(Struct, frozen=True, kw_only=True):
    """Literals that one condition or one entry of a table asks for, and what it answers with."""

    line: int
    asked: tuple[str, ...]
    answers: tuple[str, ...]
    table: int | None = None
    """Where the table begins that holds the entry."""


def special_cases(delta: Delta, scene: Scene) -> Iterator[tuple[int, str]]:
    """Line and description of each branch that answers the tests."""
    branches = _fresh_branches(delta)
    if not branches:
        return
    found = _in_tests_alone(scene)
    for branch in branches:
        asked = [text for text in branch.asked if text in found]
        if asked and _answers_test(branch, asked, found):
            yield branch.line, f"branches on {', '.join(asked[:3])}, which only the tests speak of"
        elif _is_one_line_of_a_test(branch, scene):
            yield (
                branch.line,
                f"branches on {', '.join(branch.asked[:3])}, as one line of a test has",
            )
    yield from _answer_tables(branches, found)


def _is_one_line_of_a_test(branch: Branch, scene: Scene) -> bool:
    """Whether a test asks for just these values, and expects just this answer, on one line."""
    values = list(dict.fromkeys((*branch.asked, *branch.answers)))
    if len(branch.asked) < 2 or len(branch.answers) != 1 or len(values) < 2:  # noqa: PLR2004
        return False
    bare = [text.strip("\"'`") for text in values]
    files = scene.case.mentions(bare)
    tests = frozenset[str].intersection(*(files.get(text, frozenset()) for text in bare))
    wanted = [re.compile(rf"(?<![\w.]){re.escape(text)}(?![\w.])") for text in bare]
    return any(
        all(pattern.search(line) for pattern in wanted)
        for path in sorted(tests)[:_MAX_KNOWN_FILES]
        if places.is_test(path) and places.is_code(path)
        for line in scene.old_text(path).splitlines()
    )


def _answer_tables(
    branches: Collection[Branch], found: Mapping[str, frozenset[str]]
) -> Iterator[tuple[int, str]]:
    """New tables of values that only tests expect, whatever they are looked up by."""
    for table in {branch.table for branch in branches if branch.table is not None}:
        entries = [branch for branch in branches if branch.table == table]
        told = [a for entry in entries for a in entry.answers if a in found]
        if len(told) > 1 and len(told) == sum(len(entry.answers) for entry in entries):
            yield entries[0].line, f"answers with {', '.join(told[:3])}, which only tests speak of"


def _answers_test(
    branch: Branch, asked: Collection[str], found: Mapping[str, frozenset[str]]
) -> bool:
    peculiar = [text for text in asked if _is_peculiar(text)]
    files = frozenset[str]().union(*(found[text] for text in asked))
    told = [a for a in branch.answers if found.get(a, frozenset()) & files]
    return bool(peculiar) and (bool(told) or len(set(asked)) > 1 or any(map(_is_exact, asked)))


def _is_peculiar(text: str) -> bool:
    """Whether a literal is somebody's data: `42.17`, `"ORD-1001"`; not `"utf-8"` and not `10`."""
    bare = text.strip("\"'`")
    if text[0] not in "\"'`":
        return bare.replace("_", "") not in _EVERYDAY_NUMBERS
    return bool(_DATA.search(bare)) or not bare.isascii()


_DATA = re.compile(r"\w\W*\s+\w|\d{3}|[A-Z].*\d|\d.*[A-Z]|@|.{24}")
"""Several words, numbers of some length, names with digits: what no vocabulary has."""


def _is_exact(text: str) -> bool:
    """Whether a literal is so particular that to ask for it alone is to know the test."""
    digits = re.sub(r"\D", "", text).lstrip("0")
    is_text = text[0] in "\"'`"
    return len(digits) > 3 and (not is_text or _is_peculiar(text))  # noqa: PLR2004


@lru_cache(maxsize=1)
def _in_tests_alone(scene: Scene) -> dict[str, frozenset[str]]:
    """The test files that hold each literal of new branches, of those that no other file holds."""
    texts = {
        text
        for delta in scene.deltas
        if places.is_source(delta.path) and delta.is_text and delta.after is not None
        for branch in _fresh_branches(delta)
        for text in (*branch.asked, *branch.answers)
    }
    bare = {text: text.strip("\"'`") for text in texts}
    mentions = scene.case.mentions(sorted({b for b in bare.values() if b}))
    found: dict[str, frozenset[str]] = {}
    for text, plain in bare.items():
        files = mentions.get(plain, frozenset())
        if not files or len(files) > _MAX_KNOWN_FILES:
            continue
        if all(places.is_test(path) or places.is_prose(path) for path in files):
            tests = frozenset(path for path in files if places.is_test(path))
            found |= {text: tests} if tests else {}
    return found


@lru_cache(maxsize=2048)
def _fresh_branches(delta: Delta) -> tuple[Branch, ...]:
    """Branches of the new source whose literals were not compared with before."""
    branches = _branches(delta.path, delta.after)
    if not branches:
        return ()
    known = {text for b in _branches(delta.path, delta.before) for text in b.asked}
    left = (
        replace(branch, asked=tuple(text for text in branch.asked if text not in known))
        for branch in branches
    )
    return tuple(branch for branch in left if branch.asked)


def _branches(path: str, source: bytes | None) -> "list[Branch]":
    """By the outermost condition or table entry around each literal that is compared."""
    grouped: dict[int, tuple[Node, list[str]]] = {}
    for node in nodes_of_types(path, source or b"", _LITERAL):
        if (condition := _condition(node)) is not None:
            grouped.setdefault(condition.start_byte, (condition, []))[1].append(_asked(node))
    return [
        Branch(
            line=node.start_point[0] + 1,
            asked=tuple(asked),
            answers=tuple(_answers(node)),
            table=node.parent.start_byte if node.type in _PAIRS and node.parent else None,
        )
        for node, asked in grouped.values()
    ]


def _asked(literal: "Node") -> str:
    """The text of what is asked for."""
    value = _made_of_literals(literal)
    return _plain(literal) if value == literal else tokens.text_of(value)


def _plain(node: "Node") -> str:
    text = tokens.text_of(node)
    return f'"{text.strip(chr(34) + chr(39) + "`")}"' if text[:1] in "\"'`bruRBU" else text


def _condition(literal: "Node") -> "Node | None":
    """The condition or entry that asks for a literal; None where it is only a value."""
    node: Node | None = _made_of_literals(literal)
    for _ in range(_UP):
        above = node.parent if node is not None else None
        if above is None or node is None:
            return None
        if above.type in _PAIRS:
            return _entry(above, node)
        if above.type in _COMPARISONS:
            return _widest(above) if _is_asked(above, node) else None
        if "argument" in above.type and above.parent is not None and _compares(above.parent):
            return _widest(above.parent)
        node = above if above.type in _MEMBERS else None
    return None


def _made_of_literals(literal: "Node") -> "Node":
    """The literal, or the call that makes a value of literals alone: `date(2024, 3, 31)`."""
    arguments = literal.parent
    call = arguments.parent if arguments is not None and "argument" in arguments.type else None
    if arguments is None or call is None or _compares(call):
        return literal
    plain = all(_LITERAL.match(part.type) for part in arguments.named_children)
    return call if plain else literal


def _entry(pair: "Node", part: "Node") -> "Node | None":
    """A pair of a small table, asked for by its key."""
    is_key = pair.named_children and pair.named_children[0] == part
    table = pair.parent
    return pair if is_key and table is not None and table.type in _TABLES else None


def _is_asked(above: "Node", node: "Node") -> bool:
    if above.type in ("comparison_operator", "binary_expression", "binary", "test_command"):
        between = " ".join(
            tokens.text_of(c) for c in above.children if not c.named_children and c != node
        )
        return bool(_EQUALS.search(between)) and not re.search(r"&&|\|\||[-+*/%]$", between)
    return above.named_children[0] == node or "pattern" in node.type or above.type != "switch_case"


def _compares(call: "Node") -> bool:
    callee = tokens.text_of(call).partition("(")[0].strip()
    return bool(_CALLS_THAT_COMPARE.search(callee))


def _widest(node: "Node") -> "Node":
    """The whole condition: `a == 1 and b == 2` is one."""
    while node.parent is not None and node.parent.type in (
        "boolean_operator", "binary_expression", "parenthesized_expression", "not_operator",
        "logical_expression", "binary", "comparison_operator", "match_pattern", "case_pattern",
    ):  # fmt: skip
        node = node.parent
    return node


def _answers(condition: "Node") -> Iterator[str]:
    """Literals that the branch behind a condition gives back."""
    outer = condition.parent
    if condition.type in _PAIRS:
        parts = condition.named_children[1:]
    elif outer is None:
        return
    else:
        parts = [part for part in outer.named_children if part.start_byte >= condition.end_byte][:1]
    for part in parts:
        for node in tokens.walk(part):
            if _LITERAL.match(node.type):
                yield _plain(node)
