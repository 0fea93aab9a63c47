"""The language-neutral picture of tests: what is run, what it asserts, with which values."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Node

STRONG, FIRM, PARTIAL, WEAK, VOID = 5, 4, 3, 1, 0
"""How much an assertion proves: equality, a specific error, a part, little, nothing."""


_NEVER = re.compile(
    r"(?<![a-zA-Z])(skip|skipTest|SkipTest|todo|pending|x(it|test|describe|specify)|Disabled|Ignore"
    r"|ignore|no body|no cases|Skip|SkipNow)(?![a-zA-Z])|DISABLED_|markTest"
)
HELPER = "helper "
"""What the name of a unit begins with that is no test but asserts for tests."""


class Check(Struct, frozen=True, kw_only=True):
    """One assertion, in a spelling of its own so that style does not matter."""

    text: str
    """Canonical: two checks with the same text prove the same."""
    strength: int
    line: int
    literals: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    """Functions, methods and variables it speaks of."""
    loosening: frozenset[str] = frozenset()
    """Functions laid over a value before it is compared: round, lower, len ..."""
    guarded: int = 0
    """Conditions that must hold for it to be reached."""
    value: str = ""
    """Canonical text of the expected side alone, if there is one."""
    outcome: tuple[str, frozenset[str]] | None = None
    """What it is about, and the kinds of outcome that satisfy it."""
    whole: str = ""
    """Of a comparison of the same part of two values: the text of one of the values themselves."""


class Unit(Struct, frozen=True, kw_only=True):
    """One test that a runner would run."""

    path: str
    name: str
    line: int
    checks: tuple[Check, ...] = ()
    markers: tuple[str, ...] = ()
    """What keeps it from running or from counting: skip, xfail, only, a condition."""
    rows: tuple[tuple[str, ...], ...] = ()
    """Literals of each row of a parametrized test."""
    literals: frozenset[str] = frozenset()
    """Every literal of the test and of what its file defines beside tests."""
    own: frozenset[str] = frozenset()
    """Every literal of the test itself."""
    inputs: frozenset[str] = frozenset()
    """Literals that are handed to the code under test."""
    names: frozenset[str] = frozenset()
    dump: str = ""
    """Canonical text of everything: equal dumps are equal tests."""
    is_hollow: bool = False
    """Nothing is done in it."""
    helpers: frozenset[str] = frozenset()
    """Functions it calls that assert on its behalf."""
    formed: frozenset[str] = frozenset()
    """Texts that these compare as a whole, with what the test hands them put in."""
    bound: tuple[tuple[str, frozenset[str]], ...] = ()
    """Its variables, with the names in what they are bound to."""
    displays: tuple[tuple[str, ...], ...] = ()
    """Lists, rows and mappings that are spelled out in literals, their members in order."""
    tabled: tuple[frozenset[str], ...] = ()
    """All literals of each row of the tables that it goes through."""

    @property
    def is_live(self) -> bool:
        return not self.markers

    @property
    def is_dead(self) -> bool:
        """Whether it never runs, on no machine and on no terms."""
        return any(map(_NEVER.search, self.markers))

    @property
    def size(self) -> int:
        return len(self.checks) + len(self.rows) + len(self.own)


class Suite(Struct, frozen=True, kw_only=True):
    """The tests of one file."""

    path: str
    parsed: bool = True
    units: tuple[Unit, ...] = ()
    literals: frozenset[str] = frozenset()
    """Of everything beside the tests: constants, fixtures, helpers."""
    inputs: frozenset[str] = frozenset()
    """Of these, what fixtures hand to the code under test."""
    markers: tuple[str, ...] = ()
    """What switches the whole file off."""
    around: str = ""
    """Canonical text of all that stands beside the tests of a Python file."""
    asserting: frozenset[tuple[str, int]] = frozenset()
    """Functions beside the tests that assert, with how much that proves at best."""
    formed: frozenset[tuple[str, str]] = frozenset()
    """Functions beside the tests, with the texts that they compare as a whole."""


class Found(Struct, frozen=True, kw_only=True):
    """A test function as a language spells it."""

    name: str
    node: "Node"
    body: "Node"
    markers: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def by_name(units: Iterable[Unit]) -> dict[str, Unit]:
    """Later definitions win, as they do in the runner."""
    return {unit.name: unit for unit in units}
