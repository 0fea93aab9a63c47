"""Finds the tests of JavaScript, Go, Java and Rust in their trees. Reads no assertion."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard import handed, jsoptions
from atlas_retry.guard.treechecks import text_of
from atlas_retry.guard.units import Found

if TYPE_CHECKING:
    from tree_sitter import Node

_JS_TEST = re.compile(r"^([xf]?)(test|it|specify|bench|describe|context|suite)$")
_JS_MARKS = frozenset({"skip", "todo", "only", "fails", "failing", "skipIf", "runIf", "fixme"})


def javascript(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    """Tests of Jest, Vitest, Mocha and their kin."""
    for child in node.named_children:
        call = _js_call(child)
        if call is None:
            yield from javascript(child, markers, prefix)
            continue
        title, word, marks, body = call
        inner = (*markers, *marks)
        if word in ("describe", "context", "suite"):
            if body is not None:
                yield from javascript(body, inner, f"{prefix}{title} > ")
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
    marks = (*marks, *(mark for node in arguments.named_children for mark in jsoptions.marks(node)))
    marks = (*marks, *(mark for node in bodies for mark in jsoptions.calls(node)))
    title = text_of(arguments.named_children[0]).strip("'\"`")
    body = bodies[0].child_by_field_name("body") if bodies else None
    if body is None and found[2] in ("test", "it") and len(arguments.named_children) < 2:  # noqa: PLR2004
        marks = (*marks, "no body")
    return title, found[2], marks, _whole(node, body)


def _whole(call: "Node", body: "Node | None") -> "Node | None":
    """With `each` the rows stand before the body: the call as a whole then counts."""
    function = call.child_by_field_name("function")
    return call if function is not None and function.type == "call_expression" and body else body


def go(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    """Functions that `go test` runs."""
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


def java(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    """Methods of JUnit."""
    for child in node.named_children:
        notes = _annotations(child)
        skips = tuple(text for name, text in notes if _JAVA_SKIPS.match(name) or "expected" in text)
        if child.type == "class_declaration":
            yield from java(child, (*markers, *skips), prefix)
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
            yield from java(child, markers, prefix)


_ROWS = frozenset({"CsvSource", "ValueSource", "case", "test_case"})


def _rows(name: str, said: str) -> list[tuple[str, ...]]:
    """Values that an annotation or attribute hands to a test, each one a row."""
    kind = next((part for part in name.split("::") if part in _ROWS), None)
    return handed.cells(kind, said) if kind else []


def _annotations(node: "Node") -> list[tuple[str, str]]:
    found = []
    for modifiers in node.named_children:
        for note in modifiers.named_children if modifiers.type == "modifiers" else ():
            name = note.child_by_field_name("name")
            if name is not None:
                found.append((text_of(name).split(".")[-1], text_of(note)))
    return found


def rust(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    """Functions that `cargo test` runs."""
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
                yield from rust(inner, (*markers, *switched), prefix)
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
