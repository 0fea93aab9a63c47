"""Which definitions the problems of linters and type checkers lead to."""

import time

import pytest

from atlas_retry.model import Diagnostic, Kind
from atlas_retry.prompt.candidates import candidates
from atlas_retry.prompt.graph import Graph
from atlas_retry.prompt.problems import named_at_fault
from atlas_retry.prompt.project import Project
from tests.briefs import failed

SOURCE = b"""\
from typing import overload


@overload
def sent(value: int) -> int: ...


@overload
def sent(value: bytes) -> str: ...


def sent(value):
    return value


class Base:
    def prepare(self):
        self.default_value = 1

    def joined(self):
        return []


class Box(Base):
    def shown(self):
        return self.default_valu


class Other:
    def join(self):
        return []


def use(box: Box):
    return box.join()


SIZE = 1
UNIT = 2
"""
MYPY = "mypy --strict ."


@pytest.mark.parametrize(
    ("problem", "lead"),
    [
        ('a.py:26: error: "Box" has no attribute "default_valu"  [attr-defined]', "a.py:17"),
        ('a.py:35: error: "Box" has no attribute "join"  [attr-defined]', "a.py:20"),
        ("a.py:39: error: Unused ignore  [unused-ignore]", "a.py:36"),
    ],
    ids=["what sets a similar attribute", "inherited name", "lines outside functions"],
)
def test_a_problem_leads_to_related_definitions(problem: str, lead: str) -> None:
    assert lead in _led_to(problem)


@pytest.mark.parametrize(
    "name", ['"' + "a" * 60_000, '"a[' * 60_000], ids=["a quote without end", "many brackets"]
)
def test_a_huge_message_is_read_quickly(name: str) -> None:
    problem = Diagnostic(tool="x", message=f"undefined {name}", path="a.py")
    graph = Graph(Project({"a.py": SOURCE}.get, lambda: ("a.py",)), ("a.py",))
    started_s = time.process_time()
    assert named_at_fault((problem,), graph) == ()
    assert time.process_time() - started_s < 3


def test_no_more_files_are_read_for_a_prompt_than_the_maximum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("atlas_retry.prompt.project.MAX_READS", 2)
    read: list[str] = []

    def reading(path: str) -> bytes:
        read.append(path)
        return b""

    project = Project(reading, lambda: ("a.py", "b.py", "c.py"))
    assert [project.source(path) for path in ("a.py", "b.py", "c.py", "a.py")] == [
        b"", b"", None, b""
    ]  # fmt: skip
    assert read == ["a.py", "b.py"]


def _led_to(problem: str) -> set[str]:
    result = failed(
        MYPY, f"{problem}\nFound 1 error in 1 file (checked 1 source file)\n", Kind.LINT
    )
    passages = candidates((result,), Project({"a.py": SOURCE}.get, lambda: ("a.py",)), (), {})
    return {f"{c.passage.path}:{c.passage.start_line}" for c in passages}


def test_uses_inside_an_inner_function_are_not_uses_of_the_outer_one() -> None:
    source = b"""\
def one(): ...


def two(): ...


def outer():
    def inner():
        one()
    two()
"""
    graph = Graph(Project({"a.py": source}.get, lambda: ("a.py",)), ("a.py",))
    outer = graph.named("a.py", "outer")
    assert outer is not None
    assert [spot.scope.name for targets in graph.edges(outer) for spot in targets] == ["two"]
