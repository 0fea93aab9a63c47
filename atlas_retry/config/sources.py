"""Values of the sources of a configuration with their places. Knows no file format, merges nothing.

A source is a file, a variable or the command line.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.errors import ConfigError, Place

Path = tuple[str | int, ...]
"""Location in a configuration: keys, and positions in lists."""

Tree = dict[str, Any]
"""Mappings, lists and scalars."""

SAME: Mapping[Path, Path] = {
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


class EffectiveKey(Struct, frozen=True, kw_only=True):
    """One key of the effective configuration."""

    key: str
    """Dotted: `validation.lint[0].run`."""
    value: str
    """One line of YAML; secrets are redacted."""
    origin: str
    """`file:line`, the name of a variable, `the command line` or `default`."""


class Source(Struct, frozen=True, kw_only=True):
    """The values of one source."""

    name: str
    values: Tree = {}
    places: Mapping[Path, Place] = {}
    """Place of every value of a file; of each variable."""
    keys: Mapping[Path, Place] = {}
    """Place of every key of a file."""
    is_text: bool = False
    """Whether scalars are text still, as in variables."""
    problems: tuple[ConfigError, ...] = ()

    def place(self, path: Path, *, of_key: bool = False) -> Place:
        """Place of this value or key, else of a value in it, else of the nearest parent."""
        if of_key and path in self.keys:
            return self.keys[path]
        if path not in self.places:
            inside = (below for below in self.places if below[: len(path)] == path)
            above = (path[:end] for end in range(len(path), -1, -1) if path[:end] in self.places)
            path = next(chain(inside, above), ())
        return self.places.get(path, Place(self.name))


class Sources(Struct, frozen=True, kw_only=True):
    """All sources of a configuration."""

    each: tuple[Source, ...]
    """Highest precedence first."""
    project: tuple[str, ...]
    """Names of the project's file and of those that it extends."""

    def place(self, path: Path, *, of_key: bool = False) -> Place:
        """Place of this value or key where it is decided, else of a value in it or of a parent."""
        source = self._deciding(path)
        return source.place(path, of_key=of_key) if source else Place(self.project[0])

    def sets(self, path: Path) -> bool:
        """Whether the value at this path is not a default."""
        source = self._deciding(path)
        return source is not None and steps_in(source.values, path) == len(path)

    def origin(self, path: Path) -> str | None:
        """Where the key is set: `file:line` or the name of another source; None if nowhere."""
        if not self.sets(path):
            return None
        place = self.place(path, of_key=True)
        return f"{place.source}:{place.line}" if place.line else place.source

    def _deciding(self, path: Path) -> Source | None:
        """The highest source that has this value or, of its parents, as many as possible."""
        # mappings merge by key; a list is taken whole
        key = tuple(takewhile(lambda step: isinstance(step, str), path))
        source = max(self.each, key=lambda source: steps_in(source.values, key))
        return source if steps_in(source.values, key) else None


def dotted(path: Path) -> str:
    """A path in dotted form: `validation.lint[0].run`."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")


def steps_in(values: object, path: Path) -> int:
    """Number of steps of the path that lead to a value."""
    for number, step in enumerate(path):
        match values:
            case dict() if step in values:
                values = values[step]
            case list() if isinstance(step, int) and step < len(values):
                values = values[step]
            case _:
                return number
    return len(path)


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every value with its path; of mappings, only an empty one is a value itself."""
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def tree(values: Iterable[tuple[Path, object]]) -> Tree:
    """Nested mappings of these values."""
    root: Tree = {}
    for (*above, last), value in values:
        section: Any = root
        for step in above:
            section = section.setdefault(step, {})
            if not isinstance(section, dict):  # a wrong value, refused later
                break
        else:
            section[last] = value
    return root


def spelled(path: Path) -> Path:
    """The path with an alias replaced by its key."""
    for old, new in SAME.items():
        if path[: len(old)] == old:
            return (*new, *path[len(old) :])
    return path


def canonical(source: Source) -> Source:
    """The source with aliases replaced by their keys; a key that is set twice is a problem."""
    return replace(
        source,
        values=tree((spelled(path), value) for path, value in leaves(source.values)),
        places={spelled(path): place for path, place in source.places.items()},
        keys={spelled(path): place for path, place in source.keys.items()},
        problems=(*source.problems, *_said_twice(source)),
    )


def _said_twice(source: Source) -> Iterator[ConfigError]:
    paths = (path for path in (*SAME.values(), *SAME) if steps_in(source.values, path) == len(path))
    first: dict[Path, Path] = {}
    for path in sorted(dict.fromkeys(paths), key=lambda path: source.place(path).line or 0):
        if (said := first.setdefault(spelled(path), path)) != path:
            line = source.place(said, of_key=True).line
            same = f"{dotted(path)} sets the same as {dotted(said)} in line {line}"
            place = source.place(path, of_key=True)
            yield ConfigError(f"{same}: keep one of them", place=place)
