"""What looks unfinished in a function, and what Python's messages point at."""

import ast

import pytest

from atlas_retry.prompt.graph import Graph
from atlas_retry.prompt.project import Project
from atlas_retry.prompt.slips import slips, used_results
from atlas_retry.prompt.verdicts import MAX_NAMES, blamed, may_be_none, tells_none, unbound


def _told(source: str, used: tuple[str, ...] = (), shared: tuple[str, ...] = ()) -> set[str]:
    node = ast.parse(source).body[0]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    return {slip.what for slip in slips(node, frozenset(used), frozenset(shared))}


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def f(a) -> int:\n    g(a)\n", "returns nothing"),
        ("def is_even(a):\n    a % 3 or g(a)\n    h()\n", "returns nothing"),
        ("@property\ndef name(self):\n    self.x()\n", "returns nothing"),
        ("def f(a):\n    if a:\n        return 1\n", "returns not always"),
        ("def f(a) -> int:\n    if a:\n        return 1\n    return None\n", "returns not always"),
        ("def f(a):\n    b = a + 1\n    return a\n", "value unused"),
        ("def f(a):\n    a == 1\n    return a\n", "value unused"),
        ("def f(a):\n    return a\n    g()\n", "value unused"),
        ("def f(a, b):\n    return a\n", "parameter unused"),
    ],
)
def test_what_looks_unfinished_is_told(source: str, what: str) -> None:
    assert what in _told(source)


@pytest.mark.parametrize(
    "source",
    [
        "def f(a) -> None:\n    g(a)\n",
        "def f(a) -> 'Iterator[int]':\n    yield a\n",
        "def f(self, a, b) -> int:\n    raise NotImplementedError\n",
        "@overload\ndef f(a) -> int: ...\n",
        "def f(a):\n    while True:\n        if a():\n            return 1\n",
        "def f(a):\n    try:\n        return a()\n    except KeyError:\n        raise\n",
        "def f(a):\n    if a:\n        return 1\n    else:\n        raise ValueError\n",
        "def f(a):\n    with a:\n        return 1\n",
        "def f(a, b):\n    return locals()\n",
        "def f(_a):\n    global n\n    n = 1\n",
        "def f(a):\n    def g():\n        return 1\n    a(g)\n",
    ],
)
def test_what_is_finished_is_not_accused(source: str) -> None:
    assert _told(source) == set()


def test_a_function_whose_callers_want_a_result_should_return_one() -> None:
    used = tuple(used_results("x = f(1)\n    g(2)\n    self.h(3)\nreturn k(4)\ndef n(): pass\n"))
    assert used == ("f", "k")
    assert _told("def f(a):\n    g(a)\n", used) == {"returns nothing"}
    assert _told("def g(a):\n    h(a)\n", used) == set()


SOURCE = b"""
class Base:
    def __init__(self, n):
        self.count = n

    def fill(self):
        self.size = 1

    def other(self):
        return self.size


class Child(Base):
    def run(self, a):
        for item, place in a:
            print(item)
        return undefined_name


def stray(undefined):
    return undefined


def binary(a, b):
    return a, b
"""


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("AttributeError: 'Child' object has no attribute 'size'", {"Base.__init__", "Base.fill"}),
        ("NameError: name 'undefined_name' is not defined", {"Child.run"}),
        ("TypeError: binary() missing 1 required positional argument: 'b'", {"binary"}),
        ("TypeError: Base.__init__() takes 2 positional arguments", {"Base.__init__"}),
        ("assert 1 == 2", set()),
    ],
)
def test_what_pythons_message_points_at_is_found(message: str, names: set[str]) -> None:
    project = Project({"a.py": SOURCE}.get, lambda: ("a.py",))
    found = blamed(message, Graph(project, ("a.py",)))
    assert {spot.scope.qualified_name for spot in found} == names


def test_only_a_function_that_may_not_set_it_is_blamed_for_a_variable_without_a_value() -> None:
    early = b"def early(a):\n    if a:\n        size = 1\n    return size\n\n\n"
    late = b"def late(a):\n    size = a\n    return size\n"
    graph = Graph(Project({"a.py": early + late}.get, lambda: ("a.py",)), ("a.py",))
    found = unbound("cannot access local variable 'size' where it is not associated", graph)
    assert {spot.scope.name for spot in found} == {"early"}


def test_names_that_come_by_the_hundred_are_not_all_looked_for() -> None:
    source = b"".join(b"def f%d():\n    return n%d\n\n\n" % (n, n) for n in range(500))
    graph = Graph(Project({"a.py": source}.get, lambda: ("a.py",)), ("a.py",))
    told = "\n".join(f"NameError: name 'n{n}' is not defined" for n in range(500))
    assert {spot.scope.name for spot in blamed(told, graph)} == {f"f{n}" for n in range(MAX_NAMES)}


def test_messages_of_none_are_told_from_functions_that_return_it() -> None:
    assert tells_none("TypeError: 'NoneType' object is not subscriptable")
    assert not tells_none("assert 1 == 2")
    assert may_be_none("def f(a):\n    g()\n")
    assert not may_be_none("def f(a):\n    return a\n")


def test_declarations_of_overloads_are_no_definitions() -> None:
    source = b"@typing.overload\ndef f(a: int) -> int: ...\n\n\ndef f(a):\n    return a\n"
    project = Project({"a.py": source}.get, lambda: ("a.py",))
    assert [scope.def_line for scope in project.definitions("a.py")] == [5]
