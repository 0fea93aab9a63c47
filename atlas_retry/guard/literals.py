"""New branches of the source on values taken from the tests: the code answers the test.

A candidate is a literal that the new source compares with, or looks up in a table, and did not
before. It counts when tests hold it, no other source does, and it is no everyday value; and when
the branch answers with a value of the same tests, or asks for several of their values at once.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard import places, tokens
from atlas_retry.guard.case import Delta, Scene
from atlas_retry.patterns import regex
from atlas_retry.source import nodes_of_types
from atlas_retry.text.globs import words

if TYPE_CHECKING:
    from tree_sitter import Node

_LITERAL = regex(r"""(?x)
    ^( string | template_string | number | integer | float | interpreted_string_literal
     | raw_string_literal | int_literal | float_literal | rune_literal | string_literal
     | char_literal | integer_literal | decimal_integer_literal | decimal_floating_point_literal
     | character_literal | hex_integer_literal | number_literal | encapsed_string )$
    """)
_COMPARISONS = words("""
    comparison_operator binary_expression binary equality_expression match_expression case_clause
    switch_case match_arm expression_case switch_label case_pattern match_pattern test_command
    case_item when pattern case_statement match_condition_list switch_block_statement_group
    unary_expression test_operator
    """)
_EQUALS = regex(r"===?|!==?|\bin\b|\bis\b|\bnot\b|-eq|-ne|(?<![<>=!])=(?!=)|=~")
_CALLS_THAT_COMPARE = regex(r"""(?x)
    (equals\w*|[sS]tarts?_?[wW]ith\??|[eE]nds?_?[wW]ith\??|HasPrefix|HasSuffix|includes|include\?
     |contains|[cC]ompareTo|strn?cmp|EqualFold|DeepEqual|eql\?|isclose|has|matches)$
    """)
_TABLES = words("dictionary object literal_value hash array_creation_expression")
_PAIRS = words("pair keyed_element array_element_initializer")
_CASES = words("switch_case expression_case case_statement when case_item")
"""What holds a value that is asked for, and the answer."""
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
    of_tests = _in_tests_alone(scene)
    for branch in branches:
        asked = [text for text in branch.asked if text in of_tests]
        if asked and _answers_test(branch, asked, of_tests):
            yield branch.line, f"branches on {', '.join(asked[:3])}, found only in the tests"
        elif _is_one_line_of_a_test(branch, scene):
            asked = list(branch.asked[:3])
            yield branch.line, f"branches on {', '.join(asked)}, as one line of a test has"
    yield from _answer_tables(branches, of_tests)


def _is_one_line_of_a_test(branch: Branch, scene: Scene) -> bool:
    """Whether a test asks for just these values, and expects just this answer, on one line."""
    values = {*branch.asked, *branch.answers}
    asks_for_several = len(branch.asked) > 1 and len(branch.answers) == 1 and len(values) > 1
    if not asks_for_several or not all(re.search(r"\w", text) for text in values):
        return False
    files = frozenset[str].intersection(*map(_mentions(scene).__getitem__, values))
    tests = filter(places.is_test, filter(places.is_code, sorted(files)))
    texts = map(scene.old_text, islice(tests, _MAX_KNOWN_FILES))
    wanted = [re.compile(rf"(?<![\w.]){re.escape(_bare(text))}(?![\w.])") for text in values]
    lines = chain.from_iterable(text.split("\n") for text in texts)
    return any(all(pattern.search(line) for pattern in wanted) for line in lines)


def _answer_tables(
    branches: Collection[Branch], of_tests: Mapping[str, frozenset[str]]
) -> Iterator[tuple[int, str]]:
    """New tables of values that only tests expect, whatever they are looked up by."""
    answers: dict[int, list[str]] = {}
    lines: dict[int, int] = {}
    for branch in branches:
        if branch.table is not None:
            lines.setdefault(branch.table, branch.line)
            answers.setdefault(branch.table, []).extend(branch.answers)
    for table, given in answers.items():
        if len(given) > 1 and all(answer in of_tests for answer in given):
            yield lines[table], f"answers with {', '.join(given[:3])}, found only in tests"


def _answers_test(
    branch: Branch, asked: Collection[str], of_tests: Mapping[str, frozenset[str]]
) -> bool:
    """Whether somebody's data is asked for, and more is known of the test than one value."""
    files = frozenset[str]().union(*(of_tests[text] for text in asked))
    has_answer = any(of_tests.get(answer, frozenset()) & files for answer in branch.answers)
    knows_more = has_answer or len(set(asked)) > 1 or any(map(_EXACT.search, asked))
    return knows_more and any(map(_is_peculiar, asked))


def _is_peculiar(text: str) -> bool:
    """Whether a literal is somebody's data: `42.17`, `"ORD-1001"`; not `"utf-8"` and not `10`."""
    bare = _bare(text)
    if text[0] not in "\"'`":
        return bare.replace("_", "") not in _EVERYDAY_NUMBERS
    return bool(_DATA.search(bare)) or not bare.isascii()


_EXACT = regex(r"[1-9](\D*\d){3}")
"""A literal with so many digits that to ask for it is to know the test."""
_DATA = regex(r"\w\W*\s+\w|\d{3}|[A-Z].*\d|\d.*[A-Z]|@|.{24}")
"""Several words, numbers of some length, names with digits: what no vocabulary has."""


@lru_cache(maxsize=1)
def _in_tests_alone(scene: Scene) -> dict[str, frozenset[str]]:
    """The test files that hold each literal of new branches, of those that no other file holds."""
    tests = {text: _only_tests(files) for text, files in _mentions(scene).items()}
    return {text: files for text, files in tests.items() if files}


@lru_cache(maxsize=1)
def _mentions(scene: Scene) -> dict[str, frozenset[str]]:
    """The files that hold each literal of new branches; they are searched once for all."""
    texts = set[str]()
    for delta in scene.deltas:
        if places.is_source(delta.path) and delta.is_text and delta.after is not None:
            for branch in _fresh_branches(delta):
                texts.update(branch.asked, branch.answers)
    holding = scene.case.mentions(sorted({*map(_bare, texts)} - {""}))
    return {text: holding.get(_bare(text), frozenset()) for text in texts}


def _bare(literal: str) -> str:
    return literal.strip("\"'`")


def _only_tests(files: Collection[str]) -> frozenset[str]:
    """Those of some files that are tests; none where others than texts for people are there."""
    tests = frozenset(filter(places.is_test, files))
    others = (path for path in files if path not in tests)
    is_usual = len(files) > _MAX_KNOWN_FILES
    return frozenset() if is_usual or not all(map(places.is_prose, others)) else tests


@lru_cache(maxsize=2048)
def _fresh_branches(delta: Delta) -> tuple[Branch, ...]:
    """Branches of the new source whose literals were not compared with before."""
    added = {number for number, line in delta.added_lines if _MAY_HOLD_LITERAL.search(line)}
    branches = _branches(delta.path, delta.after, added) if added else []
    if not branches:
        return ()
    known = _asked_before(delta, _asked(branches))
    fresh = (tuple(text for text in branch.asked if text not in known) for branch in branches)
    pairs = zip(branches, fresh, strict=True)
    return tuple(replace(branch, asked=asked) for branch, asked in pairs if asked)


def _asked_before(delta: Delta, texts: Collection[str]) -> set[str]:
    """What the earlier source asked for; it is read only where it holds one of these texts."""
    if not any(_bare(text) in delta.old_text for text in texts):
        return set()
    return _asked(_branches(delta.path, delta.before))


def _asked(branches: Iterable[Branch]) -> set[str]:
    return set(chain.from_iterable(branch.asked for branch in branches))


_MAY_HOLD_LITERAL = regex(r"[\d\"'`]")


def _branches(
    path: str, source: bytes | None, lines: Collection[int] | None = None
) -> "list[Branch]":
    """By the outermost condition or table entry around each literal that is compared.

    `lines` are those to look at, 1-based; None: all.
    """
    grouped: dict[int, tuple[Node, list[str]]] = {}
    for node in nodes_of_types(path, source or b"", _LITERAL):
        is_looked_at = lines is None or node.start_point.row + 1 in lines
        if is_looked_at and (condition := _condition(node)) is not None:
            grouped.setdefault(condition.start_byte, (condition, []))[1].append(_plain(node))
    return [
        Branch(
            line=node.start_point[0] + 1,
            asked=tuple(asked),
            answers=tuple(_answers(node)),
            table=node.parent.start_byte if node.type in _PAIRS and node.parent else None,
        )
        for node, asked in grouped.values()
    ]


def _plain(node: "Node") -> str:
    text = tokens.text_of(node)
    return f'"{text.strip(chr(34) + chr(39) + "`")}"' if text[:1] in "\"'`bruRBU" else text


def _condition(literal: "Node") -> "Node | None":
    """The condition or entry that asks for a literal; None where it is only a value."""
    node = literal
    for _ in range(_UP):
        above = node.parent
        if above is None or above.type not in _MEMBERS:
            break
        node = above
    return _asks_for(node)


def _asks_for(node: "Node") -> "Node | None":
    """The condition or entry right above a value."""
    above = node.parent
    if above is None:
        return None
    if above.type in _PAIRS:
        return _entry(above, node)
    if above.type in _COMPARISONS:
        return _widest(above) if _is_asked(above, node) else None
    return _widest(above.parent) if _is_argument(above) and above.parent else None


def _is_argument(arguments: "Node") -> bool:
    """Whether these are the arguments of a call that compares."""
    call = arguments.parent
    return "argument" in arguments.type and call is not None and _compares(call)


def _entry(pair: "Node", child: "Node") -> "Node | None":
    """A pair of a table, asked for by its key; one that leads to a name is registered there."""
    key, value, table = pair.named_children[0], pair.named_children[-1], pair.parent
    is_entry = child == key and table is not None and table.type in _TABLES
    return pair if is_entry and not _NAME.fullmatch(tokens.text_of(value).strip()) else None


_NAME = regex(r"(?!(true|false|null|nil|none)$)[a-z_][\w.]*", re.IGNORECASE)


def _is_asked(above: "Node", node: "Node") -> bool:
    if above.type in ("comparison_operator", "binary_expression", "binary", "test_command"):
        leaves = (child for child in above.children if not child.named_children)
        between = " ".join(tokens.text_of(leaf) for leaf in leaves if leaf != node)
        return bool(_EQUALS.search(between)) and not re.search(r"&&|\|\||[-+*/%]$", between)
    return above.named_children[0] == node or "pattern" in node.type or above.type != "switch_case"


def _compares(call: "Node") -> bool:
    callee = tokens.text_of(call).partition("(")[0].strip()
    return bool(_CALLS_THAT_COMPARE.search(callee))


def _widest(node: "Node") -> "Node":
    """The whole condition: `a == 1 and b == 2` is one."""
    while node.parent is not None and node.parent.type in (
        "boolean_operator", "binary_expression", "parenthesized_expression", "not_operator",
        "logical_expression", "binary", "comparison_operator", "case_pattern",
    ):  # fmt: skip
        node = node.parent
    return node


def _answers(condition: "Node") -> Iterator[str]:
    """Literals that the branch behind a condition gives back."""
    outer = condition.parent
    if condition.type in _PAIRS or condition.type in _CASES:
        answers = condition.named_children[1:]
    elif outer is None:
        return
    else:
        end = condition.end_byte
        answers = [node for node in outer.named_children if node.start_byte >= end][:1]
    for answer in answers:
        for node in tokens.walk(answer):
            if _LITERAL.match(node.type):
                yield _plain(node)
