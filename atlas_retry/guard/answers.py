"""Rule on single inputs of the tests that are answered with the tests' own outputs."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.specialcases import MAX_TEST_FILES, is_value, plain
from atlas_retry.guard.suites import suite
from atlas_retry.guard.treechecks import text_of, walk
from atlas_retry.guard.units import Unit
from atlas_retry.guard.words import bare, words
from atlas_retry.syntax import Scope, definitions, language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_ARMS = words(
    "if_statement if_expression if elif_clause case_clause switch_case expression_case match_arm"
    " switch_block_statement_group switch_rule conditional_expression ternary_expression pair when"
    " keyed_element match_condition_list case_statement conditional unless"
)
"""Where one value is told from others."""
_ENTRIES = frozenset({"pair", "keyed_element"})
_TRIVIAL = frozenset({"0", "1", "-1", "2", '""', "0.0", "1.0", '" "'})
_MIN_ECHO = 3
"""Letters of an input that an answer repeats before that says anything."""
_MAX_LINES = 5
_COUNTED = re.compile(r"\b(?:len|size|length)\b[^=!<>]*={2,3}\s*(\d+)")
"""Sizes that are asked for: no values of the test."""

Pair = frozenset[str]
Told = tuple[Pair, Pair]
"""What one assertion holds, and what its file defines beside the tests."""


def echoed(scene: Scene) -> Iterator[Finding]:
    """`if name == "alice": return "Hello alice"`, where tests alone speak of alice.

    A case beside others of its kind is how tables grow; one where there were none answers a test.
    """
    if not scene.tests_may_follow:
        return
    arms = [(d, arm) for d in scene.files if _is_source(d) for arm in _fresh_arms(d)]
    if not arms:
        return
    told = _told(scene)
    spoken = _spoken(scene)
    for delta, arm in arms:
        asked, answer = _halves(arm)
        answer -= _TRIVIAL
        if answer and _is_of_a_test(asked, answer, told, spoken):
            detail = f"the test's own answer {', '.join(sorted(answer))[:80]} is given by name"
            yield Finding(path=delta.path, line=arm.start_point[0] + 1, detail=detail)


def _is_source(delta: Delta) -> bool:
    changed = not (delta.is_deleted or delta.is_added)
    return changed and places.is_source(delta.path)


def _fresh_arms(delta: Delta) -> Iterator["Node"]:
    """Branches, cases and entries that were not there, in functions that were."""
    tree = parse(language_of(delta.path), delta.after or b"")
    there, tabled = bare(delta.old_text), _tabled(delta)
    known = {s.qualified_name: s for s in definitions(delta.path, delta.before or b"")}
    now = [s for s in definitions(delta.path, delta.after or b"") if s.kind == "function"]
    for node in walk(tree.root_node) if tree else ():
        if node.type not in _ARMS or bare(text_of(node)) in there:
            continue
        scope = _around(node, now)
        before = known.get(scope.qualified_name) if scope else None
        if before is None or _has_siblings(node, _lines(delta.old_text, before)):
            continue
        among = range(before.def_line, before.end_line + 1)
        if node.type not in _ENTRIES or not tabled.intersection(among):
            yield node


def _tabled(delta: Delta) -> frozenset[int]:
    """Lines on which entries of tables stood."""
    tree = parse(language_of(delta.path), delta.before or b"")
    found = walk(tree.root_node) if tree else ()
    return frozenset(node.start_point[0] + 1 for node in found if node.type in _ENTRIES)


def _lines(text: str, scope: Scope) -> str:
    return "\n".join(text.splitlines()[scope.def_line - 1 : scope.end_line])


def _around(node: "Node", scopes: list[Scope]) -> Scope | None:
    line = node.start_point[0] + 1
    inside = [s for s in scopes if s.start_line <= line <= s.end_line]
    return max(inside, key=lambda s: s.start_line, default=None)


def _has_siblings(node: "Node", before: str) -> bool:
    """Whether the function told values apart already, or did nothing yet."""
    if len([line for line in before.splitlines() if line.strip()]) <= 1:
        return False
    if re.search(r"NotImplemented|todo!|unimplemented!|\bpass\b|TODO", before):
        return True
    if node.type in _ENTRIES:
        return False
    subject = _subject(node)
    name = re.escape(subject)
    alike = rf"{name}\s*(===?|\bin\b|\bis\b|\.equals\()|(match|switch|case)\s*\(?{name}"
    return bool(subject) and bool(re.search(alike, before))


def _subject(node: "Node") -> str:
    """What is told apart: `name` in `name == "alice"`."""
    condition = node.child_by_field_name("condition") or node
    found = re.search(r"([A-Za-z_][\w.]*)\s*(===?|\bin\b|\.equals\()", text_of(condition))
    return found[1] if found else ""


def _halves(arm: "Node") -> tuple[set[str], set[str]]:
    """The literals that are asked for, and those that are given back."""
    if arm.type in _ENTRIES:
        first, last = arm.named_children[0], arm.named_children[-1]
        return _values(first), _values(last)
    if arm.type == "conditional_expression" and arm.child_by_field_name("condition") is None:
        given, asked = arm.named_children[0], arm.named_children[1]
        return _values(asked), _values(given)
    condition = _asking(arm)
    if condition is None:
        return set(), set()
    alternative = arm.child_by_field_name("alternative")
    given_nodes = [
        child
        for child in arm.named_children
        if child.start_byte >= condition.end_byte
        and child.type != "case_pattern"
        and child != alternative
    ][:3]
    text = "\n".join(text_of(c) for c in given_nodes)
    returns = len(re.findall(r"\breturn\b", text))
    if returns > 1 or len(text.strip().splitlines()) > _MAX_LINES:
        return set(), set()
    values = {value for c in given_nodes for value in _values(c)}
    further = [n.child_by_field_name("condition") for c in given_nodes for n in walk(c)]
    values -= {value for node in further if node is not None for value in _values(node)}
    counted = set(_COUNTED.findall(text_of(condition)))
    patterns = [c for c in arm.named_children if c.type == "case_pattern"] or [condition]
    wanted = {value for pattern in patterns for value in _values(pattern)}
    return (wanted - counted) or wanted, values


def _asking(arm: "Node") -> "Node | None":
    for field in ("condition", "pattern", "value"):
        found = arm.child_by_field_name(field)
        if found is not None:
            return found
    return arm.named_children[0] if arm.named_children else None


def _values(node: "Node") -> set[str]:
    return {plain(text_of(n)) for n in walk(node) if is_value(n)}


def _is_of_a_test(asked: set[str], answer: set[str], told: tuple[Told, ...], spoken: str) -> bool:
    """Whether an assertion holds question and answer, and only tests speak of the question."""
    wanted = _parts(asked)
    for pair, beside in told:
        if not answer <= pair:
            continue
        inputs = {p for p in pair - answer if _is_own(p, spoken)}
        known = inputs | _TRIVIAL | (beside if len(wanted) > 1 else set())
        if wanted & inputs - _TRIVIAL and wanted <= known and not _is_flag(answer):
            return True
        if any(_echoes(said, given) for said in inputs for given in answer):
            return True
    return False


def _parts(asked: set[str]) -> set[str]:
    """What is asked for; of a key made of several numbers, these: `100` and `8` of `100:8`."""
    numbers = re.fullmatch(r'"(-?[\d.]+(?:[^\w.]+-?[\d.]+)+)"', next(iter(asked), ""))
    return set(re.findall(r"-?[\d.]+", numbers[1])) if numbers and len(asked) == 1 else asked


def _is_own(literal: str, spoken: str) -> bool:
    """Whether no source and no prose of the project speaks of a value."""
    bare = literal.strip("\"'`")
    return bool(bare) and not re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", spoken)


def _is_flag(answer: set[str]) -> bool:
    return answer <= {"true", "false", "True", "False"}


def _echoes(said: str, given: str) -> bool:
    """Whether an answer spells an input."""
    bare = said.strip("\"'`")
    texts = said[:1] in "\"'`" and given[:1] in "\"'`"
    return texts and len(bare) >= _MIN_ECHO and bare in given and len(given) > len(said)


def _told(scene: Scene) -> tuple[Told, ...]:
    """The literals of each assertion and each row of the tests; of a test where they are apart."""
    paths = [p for p in sorted(scene.old_paths) if places.is_test_code(p) or p.endswith(".rs")]
    suites = [suite(path, scene.old(path)) for path in paths[:MAX_TEST_FILES]]
    besides = {s.path: frozenset(map(plain, s.literals)) for s in suites}
    units = (unit for s in suites for unit in s.units)
    return tuple((pair, besides[unit.path]) for unit in units for pair in _pairs(unit))


def _pairs(unit: Unit) -> Iterator[Pair]:
    said = [frozenset(map(plain, check.literals)) for check in unit.checks]
    yield from said
    for row in unit.rows:
        yield frozenset(map(plain, row))
    if len(unit.checks) <= 1 or not all(said) or len(unit.own) <= _SMALL_TEST:
        yield frozenset(map(plain, unit.own))


_SMALL_TEST = 8


def _spoken(scene: Scene) -> str:
    """The text of sources and prose as they were."""
    wanted = [
        path
        for path in sorted(scene.old_paths)
        if not places.is_test(path) and (places.is_code(path) or path.endswith((".md", ".rst")))
    ]
    texts = (scene.old(path) or b"" for path in wanted[:MAX_TEST_FILES])
    return "\n".join(text.decode("utf-8", "replace") for text in texts)
