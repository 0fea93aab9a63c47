"""Rule on answers kept for one combination of inputs, of which each alone says nothing."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.specialcases import MAX_TEST_FILES, is_value, plain
from atlas_retry.guard.suites import suite
from atlas_retry.guard.treechecks import text_of, walk
from atlas_retry.guard.units import Suite
from atlas_retry.guard.words import bare
from atlas_retry.syntax import language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_CONDITIONAL = frozenset({"if_statement", "if_expression", "if", "elif_clause", "if_modifier"})
_TRIVIAL = frozenset({"0", "1", "-1", '""', "0.0", "1.0"})
_PAIR, _TRIPLE = 2, 3
"""Comparisons that an answer has to hang on; three when it is a mere true or false."""


def answered(scene: Scene) -> Iterator[Finding]:
    """`if a == 3 and b == 70: return 210`, where one test holds 3, 70 and 210.

    For a single number that is answered with a number one assertion has to hold both.
    """
    if not scene.tests_may_follow:
        return
    fresh = [
        (delta, node)
        for delta in scene.files
        if places.is_source(delta.path) and not delta.is_deleted
        for node in _branches(delta)
    ]
    suites = _suites(scene) if fresh else ()
    for delta, node in fresh:
        asked, answer = _asked(node), _answer(node)
        if asked and answer is not None and _is_of_tests(node, asked, answer, suites):
            detail = f"one test's inputs together are answered by name: {', '.join(sorted(asked))}"
            yield Finding(path=delta.path, line=node.start_point[0] + 1, detail=detail)


def _is_of_tests(
    node: "Node", asked: frozenset[str], answer: frozenset[str], suites: tuple[Suite, ...]
) -> bool:
    wanted = asked | answer
    units = [unit for suite in suites for unit in suite.units]
    enough = _TRIPLE if _is_flag(node) else _PAIR
    if _together(node) >= enough:
        if any(wanted <= frozenset(map(plain, unit.own)) for unit in units):
            return True
        return bool(answer - _TRIVIAL) and any(_are_of(asked, answer, suite) for suite in suites)
    numbers = all(re.fullmatch(r"-?\d[\d._]*", value) for value in wanted)
    checks = (check.literals for unit in units for check in unit.checks)
    return numbers and bool(answer - _TRIVIAL) and any(wanted <= told for told in checks)


def _are_of(asked: frozenset[str], answer: frozenset[str], suite: Suite) -> bool:
    """Whether an assertion holds the answer and some of the inputs, its file the other inputs."""
    beside = frozenset(map(plain, suite.literals))
    checks = (check for unit in suite.units for check in unit.checks)
    told = (frozenset(map(plain, check.literals)) for check in checks)
    return any(answer <= t and asked & t - answer - _TRIVIAL and asked <= t | beside for t in told)


def _branches(delta: Delta) -> Iterator["Node"]:
    """Conditionals that were not there."""
    tree = parse(language_of(delta.path), delta.after or b"")
    there = bare(delta.old_text)
    for node in walk(tree.root_node) if tree else ():
        condition = node.child_by_field_name("condition")
        if node.type not in _CONDITIONAL or condition is None:
            continue
        if bare(text_of(condition)) not in there:
            yield node


def _asked(node: "Node") -> frozenset[str]:
    """The values that a condition is equal to, when it is nothing but equalities."""
    condition = node.child_by_field_name("condition")
    text = text_of(condition) if condition is not None else ""
    if condition is None or re.search(r"\|\||\bor\b|!=|[^=<>-][<>]=?[^<>]|\bnot\b", text):
        return frozenset()
    if not _together(node):
        return frozenset()
    values = frozenset(plain(text_of(n)) for n in walk(condition) if is_value(n))
    return values if values - _TRIVIAL else frozenset()


def _together(node: "Node") -> int:
    """How many values are compared: by several equalities, or as members of one."""
    condition = node.child_by_field_name("condition")
    text = text_of(condition) if condition is not None else ""
    equalities = len(re.findall(r"={2,3}", text))
    members = re.search(r"={2,3}\s*\(([^()]*(?:\([^()]*\))?[^()]*)\)", text)
    return max(equalities, len(members[1].split(",")) if members else 0)


def _body(node: "Node") -> "Node | None":
    for field in ("consequence", "body"):
        found = node.child_by_field_name(field)
        if found is not None:
            return found
    return None


def _is_flag(node: "Node") -> bool:
    body = _body(node)
    return body is not None and bool(re.search(r"\b(true|false)\b", text_of(body), re.IGNORECASE))


def _answer(node: "Node") -> frozenset[str] | None:
    """The literals that a branch hands back; None when it does anything else."""
    body = _body(node)
    if body is None or len(re.findall(r"\breturn\b", text_of(body))) > 1:
        return None
    values = frozenset(plain(text_of(n)) for n in walk(body) if is_value(n))
    short = len(text_of(body).splitlines()) <= _TRIPLE + 1
    return values if short and (values or _is_flag(node)) else None


def _suites(scene: Scene) -> tuple[Suite, ...]:
    paths = [p for p in sorted(scene.old_paths) if places.is_test_code(p) or p.endswith(".rs")]
    return tuple(suite(path, scene.old(path)) for path in paths[:MAX_TEST_FILES])
