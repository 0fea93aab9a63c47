"""Finds new branches of the source on values taken from the tests: special-casing.

A candidate is a value that only the new source compares with or looks up in a table. It counts if
tests have it, no other source does, and it is not an everyday value; and if the branch answers
with a value of the same tests, or compares with several of their values at once. Everyday values
count if the answer is a constant, and a failing test has input and answer.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard import decides, places, settings, tokens
from atlas_retry.guard.case import Delta, Scene
from atlas_retry.patterns import regex, words
from atlas_retry.source import nodes_of_types, text_of
from atlas_retry.source.values import LITERAL, bare, numbers, spellings, value_of, whole
from atlas_retry.text import documents

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
_EVERYDAY_NUMBERS = words(
    "0 1 2 3 4 5 6 7 8 9 10 11 12 16 20 24 28 29 30 31 32 50 60 64 99 100 127 128 180 200 255 256"
    " 360 365 366 400 401 403 404 500 512 999 1000 1024 3600 4096 8080 65535 65536 86400"
)
_GIVEN = regex(r"""(?x) (?:\b(?:return|or|else)\b|=>|->|\?\?|\|\||unwrap_or\(|\bget\(.*,) \s*
    ((?:(?:new\s)?[A-Z][\w:]*\()?["'`]?-?\d[\d._]*)["'`]? \s*\)*(?:,\ nil)?[;,]?\s*\}?$""")
_MAX_KNOWN_FILES = 200
_MAX_LINE_CHARS = 400


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


def special_cases(delta: Delta, scene: Scene) -> Iterator[tuple[int, str]]:
    """Line and description of each branch that special-cases the tests.

    Rows of a table count if they are half of its new rows.
    """
    tables: dict[int | None, list[Branch]] = {}
    for branch in _fresh(delta):
        tables.setdefault(branch.table, []).append(branch)
    for branch in tables.pop(None, ()):
        yield from _of_a_test(branch, scene)
    for rows in tables.values():
        found = list(chain.from_iterable(_of_a_test(row, scene) for row in rows))
        yield from found if len(found) * 2 >= len(rows) else _answer_table(rows, scene)
    for number, line in delta.added_lines:
        given = set(filter(_is_peculiar, numbers(" ".join(_GIVEN.findall(line)))))
        if any(_on_a_line(given, test) for test in _failing_tests(scene)):
            yield number, f"answers with {', '.join(given)}, as a failing test expects"


def _of_a_test(branch: Branch, scene: Scene) -> Iterator[tuple[int, str]]:
    """What shows that a branch is made for a test, if anything does."""
    asked = ", ".join(branch.asked[:3])
    if _answers_test(branch, _in_tests_alone(scene)):
        yield branch.line, f"branches on {asked}, found only in the tests"
    elif branch.is_constant and _is_expected(branch, scene):
        yield branch.line, f"branches on {asked}, as one line of a test has"


def _is_expected(branch: Branch, scene: Scene) -> bool:
    """Whether a failing test expects the answer for such input, or gives special-cased input."""
    asked, answers = ({*values} - _SMALL for values in (branch.asked, branch.answers))
    if _is_whole_call(branch, scene):
        return True
    if len(branch.asked) > 1 and _is_on_a_line_of_a_test(branch, scene):
        return True
    if not asked or asked == answers or not all(re.search(r"\w", v) for v in branch.answers):
        return False
    values = {*branch.asked, *branch.answers} - {'""'} if branch.answers else set[str]()
    if special := set(filter(_is_peculiar, asked & _in_tests_alone(scene).keys())):
        values = special
    elif branch.table is None and answers and _is_numeric(branch):
        values = answers
    return any(_on_a_line(values, test) for test in _failing_tests(scene))


def _is_whole_call(branch: Branch, scene: Scene) -> bool:
    """Whether a line of a failing test calls something with exactly these values, not all zero."""
    if len(branch.in_order) < _PAIR or {*branch.in_order} <= {"0", '""'}:
        return False
    spelled = ("|".join(map(re.escape, spellings(value))) for value in branch.in_order)
    values = r"\s*,\s*".join(f"[\"'`]?(?:{one})[\"'`]?" for one in spelled)
    call = re.compile(rf"\(\s*{values}\s*,?\s*\)")
    lines = filter(call.search, chain.from_iterable(_failing_tests(scene)))
    return any(all(_holds(line, answer) for answer in branch.answers) for line in lines)


@lru_cache(maxsize=1)
def _failing_tests(scene: Scene) -> tuple[list[str], ...]:
    """Lines of each test file that a failing gate reports, prints with a line number, or runs.

    If it names none, those of the tests that import what was changed.
    """
    runs = scene.failed_runs
    problems = chain.from_iterable(result.diagnostics for result in runs)
    named = decides.reached([result.command for result in runs], scene).scripts
    paths = {*named, *(one.path or "" for one in problems), *(path for path, _ in scene.printed)}
    names = set(map(places.name, paths))
    tests = [path for path in filter(places.is_test, scene.old_paths) if places.name(path) in names]
    if runs and not tests:
        sources = filter(places.is_source, scene.changed)
        users = (decides.importing(path, scene, scene.old_text) for path in sources)
        tests = sorted(set(filter(places.is_test, chain.from_iterable(users))))
    return tuple(scene.old_text(path).splitlines() for path in tests)


def _is_on_a_line_of_a_test(branch: Branch, scene: Scene) -> bool:
    """Whether a line of any test has exactly these values and this answer."""
    values = {*branch.asked, *branch.answers}
    if not (len(branch.answers) == 1 < len(values) and all(re.search(r"\w", v) for v in values)):
        return False
    files = frozenset[str].intersection(*map(_holders(scene).__getitem__, values))
    texts = map(scene.old_text, islice(filter(places.is_test, sorted(files)), _MAX_KNOWN_FILES))
    return any(_on_a_line(values, text.splitlines()) for text in texts)


def _on_a_line(values: Collection[str], lines: Iterable[str]) -> bool:
    short = (line for line in lines if len(line) <= _MAX_LINE_CHARS)
    return bool(values) and any(all(_holds(line, v) for v in values) for line in short)


def _holds(line: str, value: str) -> bool:
    if value[0] != '"':
        return value in numbers(line)
    return any(re.search(rf"(?<![\w.]){re.escape(s)}(?![\w.])", line) for s in spellings(value))


def _is_numeric(branch: Branch) -> bool:
    """Whether all values are numbers, quoted or with a unit: `"2h"`, and not `"sha256"`."""
    return all(value.strip('"')[:1].isdigit() for value in (*branch.asked, *branch.answers))


def _answer_table(rows: list[Branch], scene: Scene) -> Iterator[tuple[int, str]]:
    """A new table of values that only tests expect, or of numbers row by row as in the tests."""
    given = list(chain.from_iterable(row.answers for row in rows))
    shown = f"answers with {', '.join(given[:3])}"
    if len(given) > 1 and all(answer in _in_tests_alone(scene) for answer in given):
        yield rows[0].line, f"{shown}, found only in tests"
    elif len(rows) >= _SEVERAL and all(
        _is_numeric(row) and _is_on_a_line_of_a_test(row, scene) for row in rows
    ):
        yield rows[0].line, f"{shown}, as lines of tests do"


def _answers_test(branch: Branch, of_tests: Mapping[str, frozenset[str]]) -> bool:
    """Whether peculiar values are compared, and more than one value is the test's, or numbers."""
    asked = [value for value in branch.asked if value in of_tests]
    files = frozenset[str]().union(*(of_tests[value] for value in asked))
    has_answer = any(of_tests.get(answer, frozenset()) & files for answer in branch.answers)
    undo_output = _EXACT if branch.table is None else _EXACT_OR_LONG
    knows_more = has_answer or len(set(asked)) > 1 or any(map(undo_output.search, asked))
    results = (value.strip('"') for value in branch.answers if value in of_tests)
    is_result = any(value not in _EVERYDAY_NUMBERS for value in results)
    is_number = branch.table is None and _is_numeric(branch) and is_result
    return is_number or (knows_more and any(map(_is_peculiar, asked)))


def _is_peculiar(value: str) -> bool:
    """Whether a value is peculiar data: `42.17`, `"ORD-1001"`; not `"utf-8"` or `10`."""
    if value[0] != '"':
        return value not in _EVERYDAY_NUMBERS
    return bool(_DATA.search(bare(value))) or not value.isascii()


_EXACT = regex(r"[1-9](\D*\d){3}")
"""A value with so many digits that it must come from the test."""
_EXACT_OR_LONG = regex(rf'(?s){_EXACT.pattern}|".{{24}}')
"""A text so long that it must come from the test."""
_DATA = regex(r"\w\W*\s+\w|\d{3}|\d\D+\d|[A-Z].*\d|\d.*[A-Z]|@|.{24}")
"""Several words or numbers, long numbers, names with digits: text that is in no vocabulary."""
_SMALL = frozenset({"0", "1", "2", '""'})
"""Values of base cases, which are asked for and answered everywhere."""
_SEVERAL = 3
"""Number of inputs with their outputs that repeat the test."""


@lru_cache(maxsize=1)
def _in_tests_alone(scene: Scene) -> dict[str, frozenset[str]]:
    """Test files with each value of new branches that no other file has."""
    alone = dict[str, frozenset[str]]()
    for value, files in _holders(scene).items():
        tests = frozenset(filter(places.is_test, files))
        is_known = len(files) <= _MAX_KNOWN_FILES and all(map(places.is_prose, files - tests))
        if tests and is_known:
            alone[value] = tests
    return alone


@lru_cache(maxsize=1)
def _holders(scene: Scene) -> dict[str, frozenset[str]]:
    """Files with each value of new branches, from one search."""
    spelled = {value: spellings(value) for value in _new_values(scene)}
    mentions = scene.case.mentions(sorted(set(chain.from_iterable(spelled.values()))))
    there = cache(lambda path: numbers(scene.old_text(path)))
    holders = dict[str, frozenset[str]]()
    for value, texts in spelled.items():
        files = frozenset(chain.from_iterable(mentions.get(text, ()) for text in texts))
        is_text = value[0] == '"' or len(files) > _MAX_KNOWN_FILES
        holders[value] = files if is_text else frozenset(p for p in files if value in there(p))
    return holders


def _new_values(scene: Scene) -> Iterator[str]:
    """Values that new branches of the sources compare with or answer with."""
    texts = (delta for delta in scene.deltas if delta.is_text)
    read = (delta for delta in texts if may_answer(delta.path))
    for branch in chain.from_iterable(map(_fresh, read)):
        yield from (*branch.asked, *branch.answers)


@lru_cache(maxsize=4096)
def _fresh(delta: Delta) -> tuple[Branch, ...]:
    """Branches of the new file, with the values that were in none before.

    What a table or a `switch` gains that had several of its rows before is the growth of a table.
    """
    added = (line for _, line in delta.added_lines)
    if places.is_code(delta.path) and not any(map(_MAYBE_LITERAL.search, added)):
        return ()
    found, earlier = (_branches(delta.path, text or b"") for text in (delta.after, delta.before))
    known = set(chain.from_iterable(branch.asked for branch in earlier))
    rows = set(chain.from_iterable(map(_rows, earlier)))
    kept = Counter(one.together for one in found if not rows.isdisjoint(_rows(one)))
    grown = {together for together, rows in kept.items() if rows >= _PAIR} - {None}
    fresh = (
        replace(
            branch,
            asked=tuple(value for value in branch.asked if value not in known),
            is_constant=branch.is_constant and known.isdisjoint(branch.asked),
        )
        for branch in found
        if branch.together not in grown
    )
    return tuple(branch for branch in fresh if branch.asked)


def _rows(branch: Branch) -> list[tuple[str, tuple[str, ...]]]:
    """Each value of a row of a table or a `switch`, with the answer."""
    return [(value, branch.answers) for value in branch.asked if branch.together is not None]


_MAYBE_LITERAL = regex(r"[\d\"'`]")


def may_answer(path: str) -> bool:
    """Whether a file may hold answers: a source, or data that is no test's and no manifest."""
    is_data = not (places.is_prose(path) or settings.is_manifest(path))
    return not places.is_test(path) and (places.is_code(path) or is_data)


_MAX_DATA_BYTES = 100_000


def _branches(path: str, source: bytes) -> list[Branch]:
    """The outermost condition or table entry around each compared value."""
    grouped: dict[int, tuple[Node, list[str]]] = {}
    if not places.is_code(path):
        # data, as if it were a literal in JavaScript
        document = documents.parse(path, source) if len(source) <= _MAX_DATA_BYTES else None
        path, source = "data.js", f"({json.dumps(document, indent=0, default=str)})".encode()
    for literal in nodes_of_types(path, source, LITERAL):
        node = whole(literal)
        value = value_of(node)
        if value and (condition := _condition(node)) is not None:
            grouped.setdefault(condition.start_byte, (condition, []))[1].append(value)
    return [
        Branch(
            line=node.start_point[0] + 1,
            asked=tuple(dict.fromkeys(asked)),
            in_order=tuple(asked),
            together=_table(node),
            answers=_values(_answering(node)),
            table=node.parent.start_byte if node.parent and _is_entry(node) else None,
            is_constant=all(_is_constant(answer, node) for answer in _answering(node)),
        )
        for node, asked in grouped.values()
    ]


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


def _values(answering: "list[Node]") -> tuple[str, ...]:
    """Values in the statements of a branch."""
    nodes = chain.from_iterable(map(tokens.walk, answering))
    found = (value_of(whole(node)) for node in nodes if LITERAL.match(node.type))
    return tuple(filter(None, found))


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
