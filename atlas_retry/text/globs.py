"""Globs as `.gitignore` understands them, for `allow`, `protect` and ignore files."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from msgspec import Struct
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from atlas_retry.patterns import regex

_NAME = regex(r"(?P<star>\*(?=\.))?(?P<text>[^!#*?\[\]\\/\s][^*?\[\]\\/\s]*)(?P<slash>/)?")
_CLASS = regex(r"\[.*\]|\\.")
_LITERAL = regex(r"[\w.-]+")


class Globs(Struct, frozen=True, dict=True):
    """A list of patterns; the last one that matches decides, `!` takes back."""

    patterns: tuple[str, ...]

    @cached_property
    def _plain(self) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
        """Most patterns are a name, a folder's name or an ending; no regex is compiled for them."""
        names, folders, endings = set(), set(), []
        for match in filter(None, map(_NAME.fullmatch, self.patterns)):
            match match["star"], match["slash"]:
                case None, None:
                    names.add(match["text"])
                case None, _:
                    folders.add(match["text"])
                case _, None:
                    endings.append(f"{match['text']}/")
        return frozenset(names), frozenset(folders), tuple(endings)

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
        if not (self._matches_plainly(below) or self._rest.match(below)):
            return False
        return self._takes_back is None or self._takes_back.match_file(path)

    def _matches_plainly(self, path: str) -> bool:
        names, folders, endings = self._plain
        segments, closed = path.split("/"), f"{path}/"
        if not (names.isdisjoint(segments) and folders.isdisjoint(segments[:-1])):
            return True
        return any(ending in closed for ending in endings)


def with_a_match(patterns: Iterable[str], paths: Collection[str]) -> frozenset[str]:
    """Those of the patterns that match any of the paths.

    What a pattern says without wildcards stands in each path that it matches: most are out by one
    search in all paths together.
    """
    text = "\n".join(paths)
    return frozenset(pattern for pattern in patterns if _has_match(pattern, paths, text))


def _has_match(pattern: str, paths: Iterable[str], text: str) -> bool:
    literals = _LITERAL.findall(_CLASS.sub("*", pattern))
    if not all(literal in text for literal in literals):
        return False
    longest, one = max(literals, key=len, default=""), Globs((pattern,))
    return any(one.match(path) for path in paths if longest in path)


def globs(text: str) -> Globs:
    """A list of patterns written as text, white space between them."""
    return Globs(tuple(text.split()))


def words(text: str) -> frozenset[str]:
    """The words of a text, white space between them."""
    return frozenset(text.split())
