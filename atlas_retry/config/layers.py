"""One source's values with their places, and laying one over another. Knows no file format."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.errors import ConfigError, Place

T = TypeVar("T")
Path = tuple[str | int, ...]
"""Where in a configuration: keys, and positions in lists."""

Tree = dict[str, object]
"""Mappings, lists and scalars."""

SAME = {
    ("validation", "format_commands"): ("validation", "format"),
    ("validation", "lint_commands"): ("validation", "lint"),
    ("validation", "test_commands"): ("validation", "test"),
    ("validation", "pre_commit_commands"): ("validation", "pre_commit"),
    ("validation", "commands", "format"): ("validation", "format"),
    ("validation", "commands", "lint"): ("validation", "lint"),
    ("validation", "commands", "test"): ("validation", "test"),
    ("validation", "commands", "pre_commit"): ("validation", "pre_commit"),
    ("validation", "ai_retry_enabled"): ("retry", "ai_retry_enabled"),
    ("validation", "max_ai_retry_attempts"): ("retry", "max_ai_retry_attempts"),
    ("executor", "quality_gate_max_retries"): ("retry", "max_ai_retry_attempts"),
}
"""Other spellings, and the key that each of them means."""


class Layer(Struct, frozen=True, kw_only=True):
    """What one source says, or several laid over each other."""

    values: Mapping[Path, object] = {}
    """All that is no mapping, or an empty one, by its path; lists are whole."""
    places: Mapping[Path, Place] = {}
    """Of every value."""
    keys: Mapping[Path, Place] = {}
    """Of every key, where the source has lines."""
    problems: tuple[ConfigError, ...] = ()

    def tree(self) -> Tree:
        """The values as mappings in mappings."""
        tree: Tree = {}
        for path, value in self.values.items():
            *above, last = path
            section: Any = tree
            for key in above:
                section = section.setdefault(key, {})
            section[last] = section.get(last, {}) if value == {} else value
        return tree

    def place(self, path: Path, *, of_key: bool = False) -> Place:
        """The place of this value or key, else of what it holds, else of what holds it."""
        if of_key and path in self.keys:
            return self.keys[path]
        if path not in self.places:
            inside = (where for below, where in self.places.items() if below[: len(path)] == path)
            if place := next(inside, None):
                return place
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return Place("the configuration")

    def origin(self, path: Path) -> str | None:
        """Where this key is set: `file:line` or another source's name; None = nowhere."""
        if path not in self.places:
            return None
        place = self.place(path, of_key=True)
        return f"{place.source}:{place.line}" if place.line else place.source


def dotted(path: Path) -> str:
    """A path as a person writes it: `validation.lint[0].run`."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every value that is no mapping, with its path; an empty mapping is one as well."""
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def said_by(place: Place, path: Path, value: object) -> Layer:
    """A source that says one value in one place: a variable, a flag."""
    values = dict(leaves(value, path))
    return Layer(values=values, places=dict.fromkeys(values, place))


def overlay(lower: Layer, higher: Layer) -> Layer:
    """What both say; where both speak, the higher. Mappings merge by key, lists replace."""
    gone = tuple(path for path, value in higher.values.items() if value != {})

    def left(of: Mapping[Path, Place]) -> dict[Path, Place]:
        return {path: place for path, place in of.items() if not _is_below(path, gone)}

    # a key that both know keeps its place in the order
    new = tuple(path for path in gone if path not in lower.values)
    values = {
        path: higher.values.get(path, value)
        for path, value in lower.values.items()
        if not _overlaps(path, new)
    }
    return Layer(
        values=values | dict(higher.values),
        places=left(lower.places) | dict(higher.places),
        keys=left(lower.keys) | dict(higher.keys),
        problems=lower.problems + higher.problems,
    )


def _is_below(path: Path, tops: Iterable[Path]) -> bool:
    """Whether a path is one of these, or in one."""
    return any(path[: len(top)] == top for top in tops)


def _overlaps(path: Path, others: Iterable[Path]) -> bool:
    return _is_below(path, others) or _is_above(path, others)


def _is_above(path: Path, others: Iterable[Path]) -> bool:
    """Whether one of these lies in the path."""
    return any(other[: len(path)] == path for other in others)


def canonical(layer: Layer) -> Layer:
    """The same with every other spelling brought to its key; the same said twice is a problem."""
    problems = list(layer.problems)
    for old, new in SAME.items():
        if not _is_above(old, layer.values):
            continue
        if _is_above(new, layer.values):
            first, second = sorted((old, new), key=lambda path: layer.place(path).line or 0)
            line = layer.place(first, of_key=True).line
            twice = f"{dotted(second)} says the same as {dotted(first)} in line {line}"
            place = layer.place(second, of_key=True)
            problems.append(ConfigError(f"{twice}: keep one of them", place=place))
        layer = Layer(
            values=_moved(layer.values, old, new),
            places=_moved(layer.places, old, new),
            keys=_moved(layer.keys, old, new),
        )
    return replace(layer, problems=tuple(problems))


def _moved(at: Mapping[Path, T], old: Path, new: Path) -> dict[Path, T]:
    return {
        (*new, *path[len(old) :]) if path[: len(old)] == old else path: value
        for path, value in at.items()
    }
