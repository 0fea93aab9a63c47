"""Globs as `.gitignore` understands them, for `allow`, `protect` and ignore files."""

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


def globs(text: str) -> Globs:
    """A list of patterns written as text, white space between them."""
    return Globs(tuple(text.split()))
