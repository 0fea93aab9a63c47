"""The tests of the files that changed, before and after. Compares nothing."""

from collections.abc import Sequence

from msgspec import Struct

from atlas_retry.guard import collection, places, pyunits, treeunits
from atlas_retry.guard.case import Delta, Scene
from atlas_retry.guard.units import HELPER, Suite, Unit


class Suites(Struct, frozen=True, kw_only=True):
    """The tests of the files that changed, as they were and as they are."""

    old: dict[tuple[str, str], Unit]
    new: dict[tuple[str, str], Unit]
    growing: tuple[Unit, ...]
    """Tests that are new or hold more than before: they may have taken over from others."""
    beside: frozenset[str]
    """Literals of changed fixtures and helpers: setting-up may have moved there."""
    deselected: tuple[str, ...]
    """Text of commands and configuration that could leave marked tests out."""


def _holds_tests(delta: Delta) -> bool:
    return places.is_test_code(delta.path) or places.suffix(delta.path) == ".rs"


def pairs_of(scene: Scene) -> tuple[tuple[Suite, Suite], ...]:
    """Of each changed file that holds tests: what it held, and what it holds."""
    return tuple(
        (suite(d.path, d.before), suite(d.path, d.after)) for d in scene.files if _holds_tests(d)
    )


def suite(path: str, source: bytes | None) -> Suite:
    """The tests of one file, by its language."""
    if source is None:
        return Suite(path=path)
    if places.suffix(path) == ".py":
        return pyunits.read(path, source)
    return treeunits.read(path, source)


def suites_of(scene: Scene, pairs: Sequence[tuple[Suite, Suite]]) -> Suites:
    """Everything the comparison needs to know of the changed tests."""
    old = {(s.path, u.name): u for s, _ in pairs for u in s.units}
    collected = collection.collector(scene)
    new = {
        (s.path, u.name): u
        for _, s in pairs
        for u in s.units
        if u.name.startswith(HELPER) or collected(s.path)
    }
    growing = tuple(
        unit
        for key, unit in new.items()
        if not unit.name.startswith(HELPER)
        and (key not in old or unit.size > old[key].size or len(unit.checks) > len(old[key].checks))
    )
    return Suites(
        old=old,
        new=new,
        growing=growing,
        beside=frozenset().union(*(s.literals for _, s in pairs)),
        deselected=collection.selections(scene),
    )
