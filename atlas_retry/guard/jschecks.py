"""Assertions of JavaScript and TypeScript tests, made canonical. Runs nothing."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard.jspromises import is_lost, is_quiet_catch
from atlas_retry.guard.treechecks import check_of, text_of, walk
from atlas_retry.guard.units import FIRM, PARTIAL, STRONG, VOID, WEAK, Check

if TYPE_CHECKING:
    from tree_sitter import Node

JS_STRENGTH = {
    "toBe": STRONG, "toEqual": STRONG, "toStrictEqual": STRONG, "toHaveLength": STRONG,
    "toHaveBeenCalledWith": STRONG, "toHaveBeenCalledTimes": FIRM, "toMatchSnapshot": STRONG,
    "toMatchInlineSnapshot": STRONG, "toThrowErrorMatchingSnapshot": STRONG, "toBeNull": STRONG,
    "toBeUndefined": STRONG, "toBeCloseTo": FIRM, "toBeNaN": FIRM, "toHaveProperty": PARTIAL,
    "toContain": PARTIAL, "toContainEqual": PARTIAL, "toMatch": PARTIAL, "toMatchObject": PARTIAL,
    "toBeInstanceOf": 2, "toBeGreaterThan": 2, "toBeLessThan": 2, "toBeGreaterThanOrEqual": 2,
    "toBeDisabled": STRONG, "toBeEnabled": STRONG, "toBeChecked": STRONG, "toHaveFocus": STRONG,
    "toHaveAttribute": STRONG, "toHaveValue": STRONG, "toBeEmptyDOMElement": STRONG,
    "toBeLessThanOrEqual": 2, "toHaveBeenCalled": 2, "toBeTruthy": WEAK, "toBeFalsy": 2,
    "toBeDefined": WEAK, "equal": STRONG, "strictEqual": STRONG, "deepEqual": STRONG,
    "deepStrictEqual": STRONG, "is": STRONG, "same": STRONG, "ok": WEAK, "isTrue": PARTIAL,
    "rejects": PARTIAL, "throws": PARTIAL, "eql": STRONG, "eq": STRONG, "notEqual": WEAK,
}  # fmt: skip


def checks(body: "Node", language: str) -> Iterator[Check]:  # noqa: ARG001 - as the others
    """The assertions below a node, in order of the text."""
    for node in walk(body):
        found = _javascript(node)
        if found is not None:
            yield found


_JS_ROOT = re.compile(
    r"(expect|assert|should|chai\.expect|test\.expect)\b"
    r"|t\.(is|deepEqual|equal|true|false|throws|same)\b"
)
_JS_SETTINGS = frozenset({"assertions", "hasAssertions", "extend", "addSnapshotSerializer"})


_CHAI = {"null": STRONG, "undefined": STRONG, "true": STRONG, "false": STRONG, "NaN": FIRM,
         "empty": STRONG, "ok": WEAK, "exist": WEAK, "calledOnce": FIRM}  # fmt: skip


def _chai(node: "Node") -> Check | None:
    """`expect(x).to.be.null`, which is no call."""
    said = text_of(node)
    word = said.rpartition(".")[2]
    stands = node.parent is not None and node.parent.type == "expression_statement"
    if not stands or word not in _CHAI or not said.startswith("expect("):
        return None
    return check_of(node, word, min(_CHAI[word], 2) if ".not." in said else _CHAI[word])


def _javascript(node: "Node") -> Check | None:
    if node.type == "member_expression":
        return _chai(node)
    function, arguments = (node.child_by_field_name(f) for f in ("function", "arguments"))
    if node.type != "call_expression" or function is None or arguments is None:
        return None
    said = text_of(function)
    matcher = said.split(".")[-1] if function.type == "member_expression" else ""
    if not _JS_ROOT.match(said) or matcher in _JS_SETTINGS or _continues(node):
        return None
    if said == "expect":
        return check_of(node, "expect", VOID)
    unheard = re.search(r"\.(resolves|rejects)\b", said) and not _is_waited_for(node)
    if unheard or is_lost(node) or is_quiet_catch(node):
        return check_of(node, matcher, VOID)
    return check_of(node, matcher, _js_strength(matcher, said, text_of(arguments), text_of(node)))


def _is_waited_for(node: "Node") -> bool:
    """Whether a promise is awaited or handed on: else the test ends before it fails."""
    parent = node.parent
    return parent is None or parent.type != "expression_statement"


def _js_strength(matcher: str, said: str, arguments: str, whole: str) -> int:
    if _says_nothing(whole):
        return VOID
    strength = JS_STRENGTH.get(matcher, PARTIAL)
    if matcher == "toHaveAttribute" and "," not in arguments:
        strength = 2
    if strength == STRONG and re.fullmatch(r"\((.*,)?\s*(true|false)\s*\)", arguments, re.DOTALL):
        strength = 2 if re.search(r" [<>]=? ", whole) else strength
        strength = PARTIAL if ".includes(" in whole else strength
    if matcher in ("toThrow", "toThrowError"):
        strength = 2 if arguments == "()" else FIRM
    if re.search(r"\bexpect\.(any|anything)\b", arguments):
        strength = WEAK
    return min(strength, 2) if re.search(r"\.not\.\w+$", said) else strength


def _says_nothing(text: str) -> bool:
    """`expect(x).toBe(x)` and `expect(true).toBe(true)`."""
    found = re.match(r"expect\((.*)\)\.\w+\((.*)\)$", text, re.DOTALL)
    if found and found[1].strip() == found[2].strip() != "":
        return True
    return bool(re.match(r"(expect|assert(\.ok)?)\((true|1)\)", text))


def _continues(node: "Node") -> bool:
    """Whether a longer chain of calls goes on from this one."""
    parent = node.parent
    return bool(parent and parent.type == "member_expression" and parent.parent)
