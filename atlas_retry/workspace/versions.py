"""What is known of every path, one look after the other: only what moved is ever compared."""

from collections.abc import Collection, Iterable, Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


class Version(dict[str, V], Generic[V]):
    """A mapping by path that changes no more once `amended` has made the next one of it.

    Those that were made one of the other share a list of what moved at each step.
    """

    __slots__ = ("at", "steps")

    def __init__(self, entries: Mapping[str, V] | Iterable[tuple[str, V]] = ()) -> None:
        super().__init__(entries)
        self.steps: list[frozenset[str]] = []
        self.at = 0

    def amended(self, changes: Mapping[str, V], gone: Collection[str] = ()) -> "Version[V]":
        """With these values, without those paths; the same one where nothing differs."""
        moved = {path for path, value in changes.items() if self.get(path) != value}
        left = {path for path in gone if path in self}
        if not moved and not left:
            return self
        later = Version[V](self)
        for path in left:
            del later[path]
        later.update((path, changes[path]) for path in moved)
        # of two that are made of the same one, the second begins anew
        if self.at == len(self.steps):
            self.steps.append(frozenset(moved | left))
            later.steps, later.at = self.steps, len(self.steps)
        return later


def differing(old: Mapping[str, object], new: Mapping[str, object]) -> set[str]:
    """The paths whose values differ; of two versions of one mapping only what moved is compared."""
    if old is new:
        return set()
    if isinstance(old, Version) and isinstance(new, Version) and old.steps is new.steps:
        first, last = sorted((old.at, new.at))
        moved = frozenset[str]().union(*old.steps[first:last])
        return {path for path in moved if old.get(path) != new.get(path)}
    return {path for path, seen in new.items() if old.get(path) != seen} | (old.keys() - new.keys())
