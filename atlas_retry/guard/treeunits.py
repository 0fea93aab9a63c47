"""Tests of other languages as units, from tree-sitter trees; by lines where they show none."""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard import jschecks, lineunits, specchecks, specunits, treechecks
from atlas_retry.guard.treechecks import literals_of, names_of, text_of, walk
from atlas_retry.guard.units import Check, Found, Suite, Unit, by_name
from atlas_retry.syntax import language_of, parse

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
        text_of(node)
        for node in walk(tree.root_node)
        if treechecks.is_literal(node)
        and not any(start <= node.start_byte < end for start, end in inside)
    )
    units = by_name(_unit(path, f, language or "", beside) for f in found)
    return Suite(
        path=path,
        parsed=not tree.root_node.has_error or language in ("c", "cpp"),
        units=tuple(units.values()),
        literals=beside,
        markers=tuple(_file_markers(source, language or "")),
    )


def _unit(path: str, found: Found, language: str, beside: frozenset[str]) -> Unit:
    read_checks = _CHECKS.get(language, jschecks.checks)
    checks = tuple(read_checks(found.body, language))
    markers = (*found.markers, *_body_markers(found.body, language))
    return Unit(
        path=path,
        name=found.name,
        line=found.node.start_point[0] + 1,
        checks=_reachable(checks, found.body),
        markers=markers,
        rows=found.rows,
        literals=(own := literals_of(found.body)) | beside,
        own=own,
        inputs=treechecks.inputs_of(found.body),
        names=names_of(found.body),
        is_hollow=all("comment" in child.type for child in found.body.named_children),
        dump=re.sub(r"\s+", "", text_of(found.body)) + "|".join(markers) + str(found.rows),
    )


def _reachable(checks: tuple[Check, ...], body: "Node") -> tuple[Check, ...]:
    """Without the assertions behind a `return` that nothing guards."""
    for node in body.named_children:
        if node.type == "return_statement":
            line = node.start_point[0] + 1
            return tuple(check for check in checks if check.line < line)
    return checks


_BODY_SKIPS = {
    "go": re.compile(r"\bt\.Skip(f|Now)?\(|\btesting\.Short\(\)|\bos\.Exit\("),
    "java": re.compile(r"\b(assumeTrue|assumeFalse|assumeThat|assumingThat|System\.exit)\b"),
    "rust": re.compile(r"\bprocess::exit\b|catch_unwind"),
    "ruby": re.compile(r"(?<![.:\w])(skip|pending|omit)\b(?!\s*[:=])"),
    "php": re.compile(r"\bmarkTest(Skipped|Incomplete)\(|->(skip|todo)\("),
    "cpp": re.compile(r"\bGTEST_SKIP\b|\bSKIP\(|\b(_?exit|quick_exit)\("),
    "javascript": re.compile(r"\b(this|ctx|t|context)\.skip\(|\bprocess\.exit\(|\bpending\("),
}


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


_JS_TEST = re.compile(r"^([xf]?)(test|it|specify|bench|describe|context|suite)$")
_JS_MARKS = frozenset({"skip", "todo", "only", "fails", "failing", "skipIf", "runIf", "fixme"})


def _javascript(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    for child in node.named_children:
        call = _js_call(child)
        if call is None:
            yield from _javascript(child, markers, prefix)
            continue
        title, word, marks, body = call
        inner = (*markers, *marks)
        if word in ("describe", "context", "suite"):
            if body is not None:
                yield from _javascript(body, inner, f"{prefix}{title} > ")
        else:
            yield Found(name=prefix + title, node=child, body=body or child, markers=inner)


def _js_call(node: "Node") -> tuple[str, str, tuple[str, ...], "Node | None"] | None:
    """Title, word, marks and body of `it.skip("title", () => ...)`."""
    if node.type == "expression_statement" and node.named_children:
        node = node.named_children[0]
    if node.type != "call_expression":
        return None
    function, arguments = (node.child_by_field_name(f) for f in ("function", "arguments"))
    if function is None or arguments is None:
        return None
    chain = re.findall(r"[A-Za-z_$][\w$]*", re.sub(r"\(.*", "", text_of(function), flags=re.DOTALL))
    found = _JS_TEST.match(chain[0]) if chain else None
    if not found or not arguments.named_children:
        return None
    marks = tuple(f".{word}" for word in chain[1:] if word in _JS_MARKS)
    if found[1]:
        marks = (*marks, f"{found[0]}")
    bodies = [n for n in arguments.named_children if "function" in n.type]
    title = text_of(arguments.named_children[0]).strip("'\"`")
    body = bodies[0].child_by_field_name("body") if bodies else None
    if body is None and found[2] in ("test", "it") and len(arguments.named_children) < 2:  # noqa: PLR2004
        marks = (*marks, "no body")
    return title, found[2], marks, _whole(node, body)


def _whole(call: "Node", body: "Node | None") -> "Node | None":
    """With `each` the rows stand before the body: the call as a whole then counts."""
    function = call.child_by_field_name("function")
    return call if function is not None and function.type == "call_expression" and body else body


def _go(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    for child in node.named_children:
        name, body = (child.child_by_field_name(f) for f in ("name", "body"))
        if child.type != "function_declaration" or name is None or body is None:
            continue
        title = text_of(name)
        parameters = child.child_by_field_name("parameters")
        if re.match(r"(Test|Fuzz|Benchmark|Example)([A-Z_0-9]|$)", title) and (
            title.startswith("Example") or (parameters and "testing." in text_of(parameters))
        ):
            yield Found(name=prefix + title, node=child, body=_statements(body), markers=markers)


def _statements(body: "Node") -> "Node":
    inner = body.named_children
    return inner[0] if len(inner) == 1 and inner[0].type == "statement_list" else body


_JAVA_TESTS = frozenset(
    {"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Property"}
)
_JAVA_SKIPS = re.compile(r"^(Disabled|Ignore|Enabled|Tag|DisabledIf|EnabledIf|Pending)")


def _java(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    for child in node.named_children:
        notes = _annotations(child)
        skips = tuple(text for name, text in notes if _JAVA_SKIPS.match(name) or "expected" in text)
        if child.type == "class_declaration":
            yield from _java(child, (*markers, *skips), prefix)
        elif child.type == "method_declaration":
            name, body = (child.child_by_field_name(f) for f in ("name", "body"))
            if name and body and any(note in _JAVA_TESTS for note, _ in notes):
                title = prefix + text_of(name)
                yield Found(
                    name=title,
                    node=child,
                    body=body,
                    markers=(*markers, *skips),
                    rows=tuple(row for note in notes for row in _rows(*note)),
                )
        elif child.type in ("class_body", "program"):
            yield from _java(child, markers, prefix)


_ROWS = frozenset({"CsvSource", "ValueSource", "case", "test_case"})


def _rows(name: str, said: str) -> list[tuple[str, ...]]:
    """Values that an annotation or attribute hands to a test, each one a row."""
    if name not in _ROWS:
        return []
    told = re.findall(r"\"(?:\\.|[^\"\\])*\"|-?\b\d[\w.]*", said)
    return [(value,) for value in told] if name.endswith("Source") else [tuple(told)]


def _annotations(node: "Node") -> list[tuple[str, str]]:
    found = []
    for modifiers in node.named_children:
        for note in modifiers.named_children if modifiers.type == "modifiers" else ():
            name = note.child_by_field_name("name")
            if name is not None:
                found.append((text_of(name).split(".")[-1], text_of(note)))
    return found


def _rust(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    attributes: list[str] = []
    for child in node.named_children:
        if child.type == "attribute_item":
            attributes.append(re.sub(r"\s+", "", text_of(child)))
            continue
        if child.type in ("line_comment", "block_comment"):
            continue
        switched = tuple(a for a in attributes if _RUST_SKIP.match(a))
        if child.type == "mod_item":
            body = child.child_by_field_name("body")
            inner = body or child
            if body is not None:
                yield from _rust(inner, (*markers, *switched), prefix)
        elif child.type == "function_item" and any(_RUST_TEST.match(a) for a in attributes):
            name, body = (child.child_by_field_name(f) for f in ("name", "body"))
            if name and body:
                title = prefix + text_of(name)
                told = [(a.strip("#[").partition("(")[0], a) for a in attributes]
                rows = tuple(row for note in told for row in _rows(*note))
                off = (*markers, *switched)
                yield Found(name=title, node=child, body=body, markers=off, rows=rows)
        attributes = []


_RUST_TEST = re.compile(r"#\[([a-z_]+::)*(test|rstest|test_case|proptest)\b")
_RUST_SKIP = re.compile(r"#\[(ignore|should_panic|cfg\((?!test\)))")

_FINDERS: dict[str, Finder] = {
    "javascript": _javascript,
    "typescript": _javascript,
    "tsx": _javascript,
    "go": _go,
    "java": _java,
    "rust": _rust,
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
