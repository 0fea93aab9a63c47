"""The tests of the files that changed, before and after. Compares nothing."""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard import (
    collection,
    datafiles,
    places,
    pymarks,
    pyunits,
    renames,
    shellplaces,
    supplies,
    treeunits,
)
from atlas_retry.guard.case import Delta, Scene
from atlas_retry.guard.fresh import python
from atlas_retry.guard.units import HELPER, Suite, Unit


class Suites(Struct, frozen=True, kw_only=True, eq=False):
    """The tests of the files that changed, as they were and as they are."""

    old: dict[tuple[str, str], Unit]
    new: dict[tuple[str, str], Unit]
    growing: tuple[Unit, ...]
    """Tests that are new or hold more than before: they may have taken over from others."""
    beside: frozenset[str]
    """Literals of changed fixtures and helpers: setting-up may have moved there."""
    switching: frozenset[str]
    """Names that now stand for something that skips, and did not before."""
    moved: frozenset[str]
    """Files in which more changed than the tests: constants, fixtures, helpers, imports."""
    deselected: tuple[str, ...]
    """Text of commands and configuration that could leave marked tests out."""


def _holds_tests(delta: Delta) -> bool:
    return places.is_test_code(delta.path) or places.suffix(delta.path) == ".rs"


def pairs_of(scene: Scene) -> tuple[tuple[Suite, Suite], ...]:
    """Of each changed file that holds tests: what it held, and what it holds."""
    return tuple(
        (suite(d.path, _followed(d, scene)), suite(d.path, d.after))
        for d in scene.files
        if _holds_tests(d)
    )


def _followed(delta: Delta, scene: Scene) -> bytes | None:
    """The file of before, in the names and by the paths of now."""
    known = shellplaces.spelled(delta.path, delta.before, delta.after, scene)
    return renames.spelled(delta.path, known, scene)


@lru_cache(maxsize=1024)
def suite(path: str, source: bytes | None) -> Suite:
    """The tests of one file, by its language."""
    if source is None:
        return Suite(path=path)
    if places.suffix(path) == ".py":
        return pyunits.read(path, source)
    return treeunits.read(path, source)


def suites_of(scene: Scene, pairs: Sequence[tuple[Suite, Suite]]) -> Suites:
    """Everything the comparison needs to know of the changed tests."""
    collected = collection.collector(scene)
    asserting = frozenset().union(*(s.asserting for pair in pairs for s in pair))
    old = {
        (s.path, u.name): _placed(u, s, asserting, is_new=False) for s, _ in pairs for u in s.units
    }
    new = {
        (s.path, u.name): _placed(u, s, asserting, is_new=not before.units)
        for before, s in pairs
        for u in s.units
        if u.name.startswith(HELPER) or collected(s.path)
    }
    growing = tuple(
        unit
        for key, unit in new.items()
        if not unit.name.startswith(HELPER)
        and (key not in old or unit.size > old[key].size or len(unit.checks) > len(old[key].checks))
    )
    written = supplies.written_out(scene)
    if written:
        new = {key: replace(u, literals=u.literals | written) for key, u in new.items()}
    if data := datafiles.of_scene(scene):
        whole = {path for path, _ in new if datafiles.are_whole(scene.new(path))}
        new = {k: datafiles.with_data(u, data) if k[0] in whole else u for k, u in new.items()}
    return Suites(
        old=old,
        new=new,
        growing=growing,
        beside=frozenset().union(*(s.literals for _, s in pairs)),
        switching=_switching(scene),
        moved=frozenset(s.path for before, s in pairs if before.around != s.around),
        deselected=collection.selections(scene),
    )


def _placed(
    unit: Unit, suite: Suite, asserting: frozenset[tuple[str, int]], *, is_new: bool
) -> Unit:
    """With the functions beside the tests that assert for it, and what its new file says of it."""
    helpers = frozenset(name for name, strength in asserting if name in unit.names and strength > 2)  # noqa: PLR2004 - more than a hint
    return replace(
        unit,
        helpers=unit.helpers | helpers,
        formed=frozenset(text for name, text in suite.formed if name in helpers),
        markers=(*unit.markers, *suite.markers) if is_new else unit.markers,
    )


def _switching(scene: Scene) -> frozenset[str]:
    names: set[str] = set()
    for delta, old, new in python(scene):
        if places.is_test(delta.path):
            names |= pymarks.aliases_in(new) - pymarks.aliases_in(old)
    for delta in scene.files:
        if _holds_tests(delta) and places.suffix(delta.path) != ".py":
            before, after = delta.before or b"", delta.after or b""
            names |= treeunits.switching(delta.path, after) - treeunits.switching(
                delta.path, before
            )
    return frozenset(names)
