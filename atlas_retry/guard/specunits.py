"""Finds the tests of Ruby, PHP, C and C++ in their trees. Reads no assertion."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard.treechecks import text_of, walk
from atlas_retry.guard.units import Found
from atlas_retry.guard.words import words

if TYPE_CHECKING:
    from tree_sitter import Node

_RUBY_WORD = re.compile(
    r"^([xf]?)(it|specify|example|test|scenario|should|describe|context|feature|shared_examples\w*)$"
)
_RUBY_TESTS = words("it specify example test scenario should")
_RUBY_OFF = re.compile(r"(^:|\b)(skip|pending|focus|if|unless)\b\s*(:|=>|$)")


def ruby(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    """Examples of RSpec and methods of Minitest."""
    for child in node.named_children:
        found = _ruby_call(child)
        if found is not None:
            title, word, marks, block = found
            inner = (*markers, *marks)
            if word in _RUBY_TESTS:
                yield Found(name=prefix + title, node=child, body=block or child, markers=inner)
            elif block is not None:
                yield from ruby(block, inner, f"{prefix}{title} > ")
        elif child.type == "method" and _name(child).startswith("test_"):
            yield Found(name=prefix + _name(child), node=child, body=child, markers=markers)
        else:
            yield from ruby(child, markers, prefix)


def _ruby_call(node: "Node") -> tuple[str, str, tuple[str, ...], "Node | None"] | None:
    """Title, word, marks and block of `it "title", :skip do ... end`."""
    method = node.child_by_field_name("method") if node.type == "call" else None
    found = _RUBY_WORD.match(text_of(method)) if method else None
    receiver = node.child_by_field_name("receiver")
    if not found or (receiver is not None and text_of(receiver) != "RSpec"):
        return None
    arguments = node.child_by_field_name("arguments")
    told = [text_of(part) for part in arguments.named_children] if arguments else []
    marks = [part for part in told[1:] if _RUBY_OFF.search(part)] + [found[0]] * bool(found[1])
    block = node.child_by_field_name("block")
    if block is None and found[2] == "should":
        return None
    if block is None and found[2] in _RUBY_TESTS:
        marks.append("no body")
    return (told[0].strip("'\"") if told else ""), found[2], tuple(marks), block


def _name(node: "Node") -> str:
    name = node.child_by_field_name("name")
    return text_of(name) if name is not None else ""


_PHP_OFF = re.compile(r"#\[\s*(Skip|Requires\w*|Group|DoesNotPerform\w*)|@(requires|group|todo)\b")
_PHP_WORDS = words("it test describe")


def php(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    """Methods of PHPUnit with what provides their data, and functions of Pest."""
    for child in node.named_children:
        if child.type == "method_declaration":
            yield from _php_method(child, node, markers, prefix)
        elif child.type == "function_call_expression":
            yield from _pest(child, markers, prefix)
        else:
            yield from php(child, markers, prefix)


def _php_method(
    method: "Node", around: "Node", markers: tuple[str, ...], prefix: str
) -> Iterator[Found]:
    name, body = _name(method), method.child_by_field_name("body")
    before = method.prev_named_sibling
    said = text_of(before) if before is not None and before.type == "comment" else ""
    head = said + text_of(method).partition("{")[0]
    is_test = name.startswith("test") or re.search(r"#\[\s*Test\b|@test\b", head)
    provides = re.search(rf"(DataProvider\(['\"]|@dataProvider\s+){name}\b", text_of(around))
    if body is not None and (is_test or provides):
        off = tuple(match[0] for match in _PHP_OFF.finditer(head))
        yield Found(name=prefix + name, node=method, body=body, markers=(*markers, *off))


def _pest(call: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    function, arguments = (call.child_by_field_name(f) for f in ("function", "arguments"))
    word = text_of(function) if function is not None else ""
    closures = [n for n in walk(call) if n.type in ("anonymous_function", "arrow_function")]
    if word not in _PHP_WORDS or arguments is None or not arguments.named_children:
        return
    title = text_of(arguments.named_children[0]).strip("'\"")
    if word == "describe" and closures:
        yield from php(closures[0], markers, f"{prefix}{title} > ")
    else:
        whole = call.parent if call.parent is not None and not closures else call
        yield Found(name=prefix + title, node=call, body=whole, markers=markers)


_GTEST = re.compile(r"^(TYPED_)?TEST(_[FP])?$|^(TEST|SCENARIO|TEMPLATE_TEST|BOOST_AUTO_TEST)_CASE$")
_CPP_NAMED = re.compile(r"^(TEST_CASE|SCENARIO|TEMPLATE_TEST_CASE|TEST_CASE_METHOD)$")
_CPP_OFF = re.compile(r"DISABLED_|\[\.|\[!(mayfail|shouldfail)\]")


def cpp(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    """Tests of GoogleTest, Catch2, doctest and Boost; what the preprocessor leaves out is off."""
    for child in node.named_children:
        if child.type in ("preproc_if", "preproc_ifdef"):
            condition = text_of(child).partition("\n")[0]
            yield from cpp(child, (*markers, condition), prefix)
        elif child.type == "function_definition":
            yield from _gtest(child, markers, prefix)
        elif child.type == "expression_statement":
            yield from _catch(child, markers, prefix)
        elif child.type in ("namespace_definition", "declaration_list", "linkage_specification"):
            yield from cpp(child, markers, prefix)


def _gtest(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    declarator, body = (node.child_by_field_name(f) for f in ("declarator", "body"))
    word, _, told = text_of(declarator).partition("(") if declarator is not None else ("", "", "")
    if _GTEST.match(word.strip()) and body is not None:
        yield _cpp_found(told.rpartition(")")[0], node, body, markers, prefix)


def _catch(node: "Node", markers: tuple[str, ...], prefix: str) -> Iterator[Found]:
    word, _, told = text_of(node).partition("(")
    body = node.next_named_sibling
    if _CPP_NAMED.match(word.strip()) and body is not None and body.type == "compound_statement":
        yield _cpp_found(told.rpartition(")")[0], node, body, markers, prefix)


def _cpp_found(
    told: str, node: "Node", body: "Node", markers: tuple[str, ...], prefix: str
) -> Found:
    off = tuple(match[0] for match in _CPP_OFF.finditer(told))
    name = re.sub(r"\s+|DISABLED_|,?\s*\"\[.*", "", told)
    return Found(name=prefix + name, node=node, body=body, markers=(*markers, *off))
