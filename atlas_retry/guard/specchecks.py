"""Assertions of Ruby, PHP, C and C++ tests, made canonical. Runs nothing."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard.jschecks import JS_STRENGTH
from atlas_retry.guard.treechecks import check_of, text_of, walk
from atlas_retry.guard.units import FIRM, PARTIAL, STRONG, VOID, WEAK, Check

if TYPE_CHECKING:
    from tree_sitter import Node

_RSPEC = {
    "eq": STRONG, "eql": STRONG, "equal": STRONG, "be": STRONG, "match_array": STRONG,
    "contain_exactly": STRONG, "be_nil": STRONG, "be_empty": STRONG, "raise_error": FIRM,
    "be_within": FIRM, "have_received": FIRM, "be_truthy": WEAK, "be_falsey": 2, "be_falsy": 2,
    "be_a": 2, "be_an": 2, "be_kind_of": 2, "be_instance_of": 2, "respond_to": WEAK,
}  # fmt: skip
_MINITEST = {
    "assert_equal": STRONG, "assert_same": STRONG, "assert_nil": STRONG, "assert_empty": STRONG,
    "assert_in_delta": FIRM, "assert_raises": FIRM, "refute_nil": WEAK, "refute_equal": WEAK,
    "assert_instance_of": 2, "assert_kind_of": 2, "assert_operator": 2, "assert": PARTIAL,
    "refute": PARTIAL, "assert_respond_to": WEAK, "assert_nothing_raised": WEAK,
}  # fmt: skip
_PHPUNIT = {
    "assertSame": STRONG, "assertEquals": STRONG, "assertNull": STRONG, "assertEmpty": STRONG,
    "assertJsonStringEqualsJsonString": STRONG, "assertEqualsCanonicalizing": FIRM,
    "assertEqualsWithDelta": FIRM, "assertCount": FIRM, "expectException": FIRM,
    "expectExceptionMessage": FIRM, "assertNotNull": WEAK, "assertNotEmpty": WEAK,
    "assertNotSame": WEAK, "assertNotEquals": WEAK, "assertIsArray": 2, "assertIsInt": 2,
    "assertIsString": 2, "assertInstanceOf": 2, "assertGreaterThan": 2, "assertLessThan": 2,
    "expectNotToPerformAssertions": VOID, "addToAssertionCount": VOID,
}  # fmt: skip
_GTEST = {
    "EQ": STRONG, "STREQ": STRONG, "DOUBLE_EQ": STRONG, "FLOAT_EQ": STRONG, "CLOSE": FIRM,
    "NEAR": FIRM, "THROW": FIRM, "THROWS_AS": FIRM, "THROWS_WITH": FIRM, "THAT": FIRM,
    "EQUAL": STRONG, "ANY_THROW": 2, "THROWS": 2, "NO_THROW": WEAK, "NOTHROW": WEAK, "NE": WEAK,
    "STRNE": WEAK, "LT": 2, "LE": 2, "GT": 2, "GE": 2, "FALSE": PARTIAL, "TRUE": PARTIAL,
}  # fmt: skip
_ANY_ERROR = re.compile(r"\bstd::exception\b|\\?\b(Exception|Throwable|StandardError)\b(::class)?")
_EXACT = 1e-6
"""A tolerance up to which floats count as compared exactly."""


def checks(body: "Node", language: str) -> Iterator[Check]:
    """The assertions below a node, in order of the text."""
    reader = {"ruby": _ruby, "php": _php}.get(language, _cpp)
    for node in walk(body):
        found = reader(node)
        if found is not None:
            yield found


def _ruby(node: "Node") -> Check | None:
    if node.type != "call":
        return None
    method, receiver = (node.child_by_field_name(f) for f in ("method", "receiver"))
    word = text_of(method) if method is not None else ""
    arguments = node.child_by_field_name("arguments")
    told = text_of(arguments) if arguments is not None else ""
    if receiver is None:
        known = word in _MINITEST or word.startswith(("assert_", "refute_"))
        strength = WEAK if word == "assert_raises" and not told else _MINITEST.get(word, PARTIAL)
        return check_of(node, word, _unless_void(strength, told)) if known else None
    if word not in ("to", "not_to", "to_not") or not re.match(
        r"expect\b|is_expected", text_of(receiver)
    ):
        return None
    strength = _rspec_strength(told.strip("()"))
    if re.match(r"expect\((true|false|nil|\d+)\)$", text_of(receiver)):
        strength = VOID
    return check_of(node, word, strength if word == "to" else min(strength, 2))


def _rspec_strength(said: str) -> int:
    found = re.match(r"\w+", said)
    matcher = found[0] if found else ""
    if re.match(r"be\s*(>|<)", said):
        return 2
    if matcher == "raise_error" and ("(" not in said or _ANY_ERROR.search(said)):
        return 2
    return _RSPEC.get(matcher, PARTIAL)


def _unless_void(strength: int, told: str) -> int:
    """Nothing, where what is asserted is a constant or equal to itself by its spelling."""
    bare = told.strip().removeprefix("(").removesuffix(")")
    parts = [part.strip() for part in bare.split(",")]
    same = len(parts) > 1 and parts[0] == parts[1]
    return VOID if same or re.fullmatch(r"true|!false|1|!0", bare) else strength


def _php(node: "Node") -> Check | None:
    if node.type not in ("member_call_expression", "scoped_call_expression"):
        return None
    name, arguments = (node.child_by_field_name(f) for f in ("name", "arguments"))
    word = text_of(name) if name is not None else ""
    told = text_of(arguments) if arguments is not None else ""
    if re.match(r"expect\(", text_of(node)) and word in JS_STRENGTH:
        return check_of(node, word, JS_STRENGTH[word])
    if not re.match(r"assert|expect[A-Z]|addToAssertionCount", word):
        return None
    strength = _PHPUNIT.get(word, PARTIAL)
    if word == "expectException" and _ANY_ERROR.match(told.strip("( ")):
        strength = WEAK
    return check_of(node, word, _unless_void(strength, told))


_MACRO = re.compile(
    r"^(EXPECT|ASSERT|REQUIRE|CHECK|BOOST_(?:CHECK|REQUIRE|TEST)|assert)(?:_(\w+))?$"
)


def _cpp(node: "Node") -> Check | None:
    if node.type != "call_expression":
        return None
    function, arguments = (node.child_by_field_name(f) for f in ("function", "arguments"))
    found = _MACRO.match(text_of(function)) if function is not None else None
    if found is None or arguments is None:
        return None
    word, told = found[2] or "", text_of(arguments)
    strength = _GTEST.get(word, PARTIAL)
    if not word:
        strength = STRONG if "==" in told and "||" not in told else PARTIAL
        strength = 2 if re.search(r"!=|[^-<>][<>]=?[^<>]", told) else strength
    if word == "NEAR" and _tolerance(arguments) <= _EXACT:
        strength = STRONG
    if word in ("THROW", "THROWS_AS") and _ANY_ERROR.search(told.rpartition(",")[2]):
        strength = WEAK
    return check_of(node, word or "true", _unless_void(strength, told))


def _tolerance(arguments: "Node") -> float:
    """The last argument as a number; without bound where it is none."""
    try:
        return float(text_of(arguments.named_children[-1]).rstrip("fFlL"))
    except (ValueError, IndexError):
        return float("inf")
