"""Values of one source with their places, and merging of sources. Knows no file format."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.errors import ConfigError, Place

T = TypeVar("T")
Path = tuple[str | int, ...]
"""Location in a configuration: keys, and positions in lists."""

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
"""Aliases and the key that each stands for."""


class Layer(Struct, frozen=True, kw_only=True):
    """The values of one source, or of several merged."""

    values: Mapping[Path, object] = {}
    """Values by path; lists and empty mappings are values, other mappings are not."""
    places: Mapping[Path, Place] = {}
    """Place of every value."""
    keys: Mapping[Path, Place] = {}
    """Place of every key, if the source has lines."""
    problems: tuple[ConfigError, ...] = ()

    def tree(self) -> Tree:
        """The values as nested mappings."""
        tree: Tree = {}
        for path, value in self.values.items():
            *above, last = path
            section: Any = tree
            for key in above:
                section = section.setdefault(key, {})
            section[last] = section.get(last, {}) if value == {} else value
        return tree

    def place(self, path: Path, *, of_key: bool = False) -> Place:
        """Place of this value or key, else of a value in it, else of the nearest parent."""
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
        """Where the key is set: `file:line` or the name of another source; None if nowhere."""
        if path not in self.places:
            return None
        place = self.place(path, of_key=True)
        return f"{place.source}:{place.line}" if place.line else place.source


def dotted(path: Path) -> str:
    """A path in dotted form: `validation.lint[0].run`."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every value with its path; only an empty mapping is a value itself."""
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def single_value(place: Place, path: Path, value: object) -> Layer:
    """The layer of one value from one place: a variable or a flag."""
    values = dict(leaves(value, path))
    return Layer(values=values, places=dict.fromkeys(values, place))


def overlay(lower: Layer, higher: Layer) -> Layer:
    """Both layers merged; the higher one wins. Mappings merge by key, lists are replaced."""
    gone = tuple(path for path, value in higher.values.items() if value != {})

    def left(of: Mapping[Path, Place]) -> dict[Path, Place]:
        return {path: place for path, place in of.items() if not _is_below(path, gone)}

    # a key in both layers keeps its position in the order
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
    """Whether a path is one of these or inside one."""
    return any(path[: len(top)] == top for top in tops)


def _overlaps(path: Path, others: Iterable[Path]) -> bool:
    return _is_below(path, others) or _is_above(path, others)


def _is_above(path: Path, others: Iterable[Path]) -> bool:
    """Whether one of the others is the path or inside it."""
    return any(other[: len(path)] == path for other in others)


def canonical(layer: Layer) -> Layer:
    """The layer with aliases replaced by their keys; a key that is set twice is a problem."""
    problems = list(layer.problems)
    for old, new in SAME.items():
        if not _is_above(old, layer.values):
            continue
        if _is_above(new, layer.values):
            first, second = sorted((old, new), key=lambda path: layer.place(path).line or 0)
            line = layer.place(first, of_key=True).line
            twice = f"{dotted(second)} sets the same as {dotted(first)} in line {line}"
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
