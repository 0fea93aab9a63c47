"""What tables, loops and annotations hand to a test from outside of its body. Compares nothing."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.guard.treechecks import literals_of, names_of, text_of, walk
from atlas_retry.guard.units import Found
from atlas_retry.guard.words import words

if TYPE_CHECKING:
    from tree_sitter import Node

Row = frozenset[str]
Values = Mapping[str, Sequence["Node"]]
"""What stands beside the tests under a name: constants, and methods that give cases."""
_DEFINED = words(
    "variable_declarator var_spec const_spec const_item static_item method_declaration"
)
_TABLES = words(
    "array array_expression literal_value object array_initializer argument_list token_tree"
)
_ROWS = words(
    "array array_expression literal_value object array_initializer tuple_expression pair"
    " struct_expression keyed_element method_invocation object_creation_expression"
)
_EACH = words("forEach map each")
_NAMED_SOURCE = re.compile(r"(?:Method|Field)Source(?:\((.*)\))?$", re.DOTALL)
_LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|-?\d[\w.]*')


class Handed(Struct, frozen=True, kw_only=True):
    """Literals that a test gets from around it, and all those of each row of its tables."""

    literals: frozenset[str]
    rows: tuple[Row, ...]


def values_of(root: "Node") -> Values:
    """What a file defines by name, tests and all."""
    found: dict[str, list[Node]] = {}
    for node in walk(root):
        name = node.child_by_field_name("name") if node.type in _DEFINED else None
        said = node.child_by_field_name("value") or node.child_by_field_name("body")
        if name is not None and said is not None:
            found.setdefault(text_of(name), []).append(said)
    return found


def handed(found: Found, values: Values) -> Handed:
    """Of the loops around a test, of the tables it names, and of its annotations."""
    heads = [*_around(found.node)]
    named = names_of(*heads, *_loops(found)) | _sources(found)
    known = (node for name in sorted(named & values.keys()) for node in values[name])
    told = [*heads, *(node for node in known if node != found.body)]
    cells = tuple(frozenset(both for cell in row for both in _spelled(cell)) for row in found.rows)
    tables = [row for node in (found.body, *told) for row in _rows_in(node)]
    return Handed(literals=literals_of(*told).union(*cells), rows=(*cells, *tables))


def _around(test: "Node") -> Iterator["Node"]:
    """What the loops are over that a test is defined in."""
    here = test.parent
    while here is not None:
        function = here.child_by_field_name("function")
        if here.type == "for_in_statement" and (over := here.child_by_field_name("right")):
            yield over
        elif function is not None and function.type == "call_expression":
            yield from (child for child in function.named_children[1:])
        elif function is not None and function.type == "member_expression":
            last, over = (function.child_by_field_name(f) for f in ("property", "object"))
            if last is not None and over is not None and text_of(last) in _EACH:
                yield over
        here = here.parent


def _loops(found: Found) -> Iterator["Node"]:
    """What a test itself goes through, or is called with the rows of."""
    for node in walk(found.body):
        for_each = node.child_by_field_name("function")
        if node.type in ("for_in_statement", "range_clause"):
            yield from filter(None, [node.child_by_field_name("right")])
        elif node.type in ("for_expression", "enhanced_for_statement"):
            yield from filter(None, [node.child_by_field_name("value")])
        elif for_each is not None and for_each.type in ("call_expression", "member_expression"):
            yield for_each


def _sources(found: Found) -> frozenset[str]:
    """Methods and fields that the annotations of a test take its cases from."""
    names: set[str] = set()
    for note in (n for n in walk(found.node) if n.type in ("annotation", "marker_annotation")):
        if source := _NAMED_SOURCE.search(text_of(note)):
            told = re.findall(r"\"(?:[\w.$]*#)?(\w+)\"", source[1] or "")
            names |= {*told} or {found.name}
    return frozenset(names)


def _rows_in(node: "Node") -> Iterator[Row]:
    """The literals of each member of the first list below a node whose members are rows."""
    for here in walk(node):
        members = [_inner(child) for child in here.named_children] if here.type in _TABLES else []
        if members and all(child.type in _ROWS for child in members):
            yield from (literals_of(child) for child in members)
            return


def _inner(element: "Node") -> "Node":
    """Of Go: a member without the node around it."""
    is_wrapped = element.type == "literal_element" and element.named_children
    return element.named_children[0] if is_wrapped else element


def cells(name: str, said: str) -> list[tuple[str, ...]]:
    """The rows that an annotation or attribute spells out, each as its cells."""
    if name in ("case", "test_case"):
        return [tuple(_LITERAL.findall(said))]
    if name == "ValueSource":
        return [(value,) for value in _LITERAL.findall(said)]
    delimiter = re.search(r"delimiter(?:String)?\s*=\s*['\"](.)['\"]", said)
    rest = re.sub(r"\b\w*(?:delimiter|name|null)\w*\s*=\s*[^,)]+", "", said, flags=re.IGNORECASE)
    blocks = [line for b in re.findall(r'"""(.*?)"""', rest, re.DOTALL) for line in b.splitlines()]
    lines = blocks or [line[1:-1] for line in _LITERAL.findall(rest) if line[:1] == '"']
    told = [line for line in lines if line.strip() and not line.strip().startswith("#")]
    mark = delimiter[1] if delimiter else ","
    read = csv.reader((line.strip() for line in told), delimiter=mark, quotechar="'")
    return [tuple(map(_cell, row)) for row in read]


def _cell(text: str) -> str:
    bare = text.strip()
    is_plain = re.fullmatch(r"-?\d[\w.]*|true|false|null", bare)
    return bare if is_plain else f'"{bare.strip(chr(39))}"'


def _spelled(cell: str) -> tuple[str, str]:
    """A cell as a text and as what it may be converted to."""
    bare = cell.strip('"')
    return f'"{bare}"', bare.lstrip("-") if bare[-1:].isdigit() else bare
