"""Assertions of Go, Java and Rust tests, made canonical, and what all readers need."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from atlas_retry.guard.copies import of_itself
from atlas_retry.guard.outcomes import outcome, outcome_of_failing
from atlas_retry.guard.projections import whole_in_text
from atlas_retry.guard.units import FIRM, PARTIAL, STRONG, VOID, WEAK, Check
from atlas_retry.guard.words import words

if TYPE_CHECKING:
    from tree_sitter import Node

_LITERALS = re.compile(
    r"^(string|template_string|number|integer|float|interpreted_string_literal|raw_string_literal|"
    r"int_literal|float_literal|rune_literal|imaginary_literal|string_literal|char_literal|"
    r"integer_literal|decimal_integer_literal|decimal_floating_point_literal|character_literal|"
    r"hex_integer_literal|number_literal|encapsed_string|simple_symbol|regex)$"
)
_NAMES = re.compile(r"identifier$|^name$|^constant$")
_JAVA_STRENGTH = {
    "assertEquals": STRONG, "assertSame": STRONG, "assertArrayEquals": STRONG, "fail": PARTIAL,
    "assertIterableEquals": STRONG, "assertLinesMatch": STRONG, "assertNull": STRONG,
    "assertThrowsExactly": STRONG, "assertThrows": FIRM, "assertTrue": PARTIAL,
    "assertFalse": PARTIAL, "assertInstanceOf": 2, "assertNotNull": WEAK, "assertNotEquals": WEAK,
    "assertNotSame": WEAK, "assertDoesNotThrow": WEAK, "isEqualTo": STRONG, "contains": PARTIAL,
    "containsExactly": STRONG, "isNotNull": WEAK, "isTrue": PARTIAL, "isFalse": PARTIAL,
    "verify": FIRM, "assertAll": PARTIAL, "assertThat": PARTIAL, "hasSize": FIRM,
    "isEmpty": STRONG, "isNull": STRONG, "isZero": STRONG, "hasToString": STRONG,
    "isInstanceOf": 2, "isNotEqualTo": WEAK, "isSameAs": STRONG, "hasMessage": FIRM,
}  # fmt: skip
_GO_STRENGTH = {
    "Equal": STRONG, "EqualValues": FIRM, "Exactly": STRONG, "ErrorIs": STRONG, "Nil": STRONG,
    "NoError": FIRM, "EqualError": STRONG, "ElementsMatch": FIRM, "Len": FIRM, "Contains": PARTIAL,
    "True": PARTIAL, "False": PARTIAL, "Error": 2, "NotNil": WEAK, "NotEqual": WEAK, "Empty": FIRM,
    "NotEmpty": WEAK, "Greater": 2, "Less": 2, "InDelta": FIRM, "JSONEq": STRONG, "Panics": 2,
}  # fmt: skip
_RUST_STRENGTH = {"assert_eq": STRONG, "assert_ne": WEAK, "assert": PARTIAL, "panic": PARTIAL,
                  "assert_matches": PARTIAL, "unreachable": PARTIAL, "assert_snapshot": STRONG,
                  "assert_debug_snapshot": STRONG}  # fmt: skip


def text_of(node: "Node") -> str:
    """Its source text."""
    return (node.text or b"").decode("utf-8", "replace")


def walk(node: "Node") -> Iterator["Node"]:
    """The node and everything below it, in order of the text."""
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(reversed(here.children))


def is_literal(node: "Node") -> bool:
    """Whether the node is a number, a text or a pattern."""
    return bool(_LITERALS.match(node.type))


def literals_of(*nodes: "Node") -> frozenset[str]:
    """Literals, quotes made one."""
    return frozenset(
        quoted(text_of(node)) for root in nodes for node in walk(root) if is_literal(node)
    )


def names_of(*nodes: "Node") -> frozenset[str]:
    """Identifiers."""
    return frozenset(text_of(n) for root in nodes for n in walk(root) if _NAMES.search(n.type))


def checks(body: "Node", language: str) -> Iterator[Check]:
    """The assertions below a node, in order of the text."""
    reader = {"java": _java, "rust": _rust}.get(language, _go)
    for node in walk(body):
        if language == "go" and node.type == "if_statement":
            yield from _go_condition(node)
        elif (found := reader(node)) is not None:
            yield found


def check_of(node: "Node", word: str, strength: int, *, said: "Node | None" = None) -> Check:
    """A check as it is spelled, void where a `try` around it hides its failure."""
    return Check(
        text=(text := f"{word} " + re.sub(r"[\s;,'\"`]+", "", text_of(said or node))),
        whole=whole_in_text(text),
        strength=VOID if _swallowed(node) else strength,
        line=node.start_point[0] + 1,
        literals=literals_of(said or node),
        names=(names := names_of(said or node)),
        guarded=_guards(node),
        loosening=(names & LOOSE) | _narrowing(node) | of_itself(node),
        outcome=outcome(text_of(said or node)),
    )


LOOSE = words(
    "trim trimEnd trimStart toLowerCase toUpperCase toFixed round floor ceil sort sorted slice"
    " substring substr replace replaceAll normalize TrimSpace Trim ToLower ToUpper EqualFold"
    " Contains HasPrefix HasSuffix Fields trim_end trim_start to_lowercase to_uppercase"
    " to_ascii_lowercase starts_with ends_with strip toLocaleLowerCase equalsIgnoreCase"
    " startsWith endsWith downcase upcase squish strtolower abs len length"
)
"""Functions that make values alike which are not."""
_PART = re.compile(r"\[[^\[\]:]*:[^\[\]:]*\]|\.(slice|take|skip|limit|filter|first|last)\(")
_LOOPS = frozenset(
    {"for_statement", "for_in_statement", "for_expression", "enhanced_for_statement"}
)


def _narrowing(node: "Node") -> frozenset[str]:
    """Whether it stands in a loop over a part of something."""
    here = node.parent
    while here is not None:
        if here.type in _LOOPS:
            body = here.child_by_field_name("body")
            end = body.start_byte if body is not None else here.end_byte
            head = (here.text or b"")[: end - here.start_byte].decode("utf-8", "replace")
            if _PART.search(head):
                return frozenset({"a part of the cases"})
        here = here.parent
    return frozenset()


_WHOLE = re.compile(r"(\d[\d_]*?)(?:[lLn]|_?[iu](?:8|16|32|64|128|size))?")


def quoted(literal: str) -> str:
    """Quotes made one; whole numbers without their type and their underscores."""
    if number := _WHOLE.fullmatch(literal):
        return number[1].replace("_", "")
    return re.sub(r"^['`](.*)['`]$", r'"\1"', literal, flags=re.DOTALL)


def _swallowed(node: "Node") -> bool:
    """Whether it stands in a `try` whose `catch` says nothing."""
    here = node.parent
    while here is not None:
        if here.type == "try_statement":
            inside = here.child_by_field_name("body")
            handlers = [c for c in here.named_children if c.type == "catch_clause"]
            within = inside is not None and inside.start_byte <= node.start_byte < inside.end_byte
            quiet = handlers and not any(
                n.type == "throw_statement" or "fail" in text_of(n)[:5]
                for h in handlers
                for n in walk(h)
            )
            if within and quiet:
                return True
        here = here.parent
    return False


_CONDITIONS = frozenset(
    ("if_statement", "if_expression", "if", "unless", "if_modifier", "unless_modifier")
)


def _guards(node: "Node") -> int:
    count, here = 0, node.parent
    while here is not None and "function" not in here.type and "method" not in here.type:
        count += here.type in _CONDITIONS or _is_caught(here)
        here = here.parent
    return count


def _is_caught(clause: "Node") -> bool:
    """Whether it is reached only when something was thrown, and nothing insists that it is."""
    if clause.type != "catch_clause" or clause.parent is None:
        return False
    inside = clause.parent.child_by_field_name("body")
    around = clause.parent.parent
    said = text_of(inside) if inside is not None else ""
    counted = around is not None and "assertions(" in text_of(around).lower()
    return not counted and not re.search(r"\bfail\w*\(|\bthrow\b|unreachable|AssertionError", said)


def _go(node: "Node") -> Check | None:
    if node.type != "call_expression":
        return None
    function = node.child_by_field_name("function")
    found = re.match(r"(assert|require)\.(\w+)$", text_of(function)) if function else None
    if found:
        name = found[2].removesuffix("f")
        return check_of(node, name, _GO_STRENGTH.get(name, PARTIAL))
    return None


_GO_FAILS = re.compile(r"\b\w+\.(Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\bpanic\(")


def _go_condition(node: "Node") -> Iterator[Check]:
    """`if got != want { t.Errorf(...) }` asserts that got == want; `||` asserts each part."""
    condition, body = (node.child_by_field_name(f) for f in ("condition", "consequence"))
    if condition is None or body is None or not _GO_FAILS.search(text_of(body)):
        return
    if not any(inner.type == "if_statement" for inner in walk(body)):
        first = node.child_by_field_name("initializer")
        yield from (_go_part(part, first) for part in _alternatives(condition))


def _alternatives(condition: "Node") -> Iterator["Node"]:
    operator = condition.child_by_field_name("operator")
    left, right = (condition.child_by_field_name(side) for side in ("left", "right"))
    if operator is not None and text_of(operator) == "||" and left and right:
        yield from _alternatives(left)
        yield from _alternatives(right)
    else:
        yield condition


def _go_part(condition: "Node", first: "Node | None") -> Check:
    said = text_of(condition)
    strength = FIRM
    if "!=" in said or "errors.Is" in said or re.search(r"!.*Equal\(", said):
        strength = WEAK if re.fullmatch(r"\s*\w+ == nil\s*", said) else STRONG
        strength = FIRM if re.fullmatch(r"\s*\w*[eE]rr\w* != nil\s*", said) else strength
    elif re.search(r"[<>]", said):
        strength = 2
    elif re.match(r"\s*!(strings|slices|bytes)\.(Contains|HasPrefix|HasSuffix)\(", said):
        strength = PARTIAL
    elif "==" in said:
        strength = WEAK
    if re.search(r"&&\s*false|^\s*false\s*$", said):
        strength = VOID
    elif "&&" in said:
        strength = min(strength, PARTIAL)
    check = check_of(condition, "if", strength)
    extra = literals_of(first) if first else frozenset()
    names = names_of(first) if first else frozenset()
    return replace(
        check,
        text=check.text + re.sub(r"\s+", "", text_of(first)) if first else check.text,
        literals=check.literals | extra,
        names=check.names | names,
        loosening=check.loosening | (names & LOOSE),
        outcome=outcome_of_failing(said, text_of(first) if first else ""),
        guarded=0,
    )


def _java(node: "Node") -> Check | None:
    if node.type != "method_invocation":
        return None
    name, arguments = (node.child_by_field_name(f) for f in ("name", "arguments"))
    word = text_of(name) if name else ""
    if word not in _JAVA_STRENGTH or arguments is None:
        return None
    if word in ("isEmpty", "isNull", "isZero") and "assertThat(" not in text_of(node):
        return None
    if word == "assertThat" and node.parent and node.parent.type == "method_invocation":
        return None
    strength = _JAVA_STRENGTH[word]
    said = text_of(arguments)
    if word == "assertThrows" and re.match(r"\(\s*(Throwable|Exception|RuntimeException)\b", said):
        strength = WEAK
    if word == "assertThrows" and any(n.type == "throw_statement" for n in walk(arguments)):
        strength = VOID
    if word == "isInstanceOf" and "assertThatThrownBy(" in text_of(node):
        strength = 2 if re.search(r"\b(Throwable|(Runtime)?Exception)\.class", said) else FIRM
    if re.fullmatch(r"\(\s*(true|false|!false)\s*\)", said):
        strength = VOID
    parts = [re.sub(r"\s", "", text_of(a)) for a in arguments.named_children]
    if word == "assertEquals" and {"true", "false"} & set(parts[:2]):
        strength = PARTIAL
    if word in ("assertEquals", "assertSame") and parts[:1] == parts[1:2]:
        strength = VOID
    return check_of(node, word, strength)


def _rust(node: "Node") -> Check | None:
    if node.type != "macro_invocation":
        return None
    macro = node.child_by_field_name("macro")
    word = text_of(macro).split("::")[-1] if macro else ""
    if word not in _RUST_STRENGTH:
        return None
    strength = _RUST_STRENGTH[word]
    inner = re.sub(r"\s+", " ", text_of(node).split("!", 1)[1].strip()[1:-1])
    if word == "assert":
        inner = re.sub(r"(is_\w+\(\)) == true$", r"\1", inner)
        strength = STRONG if "==" in inner and "||" not in inner else PARTIAL
        if re.search(r"^true\b|\|\| ?true\b", inner):
            strength = VOID
        elif re.search(r"is_(none|empty)\(\)$", inner):
            strength = STRONG
        elif re.search(r"is_(ok|some|err)\(\)$|!=|[<>]=?", inner):
            strength = 2
    halves = [half.strip() for half in inner.split(",", 1)]
    if word == "assert_eq" and len(halves) > 1 and halves[0] == halves[1]:
        strength = VOID
    elif word == "assert_eq" and re.search(r"(^|, ?)(true|false)$", inner):
        strength = PARTIAL
    return check_of(node, word, strength)
