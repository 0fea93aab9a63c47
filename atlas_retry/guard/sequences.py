"""Rule on values of many numbers that code recognises whole: polygons, rows, grids of a test."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.specialcases import MAX_TEST_FILES, is_value
from atlas_retry.guard.treechecks import text_of, walk
from atlas_retry.guard.words import bare, words
from atlas_retry.syntax import language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_FEWEST, _DIFFERENT = 4, 3
"""Numbers, and different ones among them, that two places do not share by chance."""
_READ = 200_000
"""Bytes of a file of tests that are read."""
_LONGEST = 2000
"""Characters of a value; what is longer is data."""
_NUMBER = re.compile(r"(?<![\w.])(?:(?<![\w)\]]\s)(?<![\w)\]])-)?\d[\d_]*(?:\.\d+)?(?![\w.]*\w)")
_DISPLAYS = words(
    "list tuple set array object composite_literal literal_value array_creation_expression"
    " array_expression tuple_expression initializer_list reference_expression call call_expression"
    " method_invocation macro_invocation object_creation_expression string string_literal"
    " interpreted_string_literal template_string subscript"
)
_PATTERNS = words(
    "case_pattern match_pattern slice_pattern switch_label expression_case case_clause"
)
_AROUND = words(
    "parenthesized_expression argument_list arguments unary_expression string encapsed_string"
    " expression_list literal_element reference_expression"
)
_CONVERTING = re.compile(
    r"(?:^|[.:])(?:tuple|list|set|frozenset|sorted|str|repr|stringify|String|toString|of|asList|join"
    r"|vec!?|array|Array|map|freeze|dumps|Sprint)$"
)
_EQUAL = re.compile(
    r"(?i)(?:^|[._:])(?:equals?|deep_?equal|is_?deep_?(?:strict_?)?equal|is_?equal|array_?equal|eql?"
    r"|allclose|isclose|same|compare)$"
)
_COMPARISONS = words(
    "comparison_operator binary_expression binary equality_expression switch_case case_statement"
    " when"
)
_ASSIGNED = words(
    "assignment variable_declarator const_spec const_item var_spec let_declaration"
    " const_declaration"
)


def recognised(scene: Scene) -> Iterator[Finding]:
    """`KNOWN = {((0, 0), (6, 0), (6, 2)): 6}`, in each shape that asks for one value whole."""
    if not scene.tests_may_follow:
        return
    asked = [
        (d, node)
        for d in scene.files
        if places.is_source(d.path) and not d.is_deleted
        for node in _asked(d)
    ]
    told = _told(scene) if asked else ()
    seen: set[tuple[str, int]] = set()
    for delta, node in asked:
        place = delta.path, node.start_point[0] + 1
        if place not in seen and _is_of_tests(_numbers(text_of(node)), told):
            seen.add(place)
            detail = f"a whole value of the tests is recognised: {text_of(node)[:60]}"
            yield Finding(path=delta.path, line=place[1], detail=detail)


def _asked(delta: Delta) -> Iterator["Node"]:
    """Values of many numbers that were not there and that something is compared with."""
    tree = parse(language_of(delta.path), delta.after or b"")
    there = bare(delta.old_text)
    for node in walk(tree.root_node) if tree else ():
        if node.type not in _DISPLAYS and node.type not in _PATTERNS:
            continue
        text = text_of(node).split(":\n", maxsplit=1)[0]
        if len(text) > _LONGEST or not _says_enough(_numbers(text)) or bare(text) in there:
            continue
        if (node.type in _PATTERNS or _is_asked(node, delta.new_text)) and not _grows(node, there):
            yield node


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(match.replace("_", "")) for match in _NUMBER.findall(text))


def _says_enough(numbers: tuple[float, ...]) -> bool:
    """Whether there are enough numbers, and they do not just count up or down."""
    steps = {b - a for a, b in pairwise(numbers)}
    return len(numbers) >= _FEWEST and len(set(numbers)) >= _DIFFERENT and len(steps) > 1


def _is_asked(node: "Node", text: str) -> bool:
    """Whether a value is compared, a key of a table, or paired with an answer."""
    here, outer = node, node.parent
    while outer is not None and (outer.type in _AROUND or _converts(outer)):
        if _is_equality(outer):
            return True
        here, outer = outer, outer.parent
    if outer is None:
        return False
    if outer.type in _COMPARISONS:
        return not re.search(r"[<>+*/%&|^]|\bin\b", _between(outer))
    if outer.type in _ASSIGNED:
        return _is_left(outer, here) or _is_compared_by_name(outer, here, text)
    is_key = outer.type in ("pair", "keyed_element") and outer.named_children[0] == here
    return is_key or _is_equality(here) or _is_member(outer, here)


def _between(node: "Node") -> str:
    """The operators of a comparison."""
    return " ".join(text_of(child) for child in node.children if not child.is_named)


def _converts(node: "Node") -> bool:
    called = node.type in ("call", "call_expression", "method_invocation", "macro_invocation")
    return called and bool(_CONVERTING.search(_function(node)))


def _function(call: "Node") -> str:
    found = (
        call.child_by_field_name("function")
        or call.child_by_field_name("name")
        or call.child_by_field_name("macro")
        or call.child_by_field_name("method")
    )
    return text_of(found) if found is not None else ""


def _is_equality(arguments: "Node") -> bool:
    """Whether these are the arguments of a function that compares."""
    call = arguments.parent if arguments.type in ("argument_list", "arguments") else None
    return call is not None and bool(_EQUAL.search(_function(call)))


def _is_left(assignment: "Node", node: "Node") -> bool:
    """`known[(1, 2), (3, 4)] = 5`."""
    return node.type == "subscript" and assignment.named_children[0] == node


def _is_compared_by_name(assignment: "Node", node: "Node", text: str) -> bool:
    first = assignment.named_children[0]
    if first == node:
        return False
    name = re.escape(text_of(first))
    asked = rf"(?:===?|!==?|\bis|(?i:equals?)\()\s*&?\(?{name}\b|(?<![\w.]){name}\s*(?:===?|!==?)"
    return bool(re.search(asked, text))


def _is_member(outer: "Node", node: "Node") -> bool:
    """Whether a value stands before its answer, or among those that one is looked for in."""
    members = outer.named_children
    if outer.type not in ("list", "tuple", "set", "array", "tuple_expression", "array_expression"):
        return False
    if len(members) == 2 and members[0] == node and is_value(members[1]):  # noqa: PLR2004 - a pair
        return True
    around = outer.parent
    return (
        around is not None
        and around.type == "comparison_operator"
        and bool(re.search(r"\bin\b", _between(around)))
    )


def _grows(node: "Node", there: str) -> bool:
    """Whether the table had entries already."""
    entry = node
    while entry.parent is not None and entry.type not in ("pair", "keyed_element"):
        entry = entry.parent
    if entry.parent is None:
        return False
    return any(bare(text_of(other)) in there for other in entry.parent.named_children)


def _told(scene: Scene) -> tuple[tuple[float, ...], ...]:
    """The numbers of each file that takes part in tests, in order."""
    paths = [p for p in sorted(scene.old_paths) if places.is_test(p) or p.endswith(".rs")]
    texts = ((scene.old(path) or b"")[:_READ] for path in paths[:MAX_TEST_FILES])
    return tuple(_numbers(text.decode("utf-8", "replace")) for text in texts)


def _is_of_tests(numbers: tuple[float, ...], told: tuple[tuple[float, ...], ...]) -> bool:
    """Whether a test holds the same numbers side by side, in whatever order."""
    wanted, size = sorted(numbers), len(numbers)
    return any(
        said[start] in numbers and sorted(said[start : start + size]) == wanted
        for said in told
        for start in range(len(said) - size + 1)
    )
