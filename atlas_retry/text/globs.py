"""Globs as `.gitignore` understands them, for `allow`, `protect` and ignore files."""

import re
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_NAME = re.compile(r"(?P<star>\*(?=\.))?(?P<text>[^!#*?\[\]\\/\s][^*?\[\]\\/\s]*)(?P<slash>/)?")


class Globs(Struct, frozen=True, dict=True):
    """A list of patterns; the last one that matches decides, `!` takes back."""

    patterns: tuple[str, ...]

    @cached_property
    def _plain(self) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
        """Most patterns are a name, a folder's name or an ending; no regex is compiled for them."""
        found = [match for match in map(_NAME.fullmatch, self.patterns) if match]
        bare = [match for match in found if not match["star"]]
        names = frozenset(match["text"] for match in bare if not match["slash"])
        folders = frozenset(match["text"] for match in bare if match["slash"])
        endings = [match["text"] for match in found if match["star"] and not match["slash"]]
        return names, folders, tuple(f"{ending}/" for ending in endings)

    @cached_property
    def _rest(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{regex})" for regex in self._regexes()) or r"(?!)")

    def _regexes(self) -> Iterator[str]:
        for pattern in self.patterns:
            match = _NAME.fullmatch(pattern)
            if match and not (match["star"] and match["slash"]):
                continue
            regex, is_included = GitIgnoreSpecPattern.pattern_to_regex(pattern)
            if regex and is_included:
                # pathspec names a group of each pattern, and a name may stand once in a regex
                anywhere = "" if regex.startswith("^") else ".*"
                yield anywhere + regex.replace("?P<ps_d>", "?:")

    @cached_property
    def _takes_back(self) -> GitIgnoreSpec | None:
        """What decides where a pattern takes back what another one has matched."""
        takes_back = any(pattern.startswith("!") for pattern in self.patterns)
        return GitIgnoreSpec.from_lines(self.patterns) if takes_back else None

    def match(self, path: str) -> bool:
        below = path.removeprefix("/").removeprefix("./")
        names, folders, endings = self._plain
        segments, closed = below.split("/"), f"{below}/"
        matched = (
            not names.isdisjoint(segments)
            or not folders.isdisjoint(segments[:-1])
            or any(ending in closed for ending in endings)
            or self._rest.match(below) is not None
        )
        return matched and (not self._takes_back or self._takes_back.match_file(path))


def globs(text: str) -> Globs:
    """A list of patterns written as text, white space between them."""
    return Globs(tuple(text.split()))
