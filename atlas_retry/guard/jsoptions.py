"""What switches a test of JavaScript off by an option or by a call. Reads no assertion."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard.treechecks import text_of, walk
from atlas_retry.guard.words import words

if TYPE_CHECKING:
    from tree_sitter import Node

_OPTIONS = words("skip todo only fails failing fixme pending ignore expectFailure")
_OFF = words("false undefined null 0")
_CALLS = words("skip todo fixme")


def marks(option: "Node") -> Iterator[str]:
    """Of an argument like `{ skip: true }`, spelled out or named."""
    if option.type == "identifier":
        option = _named(option)
    for part in option.named_children if option.type == "object" else ():
        if part.type == "shorthand_property_identifier" and text_of(part) in _OPTIONS:
            yield f".{text_of(part)}"
        key, value = (part.child_by_field_name(field) for field in ("key", "value"))
        word = text_of(key).strip("'\"") if key is not None else ""
        if word in _OPTIONS and value is not None and text_of(value) not in _OFF:
            yield f".{word}"
            if value.type in ("true", "string", "template_string"):
                yield f".{word} always"


def _named(name: "Node") -> "Node":
    """The object that a file binds to a name; the name where there is none."""
    root = name
    while root.parent is not None:
        root = root.parent
    for node in walk(root):
        if node.type == "variable_declarator":
            bound, value = (node.child_by_field_name(field) for field in ("name", "value"))
            if bound is not None and value is not None and text_of(bound) == text_of(name):
                return value
    return name


def calls(test: "Node") -> Iterator[str]:
    """Calls like `t.skip()` on what the runner hands to a test, or handed to one within it."""
    given = test.child_by_field_name("parameters") or test.child_by_field_name("parameter")
    names = set(re.findall(r"[A-Za-z_$][\w$]*", text_of(given))) if given is not None else set()
    for node in walk(test):
        function, arguments = (node.child_by_field_name(f) for f in ("function", "arguments"))
        if node.type != "call_expression" or function is None or arguments is None:
            continue
        owner, _, word = text_of(function).rpartition(".")
        stands = node.parent is not None and node.parent.type == "expression_statement"
        if stands and word in _CALLS and (owner in names if owner else word in names):
            yield f".{word}()"
        if word in ("test", "it") and owner in names:
            yield from (mark for part in arguments.named_children for mark in marks(part))
