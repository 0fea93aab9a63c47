"""Globs as `.gitignore` understands them, for `allow`, `protect` and ignore files."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.patterns import regex

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_NAME = regex(r"(?P<star>\*(?=\.))?(?P<text>[^!#*?\[\]\\/\s][^*?\[\]\\/\s]*)(?P<slash>/)?")
_PLACE = regex(r"/?(?P<text>[^!#*?\[\]\\/\s][^*?\[\]\\\s]*?)(?P<below>/(?:\*\*)?)?")
"""A path from the root without wildcards, or everything below it."""
_CLASS = regex(r"\[.*\]|\\.")
_LITERAL = regex(r"[\w.-]+")


class Globs(Struct, frozen=True, dict=True):
    """A list of patterns; the last one that matches decides, `!` negates it."""

    patterns: tuple[str, ...]

    @cached_property
    def _plain(self) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
        """Names, folder names and endings: most patterns, which need no regular expression."""
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
    def _rest(self) -> tuple[tuple[str, str], ...]:
        """The other patterns, each with a text that occurs in every path that it matches."""
        others = []
        for pattern in self.patterns:
            plain = _NAME.fullmatch(pattern)
            is_folder_ending = plain and plain["star"] and plain["slash"]
            if is_folder_ending or not (plain or pattern.startswith("!")):
                others.append((_longest_literal(pattern), pattern))
        return tuple(others)

    @cached_property
    def _taking_back(self) -> tuple[str, ...]:
        """A text of each negated pattern, which occurs in every path that it matches."""
        return tuple(_longest_literal(p) for p in self.patterns if p.startswith("!"))

    @cached_property
    def _whole(self) -> "GitIgnoreSpec":
        from pathspec import GitIgnoreSpec  # start-up

        return GitIgnoreSpec.from_lines(self.patterns)

    def match(self, path: str) -> bool:
        below = path.removeprefix("/").removeprefix("./")
        if not (self._matches_plainly(below) or self._matches_otherwise(below)):
            return False
        may_be_taken_back = any(text in below for text in self._taking_back)
        return not may_be_taken_back or self._whole.match_file(path)

    def _matches_plainly(self, path: str) -> bool:
        names, folders, endings = self._plain
        segments, closed = path.split("/"), f"{path}/"
        if not (names.isdisjoint(segments) and folders.isdisjoint(segments[:-1])):
            return True
        return any(ending in closed for ending in endings)

    def _matches_otherwise(self, path: str) -> bool:
        """Match the rest; a regular expression is compiled only if its text is in the path."""
        return any(text in path and _compiled(pattern).match(path) for text, pattern in self._rest)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    if place := _PLACE.fullmatch(pattern):
        return re.compile(re.escape(place["text"]) + ("/" if place["below"] else "(?:/|$)"))
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # start-up

    regular, is_included = GitIgnoreSpecPattern.pattern_to_regex(pattern)
    if not (regular and is_included):
        return re.compile(r"(?!)")
    return re.compile(regular if regular.startswith("^") else f".*{regular}")


def _literals(pattern: str) -> list[str]:
    """Texts of a pattern without wildcards, which occur in every path that it matches."""
    return _LITERAL.findall(_CLASS.sub("*", pattern))


def _longest_literal(pattern: str) -> str:
    return max(_literals(pattern), key=len, default="")


def with_a_match(patterns: Iterable[str], paths: Collection[str]) -> frozenset[str]:
    """The patterns that match any of the paths.

    Most are excluded by one search in all paths together.
    """
    text = "\n".join(paths)
    return frozenset(pattern for pattern in patterns if _has_match(pattern, paths, text))


def _has_match(pattern: str, paths: Iterable[str], text: str) -> bool:
    literals = _literals(pattern)
    if not all(literal in text for literal in literals):
        return False
    longest, one = _longest_literal(pattern), Globs((pattern,))
    return any(one.match(path) for path in paths if longest in path)


def overlap(one: str, other: str) -> bool:
    """Whether a path may be matched by both patterns; a class counts as any character."""
    return _meet(_segments(one), _segments(other), "**", _names_meet)


def _segments(pattern: str) -> list[str]:
    """Segments of a pattern from the root; a final slash means everything below."""
    plain = _CLASS.sub("?", pattern).removeprefix("./")
    anywhere = [] if "/" in plain.rstrip("/") else ["**"]
    below = ["**"] if plain.endswith("/") else []
    return [*anywhere, *plain.strip("/").split("/"), *below]


def _names_meet(one: str, other: str) -> bool:
    return _meet(one, other, "*", lambda a, b: a == b or "?" in (a, b))


def _meet(
    one: Sequence[str], other: Sequence[str], star: str, same: Callable[[str, str], bool]
) -> bool:
    """Whether two sequences can be one, where a star stands for any number of items."""
    # of each beginning of the other one, whether it can be the part of the one so far
    reached = [all(item == star for item in other[:at]) for at in range(len(other) + 1)]
    for item in one:
        came = [reached[0] and item == star]
        for at, there in enumerate(other):
            has_star = star in (item, there)
            came.append(
                reached[at + 1] or came[at] if has_star else reached[at] and same(item, there)
            )
        reached = came
    return reached[-1]


def globs(text: str) -> Globs:
    """A list of patterns from a text, separated by white space."""
    return Globs(tuple(text.split()))
