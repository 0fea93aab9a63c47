"""Which rules the problems of two validations belong to, and what became of them. Pure."""

from collections import Counter

from msgspec import Struct

from atlas_retry.diagnostics.counting import compared
from atlas_retry.model import Diagnostic, Validation


class Tally(Struct, frozen=True, kw_only=True):
    """What became of the problems of one rule."""

    fixed: int
    remaining: int
    introduced: int


def rule_of(diagnostic: Diagnostic) -> str:
    """The rule as people know it: `ruff F401`, or the tool alone."""
    return f"{diagnostic.tool} {diagnostic.rule_id}" if diagnostic.rule_id else diagnostic.tool


def rules_by_fingerprint(validation: Validation) -> dict[str, str]:
    """Of every problem of a gate that blocks; a silent failure counts for its gate."""
    found: dict[str, str] = {}
    for result in validation.failures:
        told = {d.fingerprint: rule_of(d) for d in result.diagnostics if d.fingerprint}
        found |= told or {f"{result.name}:{result.status}": result.name}
    return found


def tally(before: Validation, after: Validation) -> dict[str, Tally]:
    """What became of each rule's problems between two validations."""
    rules = rules_by_fingerprint(before) | rules_by_fingerprint(after)
    found = compared(before, after)
    fixed, remaining, introduced = (Counter(map(rules.__getitem__, names)) for names in found)
    return {
        rule: Tally(fixed=fixed[rule], remaining=remaining[rule], introduced=introduced[rule])
        for rule in sorted({*fixed, *remaining, *introduced})
    }
