"""Comparisons of the same part of two values: what they would be of the whole. Judges nothing."""

import ast
import re

_PARTS = frozenset({"keys", "values"})
_GATHERING = frozenset({"list", "tuple", "set", "frozenset", "sorted", "len", "iter", "type"})
_IN_TEXT = re.compile(
    r"(?:Object\.(?:keys|values)|(?:maps|slices)\.(?:Keys|Values))\(((?:[^()]|\([^()]*\))*)\)"
    r"|\.(?:keySet|keys|values|into_keys|into_values)\(\)"
)


def whole(left: ast.expr, right: ast.expr) -> str:
    """The text of a Python check that compares both sides unreduced; empty when nothing reduces."""
    inner, other = _within(left), _within(right)
    if inner is None or other is None or inner[0] != other[0]:
        return ""
    return f"== {ast.dump(inner[1])} {ast.dump(other[1])}"


def whole_in_text(text: str) -> str:
    """The same in other languages, by the text of the check."""
    found, count = _IN_TEXT.subn(lambda match: match[1] or "", text)
    return found if count > 1 else ""


def _within(node: ast.expr) -> tuple[str, ast.expr] | None:
    """What is taken of a value, and the value."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}", node.value
    if isinstance(node, ast.Subscript):
        return f"[{ast.dump(node.slice)}]", node.value
    if isinstance(node, ast.Call):
        return _called(node)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        first = node.generators[0]
        inner = first.iter
        shape = ast.dump(node).replace(ast.dump(inner), "_", 1)
        return shape, inner
    return None


def _called(node: ast.Call) -> tuple[str, ast.expr] | None:
    if isinstance(node.func, ast.Attribute) and node.func.attr in _PARTS and not node.args:
        return f".{node.func.attr}()", node.func.value
    if isinstance(node.func, ast.Name) and node.func.id in _GATHERING and len(node.args) == 1:
        return node.func.id, node.args[0]
    return None
