"""Where one failure ends and the next begins in the log of a test runner. Knows no runner."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile


def titled(
    lines: Sequence[str], title: re.Pattern[str], end: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    """First and last line of each block: from its title to before the next one, or the end."""
    start: int | None = None
    for number, line in enumerate(lines):
        begins = title.match(line)
        if start is not None and (begins or end.match(line)):
            yield start, number - 1
            start = None
        start = number if begins else start
    if start is not None:
        yield start, len(lines) - 1


def matching(lines: Sequence[str], pattern: re.Pattern[str]) -> dict[int, re.Match[str]]:
    """The lines whose start the pattern matches, in order, by their number."""
    return {i: match for i, line in enumerate(lines) if (match := pattern.match(line))}


def above(lines: Sequence[str], *stops: re.Pattern[str]) -> list[str]:
    """The lines before the first that any of `stops` matches."""
    return list(takewhile(lambda line: not any(stop.match(line) for stop in stops), lines))
