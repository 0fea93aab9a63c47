"""The names that a stretch of source uses, and which of them it calls. Resolves nothing."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.source.languages import load, query
from atlas_retry.source.parsing import language_of, parse, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_LEAVES = """
identifier type_identifier field_identifier property_identifier shorthand_property_identifier
private_property_identifier constant name command_name
"""
_MEMBERS = """
attribute member_expression selector_expression field_expression method_invocation field_access
scoped_identifier qualified_identifier scoped_call_expression member_call_expression
nullsafe_member_call_expression call
"""
_OWNER_FIELDS = ("object", "operand", "value", "argument", "receiver", "scope", "path")
_CALLS = """
call call_expression new_expression object_creation_expression method_invocation macro_invocation
function_call_expression scoped_call_expression member_call_expression command decorator
"""
_MEMBER_TYPES, _CALL_TYPES = frozenset(_MEMBERS.split()), frozenset(_CALLS.split())
_TOKENS = "token_tree"
_CALLEE_FIELDS = ("function", "constructor", "type", "macro", "method", "name")


class Use(Struct, frozen=True, kw_only=True):
    """One mention of a name."""

    name: str
    receiver: str | None
    """What stands before the dot, as written: `self`, `module.sub`; None for a bare name."""
    line: int
    is_call: bool


def uses(path: str, source: bytes, start_line: int, end_line: int) -> tuple[Use, ...]:
    """Names in the lines given (1-based, inclusive), in order; empty when unreadable."""
    language = language_of(path, source)
    tree = parse(language, source)
    if language is None or tree is None:
        return ()
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query(language, _leaves(language)))
    cursor.set_point_range((start_line - 1, 0), (end_line, 0))
    nodes = cursor.captures(tree.root_node).get("leaf", [])
    return tuple(_used(sorted(nodes, key=lambda node: node.start_byte), start_line, end_line))


@cache
def _leaves(language: str) -> str:
    grammar = load(language)
    known = [kind for kind in _LEAVES.split() if grammar.id_for_node_kind(kind, True) is not None]  # noqa: FBT003 - tree-sitter's own positional flag
    return " ".join(f"({kind}) @leaf" for kind in known)


def _used(nodes: "list[Node]", start_line: int, end_line: int) -> Iterator[Use]:
    for node in nodes:
        line = node.start_point.row + 1
        if start_line <= line <= end_line and node.text:
            yield Use(
                name=text_of(node),
                receiver=_receiver(node),
                line=line,
                is_call=_is_callee(node),
            )


def _receiver(node: "Node") -> str | None:
    parent = node.parent
    if parent is not None and parent.type == _TOKENS:
        return _receiver_among_tokens(node)
    if parent is None or parent.type not in _MEMBER_TYPES:
        return None
    for field in _OWNER_FIELDS:
        owner = parent.child_by_field_name(field)
        if owner is not None and owner.end_byte <= node.start_byte:
            return text_of(owner)
    return None


def _receiver_among_tokens(node: "Node") -> str | None:
    """Of a name in the arguments of a Rust macro, which are tokens and no expressions."""
    link = node.prev_sibling
    before = link.prev_sibling if link is not None and link.type in (".", "::") else None
    return text_of(before) or None


def _is_callee(node: "Node") -> bool:
    """Whether the name, or the member expression that it ends, is what a call calls."""
    holder, parent = node, node.parent
    if parent is not None and parent.type == _TOKENS:
        after = node.next_sibling
        return text_of(after).startswith("(")
    while parent is not None and parent.type not in _CALL_TYPES:
        if parent.type not in _MEMBER_TYPES or parent.end_byte != node.end_byte:
            return False
        holder, parent = parent, parent.parent
    return parent is not None and _calls(parent, holder)


def _calls(call: "Node", holder: "Node") -> bool:
    return any(call.child_by_field_name(field) == holder for field in _CALLEE_FIELDS)
