"""Versions of a mapping: comparing two of them finds what comparing all their values finds."""

import random

import pytest

from atlas_retry.workspace.versions import Version, differing


def naive(old: dict[str, int], new: dict[str, int]) -> set[str]:
    return {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}


@pytest.mark.parametrize("seed", range(20))
def test_differing_finds_what_a_comparison_of_all_values_finds(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    paths = [f"p{number}" for number in range(12)]
    versions = [Version[int](dict.fromkeys(paths[:8], 0))]
    for _ in range(25):
        base = dice.choice(versions)  # of some, more than one is made
        changes = {dice.choice(paths): dice.randint(0, 2) for _ in range(dice.randint(0, 3))}
        gone = {dice.choice(paths) for _ in range(dice.randint(0, 2))} - changes.keys()
        wanted = {path: seen for path, seen in (base | changes).items() if path not in gone}
        assert base.amended(changes, gone) == wanted
        versions.append(base.amended(changes, gone))
    for old in versions:
        for new in versions:
            assert differing(old, new) == naive(old, new)


def test_nothing_amended_is_the_same_version() -> None:
    version = Version({"a": 1})
    assert version.amended({"a": 1}, ["b"]) is version


def test_a_version_stays_as_it_was() -> None:
    version = Version({"a": 1, "b": 1})
    version.amended({"a": 2}, ["b"])
    assert version == {"a": 1, "b": 1}
    assert differing(version, {"a": 1}) == {"b"}


def test_what_follows_an_empty_version_differs_in_all_it_holds() -> None:
    empty = Version[int]()
    full = empty.amended({"a": 1, "b": 2}, ["c"])
    assert full == {"a": 1, "b": 2}
    assert differing(empty, full) == differing(full, empty) == {"a", "b"}
    assert differing(full, full.amended({"a": 2})) == {"a"}
