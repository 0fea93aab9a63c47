"""Globs as `.gitignore` understands them, for `allow`, `protect` and ignore files."""

from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct
from pathspec import GitIgnoreSpec


class Globs(Struct, frozen=True, dict=True):
    """A list of patterns; the last one that matches decides, `!` takes back."""

    patterns: tuple[str, ...]

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(self.patterns)

    def match(self, path: str) -> bool:
        return self._spec.match_file(path)


def lines_of(text: str) -> Globs:
    """The globs of an ignore file."""
    return Globs(tuple(text.splitlines()))


def matching(paths: Iterable[str], globs: Globs) -> tuple[str, ...]:
    """The paths that match, in order."""
    return tuple(path for path in paths if globs.match(path))
