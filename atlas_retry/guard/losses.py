"""What the tests of a tree prove less than before: the comparison behind the rules on tests."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache

from atlas_retry.guard import fixtures
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.collection import runs_async
from atlas_retry.guard.filenames import is_read, respelled
from atlas_retry.guard.likeness import (
    expects_another_error,
    is_denied,
    is_reversed,
    is_tabled,
    is_torn,
    likeness,
    listed,
    places_in,
    proves_as_much,
    refined,
    shares,
    unformed,
    weaker,
)
from atlas_retry.guard.members import as_followed
from atlas_retry.guard.pyproof import Proof, proofs
from atlas_retry.guard.spellings import as_good, is_thrown_now
from atlas_retry.guard.strengthened import takes_in
from atlas_retry.guard.suites import Suites, pairs_of, suites_of
from atlas_retry.guard.units import HELPER, VOID, Check, Suite, Unit


class Loss(StrEnum):
    """One way of proving less."""

    REMOVED = "removed"
    SWITCHED_OFF = "switched off"
    UNPARSABLE = "unparsable"
    CHECK_REMOVED = "assertion removed"
    WEAKENED = "assertion weakened"
    EXPECTATION = "expected value changed"
    CASES = "cases removed"
    INPUTS = "inputs changed"


@lru_cache(maxsize=4)
def losses(scene: Scene) -> tuple[tuple[Loss, Finding], ...]:
    """Everything that the tests of the changed files prove less than before."""
    pairs = pairs_of(scene)
    suites = suites_of(scene, pairs)
    found: list[tuple[Loss, Finding]] = []
    for old, new in pairs:
        found += _of_file(old, new)
    found += ((Loss.INPUTS, finding) for finding in fixtures.lost(pairs, suites, scene))
    for key, unit in suites.old.items():
        lost = [*_of_unit(unit, _successor(key, unit, suites), suites, scene)]
        found += (
            lost
            if not lost or not _is_spoken_for(unit, scene, suites)
            else [(kind, finding) for kind, finding in lost if kind is Loss.SWITCHED_OFF]
        )
    return tuple(found)


def _is_spoken_for(unit: Unit, scene: Scene, suites: Suites) -> bool:
    """Whether all that a test claimed is claimed still, in whatever arrangement."""
    return any(proof.holds(unit) for proof in _proofs(scene, suites))


@lru_cache(maxsize=4)
def _proofs(scene: Scene, suites: Suites) -> tuple[Proof, ...]:
    live = [unit for unit in suites.new.values() if unit.is_live]
    paths = sorted({path for path, _ in (*suites.old, *suites.new)})
    return proofs(scene, suites.old.values(), live, paths)


def _of_file(old: Suite, new: Suite) -> Iterator[tuple[Loss, Finding]]:
    if old.parsed and not new.parsed:
        detail = "can no longer be parsed, so none of its tests run"
        yield Loss.UNPARSABLE, Finding(path=new.path, detail=detail)
    there = bool(old.units) or not new.units
    for marker in (Counter(new.markers) - Counter(old.markers)).elements() if there else ():
        detail = f"switches the whole file off: {marker}"
        yield Loss.SWITCHED_OFF, Finding(path=new.path, line=1, detail=detail)


def _successor(key: tuple[str, str], unit: Unit, suites: Suites) -> Unit | None:
    """The same test in the same file, or the one that it moved to."""
    if key in suites.new:
        return suites.new[key]
    is_helper = unit.name.startswith(HELPER)
    fresh = [
        u
        for k, u in suites.new.items()
        if k not in suites.old and u.name.startswith(HELPER) == is_helper
    ]
    moved = [u for u in fresh if _bare(u.name) == _bare(unit.name)]
    renamed = [u for u in fresh if unit.dump and u.dump == unit.dump]
    return next(iter(moved + renamed), None)


def _bare(name: str) -> str:
    """Without the classes or groups around it."""
    return re.split(r"::| > ", name)[-1]


def _of_unit(
    old: Unit, new: Unit | None, suites: Suites, scene: Scene
) -> Iterator[tuple[Loss, Finding]]:
    if new is None:
        if not old.is_dead and not _taken_over(old, suites.growing):
            detail = f"test `{old.name}` is gone: deleted, renamed out of collection or moved away"
            yield Loss.REMOVED, Finding(path=old.path, line=old.line, detail=detail)
        elif not old.is_dead and (others := _proofs(scene, suites)[0].denied(old)):
            detail = (
                f"test `{old.name}` is gone, and others expect other values of {listed(others)}"
            )
            yield Loss.EXPECTATION, Finding(path=old.path, line=old.line, detail=detail)
        return
    yield from _of_markers(old, new, suites, scene)
    if old.dump and old.dump == new.dump:
        gone = _proofs(scene, suites)[0].gone(old) if old.path in suites.moved else None
        if gone:
            detail = f"what test `{new.name}` stands on changed: no longer {listed(gone)}"
            yield Loss.EXPECTATION, Finding(path=new.path, line=new.line, detail=detail, soft=True)
        return
    if new.is_hollow and not old.is_hollow and not old.checks:
        detail = f"test `{new.name}` was emptied"
        yield Loss.REMOVED, Finding(path=new.path, line=new.line, detail=detail)
        return
    found = [*_of_checks(old, new, suites.growing, scene), *_of_rows(old, new, suites.growing)]
    yield from found
    against = frozenset() if found else _proofs(scene, suites)[0].contradicted(old, new)
    if against:
        detail = f"test `{new.name}` expects other values of {listed(against)}"
        yield Loss.EXPECTATION, Finding(path=new.path, line=new.line, detail=detail)
    gone = old.inputs - new.literals - suites.beside - places_in(old, new)
    gone, _ = refined(unformed(gone, new), new.own)
    gone = gone - _of_others(old, new) if gone else gone
    gone = respelled(gone, new.inputs - old.inputs, new.literals, new.path, scene)
    strayed = frozenset() if found or against else _proofs(scene, suites)[0].strayed(old, new)
    if strayed:
        detail = f"test `{new.name}` no longer tries {listed(strayed)}"
        yield Loss.INPUTS, Finding(path=new.path, line=new.line, detail=detail, soft=True)
    if gone and not found and not _absorbs(suites.growing, gone, old.names):
        detail = f"test `{new.name}` no longer tries {listed(gone)}"
        yield Loss.INPUTS, Finding(path=new.path, line=new.line, detail=detail, soft=True)


def _of_markers(
    old: Unit, new: Unit, suites: Suites, scene: Scene
) -> Iterator[tuple[Loss, Finding]]:
    known = Counter(map(_lenient, old.markers))
    for marker in (Counter(map(_lenient, new.markers)) - known).elements():
        if _is_stricter(marker, old.markers) or (marker == "async" and runs_async(scene)):
            continue
        if _switches_off(marker, suites.deselected):
            detail = f"test `{new.name}` no longer has to pass: {marker}"
            yield Loss.SWITCHED_OFF, Finding(path=new.path, line=new.line, detail=detail)
    if not set(new.markers) - set(old.markers) and (names := _switched(new, suites)):
        detail = f"test `{new.name}` no longer has to pass: {listed(names)} skips it"
        yield Loss.SWITCHED_OFF, Finding(path=new.path, line=new.line, detail=detail)


def _switched(new: Unit, suites: Suites) -> frozenset[str]:
    """What skips on a test's behalf, and did not before."""
    return new.names & suites.switching


def _of_others(old: Unit, new: Unit) -> frozenset[str]:
    """Literals of assertions that others take in or spell anew."""
    return frozenset(
        literal
        for check in old.checks
        if any(takes_in(check, c, old, new) or as_good(check, c, new) for c in new.checks)
        for literal in check.literals
    )


def _is_stricter(marker: str, before: Sequence[str]) -> bool:
    """Whether a test that had to panic has to panic with a certain message now."""
    return marker.startswith("#[should_panic(expected") and "#[should_panic]" in before


def _lenient(marker: str) -> str:
    """A marker without the word that makes it stricter."""
    return re.sub(r",? ?strict=True", "", marker)


def _switches_off(marker: str, deselected: Sequence[str]) -> bool:
    if not marker.startswith("mark ") or re.search(r"flaky|rerun|repeat|retr", marker):
        return True
    return any(f"not {marker[5:]}" in text for text in deselected)


def _taken_over(old: Unit, growing: Sequence[Unit]) -> bool:
    """Whether other tests, new or grown, hold every assertion and value of a test that is gone."""
    checks = [check for check in old.checks if check.strength > VOID]
    if not checks and not old.rows:
        return bool(old.helpers) and _absorbs(growing, old.inputs, old.names)
    return all(_is_held(c, old, growing) for c in checks) and all(
        any(_holds_row(row, unit) for unit in growing) for row in old.rows
    )


def _is_held(check: Check, old: Unit, growing: Sequence[Unit]) -> bool:
    return any(
        check.literals <= unit.own
        and shares(check.names, unit.names)
        and (unit.helpers or any(c.strength >= min(check.strength, 4) for c in unit.checks))
        and not (is_denied(check, unit) or is_torn(check, unit))
        for unit in growing
        if unit.is_live and unit is not old
    )


def _absorbs(growing: Sequence[Unit], literals: frozenset[str], names: frozenset[str]) -> bool:
    return any(literals <= unit.own and shares(names, unit.names) for unit in growing)


def _of_checks(
    old: Unit, new: Unit, growing: Sequence[Unit], scene: Scene
) -> Iterator[tuple[Loss, Finding]]:
    left = list(new.checks)
    open_: list[Check] = []
    for check in old.checks:
        same = next((c for c in left if proves_as_much(c, check)), None)
        if same:
            left.remove(same)
        elif check.strength > VOID and not is_tabled(check, old, new):
            open_.append(check)
    helped = bool(new.helpers - old.helpers)
    for check in open_:
        stronger = next((c for c in left if takes_in(check, c, old, new)), None)
        if stronger is not None or is_thrown_now(check, old, new):
            continue
        if (
            helped
            and not unformed(check.literals - new.literals, new)
            and not check.names <= new.names
        ):
            continue
        successor = max(left, key=lambda c: likeness(check, c), default=None)
        if successor is None or likeness(check, successor) == 0:
            if not _is_held_elsewhere(check, old, new, growing):
                detail = f"test `{new.name}` lost an assertion (line {check.line} before)"
                yield Loss.CHECK_REMOVED, Finding(path=new.path, line=new.line, detail=detail)
            continue
        left.remove(successor)
        loss = _difference(check, successor, new, scene)
        if loss:
            kind, why = loss
            detail = f"test `{new.name}`: {why}"
            yield kind, Finding(path=new.path, line=successor.line, detail=detail)


def _is_held_elsewhere(check: Check, old: Unit, new: Unit, growing: Sequence[Unit]) -> bool:
    handed = not unformed(check.literals - new.literals, new)
    helped = bool(new.helpers - old.helpers) and handed
    rows = len(new.rows) > len(old.rows) and check.literals <= new.literals
    return helped or rows or _is_held(check, old, [u for u in growing if u is not new])


def _difference(old: Check, new: Check, after: Unit, scene: Scene) -> tuple[Loss, str] | None:
    """How the successor of an assertion falls short of it."""
    new = as_followed(old, new, scene)
    if as_good(old, new, after):
        return None
    if why := weaker(old, new):
        return Loss.WEAKENED, why
    lost, gained = refined(old.literals - new.literals, new.literals - old.literals)
    if all(is_read(literal, old) for literal in lost):
        lost = respelled(lost, gained, after.literals, after.path, scene)
    if lost and (gained or lost - after.literals):
        why = f"asserts {listed(gained) or 'nothing'} instead of {listed(lost)}"
        return Loss.EXPECTATION, why
    if expects_another_error(old, new):
        return Loss.EXPECTATION, "expects another error"
    return (Loss.EXPECTATION, "asserts the opposite") if is_reversed(old, new) else None


def _of_rows(old: Unit, new: Unit, growing: Sequence[Unit]) -> Iterator[tuple[Loss, Finding]]:
    lost = Counter(old.rows) - Counter(new.rows)
    missing = [row for row in lost if not any(_holds_row(row, unit) for unit in (new, *growing))]
    if missing:
        shown = ", ".join(f"({', '.join(row)})" for row in missing[:3])
        detail = f"test `{new.name}` lost or changed the cases {shown}"
        yield Loss.CASES, Finding(path=new.path, line=new.line, detail=detail)


def _holds_row(row: tuple[str, ...], unit: Unit) -> bool:
    if unit.rows:
        return any(Counter(row) <= Counter(other) for other in unit.rows)
    return {part for part in row if part not in _WORDS} <= unit.literals


_WORDS = frozenset({"None", "True", "False", "null", "true", "false"})
