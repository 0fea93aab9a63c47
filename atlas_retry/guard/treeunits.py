"""Tests of other languages as units, from tree-sitter trees; by lines where they show none."""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard import (
    bindings,
    handed,
    jschecks,
    lineunits,
    specchecks,
    specunits,
    treechecks,
    treefinders,
    treetables,
)
from atlas_retry.guard.treechecks import literals_of, names_of, quoted, text_of, walk
from atlas_retry.guard.units import STRONG, Check, Found, Suite, Unit, by_name
from atlas_retry.syntax import definitions, language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node


Finder = Callable[["Node", tuple[str, ...], str], Iterator[Found]]


def read(path: str, source: bytes) -> Suite:
    """The tests of one file; by lines when no grammar knows its tests."""
    language = language_of(path, source)
    tree = parse(language, source)
    finder = _FINDERS.get(language or "")
    if tree is None or finder is None:
        return lineunits.read(path, source)
    found = tuple(finder(tree.root_node, (), ""))
    if not found and language in _SPECS:
        return lineunits.read(path, source)
    inside = [(f.node.start_byte, f.node.end_byte) for f in found]
    beside = frozenset(
        quoted(text_of(node))
        for node in walk(tree.root_node)
        if treechecks.is_literal(node)
        and not any(start <= node.start_byte < end for start, end in inside)
    )
    values = handed.values_of(tree.root_node)
    units = by_name(_unit(path, f, language or "", beside, values) for f in found)
    asserting = tuple(_asserting(path, source, found, language or ""))
    return Suite(
        path=path,
        parsed=not tree.root_node.has_error or language in ("c", "cpp"),
        units=tuple(units.values()),
        literals=beside,
        markers=(*_file_markers(source, language or ""), *_of_name(path)),
        asserting=frozenset((name, max(c.strength for c in said)) for name, said in asserting),
        formed=frozenset((name, text) for name, said in asserting for text in _compared(said)),
    )


_PLATFORM = re.compile(
    r"_(windows|darwin|freebsd|netbsd|openbsd|plan9|solaris|aix|js|wasip1|android|ios|dragonfly|illumos)"
    r"(_\w+)?_test\.go$|_(wasm|arm|arm64|386|mips\w*|ppc64\w*|riscv64|s390x|loong64)_test\.go$"
)


def _of_name(path: str) -> Iterator[str]:
    """Go builds a file only for the system or processor that its name ends with (go/build)."""
    found = _PLATFORM.search(path)
    if found:
        yield f"built only where its name says ({found[0]})"


def _asserting(
    path: str, source: bytes, tests: tuple[Found, ...], language: str
) -> Iterator[tuple[str, tuple[Check, ...]]]:
    """Functions beside the tests that assert, with their assertions."""
    lines = {line for f in tests for line in range(f.node.start_point[0], f.node.end_point[0] + 1)}
    tree = parse(language, source)
    scopes = [s for s in definitions(path, source) if s.kind == "function"]
    for scope in scopes:
        if tree is None or scope.start_line - 1 in lines:
            continue
        read_checks = _CHECKS.get(language, jschecks.checks)
        node = tree.root_node.descendant_for_point_range(
            (scope.def_line - 1, 0), (scope.end_line - 1, 10_000)
        )
        said = tuple(read_checks(node, language)) if node is not None else ()
        if said:
            yield scope.name, said


def _compared(checks: tuple[Check, ...]) -> frozenset[str]:
    """The texts that assertions compare as a whole."""
    whole = (c for c in checks if c.strength >= STRONG and not c.loosening and not c.guarded)
    return frozenset(text for check in whole for text in check.literals if text[:1] in '"`')


def _unit(
    path: str, found: Found, language: str, beside: frozenset[str], values: handed.Values
) -> Unit:
    read_checks = _CHECKS.get(language, jschecks.checks)
    checks = tuple(read_checks(found.body, language))
    markers = (*found.markers, *_body_markers(found.body, language))
    around = handed.handed(found, values)
    return Unit(
        path=path,
        name=found.name,
        line=found.node.start_point[0] + 1,
        checks=_reachable(checks, found.body),
        markers=markers,
        rows=found.rows + tuple(treetables.rows_of(found.body, language)),
        displays=treetables.displays_of(found.node),
        literals=(own := literals_of(found.body) | around.literals) | beside,
        own=own,
        inputs=_inputs_of(found.body),
        tabled=around.rows,
        names=names_of(found.body),
        bound=tuple(bindings.in_tree(found.body)),
        is_hollow=all("comment" in child.type for child in found.body.named_children),
        dump=re.sub(r"\s+", "", text_of(found.body)) + "|".join(markers) + str(found.rows),
    )


_MESSAGES = re.compile(
    r"^(t|b|tb|log|console|fmt)\.|^(panic|println|fail|describe|it|test)$"
    r"|(^|\.)(setTimeout|assertions|fail|sleep|MkdirAll|mkdirSync|RemoveAll|rmSync|create_dir_all|createDirectories|Sleep|MkdirTemp|TempDir|TempFile|CreateTemp|mkdtempSync)$"
)
"""What only speaks to people and to the environment."""


_PASSING = re.compile(r"\"(/var)?/tmp(/(?!\.\.)[\w.-]*)*\"")
"""Places for what is thrown away."""


def _inputs_of(body: "Node") -> frozenset[str]:
    """Literals of the test but for what is only said in messages."""
    said: set[str] = set()
    for node in walk(body):
        if node.type in ("call_expression", "method_invocation", "macro_invocation"):
            function = node.child_by_field_name("function") or node.named_children[0]
            if _MESSAGES.search(text_of(function)):
                said |= literals_of(*node.named_children[1:])
    told = literals_of(body) - said - bindings.idle(body)
    return frozenset(text for text in told if not _PASSING.fullmatch(text))


def _reachable(checks: tuple[Check, ...], body: "Node") -> tuple[Check, ...]:
    """Without the assertions behind a `return` that nothing guards."""
    for node in body.named_children:
        if node.type == "return_statement":
            end = node.end_point[0] + 1 if node.named_children else node.start_point[0]
            return tuple(check for check in checks if check.line <= end)
    return checks


_BODY_SKIPS = {
    "go": re.compile(
        r"\b[tb]b?\.Skip(f|Now)?\(|\btesting\.Short\(\)|\bos\.Exit\("
        r"|(?<=[{;\n])\s*(?:_ = )?recover\(\)\s*(?=[;}\n])"
    ),
    "java": re.compile(r"\b(assumeTrue|assumeFalse|assumeThat|assumingThat|System\.exit)\b"),
    "rust": re.compile(r"\bprocess::exit\b|catch_unwind"),
    "ruby": re.compile(r"(?<![.:\w])(skip|pending|omit)\b(?!\s*[:=])"),
    "php": re.compile(r"\bmarkTest(Skipped|Incomplete)\(|->(skip|todo)\("),
    "cpp": re.compile(r"\bGTEST_SKIP\b|\bSKIP\(|\b(_?exit|quick_exit)\("),
    "javascript": re.compile(r"\b(this|ctx|t|context)\.skip\(|\bprocess\.exit\(|\bpending\("),
}


def switching(path: str, source: bytes) -> frozenset[str]:
    """Functions that skip for those who call them."""
    language = language_of(path, source) or ""
    key = "javascript" if language in ("typescript", "tsx") else language
    pattern = _BODY_SKIPS.get(key)
    lines = source.decode("utf-8", "replace").splitlines()
    return frozenset(
        scope.name
        for scope in definitions(path, source)
        if pattern is not None
        and scope.kind == "function"
        and pattern.search("\n".join(lines[scope.def_line - 1 : scope.end_line]))
    )


def _body_markers(body: "Node", language: str) -> Iterator[str]:
    key = "javascript" if language in ("typescript", "tsx") else language
    pattern = _BODY_SKIPS.get(key)
    for match in pattern.finditer(text_of(body)) if pattern else ():
        yield match[0]
    for node in walk(body):
        named = node.parent == body or _names_a_case(node)
        if node.type == "if_statement" and named and _only_returns(node):
            yield "conditional return"


def _names_a_case(node: "Node") -> bool:
    """Whether a condition speaks of a value by name: one case of many is passed over."""
    condition = node.child_by_field_name("condition")
    return condition is not None and bool(literals_of(condition))


def _only_returns(node: "Node") -> bool:
    consequence = node.child_by_field_name("consequence")
    if consequence is None:
        return False
    inner = consequence.named_children or [consequence]
    if inner and inner[0].type == "statement_list":
        inner = inner[0].named_children
    kinds = {child.type for child in inner} | {consequence.type}
    leaves = {"return_statement", "continue_statement"}
    return bool(kinds & leaves) and not list(treechecks.checks(consequence, "go"))


_GO_BUILD = re.compile(rb"^//\s*(go:build|\+build)\s+(.*)$", re.MULTILINE)
_RUST_FILE = re.compile(rb"^#!\[cfg\((.*)\)\]", re.MULTILINE)


def _file_markers(source: bytes, language: str) -> Iterator[str]:
    if language == "go":
        head = source.split(b"\npackage ", 1)[0]
        yield from (match[0].decode("utf-8", "replace") for match in _GO_BUILD.finditer(head))
    if language == "rust":
        yield from (match[0].decode("utf-8", "replace") for match in _RUST_FILE.finditer(source))


_FINDERS: dict[str, Finder] = {
    "javascript": treefinders.javascript,
    "typescript": treefinders.javascript,
    "tsx": treefinders.javascript,
    "go": treefinders.go,
    "java": treefinders.java,
    "rust": treefinders.rust,
    "ruby": specunits.ruby,
    "php": specunits.php,
    "c": specunits.cpp,
    "cpp": specunits.cpp,
}
_SPECS = frozenset({"ruby", "php", "c", "cpp"})
"""Languages whose tests may also be written in ways that only their lines show."""
_CHECKS: dict[str, Callable[["Node", str], Iterator[Check]]] = {
    **dict.fromkeys(("go", "java", "rust"), treechecks.checks),
    **dict.fromkeys(_SPECS, specchecks.checks),
}
