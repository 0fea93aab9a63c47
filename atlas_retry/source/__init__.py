"""Reads source: scopes, the names used in them, imports. Pure; judges nothing.

`parse(language_of(path), source)` is the tolerant tree-sitter tree for whoever needs more.
"""

from atlas_retry.source.imports import Import, Use, imports, uses
from atlas_retry.source.languages import comment_of, language_of, nodes_of_types, parse
from atlas_retry.source.scopes import Scope, ScopeKind, definitions, enclosing

__all__ = [
    "Import",
    "Scope",
    "ScopeKind",
    "Use",
    "comment_of",
    "definitions",
    "enclosing",
    "imports",
    "language_of",
    "nodes_of_types",
    "parse",
    "uses",
]
