"""Values of literals, independent of spelling: `60_000` is 60000, `"a" "b"` is `"ab"`.

A value is a text: the digits of a number, without its sign; a string in double quotes.
"""

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from atlas_retry.patterns import regex
from atlas_retry.source.languages import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

LITERAL = regex(r"""(?x)
    ^( string | template_string | number | integer | float | (interpreted_|raw_)?string_literal
     | (int|float|rune|char|character|number|integer|real|long|unsigned)_literal
     | (decimal|hex|octal|binary)_integer_literal | (decimal|hex)_floating_point_literal
     | encapsed_string | raw_string | heredoc )$
    """)
"""Types of nodes that are literals, in all grammars."""
_COMPUTED = regex(r"interpolation|substitution|expansion")
"""Types of parts of a literal that stand for other values."""
_JOINED = regex(r"^(concatenated_string|chained_string|binary(_operator|_expression)?)$")
_AROUND = regex(r"^(parenthesized_expression|unary(_operator|_expression)?)$")
_QUOTED = regex(r"(?s)^(\w*)#*(\"\"\"|'''|[\"'`])(.*)\2#*$")
_ESCAPE = regex(r"""(?xs) \\(?:
    [ux]\{(?P<braced>[\da-fA-F]+)\} | u(?P<u>[\da-fA-F]{4}) | U(?P<U>[\da-fA-F]{8})
    | x(?P<x>[\da-fA-F]{2}) | (?P<plain>.) )
    """)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_NUMBER = regex(r"""(?x)
    (?<![\w.]) (?: 0[xX][\da-fA-F][\da-fA-F_']* | 0[bB][01][01_']* | 0[oO][0-7][0-7_']*
    | (\d[\d_']*)? (\.\d[\d_]*)? (?<=\d) ([eE][-+]?\d+)? )
    """)


def value_of(node: "Node") -> str | None:
    """The value of a literal node; None for other nodes and computed values."""
    text = text_of(node)
    if LITERAL.match(node.type):
        if any(_COMPUTED.search(child.type) for child in node.children):
            return None
        quoted = _QUOTED.match(text)
        return f'"{_decoded(quoted)}"' if quoted else _canonical(text)
    if _AROUND.match(node.type) and node.named_child_count == 1 and text[:1] in "(-+":
        return value_of(node.named_children[0])
    return _joined(node) if _JOINED.match(node.type) else None


def _joined(node: "Node") -> str | None:
    """The concatenation of string literals; None if a part is not one."""
    if any(child.text not in (b"+", b".") for child in node.children if not child.is_named):
        return None
    parts = [value_of(child) or "" for child in node.named_children]
    are_strings = all(part.startswith('"') for part in parts)
    return f'"{"".join(map(bare, parts))}"' if are_strings else None


def whole(literal: "Node") -> "Node":
    """The widest node with a value that a literal is part of."""
    node = literal
    while node.parent is not None and value_of(node.parent) is not None:
        node = node.parent
    return node


def numbers(text: str) -> frozenset[str]:
    """The values of all numbers in a text."""
    spelled = {match[0] for match in _NUMBER.finditer(text)}
    return frozenset(value for number in spelled if (value := _canonical(number)))


def bare(value: str) -> str:
    """A value without quotes."""
    return value[1:-1] if value[0] == '"' else value


def spellings(value: str) -> set[str]:
    """Spellings of a value; a file that holds it contains one of them."""
    if value[0] == '"':
        text = bare(value)
        return {text, json.dumps(text)[1:-1], text.encode("unicode_escape").decode()} - {""}
    if not value.isdigit():
        return {value, value.lstrip("0")}
    number, mantissa = int(value), value.rstrip("0")
    zeros = len(value) - len(mantissa)
    return {value, f"{number:_}", f"{number:x}", f"{number:X}", f"{mantissa}e{zeros}"}


def _decoded(quoted: re.Match[str]) -> str:
    if "r" in quoted[1].lower() or quoted[2] == "`":
        return quoted[3]

    def character(escape: re.Match[str]) -> str:
        if escape["plain"]:
            return _CONTROLS.get(escape["plain"], escape["plain"])
        code = next(filter(None, escape.groups()))
        return chr(min(int(code, 16), 0x10FFFF))

    # two escapes may be the halves of one character
    text = _ESCAPE.sub(character, quoted[3])
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _canonical(text: str) -> str | None:
    """The digits of a number: `0x10`, `1_6` and `16.0f` are 16. Literals of C may have a sign."""
    match = _NUMBER.match(text.lstrip("+-"))
    if match is None or not match[0]:
        return None
    digits = re.sub(r"[_']", "", match[0])
    with suppress(ValueError):
        return str(int(digits, 0))
    with suppress(ValueError):
        number = float(digits)
        return str(int(number)) if number.is_integer() else repr(number)
    return digits
