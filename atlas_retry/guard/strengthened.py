"""Whether an assertion takes an earlier one in: the whole where a part was asked for. No rule."""

import re

from atlas_retry.guard.units import STRONG, Check, Unit

_PART_OF = re.compile(
    r"(in|matches) [A-Z]|(toContain(Equal)?|toMatch|includes?|contains?|match|Contains|Regexp) "
    r"|assert_(includes?|match|contains) |assertStringContainsString "
    r"|if !(strings|slices)\.Contains\("
    r"|(ok|true|True|assert|assertTrue|toBe) .*(\.(includes|contains|matches)\("
    r"|startswith|endswith)"
    r"|to expect.*\.to\(?(include|match|start_with|end_with)"
)
_DENIED = re.compile(
    r"\.not\.|not_to|to_not|\(!|refute|assertFalse|NotContain|doesNot|\(?false\)?$|notEqual"
)
_COUNTED = re.compile(
    r"(==|if|Len|toHaveLength|assert\w*|to\w+|expect) .*(len|size|count|Length)", re.IGNORECASE
)
_ABOVE = re.compile(r">=? |(toBeGreaterThan(OrEqual)?|Greater|GreaterOrEqual|assertGreater) ")
_SEPARATING = frozenset({"split", "splitlines", "lines", "slice"})
"""What takes one part of a text out: the part itself is compared whole."""
_OF_MATCHERS = re.compile(
    r"expect\w*|assert\w*|to[A-Z]\w*|not|to|t|self|this|require|strings?|slices|testing|len|length|size"
    r"|count|contains?|Contains|includes?|match\w*|split\w*|lines|str|String|string|list|vec|Vec|ok|is|be"
    r"|equal|eq|true|false|True|False|Equal|get|nth|Some|Ok|unwrap|Error\w*|Fatal\w*|err|nil|null|None"
)


def takes_in(old: Check, new: Check, before: Unit, after: Unit) -> bool:
    """Whether an assertion of the same value claims all that an earlier one did, and more."""
    if new.strength < STRONG or new.guarded > old.guarded or _DENIED.search(old.text):
        return False
    if new.loosening - old.loosening - _SEPARATING:
        return False
    if not _subjects(old, before) & _subjects(new, after):
        return False
    return _holds_part(old, new, after) or _holds_count(old, before, after) or _exceeds(old, new)


def _subjects(check: Check, unit: Unit) -> frozenset[str]:
    """What is called or read for it, through the variables of the test."""
    names, bound = set(check.names), dict(unit.bound)
    for _ in range(len(bound)):
        here = names & bound.keys()
        if not here:
            break
        names = (names - here).union(*(bound.pop(name) for name in here))
    return frozenset(name for name in names if not _OF_MATCHERS.fullmatch(name))


def _holds_part(old: Check, new: Check, after: Unit) -> bool:
    """Whether the text that had to be in it is in the text that it has to be."""
    if not _PART_OF.match(old.text):
        return False
    wholes = [_bare(text) for text in new.literals if _is_text(text)]
    parts = {
        text
        for text in old.literals
        if _is_text(text) and len(_bare(text)) > 1 and any(_bare(text) in w for w in wholes)
    }
    return bool(parts) and old.literals - parts <= after.own


def _holds_count(old: Check, before: Unit, after: Unit) -> bool:
    """Whether a list spelled out has as many members as had to be counted."""
    if not _COUNTED.match(old.text):
        return False
    came = {str(len(display)) for display in after.displays if display not in before.displays}
    counts = {text for text in old.literals if text.isdigit()} & came
    return len(counts) == 1 and old.literals - counts <= after.own


def _exceeds(old: Check, new: Check) -> bool:
    """Whether the number that it has to be is above the one that it had to be above."""
    bounds, values = ([float(n) for n in c.literals if _NUMBER.fullmatch(n)] for c in (old, new))
    return bool(_ABOVE.match(old.text)) and len(bounds) == len(values) == 1 and bounds < values


_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def _is_text(literal: str) -> bool:
    return literal[:1] in "\"'`/"


def _bare(literal: str) -> str:
    return literal.strip("\"'`/")
