"""Globs as `.gitignore` understands them, for `allow`, `protect` and ignore files."""

import re
from functools import cached_property

from msgspec import Struct
from pathspec import GitIgnoreSpec


class Globs(Struct, frozen=True, dict=True):
    """A list of patterns; the last one that matches decides, `!` takes back."""

    patterns: tuple[str, ...]

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(self.patterns)

    @cached_property
    def _any(self) -> re.Pattern[str]:
        """All patterns as one: most paths match none, and pathspec tries one after the other."""
        included = (pattern.regex for pattern in self._spec.patterns if pattern.include)
        # pathspec names a group of each pattern, and a name may stand once in a regex
        parts = (regex.pattern.replace("?P<ps_d>", "?:") for regex in included if regex)
        return re.compile("|".join(f"(?:{part})" for part in parts) or r"(?!)")

    def match(self, path: str) -> bool:
        below = path.removeprefix("/").removeprefix("./")
        return self._any.match(below) is not None and self._spec.match_file(path)


def globs(text: str) -> Globs:
    """A list of patterns written as text, white space between them."""
    return Globs(tuple(text.split()))
