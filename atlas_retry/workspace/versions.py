"""Successive versions of a mapping by path, compared only by what changed between them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", str, tuple[str, ...])
V = TypeVar("V")


class Version(dict[str, V], Generic[V]):
    """A mapping by path that must not change once `amended` has made the next version from it.

    Versions made from one another share a list of the paths that changed at each step.
    """

    __slots__ = ("at", "steps")

    def __init__(self, entries: Mapping[str, V] | Iterable[tuple[str, V]] = ()) -> None:
        super().__init__(entries)
        self.steps: list[frozenset[str]] = []
        self.at = 0

    def amended(self, changes: Mapping[str, V], gone: Collection[str] = ()) -> "Version[V]":
        """The next version with `changes` and without `gone`; the same one if nothing differs."""
        if not self and changes:
            return Version(changes)  # all differs: a list of what does would be as long
        moved = {path for path, value in changes.items() if self.get(path) != value}
        left = {path for path in gone if path in self}
        if not moved and not left:
            return self
        later = Version[V](self)
        for path in left:
            del later[path]
        # in their order, so that the files of a folder stay together
        later.update((path, value) for path, value in changes.items() if path in moved)
        # the second of two versions made from the same one starts a new list
        if self.at == len(self.steps):
            self.steps.append(frozenset(moved | left))
            later.steps, later.at = self.steps, len(self.steps)
        return later


def differing(old: Mapping[K, object], new: Mapping[K, object]) -> set[K]:
    """The keys whose values differ; for two related versions only changed keys are compared."""
    if old is new:
        return set()
    if isinstance(old, Version) and isinstance(new, Version) and old.steps is new.steps:
        first, last = sorted((old.at, new.at))
        moved = frozenset[str]().union(*old.steps[first:last])
        return {path for path in moved if old.get(path) != new.get(path)}
    return {path for path, seen in new.items() if old.get(path) != seen} | (old.keys() - new.keys())
