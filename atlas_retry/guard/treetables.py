"""Rows and lists that tests spell out in literals, from tree-sitter trees. Compares nothing."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard.treechecks import is_literal, quoted, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_TABLES = {"go": "literal_value", "rust": "array_expression"}
_ELEMENTS = {
    "go": frozenset({"literal_element", "keyed_element", "literal_value"}),
    "rust": frozenset({"tuple_expression", "struct_expression"}),
}
_TITLE = re.compile(r"^\W*(name|title|desc|description|label|id|scenario)\s*:", re.IGNORECASE)


def rows_of(body: "Node", language: str) -> Iterator[tuple[str, ...]]:
    """Literals of each row of the tables that a test goes through."""
    kind = _TABLES.get(language)
    titled = "t.Run(" in text_of(body)
    for node in walk(body) if kind else ():
        if node.type != kind:
            continue
        rows = [child for child in node.named_children if child.type in _ELEMENTS[language]]
        if kind == "literal_value":
            rows = [r for r in rows if r.type == kind or (r.named_children and _is_row(r))]
        for row in rows if len(rows) > 1 else ():
            yield _literals_of_row(row, titled=titled)


def _is_row(element: "Node") -> bool:
    return element.named_children[-1].type == "literal_value" or (
        element.type == "literal_element" and element.named_children[0].type == "literal_value"
    )


def _literals_of_row(row: "Node", *, titled: bool) -> tuple[str, ...]:
    parts = [quoted(text_of(n)) for n in walk(row) if is_literal(n)]
    named = next((text_of(n) for n in walk(row) if _TITLE.match(text_of(n))), "")
    least = 3
    if (
        titled
        and len(parts) >= least
        and parts[0].startswith('"')
        and (named or ":" not in text_of(row))
    ):
        return tuple(parts[1:])
    return tuple(parts)


_DISPLAY = re.compile(r"[\[{(]([^\[\]{}()]*)[\]})]")
_TOLD = r"(\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`|-?\d[\w.]*)"
_MEMBER = re.compile(rf"\s*(?:[\w.]+\s*(?::|=>|=)\s*)?{_TOLD}(?:\s*(?::|=>)\s*{_TOLD})?\s*(?:,|$)")


def displays_of(node: "Node") -> tuple[tuple[str, ...], ...]:
    """Lists, rows and mappings spelled out in literals, whatever the language's brackets."""
    return tuple(
        members
        for found in _DISPLAY.finditer(text_of(node))
        if len(members := _members(found[1])) > 1
    )


def _members(text: str) -> tuple[str, ...]:
    members: list[str] = []
    place = 0
    while found := _MEMBER.match(text, place):
        members += [quoted(part) for part in found.groups() if part]
        place = found.end()
    return tuple(members) if place == len(text.rstrip()) or not text[place:].strip() else ()
