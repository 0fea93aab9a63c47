"""Globs as `.gitignore` understands them, for `allow`, `protect` and ignore files."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pathspec import GitIgnoreSpec


@dataclass(frozen=True, slots=True)
class Globs:
    """A list of patterns; the last one that matches decides, `!` takes back."""

    patterns: tuple[str, ...]
    _spec: GitIgnoreSpec = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_spec", GitIgnoreSpec.from_lines(self.patterns))

    def match(self, path: str) -> bool:
        return self._spec.match_file(path)


def lines_of(text: str) -> Globs:
    """The globs of an ignore file."""
    return Globs(tuple(text.splitlines()))


def matching(paths: Iterable[str], globs: Globs) -> tuple[str, ...]:
    """The paths that match, in order."""
    return tuple(path for path in paths if globs.match(path))
