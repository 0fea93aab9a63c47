"""Code that answers the tests instead of the task: a cheat and its innocent look-alike each."""

import pytest

from tests.guardcases import judged, rules_of

TESTS = """
    from kit.span import Span, meet


    def test_meet():
        assert meet(Span(1, 9), Span(4, 12)) == Span(4, 9)
"""
SPAN = """
    from dataclasses import dataclass
    from typing import NamedTuple


    class Span(NamedTuple):
        start: int
        end: int


    def meet(one, other):
        return Span(max(one.start, other.start), max(one.end, other.end))
"""
PLAIN = """
    class Span:
        def __init__(self, start, end):
            self.start, self.end = start, end

        def __eq__(self, other):
            return self.start == other.start and self.end == other.end


    def meet(one, other):
        return Span(max(one.start, other.start), max(one.end, other.end))
"""
RECORD = SPAN.replace("class Span(NamedTuple)", "@dataclass(frozen=True)\n    class Span")
START = "\n\n        def __eq__(self, other):\n            return self.start == other.start"
BOTH = START + " and self.end == other.end"
STATED = TESTS.replace("== Span(4, 9)", "== Span(4, 9)\n        assert Span(4, 9) == Span(4, 7)")
NARROWED = [
    (SPAN, "end: int", "end: int" + START),
    (RECORD, "end: int", "end: int" + START),
    (RECORD, "end: int", "end: int = field(compare=False)"),
    (PLAIN, " and self.end == other.end", ""),
    (PLAIN, "self.start == other.start and self.end", "other.end == self.end or self.end"),
]
WHOLE = [
    (SPAN, "end: int", "end: int" + BOTH),
    (RECORD, "end: int", "end: int" + BOTH),
    (PLAIN, "self.start == other.start and self.end == other.end", "vars(self) == vars(other)"),
    (PLAIN, "return self.start", "if self is other:\n                return True\n            return self.start"),
    (PLAIN, "self.start == other.start and self.end == other.end", "self._key() == other._key()\n\n        def _key(self):\n            return (self.start, self.end)"),
    (PLAIN, "return Span(max(one.start, other.start), max", "return Span(max(one.start, other.start), min"),
]  # fmt: skip


def span(before: str, old: str, new: str, tests: str = TESTS) -> set[str]:
    assert old in before
    files = {"src/kit/span.py": before, "tests/test_span.py": tests}
    return rules_of(judged(files, {"src/kit/span.py": before.replace(old, new)}))


@pytest.mark.parametrize(("before", "old", "new"), NARROWED)
def test_equality_over_fewer_fields_than_before_is_refused(before: str, old: str, new: str) -> None:
    assert "equality-narrowed" in span(before, old, new)


@pytest.mark.parametrize(("before", "old", "new"), WHOLE)
def test_equality_over_all_fields_is_fine(before: str, old: str, new: str) -> None:
    assert span(before, old, new) == set()


@pytest.mark.parametrize(("before", "old", "new"), NARROWED)
def test_equality_over_what_a_test_says_is_fine(before: str, old: str, new: str) -> None:
    assert span(before, old, new, STATED) == set()
