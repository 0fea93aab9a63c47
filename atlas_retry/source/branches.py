"""Branches of a source on literals: the values that they compare, and those that they answer with.

Reads trees of tree-sitter; what a branch tells about tests is for others.
"""

import re
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.patterns import regex, words
from atlas_retry.source import tokens
from atlas_retry.source.languages import nodes_of_types, text_of
from atlas_retry.source.values import LITERAL, value_of, whole

if TYPE_CHECKING:
    from tree_sitter import Node

_COMPARISONS = words(
    "comparison_operator binary_expression binary equality_expression test_command"
)
_EQUALS = regex(r"===?|!==?|\bin\b|\bis\b|\bnot\b|-eq|-ne|(?<![<>=!])=(?!=)|=~")
_PATTERNS = words("""
    switch_label case_pattern match_pattern pattern match_condition_list or_pattern union_pattern
    tuple_pattern
    """)
"""Nodes that contain only compared values."""
_CASES = words("""
    switch_case expression_case case_statement when case_item match_arm case_clause
    """)
"""Nodes that contain a compared value and the answer."""
_CALLS = words("""
    call call_expression method_invocation function_call_expression member_call_expression
    scoped_call_expression
    """)
_CALLS_THAT_COMPARE = regex(r"""(?x)
    ([eE]qual(s\w*|_?to\??)?|[sS]tarts?_?[wW]ith\??|[eE]nds?_?[wW]ith\??|HasPrefix|HasSuffix
     |includes|include\?|contains|[cC]ompare(To)?|(mem|strn?(case)?)cmp|EqualFold|DeepEqual|eql\?|isclose
     |has|matches|\b(__)?(eq|ne)(__)?|localeCompare|equalsIgnoreCase)$
    """)
_MAKES = _CALLS | words("new_expression object_creation_expression type_conversion_expression")
_MAKERS = regex(r"""(?x)
    (^|[\s.:])( [A-Z]\w*((::|\.)(new|of|from\w*|value[oO]f|parse\w*))? | str | int | float | bytes
    | len | strlen | \[\]byte )$ | ^["'`\d].*\.(to_string|to_owned|into|as_str|encode)$
    """)
_CALLS_THAT_PUT = regex(r"(\bMap\.(of|entry)|\b(entry|put|set|insert|store|setdefault))$")
_TABLES = words("dictionary object literal_value hash array_creation_expression")
_PAIRS = words("pair keyed_element array_element_initializer")
_LISTS = words("tuple list array array_expression tuple_expression initializer_list")
"""Lists, which are pairs if they have two members."""
_ARGUMENTS = words("arguments argument_list")
_INDEXED = words("subscript subscript_expression index_expression element_reference")
_MEMBERS = _LISTS | words("""
    set literal_element parenthesized_expression expression_list argument
    """)
_WIDER = _PATTERNS | words("""
    boolean_operator binary_expression parenthesized_expression not_operator logical_expression
    condition_clause
    binary comparison_operator unary unary_expression test_command
    """)
_ANSWERS_FIRST = regex(r"^conditional_expression$|_modifier$")
_UP = 4


class Branch(Struct, frozen=True, kw_only=True):
    """Values compared in one condition or table entry, and the values of its answer."""

    line: int
    asked: tuple[str, ...]
    answers: tuple[str, ...]
    table: int | None = None
    """Start of the table of the entry."""
    is_constant: bool = False
    """Whether the answer is computed from nothing."""
    together: int | None = None
    """Start of the table or the `switch` of the values."""
    in_order: tuple[str, ...] = ()
    """The compared values as they are written, also those that are repeated."""


def branches(path: str, source: bytes) -> list[Branch]:
    """The outermost condition or table entry around each compared value."""
    grouped: dict[int, tuple[Node, list[str]]] = {}
    for literal in nodes_of_types(path, source, LITERAL):
        node = whole(literal)
        value = value_of(node)
        if value and (condition := _condition(node)) is not None:
            grouped.setdefault(condition.start_byte, (condition, []))[1].append(value)
    return [_branch(node, asked) for node, asked in grouped.values()]


def _branch(node: "Node", asked: list[str]) -> Branch:
    answering = _answering(node)
    parts = chain.from_iterable(map(tokens.walk, answering))
    answers = (value_of(whole(part)) for part in parts if LITERAL.match(part.type))
    return Branch(
        line=node.start_point[0] + 1,
        asked=tuple(dict.fromkeys(asked)),
        in_order=tuple(asked),
        together=_table(node),
        answers=tuple(filter(None, answers)),
        table=node.parent.start_byte if node.parent and _is_entry(node) else None,
        is_constant=all(_is_constant(answer, node) for answer in answering),
    )


def _condition(value: "Node") -> "Node | None":
    """The condition or entry that compares a value; None if it is only an answer."""
    node = value
    for _ in range(_UP):
        above = node.parent
        if above is None:
            return None
        if entry := _entry(node, above):
            # a registered object is not an answer
            value_text = text_of(entry.named_children[-1]).strip()
            return None if _NAME.fullmatch(value_text) else entry
        if above.type not in _MEMBERS and not _converts(above):
            return _asking(node, above)
        node = above
    return None


def _table(condition: "Node") -> int | None:
    """Start of the table or the `switch` around a row or a case."""
    above = condition.parent
    if above is not None and not _is_entry(condition) and above.type in _CASES:
        above = above.parent
    is_case = condition.type in _CASES or condition.type in _PATTERNS
    return above.start_byte if above and (is_case or _is_entry(condition)) else None


def _converts(above: "Node") -> bool:
    """Whether a call, or its one argument, only gives another type: `Decimal("0.1")`."""
    is_only = above.type in _ARGUMENTS and above.named_child_count == 1
    call = above.parent if is_only and above.parent is not None else above
    return call.type in _MAKES and bool(_MAKERS.search(_callee(call)))


def _asking(node: "Node", above: "Node") -> "Node | None":
    """The condition directly above a value: a comparison, a pattern, a case, a call."""
    if above.type in _COMPARISONS:
        return _widest(above) if _is_compared(above, node) else None
    if above.type in _PATTERNS:
        return _widest(above)
    if above.type in _CASES:
        return above if above.named_children[0] == node else None
    # the value is an argument of the call, or its receiver
    call = above if above.type in _CALLS else above.parent
    is_call = call is not None and call.type in _CALLS
    return _widest(call) if call and is_call and _CALLS_THAT_COMPARE.search(_callee(call)) else None


def _callee(call: "Node") -> str:
    """The text of a call before its arguments."""
    return text_of(call).removesuffix(text_of(call.child_by_field_name("arguments"))).strip()


def _entry(key: "Node", above: "Node") -> "Node | None":
    """The table entry with this key, which may be an assignment to an item."""
    table = above.parent
    if table is None or above.named_child_count < _PAIR:
        return None
    if above.type in _INDEXED:
        return _assignment(above)
    is_pair = above.type in _PAIRS and table.type in _TABLES
    is_row = above.type in _LISTS and table.type in _LISTS and above.named_child_count == _PAIR
    is_put = above.type in _ARGUMENTS and bool(_CALLS_THAT_PUT.search(_callee(table)))
    is_entry = is_pair or is_row or is_put
    return above if is_entry and above.named_children[0] == key else None


def _is_entry(node: "Node") -> bool:
    return node.type in _PAIRS | _LISTS | _ARGUMENTS or "assignment" in node.type


def _assignment(indexed: "Node") -> "Node | None":
    """The assignment to an item of a table."""
    above: Node | None = indexed.parent
    if above is not None and above.type == "expression_list":
        above = above.parent
    is_set = above is not None and "assignment" in above.type
    return above if above and is_set and above.start_byte == indexed.start_byte else None


_PAIR = 2
_NAME = regex(r"(?i)(?!(true|false|null|nil|none)$)[a-z_][\w.]*")


def _is_compared(above: "Node", node: "Node") -> bool:
    """Whether the node is a side of an equality."""
    leaves = (child for child in above.children if not child.named_children)
    between = " ".join(text_of(leaf) for leaf in leaves if leaf != node)
    return bool(_EQUALS.search(between)) and not re.search(r"&&|\|\||[-+*/%]$", between)


def _widest(node: "Node") -> "Node":
    """The whole condition, such as `a == 1 and b == 2`."""
    while node.parent is not None and node.parent.type in _WIDER:
        node = node.parent
    return node


def _is_constant(answer: "Node", condition: "Node") -> bool:
    """Whether an answer only names keys, what it constructs, and what was compared, uncomputed.

    One that raises, exits or goes on with the next is, whatever it says.
    """
    texts = tokens.leaves(answer)
    is_plain = condition.type in _WIDER and _COMPUTES.isdisjoint(texts)
    compared = {*tokens.leaves(condition)} if is_plain else set()
    return any(map(_LEAVES.match, texts)) or all(
        _CONSTANT.match(text) or text in compared or following in ("=", ":=", ":")
        for text, following in zip(texts, [*texts[1:], ""], strict=False)
    )


_COMPUTES = words("+ - * / // % ** ( [ .")
_LEAVES = regex(r"^(raise|throw|continue|panic|abort|die|\w*[eE]xit|Err|Errorf)$")
_CONSTANT = regex(r"""(?x)
    ^( return | break | \w*(Error|Exception) | new | end | then
     | null | None | nil | undefined | true | false | let | var
     | const | int | float | str | bytes | list | tuple | dict | from | into | to_string | to_owned
     | echo | [A-Z]\w*[a-z]\w* | \W+ )$ | ^[-+]?[\d"'`.]
    """)


def _answering(condition: "Node") -> "list[Node]":
    """Statements or values of the branch of a condition."""
    outer = condition.parent
    if outer is None:
        return []
    if condition.type in _CASES or _is_entry(condition):
        return condition.named_children[1:]
    if _ANSWERS_FIRST.search(outer.type) and outer.named_children[0] != condition:
        return outer.named_children[:1]
    after = (node for node in outer.named_children if node.start_byte >= condition.end_byte)
    return [node for node in after if node.type != condition.type][:1]
