"""What the readers of test runners share: blocks, messages, places. Knows no runner."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from msgspec.structs import replace

from atlas_retry.diagnostics.table import region_of
from atlas_retry.model import Diagnostic, Frame

MESSAGE_LINES = 40
"""A longer message keeps its head and its last quarter: assertions stand first, hints last."""
RAISED = re.compile(r"^(?:\w+: )?(\w*Error)(?: \[\w+\])?:")
_OUTSIDE = re.compile(
    r"""
    (?:^|/)(?:site-packages|dist-packages|node_modules|\.cargo|rustc|\.rustup|\.m2)/
    | ^(?:/usr/|/opt/|/nix/|<|node:|internal/|java\.|jdk\.)
    | /lib/python3(?:\.\d+)?/
    | /pkg/mod/
    """,
    re.VERBOSE,
)


def inside(path: str) -> bool:
    """Whether a path can belong to the project: no library, no interpreter, no generated code."""
    return _OUTSIDE.search(path) is None


def matching(lines: Sequence[str], pattern: re.Pattern[str]) -> dict[int, re.Match[str]]:
    """The lines whose start the pattern matches, in order, by their number."""
    return {i: match for i, line in enumerate(lines) if (match := pattern.match(line))}


def first_match(pattern: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    """What the pattern makes of the first line whose start it matches."""
    return next(filter(None, map(pattern.match, lines)), None)


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


def above(lines: Sequence[str], *stops: re.Pattern[str]) -> list[str]:
    """The lines before the first that any of `stops` matches."""
    return list(takewhile(lambda line: not any(stop.match(line) for stop in stops), lines))


def shortened(lines: Sequence[str]) -> str:
    """The lines of a message joined, cut in the middle when there are very many."""
    if len(lines) <= MESSAGE_LINES:
        return "\n".join(lines).strip("\n")
    tail = MESSAGE_LINES // 4
    gone = len(lines) - MESSAGE_LINES
    return "\n".join((*lines[: MESSAGE_LINES - tail], f"... {gone} lines ...", *lines[-tail:]))


def failure(
    tool: str,
    message: Sequence[str],
    frames: tuple[Frame, ...],
    test_id: str | None,
    place: Mapping[str, str | None],
) -> Diagnostic:
    """A failed test; its rule is the exception that the message begins with."""
    text = shortened(textwrap.dedent("\n".join(message)).strip().split("\n"))
    raised = RAISED.match(text)
    problem = Diagnostic(
        tool=tool,
        rule_id=raised[1] if raised else None,
        message=text or "failed",
        test_id=test_id,
    )
    return placed(problem, frames, place)


def placed(
    problem: Diagnostic, frames: tuple[Frame, ...], otherwise: Mapping[str, str | None]
) -> Diagnostic:
    """The problem at its innermost frame; without frames where the runner says."""
    place = {name: value for name, value in otherwise.items() if value}
    if frames:
        place = {"path": frames[-1].path, "line": str(frames[-1].line)}
    return replace(problem, path=place.get("path"), region=region_of(place), frames=frames)
