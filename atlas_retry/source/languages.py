"""The languages that atlas reads, one row each; parses bytes to a tree."""

import importlib
import re
from collections.abc import Callable
from functools import cache, lru_cache
from posixpath import splitext
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.patterns import regex

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query, Tree


class Grammar(Struct, frozen=True, kw_only=True):
    """How one language is recognised, and which nodes are definitions or imports."""

    name: str
    suffixes: tuple[str, ...]
    wheel: str = ""
    """Module of the grammar; if empty, `tree_sitter_` and the name."""
    entry: str = "language"
    """Function of the wheel that returns the grammar."""
    comment: str = "//"
    definitions: str
    """Query with a node `@function`, `@class`, `@module`, `@test` or `@variable`, its `@name`, and
    an `@owner` if the definition names one (a Go receiver)."""
    imports: str = ""
    """Query whose `@node`s are whole statements."""
    interpreters: tuple[str, ...] = ()
    """Names in a `#!` line, for files without a suffix."""


_PYTHON = """
(function_definition name: (identifier) @name) @function
(class_definition name: (identifier) @name) @class
(module (expression_statement (assignment left: (identifier) @name) @variable))
(class_definition body: (block (expression_statement
  (assignment left: (identifier) @name) @variable)))
(type_alias_statement left: (type (_) @name)) @variable
"""

_JAVASCRIPT = """
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @function
(variable_declarator name: (identifier) @name
  value: [(arrow_function) (function_expression)]) @function
(pair key: (_) @name value: [(arrow_function) (function_expression)]) @function
(assignment_expression left: (member_expression property: (_) @name)
  right: [(arrow_function) (function_expression)]) @function
(call_expression arguments: (arguments . [(string) (template_string)] @name
  [(arrow_function) (function_expression)])) @test
(program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
"""

_JAVASCRIPT_FIELDS = """
(field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @function
"""

_TYPESCRIPT = f"""{_JAVASCRIPT}
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @function
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(type_alias_declaration name: (_) @name) @class
(internal_module name: (_) @name) @module
"""

_JAVASCRIPT_IMPORTS = """
(import_statement) @node
(export_statement source: (_)) @node
(variable_declarator value: (call_expression function: (identifier) @_require
  (#eq? @_require "require"))) @node
"""

_GO = """
(function_declaration name: (identifier) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration
  type: [(type_identifier) @owner (pointer_type (type_identifier) @owner)
    (generic_type type: (type_identifier) @owner)
    (pointer_type (generic_type type: (type_identifier) @owner))]))
  name: (field_identifier) @name) @function
(type_spec name: (type_identifier) @name) @class
(type_alias name: (type_identifier) @name) @class
(const_spec name: (identifier) @name) @variable
(source_file (var_declaration (var_spec name: (identifier) @name) @variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @variable)))
"""

_RUST = """
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(macro_definition name: (identifier) @name) @function
(impl_item type: (_) @name) @class
(struct_item name: (_) @name) @class
(enum_item name: (_) @name) @class
(union_item name: (_) @name) @class
(trait_item name: (_) @name) @class
(type_item name: (_) @name) @class
(mod_item name: (identifier) @name) @module
(const_item name: (identifier) @name) @variable
(static_item name: (identifier) @name) @variable
"""

_JAVA = """
(class_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @class
(enum_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(annotation_type_declaration name: (identifier) @name) @class
(method_declaration name: (identifier) @name) @function
(constructor_declaration name: (identifier) @name) @function
(compact_constructor_declaration name: (identifier) @name) @function
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @variable
"""

_JAVA_IMPORTS = "(import_declaration) @node"

_C = """
(function_definition declarator: (_) @name) @function
(struct_specifier name: (_) @name body: (_)) @class
(union_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_) @name body: (_)) @class
(type_definition declarator: (type_identifier) @name) @class
(preproc_function_def name: (identifier) @name) @function
(preproc_def name: (identifier) @name) @variable
(translation_unit (declaration declarator: (init_declarator declarator: (_) @name)) @variable)
"""

_INCLUDES = "(preproc_include) @node"
_CPP_ONLY = """
(class_specifier name: (_) @name body: (_)) @class
(namespace_definition name: (_) @name) @module
(alias_declaration name: (_) @name) @class
"""

_RUBY = """
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(class name: (_) @name) @class
(module name: (_) @name) @class
(call arguments: (argument_list . (string) @name) block: (_)) @test
(assignment left: (constant) @name) @variable
"""

_PHP = """
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @function
(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @class
(trait_declaration name: (name) @name) @class
(enum_declaration name: (name) @name) @class
(const_declaration (const_element (name) @name)) @variable
"""

_BASH = """
(function_definition name: (word) @name) @function
(program (variable_assignment name: (variable_name) @name) @variable)
"""

GRAMMARS: tuple[Grammar, ...] = (
    Grammar(
        name="python",
        suffixes=(".py", ".pyi", ".pyw"),
        comment="#",
        definitions=_PYTHON,
        imports="(import_statement) @node (import_from_statement) @node",
        interpreters=("python",),
    ),
    Grammar(
        name="javascript",
        suffixes=(".js", ".jsx", ".mjs", ".cjs"),
        definitions=_JAVASCRIPT + _JAVASCRIPT_FIELDS,
        imports=_JAVASCRIPT_IMPORTS,
        interpreters=("node",),
    ),
    Grammar(
        name="typescript",
        suffixes=(".ts", ".mts", ".cts"),
        entry="language_typescript",
        definitions=_TYPESCRIPT,
        imports=_JAVASCRIPT_IMPORTS,
    ),
    Grammar(
        name="tsx",
        suffixes=(".tsx",),
        wheel="tree_sitter_typescript",
        entry="language_tsx",
        definitions=_TYPESCRIPT,
        imports=_JAVASCRIPT_IMPORTS,
    ),
    Grammar(name="go", suffixes=(".go",), definitions=_GO, imports="(import_spec) @node"),
    Grammar(name="rust", suffixes=(".rs",), definitions=_RUST, imports="(use_declaration) @node"),
    Grammar(name="java", suffixes=(".java",), definitions=_JAVA, imports=_JAVA_IMPORTS),
    Grammar(name="c", suffixes=(".c", ".h"), definitions=_C, imports=_INCLUDES),
    Grammar(
        name="cpp",
        suffixes=(".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp"),
        definitions=_C + _CPP_ONLY,
        imports=_INCLUDES,
    ),
    Grammar(
        name="ruby",
        suffixes=(".rb", ".rake"),
        comment="#",
        definitions=_RUBY,
        imports='(call method: (identifier) @_m (#match? @_m "^require")) @node',
        interpreters=("ruby",),
    ),
    Grammar(
        name="php",
        suffixes=(".php",),
        entry="language_php",
        definitions=_PHP,
        imports="(namespace_use_declaration) @node",
        interpreters=("php",),
    ),
    Grammar(
        name="bash",
        suffixes=(".sh", ".bash"),
        comment="#",
        definitions=_BASH,
        imports='(command name: (command_name) @_c (#any-of? @_c "source" ".")) @node',
        interpreters=("sh", "bash", "dash"),
    ),
)

BY_NAME: dict[str, Grammar] = {grammar.name: grammar for grammar in GRAMMARS}
BY_SUFFIX: dict[str, Grammar] = {}
for _grammar in GRAMMARS:
    BY_SUFFIX |= dict.fromkeys(_grammar.suffixes, _grammar)


@cache
def load(name: str) -> "Language":
    """The grammar of a language in `BY_NAME`, loaded on first use."""
    from tree_sitter import Language

    grammar = BY_NAME[name]
    return Language(
        getattr(importlib.import_module(grammar.wheel or f"tree_sitter_{name}"), grammar.entry)()
    )


@cache
def query(name: str, pattern: str) -> "Query":
    """A compiled query; compiling costs milliseconds, so each is kept."""
    from tree_sitter import Query

    return Query(load(name), pattern)


@cache
def _types_pattern(name: str, types: re.Pattern[str]) -> str:
    """The query for nodes whose types match; empty if the language has no such type."""
    language = load(name)
    named = filter(language.node_kind_is_named, range(language.node_kind_count))
    kinds = {language.node_kind_for_id(n) or "" for n in named if language.node_kind_is_visible(n)}
    patterns = [f"({kind})" for kind in sorted(kinds) if types.search(kind)]
    return f"[{' '.join(patterns)}] @node" if patterns else ""


MAX_SOURCE_BYTES = 1 << 20
"""Size limit for parsing; larger files are usually generated, and read as plain lines."""
_MAX_MEAN_LINE_BYTES = 400

_SHEBANG = regex(rb"#!.*?([a-z]+)[\d.]*\s*$", re.MULTILINE)
_DASH_COMMENT = {".sql": "--", ".lua": "--", ".hs": "--", ".elm": "--"}
_HASH_COMMENT = frozenset(
    {"", ".cfg", ".conf", ".ini", ".mk", ".pl", ".properties", ".r", ".toml", ".yaml", ".yml"}
)


def language_of(path: str, source: bytes = b"") -> str | None:
    """The language by suffix, else by the `#!` line of `source`; None if unknown."""
    suffix = _suffix(path)
    if suffix:
        grammar = BY_SUFFIX.get(suffix)
        return grammar.name if grammar else None
    shebang = _SHEBANG.match(source[:200])
    called = shebang[1].decode() if shebang else ""
    return next((g.name for g in GRAMMARS if called in g.interpreters), None)


def _suffix(path: str) -> str:
    # a path object takes ten times as long
    return splitext(path)[1].lower()


def comment_of(path: str) -> str:
    """The sign that starts a comment to the end of the line."""
    language = language_of(path)
    if language:
        return BY_NAME[language].comment
    suffix = _suffix(path)
    return _DASH_COMMENT.get(suffix) or ("#" if suffix in _HASH_COMMENT else "//")


@lru_cache(maxsize=128)
def parse(language: str | None, source: bytes) -> "Tree | None":
    """A tree that tolerates errors; None for an unknown language, binary or huge sources."""
    if language not in BY_NAME or len(source) > MAX_SOURCE_BYTES or b"\0" in source:
        return None
    from tree_sitter import Parser

    return Parser(load(language)).parse(source)


def is_minified(source: bytes) -> bool:
    """Whether the lines are too long to say what one of their many definitions is about."""
    return len(source) > _MAX_MEAN_LINE_BYTES * (source.count(b"\n") + 1)


def text_of(node: "Node | None") -> str:
    """The source of a node; empty for None."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def nodes_of_types(path: str, source: bytes, types: re.Pattern[str]) -> "list[Node]":
    """The nodes whose types match, in order of the text; none if the source has errors."""
    tree = parse(language_of(path, source), source)
    if tree is None or tree.root_node.has_error:
        return []
    return captured(path, source, lambda language: _types_pattern(language, types))


def captured(
    path: str,
    source: bytes,
    pattern: Callable[[str], str],
    rows: tuple[int, int] | None = None,
) -> "list[Node]":
    """The nodes `@node` of the language's query, in order of the text; none without one.

    `rows` limits the search to these lines: 0-based, the last one excluded.
    """
    language = language_of(path, source)
    tree = parse(language, source)
    wanted = pattern(language) if language and tree else ""
    if language is None or tree is None or not wanted:
        return []
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query(language, wanted))
    if rows:
        cursor.set_point_range((rows[0], 0), (rows[1], 0))
    nodes = cursor.captures(tree.root_node).get("node", [])
    return sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte))
