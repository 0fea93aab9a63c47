"""Compares two assertions: which one took the other's place, and what it proves less."""

import builtins
import re
from collections.abc import Iterable

from atlas_retry.guard.outcomes import turned
from atlas_retry.guard.units import STRONG, VOID, Check, Unit

_SHOWN = 3


def shares(wanted: frozenset[str], there: frozenset[str]) -> bool:
    """Whether at least one telling name is spoken of there as well."""
    return not wanted or bool((wanted - _COMMON) & there)


_COMMON = frozenset({"self", "assertEqual", "len", "str", "int", "list", "pytest", "raises", "t"})


_LENGTH = re.compile(r"len|size|count", re.IGNORECASE)


def places_in(old: Unit, new: Unit) -> frozenset[str]:
    """Numbers that said a place or a length, where lists are spelled out now.

    What became another value where it stood said none.
    """
    pairs = [
        [(a, b) for a, b in zip(was, is_, strict=True) if a != b]
        for was in {*old.displays} - {*new.displays}
        for is_ in {*new.displays} - {*old.displays}
        if len(was) == len(is_)
    ]
    replaced = {pair[0][0] for pair in pairs if len(pair) == 1}
    there = (n for display in new.displays for n in range(len(display) + 1))
    return frozenset(map(str, there)) - replaced


def is_tabled(check: Check, old: Unit, new: Unit) -> bool:
    """Whether a row or a list that a new assertion goes by holds all that an old one told."""
    there = {c.text for c in old.checks}
    fresh = [c for c in new.checks if c.text not in there and c.strength >= STRONG]
    came = [d for d in new.displays if d not in old.displays]
    if not check.literals or not came or not fresh or any(c.loosening for c in fresh):
        return False
    return any(_holds(check, display) for display in came) or any(
        check.literals <= c.literals for c in fresh
    )


def _holds(check: Check, members: tuple[str, ...]) -> bool:
    """Whether members of a list are what an assertion said of each, or of their number."""
    if check.literals <= set(members):
        return True
    if check.literals == {str(len(members))}:
        return bool(_LENGTH.search(check.text))
    places = [int(place) for place in re.findall(r"\[(\d+)\]", check.text)]
    known = [members[place] for place in places if place < len(members)]
    return bool(known) and check.literals <= {*known, *map(str, places)}


def proves_as_much(new: Check, old: Check) -> bool:
    """Whether it is the same assertion, as strong and as sure to be reached."""
    as_strong = new.strength >= old.strength and new.loosening <= old.loosening
    return new.text == old.text and as_strong and new.guarded <= old.guarded


def likeness(old: Check, new: Check) -> float:
    """How much two assertions speak of the same; 0: of nothing in common."""
    if old.text == new.text:
        return 10.0
    literals = len(old.literals & new.literals) / (len(old.literals | new.literals) or 1)
    names = len(old.names & new.names) / (len(old.names | new.names) or 1)
    same_kind = 0.1 if old.text.split()[0] == new.text.split()[0] else 0.0
    bare = 0.05 if not old.names or not old.literals else 0.0
    return 2 * literals + names + same_kind + bare


def weaker(old: Check, new: Check) -> str:
    """Why an assertion accepts more than it did; empty when it does not."""
    if new.strength == VOID:
        return "an assertion can no longer fail"
    if new.strength < old.strength:
        return f"an assertion proves less: {_short(old)} became {_short(new)}"
    if new.guarded > old.guarded:
        return "an assertion is reached only on a condition"
    if new.whole and new.whole == old.text:
        return "only a part of what was compared is compared"
    loose = new.loosening - old.loosening
    return f"the value is passed through {listed(loose)} before it is compared" if loose else ""


_ERRORS = re.compile(r"^raises \['(\w*(?:Error|Exception|Iteration|Exit))'\]")


def expects_another_error(old: Check, new: Check) -> bool:
    """Whether Python's own error that is expected became another one of Python's own."""
    kinds = [_ERRORS.match(check.text) for check in (old, new)]
    names = [kind[1] for kind in kinds if kind]
    return len(set(names)) > 1 and all(hasattr(builtins, name) for name in names)


def is_reversed(old: Check, new: Check) -> bool:
    """Whether an assertion became its opposite."""
    first, second = old.text.split()[0], new.text.split()[0]
    return turned(old.outcome, new.outcome) or {first, second} in (
        {"true", "false"},
        {"none", "not"},
        {"<", ">="},
        {"<=", ">"},
    )


def is_denied(check: Check, unit: Unit) -> bool:
    """Whether a test claims another outcome of the very thing, and never the one that was."""
    about = check.outcome[0] if check.outcome else ""
    told = [c.outcome for c in unit.checks if c.outcome and "(" in about]
    same = [other for other in told if other[0] == about]
    return bool(same) and all(turned(check.outcome, other) for other in same)


def is_torn(check: Check, unit: Unit) -> bool:
    """Whether the rows of a test's tables hold parts of what an assertion told, and none all."""
    common = unit.own.difference(*unit.tabled)
    told = check.literals - common
    there = any(told & row for row in unit.tabled)
    whole = any(told <= row for row in unit.tabled) or any(told <= c.literals for c in unit.checks)
    return there and not whole


def unformed(literals: frozenset[str], unit: Unit) -> frozenset[str]:
    """Without the texts that a helper of the test forms of its own and of what it is handed."""
    given = {text.strip("\"'`") for text in unit.own} | {""}
    patterns = [_pattern(text) for text in unit.formed]
    return frozenset(
        text
        for text in literals
        if not any((m := p.fullmatch(text.strip('"'))) and given >= {*m.groups()} for p in patterns)
    )


_HOLES = re.compile(r"%[a-z]|\$?\{[^{}]*\}")


def _pattern(formed: str) -> re.Pattern[str]:
    parts = map(re.escape, ["", *_HOLES.split(formed.strip("\"'`")), ""])
    return re.compile("(.*)".join(parts), re.DOTALL)


def _short(check: Check) -> str:
    return f"`{check.text.split()[0]}`"


def listed(words: Iterable[str]) -> str:
    """A few words for a person."""
    chosen = sorted(words)
    return ", ".join(chosen[:_SHOWN]) + (" ..." if len(chosen) > _SHOWN else "")


def refined(lost: frozenset[str], gained: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Both without numbers that only got more exact: 2.138 became 2.13809, 1e-5 became 1e-12."""
    pairs = [(was, now) for was in lost for now in gained if _is_finer(was, now)]
    return lost - {was for was, _ in pairs}, gained - {now for _, now in pairs}


_TOLERANCE = 1e-3


_ZONE = re.compile(r"Z|[+-]\d\d:\d\d")


def _is_finer(was: str, now: str) -> bool:
    if re.match(r"\"?\d{4}-\d\d-\d\dT[\d:.]+\"?$", was) and now.startswith(was.rstrip('"')):
        return bool(_ZONE.fullmatch(now[len(was.rstrip('"')) :].rstrip('"')))
    try:
        old, new = float(was), float(now)
    except ValueError:
        return False
    digits = len(was.partition(".")[2])
    more_exact = bool(digits) and len(now) > len(was) and round(new, digits) == old
    return more_exact or (0 < new <= old < _TOLERANCE)
