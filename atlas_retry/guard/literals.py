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

from msgspec.structs import replace

from atlas_retry.guard import decides, places, settings
from atlas_retry.guard.case import Delta, Scene
from atlas_retry.patterns import regex, words
from atlas_retry.source.branches import Branch, branches
from atlas_retry.source.values import bare, numbers, spellings
from atlas_retry.text import documents

_EVERYDAY_NUMBERS = words(
    "0 1 2 3 4 5 6 7 8 9 10 11 12 16 20 24 28 29 30 31 32 50 60 64 99 100 127 128 180 200 255 256"
    " 360 365 366 400 401 403 404 500 512 999 1000 1024 3600 4096 8080 65535 65536 86400"
)
_GIVEN = regex(r"""(?x) (?:\b(?:return|or|else)\b|=>|->|\?\?|\|\||unwrap_or\(|\bget\(.*,) \s*
    ((?:(?:new\s)?[A-Z][\w:]*\()?["'`]?-?\d[\d._]*)["'`]? \s*\)*(?:,\ nil)?[;,]?\s*\}?$""")
_PAIR = 2
_MAX_KNOWN_FILES = 200
_MAX_LINE_CHARS = 400


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
    distinctive = _EXACT if branch.table is None else _EXACT_OR_LONG
    knows_more = has_answer or len(set(asked)) > 1 or any(map(distinctive.search, asked))
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
    earlier, found = delta.both(_branches)
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
    """The branches of a source; data counts as a literal in JavaScript."""
    if not places.is_code(path):
        document = documents.parse(path, source) if len(source) <= _MAX_DATA_BYTES else None
        path, source = "data.js", f"({json.dumps(document, indent=0, default=str)})".encode()
    return branches(path, source)
