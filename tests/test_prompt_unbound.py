"""Which ways through a function read a local variable before it has a value."""

import re
import textwrap

import pytest

from atlas_retry.prompt.unbound import may_be_unbound

MAY_BE = {
    "one branch": "if a:\n    x = 1\nreturn x",
    "a loop of no round": "for i in a:\n    x = i\nreturn x",
    "a handler that goes on": "try:\n    x = a()\nexcept OSError:\n    pass\nreturn x",
    "a missing case": "match a:\n    case 1:\n        x = 1\nreturn x",
    "added to first": "x += 1",
    "deleted": "x = 1\ndel x\nreturn x",
    "only declared": "x: int\nreturn x",
    "assigned after": "print(x)\nx = 1",
    "imported in one branch": "if a:\n    import x.y\nreturn x.y",
    "defined in one branch": "if a:\n    def x():\n        pass\nreturn x()",
    "an exception after its handler": "try:\n    a()\nexcept OSError as x:\n    pass\nreturn x",
    "captured in one case": "match a:\n    case [x]:\n        pass\nreturn x",
    "broken out of first": "while True:\n    if a:\n        break\n    x = 1\nreturn x",
    "the else of a loop that was left": "for i in a:\n    break\nelse:\n    x = 1\nreturn x",
    "a text at the margin": "y = '''\n\x00z'''\nif a:\n    x = 1\nreturn x",
}
IS_NOT = {
    "every branch": "if a:\n    x = 1\nelse:\n    x = 2\nreturn x",
    "the other branch leaves": "if a:\n    x = 1\nelse:\n    raise ValueError\nreturn x",
    "a handler that leaves": "try:\n    x = a()\nexcept OSError:\n    return None\nreturn x",
    "set for good at last": "try:\n    a()\nfinally:\n    x = 1\nreturn x",
    "every case": "match a:\n    case 1:\n        x = 1\n    case _:\n        x = 2\nreturn x",
    "captured": "match a:\n    case {'k': x}:\n        return x",
    "an endless loop": "while True:\n    x = a()\n    if x:\n        break\nreturn x",
    "entered": "with a as x:\n    pass\nreturn x",
    "found or raised": "while a:\n    x = 1\n    break\nelse:\n    raise a\nreturn x",
    "the else of a loop": "while a:\n    a = a()\nelse:\n    x = 1\nreturn x",
    "of a comprehension": "return [x for x in a]",
    "of a lambda": "f = lambda x: x\nx = 1",
    "of the module": "global x\nx += 1",
    "not its own": "return x",
    "too deep": "x = 1\nif a:\n    pass" + "\nelif a:\n    x = 2" * 1_000 + "\nreturn x",
    "too long": f"x = {'not ' * 10_000}a",
    "does not parse": "return x x",
}


@pytest.mark.parametrize("body", MAY_BE.values(), ids=MAY_BE)
def test_a_way_that_reads_too_early_is_found(body: str) -> None:
    assert may_be_unbound(_function(body), "x")


@pytest.mark.parametrize("body", IS_NOT.values(), ids=IS_NOT)
def test_a_function_that_always_binds_first_is_not_suspected(body: str) -> None:
    assert not may_be_unbound(_function(body), "x")


def test_a_parameter_always_has_a_value() -> None:
    assert not may_be_unbound("def f(x):\n    if not x:\n        x = 1\n    return x\n", "x")


def _function(body: str) -> str:
    """A method as it stands in its class: indented, but for what `\\0` stands before."""
    whole = textwrap.indent(f"def f(self, a):\n{textwrap.indent(body, '    ')}\n", "    ")
    return re.sub(r" *\0", "", whole)
