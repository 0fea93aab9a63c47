"""Reads source: scopes, the names used in them, imports. Pure; judges nothing.

`parse(language_of(path), source)` is the tolerant tree-sitter tree for whoever needs more.
"""

from atlas_retry.syntax.documentation import documentation
from atlas_retry.syntax.imports import Import, imports
from atlas_retry.syntax.names import Use, uses
from atlas_retry.syntax.parsing import comment_of, language_of, parse
from atlas_retry.syntax.scopes import Scope, ScopeKind, definitions, enclosing

__all__ = [
    "Import",
    "Scope",
    "ScopeKind",
    "Use",
    "comment_of",
    "definitions",
    "documentation",
    "enclosing",
    "imports",
    "language_of",
    "parse",
    "uses",
]
