"""The imports of a source, and the names that it uses. Does not resolve modules to files."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.patterns import regex
from atlas_retry.source.languages import BY_NAME, captured, language_of, load, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


class Import(Struct, frozen=True, kw_only=True):
    """One name that an import binds."""

    module: str
    """As written: `pkg.mod`, `..mod`, `./mod`, `crate::mod`, `a/b.h`."""
    name: str | None
    """Imported name; `*` for all, None for the module itself."""
    local: str
    """Name in this source."""
    start_line: int
    end_line: int

    @property
    def names(self) -> "Names":
        """What it binds, without its place in the source."""
        return self.module, self.name, self.local


Names = tuple[str, str | None, str]
"""Module, name, local name."""

_QUOTED = regex(r"""["'<]([^"'<>]+)["'>]""")
_ALIASED = regex(r"(?:type\s+)?(\*|[\w$]+)(?:\s*(?:\bas\b|:)\s*([\w$]+))?")


def imports(path: str, source: bytes) -> tuple[Import, ...]:
    """Every import in order, nested ones included; empty if the source cannot be parsed."""
    read = _READERS.get(language_of(path, source) or "", _path_like)
    all_imports: list[Import] = []
    for node in captured(path, source, lambda language: BY_NAME[language].imports):
        first, last = node.start_point.row + 1, node.end_point.row + 1
        for module, name, local in read(node):
            imported = Import(
                module=module, name=name, local=local, start_line=first, end_line=last
            )
            all_imports.append(imported)
    return tuple(all_imports)


def _python(node: "Node") -> Iterator[Names]:
    module = text_of(node.child_by_field_name("module_name"))
    if any(child.type == "wildcard_import" for child in node.children):
        yield module, "*", "*"
    for child in node.children_by_field_name("name"):
        name = text_of(child.child_by_field_name("name") or child)
        alias = text_of(child.child_by_field_name("alias"))
        if module:
            yield module, name, alias or name
        elif alias:
            yield name, None, alias
        else:
            yield name, None, name


def _javascript(node: "Node") -> Iterator[Names]:
    text = text_of(node)
    quoted = _QUOTED.findall(text)
    if not quoted:
        return
    module = quoted[-1]
    bound = re.split(r"\bfrom\b|=\s*require", text)[0]
    braces = re.search(r"\{([^}]*)\}", bound)
    for binding in braces[1].split(",") if braces else ():
        if named := _ALIASED.match(binding.strip()):
            yield module, named[1], named[2] or named[1]
    whole = re.search(r"\*\s*as\s+([\w$]+)", bound)
    if whole:
        yield module, None, whole[1]
    first = re.match(r"(?:import\s+(?:type\s+)?)?([\w$]+)\s*(?:,|$)", bound.strip())
    if first and first[1] not in ("import", "export", "type"):
        yield module, "default", first[1]
    if not (braces or whole or first):
        yield module, "*", "*"


def _go(node: "Node") -> Iterator[Names]:
    module = text_of(node.child_by_field_name("path")).strip('"`')
    alias = text_of(node.child_by_field_name("name"))
    yield module, None, alias or module.rpartition("/")[2]


def _rust(node: "Node", prefix: str = "") -> Iterator[Names]:
    """`use a::{b, c::{d as e}}`, one name at a time."""
    node = node.child_by_field_name("argument") or node
    head, inside = (node.child_by_field_name(name) for name in ("path", "list"))
    if node.type != "use_list" and inside is None:
        return _rust_name(prefix, " ".join(text_of(node).split()))
    below = f"{prefix}{text_of(head)}::" if head is not None else prefix
    branches = (one for one in (inside or node).named_children if "comment" not in one.type)
    return chain.from_iterable(_rust(branch, below) for branch in branches)


def _rust_name(prefix: str, text: str) -> Iterator[Names]:
    path, _, alias = text.partition(" as ")
    module, _, name = f"{prefix}{path}".rpartition("::")
    if name == "self":
        module, _, name = module.rpartition("::")
    if name:
        yield module, name, alias or name


def _java(node: "Node") -> Iterator[Names]:
    text = text_of(node).removeprefix("import").strip(" ;\n").removeprefix("static ").strip()
    module, _, name = text.rpartition(".")
    yield module, name, name


def _php(node: "Node") -> Iterator[Names]:
    for clause in text_of(node).removeprefix("use").strip(" ;\n").split(","):
        path, _, alias = clause.strip().partition(" as ")
        module, _, name = path.rpartition("\\")
        yield module, name, alias or name


def _path_like(node: "Node") -> Iterator[Names]:
    """`#include "a.h"`, `require_relative "a"`, `source ./a.sh`."""
    text = text_of(node)
    quoted = _QUOTED.search(text)
    module = quoted[1] if quoted else text.split()[-1]
    yield module, "*", "*"


_READERS: "dict[str, Callable[[Node], Iterator[Names]]]" = {
    "python": _python,
    "javascript": _javascript,
    "typescript": _javascript,
    "tsx": _javascript,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "php": _php,
}


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
_MEMBER_TYPES = frozenset(_MEMBERS.split())
_TOKENS = "token_tree"


class Use(Struct, frozen=True, kw_only=True):
    """One mention of a name."""

    name: str
    receiver: str | None
    """Text before the dot: `self`, `module.sub`; None for a bare name."""
    line: int


def uses(path: str, source: bytes, start_line: int, end_line: int) -> tuple[Use, ...]:
    """Names in these lines (1-based, inclusive), in order; empty if it cannot be parsed."""
    used: list[Use] = []
    for node in captured(path, source, _leaves, (start_line - 1, end_line)):
        line = node.start_point.row + 1
        if start_line <= line <= end_line and node.text:
            used.append(Use(name=text_of(node), receiver=_receiver(node), line=line))
    return tuple(used)


@cache
def _leaves(language: str) -> str:
    grammar = load(language)
    known = [kind for kind in _LEAVES.split() if grammar.id_for_node_kind(kind, True) is not None]  # noqa: FBT003 - tree-sitter's own positional flag
    return " ".join(f"({kind}) @node" for kind in known)


def _receiver(node: "Node") -> str | None:
    parent = node.parent
    if parent is not None and parent.type == _TOKENS:
        # the arguments of a Rust macro are tokens, not expressions
        link = node.prev_sibling
        is_member = link is not None and link.type in (".", "::")
        return text_of(link.prev_sibling if link and is_member else None) or None
    if parent is None or parent.type not in _MEMBER_TYPES:
        return None
    for field in _OWNER_FIELDS:
        owner = parent.child_by_field_name(field)
        if owner is not None and owner.end_byte <= node.start_byte:
            return text_of(owner)
    return None
