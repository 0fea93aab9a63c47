"""Settings written as JavaScript: the object literals of a file as flat keys. Evaluates nothing."""

import re
from typing import TYPE_CHECKING

from atlas_retry.guard.treechecks import text_of
from atlas_retry.syntax import language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node

Key = tuple[str, ...]


def read(path: str, content: bytes) -> dict[Key, object] | None:
    """Every leaf of every object literal by its key path; other code as one text."""
    tree = parse(language_of(path), content)
    if tree is None:
        return None
    found: dict[Key, object] = {}
    _collect(tree.root_node, (), found)
    return found


def _collect(node: "Node", prefix: Key, found: dict[Key, object]) -> None:
    for number, child in enumerate(node.named_children):
        if child.type == "pair":
            key, value = (child.child_by_field_name(f) for f in ("key", "value"))
            if key is not None and value is not None:
                _value(value, (*prefix, text_of(key).strip("'\"")), found)
        elif child.type in ("spread_element", "method_definition", "shorthand_property_identifier"):
            found[(*prefix, text_of(child)[:60])] = text_of(child)
        elif node.type == "array" and child.type == "object":
            _collect(child, (*prefix, *_label(child, number, prefix)), found)
        elif child.type != "comment":
            _collect(child, prefix, found)


def _label(item: "Node", number: int, prefix: Key) -> Key:
    """None for what a flat list of ESLint says of all files: there the later object wins."""
    keys = {text_of(key) for pair in item.named_children
            if (key := pair.child_by_field_name("key")) is not None}  # fmt: skip
    beside = keys - {"ignores", "name"}
    of_all = not prefix and "files" not in keys and ("rules" in keys or not beside)
    earlier = (c for c in item.parent.named_children[:number]) if item.parent else ()
    some = sum("files" in text_of(child) for child in earlier)
    return () if of_all else (f"[{some if not prefix else number}]",)


def _value(value: "Node", key: Key, found: dict[Key, object]) -> None:
    if value.type == "object":
        _collect(value, key, found)
        if not value.named_children:
            found[key] = {}
    elif value.type == "array" and not any(c.type == "object" for c in value.named_children):
        found[key] = tuple(text_of(c).strip("'\"`") for c in value.named_children)
    elif value.type == "array":
        _collect(value, key, found)
    else:
        found[key] = _plain(text_of(value))


def _plain(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return float(text)
    return text.strip("'\"`")
