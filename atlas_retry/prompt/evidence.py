"""What may speak for a definition being at fault, and how much each kind of it weighs.

The weights were fitted by maximum likelihood to 233 seeded faults of 32 Python projects and
rounded. Fitted without the projects that are asked about, they have the fault among the first
2,300 characters of code in half of the cases; what a trace weighs was tried out on the same. What
a fresh change weighs is set by judgement: seeded faults have no history.
"""

from msgspec import Struct


class Evidence(Struct, frozen=True, kw_only=True):
    """What speaks for a definition; each figure grows with the likelihood or falls with it."""

    reach: float
    """Logarithm of how strongly the failing tests lead to it."""
    blame: float
    """Share of the failing tests in all that lead to it."""
    words: float
    name: float
    stem: float
    frame: float
    """In a traceback, 1 for the innermost."""
    owner: float
    """Its class is named by the test."""
    size: float
    """Logarithm of its lines: long ones hold more faults."""
    used: float
    """Logarithm of how many use it: what all use is seldom broken for one."""
    is_class: float
    in_tests: float
    traced: float
    quoted: float
    """It mentions the names that the messages quote."""
    pressing: float
    """As `words`, of the messages and failing lines only."""
    said: float
    """Its name is said by the failing tests."""
    storing: float
    """It sets what the failing lines read."""
    near: float
    """Logarithm of how strongly the innermost frames lead to it."""
    home: float
    """In the file of an innermost frame."""
    kin: float
    """In the class of an innermost frame."""
    blamed: float
    """The interpreter's message points at it."""
    empty: float
    """It may return None, and the messages speak of None."""
    slip: float
    """Something in it looks unfinished."""
    touched: float
    """Somebody has just changed it."""
    spectrum: float
    """Ochiai's figure: reached by the failing tests, not by the passing ones."""


WEIGHTS = Evidence(
    reach=0.3,
    blame=0.85,
    words=1.0,
    name=0.45,
    stem=0.15,
    frame=0.3,
    owner=0.45,
    size=0.1,
    used=-0.15,
    is_class=-0.85,
    in_tests=-2.0,
    traced=12.0,
    quoted=0.65,
    pressing=1.25,
    said=1.0,
    storing=0.7,
    near=0.15,
    home=0.8,
    kin=0.35,
    blamed=1.4,
    empty=1.1,
    slip=1.8,
    touched=2.5,
    spectrum=0.55,
)


def rating(gathered: Evidence) -> float:
    """Logarithm of a likelihood; only differences mean something."""
    names = Evidence.__struct_fields__
    return sum(float(getattr(gathered, name) * getattr(WEIGHTS, name)) for name in names)
