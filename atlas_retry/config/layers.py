"""One source's values with their places, and laying one over another. Knows no file format."""

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from atlas_retry.errors import ConfigError, Place

Path = tuple[str | int, ...]
"""Where in a configuration: keys, and positions in lists."""

Tree = dict[str, object]
"""Mappings, lists and scalars, as the reader of the source made them."""

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

    values: Tree = field(default_factory=dict)
    places: Mapping[Path, Place] = field(default_factory=dict)
    """Of every value."""
    keys: Mapping[Path, Place] = field(default_factory=dict)
    """Of every key, where the source has lines."""
    problems: tuple[ConfigError, ...] = ()

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
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every value that is no mapping, with its path; an empty mapping is one as well."""
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def said_by(place: Place, values: Tree) -> Layer:
    """A source in which every value has the same place: a variable, a flag."""
    return Layer(values=values, places={path: place for path, _ in leaves(values)})


def nested(path: Path, value: object) -> Tree:
    """The tree that holds only this value."""
    for part in reversed(path):
        value = {part: value}
    if not isinstance(value, dict):
        raise TypeError(path)
    return value


def overlay(lower: Layer, higher: Layer) -> Layer:
    """What both say; where both speak, the higher. Mappings merge by key, lists replace."""
    replaced = [path for path, value in leaves(higher.values) if value != {}]
    return Layer(
        values=_merged(lower.values, higher.values),
        places=_without(lower.places, replaced) | dict(higher.places),
        keys=_without(lower.keys, replaced) | dict(higher.keys),
        problems=lower.problems + higher.problems,
    )


def _merged(lower: Tree, higher: Tree) -> Tree:
    merged = dict(lower)
    for key, value in higher.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return merged


def _without(places: Mapping[Path, Place], replaced: list[Path]) -> dict[Path, Place]:
    return {
        path: place
        for path, place in places.items()
        if not any(path[: len(gone)] == gone for gone in replaced)
    }


def canonical(layer: Layer) -> Layer:
    """The same with every other spelling brought to its key; the same said twice is a problem."""
    problems = list(layer.problems)
    for old, new in SAME.items():
        if not _holds(layer.values, old):
            continue
        if _holds(layer.values, new):
            problems.append(_twice(layer, old, new))
        layer = _moved(layer, old, new)
    return Layer(
        values=layer.values, places=layer.places, keys=layer.keys, problems=tuple(problems)
    )


def _twice(layer: Layer, old: Path, new: Path) -> ConfigError:
    first, second = sorted((old, new), key=lambda path: layer.place(path).line or 0)
    line = layer.place(first, of_key=True).line
    return ConfigError(
        f"{dotted(second)} says the same as {dotted(first)} in line {line}: keep one of them",
        place=layer.place(second, of_key=True),
    )


def _holds(values: object, path: Path) -> bool:
    for part in path:
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True


def _moved(layer: Layer, old: Path, new: Path) -> Layer:
    remaining, value = _taken(layer.values, old)

    def shifted(places: Mapping[Path, Place]) -> dict[Path, Place]:
        return {
            (*new, *path[len(old) :]) if path[: len(old)] == old else path: place
            for path, place in places.items()
        }

    return Layer(
        values=_merged(remaining, nested(new, value)),
        places=shifted(layer.places),
        keys=shifted(layer.keys),
    )


def _taken(values: Tree, path: Path) -> tuple[Tree, object]:
    """The tree without what is at the path, and that; a section left empty goes as well."""
    head, *rest = path
    remaining = {key: value for key, value in values.items() if key != head}
    value = values[str(head)]
    if not rest:
        return remaining, value
    inner, value = _taken(value, tuple(rest))  # type: ignore[arg-type]
    return ({**remaining, str(head): inner} if inner else remaining), value
