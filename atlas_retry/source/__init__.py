"""Read source: scopes, the names used in them, imports. Pure; judges nothing.

For more, `parse(language_of(path), source)` returns the tree-sitter tree, which tolerates errors.
"""

from atlas_retry.source.imports import Import, Use, imports, uses
from atlas_retry.source.languages import (
    comment_of,
    is_minified,
    language_of,
    nodes_of_types,
    parse,
    text_of,
)
from atlas_retry.source.scopes import Scope, ScopeKind, definitions, enclosing, innermost

__all__ = [
    "Import",
    "Scope",
    "ScopeKind",
    "Use",
    "comment_of",
    "definitions",
    "enclosing",
    "imports",
    "innermost",
    "is_minified",
    "language_of",
    "nodes_of_types",
    "parse",
    "text_of",
    "uses",
]
