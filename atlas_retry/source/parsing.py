"""From a path to its language and from bytes to a tree. Knows nothing of definitions."""

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from atlas_retry.source.languages import BY_NAME, BY_SUFFIX, GRAMMARS, load, query_of_types

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MAX_SOURCE_BYTES = 1 << 20
"""Larger files are generated ones; they are read as plain lines."""

_SHEBANG = re.compile(rb"#!.*?([a-z]+)[\d.]*\s*$", re.MULTILINE)
_DASH_COMMENT = {".sql": "--", ".lua": "--", ".hs": "--", ".elm": "--"}
_HASH_COMMENT = frozenset(
    {"", ".cfg", ".conf", ".ini", ".mk", ".pl", ".properties", ".r", ".toml", ".yaml", ".yml"}
)


def language_of(path: str, source: bytes = b"") -> str | None:
    """The language by suffix, else by the `#!` line of `source`; None when there is no grammar."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix:
        grammar = BY_SUFFIX.get(suffix)
        return grammar.name if grammar else None
    shebang = _SHEBANG.match(source[:200])
    called = shebang[1].decode() if shebang else ""
    return next((g.name for g in GRAMMARS if called in g.interpreters), None)


def comment_of(path: str) -> str:
    """What starts a comment that runs to the end of the line."""
    language = language_of(path)
    if language:
        return BY_NAME[language].comment
    suffix = PurePosixPath(path).suffix.lower()
    return _DASH_COMMENT.get(suffix) or ("#" if suffix in _HASH_COMMENT else "//")


@lru_cache(maxsize=128)
def parse(language: str | None, source: bytes) -> "Tree | None":
    """A tree that tolerates errors; None for an unknown language, binary or huge sources."""
    if language not in BY_NAME or len(source) > MAX_SOURCE_BYTES or b"\0" in source:
        return None
    from tree_sitter import Parser

    return Parser(load(language)).parse(source)


def text_of(node: "Node | None") -> str:
    """The source of a node; empty for none."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def nodes_of_types(path: str, source: bytes, types: re.Pattern[str]) -> "list[Node]":
    """The nodes whose types match, in order of the text; none where the source has errors."""
    language = language_of(path, source)
    tree = parse(language, source)
    query = query_of_types(language, types) if language else None
    if tree is None or query is None or tree.root_node.has_error:
        return []
    from tree_sitter import QueryCursor

    nodes = QueryCursor(query).captures(tree.root_node).get("node", [])
    return sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte))
