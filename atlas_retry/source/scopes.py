"""Functions, classes and named values of a source, with their lines. Resolves no names."""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.patterns import regex
from atlas_retry.source.languages import BY_NAME, language_of, parse, query, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


class ScopeKind(StrEnum):
    """Kind of a definition. A `test` is a call such as `it("adds", () => ...)`."""

    FUNCTION = "function"
    CLASS = "class"
    MODULE = "module"
    TEST = "test"
    VARIABLE = "variable"


class Scope(Struct, frozen=True, kw_only=True):
    """One definition. Lines are 1-based and inclusive; decorators and attributes belong to it."""

    kind: ScopeKind
    name: str
    qualified_name: str
    """`Class.method`, `outer.inner`; a Go method carries its receiver's type."""
    start_line: int
    def_line: int
    """Line of the signature, below the decorators."""
    end_line: int
    owner: str | None = None
    """Qualified name of the scope around it."""
    depth: int = 0

    @property
    def lines(self) -> int:
        return self.end_line - self.start_line + 1

    def holds(self, line: int) -> bool:
        return self.start_line <= line <= self.end_line


_WRAPPERS = (
    *("decorated_definition", "export_statement", "template_declaration"),
    *("lexical_declaration", "type_declaration"),
)
_PREFIXES = frozenset({"attribute_item", "decorator"})
_ORDER = tuple(ScopeKind)
_GENERIC = regex(r"<.*", re.DOTALL)
_QUOTES = "\"'`"


@lru_cache(maxsize=2048)
def definitions(path: str, source: bytes) -> tuple[Scope, ...]:
    """Every definition by its first line, outer before inner; empty if it cannot be parsed."""
    language = language_of(path, source)
    tree = parse(language, source)
    if language is None or tree is None:
        return ()
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query(language, BY_NAME[language].definitions))
    scopes: dict[tuple[int, int], Scope] = {}
    for _, captures in cursor.matches(tree.root_node):
        kind = next(kind for kind in ScopeKind if kind.value in captures)
        node = captures[kind.value][0]
        # a name may be inside nested C declarators, the text of a string, or have parameters
        named = captures["name"][0]
        while inner := named.child_by_field_name("declarator"):
            named = inner
        name = _GENERIC.sub("", text_of(named)).strip(_QUOTES) or "_"
        line, end = node.start_point.row + 1, node.end_point
        scope = Scope(
            kind=kind,
            name=name.rpartition("::")[2],
            qualified_name=name.replace("::", "."),
            start_line=_first_line(node),
            def_line=line,
            end_line=max(line, end.row + bool(end.column)),
            owner=text_of(captures["owner"][0]) if "owner" in captures else None,
        )
        place = (node.start_byte, -node.end_byte)
        known = scopes.get(place)
        if known is None or _ORDER.index(scope.kind) < _ORDER.index(known.kind):
            scopes[place] = scope
    return tuple(_nested(scopes))


def enclosing(path: str, source: bytes, line: int) -> Scope | None:
    """The innermost function, test or class around a 1-based line; None at the top level."""
    return innermost(definitions(path, source), line)


def innermost(scopes: Iterable[Scope], line: int) -> Scope | None:
    """The innermost function, test or class among these around a line."""
    around = [scope for scope in scopes if scope.holds(line)]
    callable_around = [s for s in around if s.kind not in (ScopeKind.VARIABLE, ScopeKind.MODULE)]
    return min(callable_around, key=lambda scope: (scope.lines, -scope.depth), default=None)


def _first_line(node: "Node") -> int:
    while node.parent is not None and node.parent.type in _WRAPPERS:
        node = node.parent
    before = node.prev_named_sibling
    while before is not None and before.type in _PREFIXES:
        node, before = before, before.prev_named_sibling
    return node.start_point.row + 1


def _nested(scopes: dict[tuple[int, int], Scope]) -> Iterator[Scope]:
    """Qualify each scope with the scopes around it; outer come before inner."""
    outer: list[tuple[int, Scope]] = []
    for (start, minus_end), scope in sorted(scopes.items(), key=lambda item: item[0]):
        while outer and outer[-1][0] <= start:
            outer.pop()
        owner = scope.owner or (outer[-1][1].qualified_name if outer else None)
        qualified = f"{owner}.{scope.qualified_name}" if owner else scope.qualified_name
        named = replace(scope, qualified_name=qualified, owner=owner, depth=len(outer))
        if named.kind is not ScopeKind.VARIABLE:
            outer.append((-minus_end, named))
        yield named
