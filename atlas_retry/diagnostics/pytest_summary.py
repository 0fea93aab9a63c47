"""Reads the end of pytest's output: the short summary and the counts."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from atlas_retry.diagnostics.failures import matching

# https://docs.pytest.org/en/stable/how-to/output.html#producing-a-detailed-summary-report
_HEADING = re.compile(r"^={2,} short test summary info ={2,}$")
_ENTRY = re.compile(r"^(FAILED|ERROR|SUBFAILED\S*) (\S.*)$")
_NODE = re.compile(r"^[^\s:]\S*\.\w{1,20}(?:::|$)")
_COUNT = r"\d{1,9} [a-z]{1,20}(?: [a-z]{1,20})?"
_COUNTS = re.compile(
    rf"^(?:=+ )?(?P<counts>{_COUNT}(?:, {_COUNT}){{0,20}}|no tests ran) in [\d.]+s\b"
)
_RAN = re.compile(r"(\d+) (?:failed|passed|xfailed|xpassed)\b")
_STOPPED = re.compile(r"^!{4,} .+ !{4,}$")
_SHOWN = 25
"""More lines of the summary than that are told apart by their diagnostics."""


class SummaryLine(Struct, frozen=True):
    """A line of the short test summary."""

    number: int
    """0-based, in the output."""
    word: str
    """FAILED, ERROR or SUBFAILED."""
    node: str
    """The node id, as pytest takes it on its command line."""
    said: str
    """The first line of the message, often cut."""

    @property
    def title(self) -> str:
        """As the heading of the failure has it."""
        plain, bracket, parameters = self.node.partition("::")[2].partition("[")
        return plain.replace("::", ".") + bracket + parameters


def summary_start(lines: Sequence[str]) -> int:
    """Number of the last heading: what a test has captured may hold others. Else of the end."""
    return max(matching(lines, _HEADING), default=len(lines))


def entries_of(lines: Sequence[str]) -> tuple[SummaryLine, ...]:
    """The entries below the last heading, or of the whole output when the heading is cut off."""
    start = summary_start(lines) % len(lines) if lines else 0
    entries = (_entry(i, lines[i]) for i in range(start, len(lines)))
    return tuple(e for e in entries if e is not None)


def _entry(number: int, line: str) -> SummaryLine | None:
    match = _ENTRY.match(line)
    if match is None or not _NODE.match(match[2]):
        return None
    node, said = _split(match[2])
    return SummaryLine(number, match[1], node, said)


def _split(text: str) -> tuple[str, str]:
    """Node id and message; a parameter may hold ` - ` itself."""
    bracket = text.partition(" - ")[0].count("[") > text.partition(" - ")[0].count("]")
    closing = text.find("]") if bracket else -1
    cut = text.find(" - ", max(closing, 0))
    return (text, "") if cut < 0 else (text[:cut], text[cut + 3 :])


Titled = Mapping[str, Sequence[SummaryLine]]
"""Entries by their title; files may hold tests of the same name."""


def titled(entries: Sequence[SummaryLine]) -> Titled:
    """The entries, to be found by the heading of a failure."""
    by_title: dict[str, list[SummaryLine]] = {}
    for entry in entries:
        by_title.setdefault(entry.title, []).append(entry)
    return by_title


def entry_for(title: str, entries: Titled, paths: frozenset[str]) -> SummaryLine | None:
    """The entry that a failure's heading belongs to, in the file of one of its frames if known."""
    name = title.removeprefix("[doctest] ")
    # A subtest's heading goes on with its message or its parameters.
    names = (name, name.partition(" (")[0], name.partition(" [")[0])
    matching = next((entries[n] for n in names if n in entries), ())
    if not matching:
        return None
    return next((e for e in matching if e.node.partition("::")[0] in paths), matching[0])


def runs(line: str) -> int | None:
    """How many tests ran according to a closing line; None for any other line."""
    match = _COUNTS.match(line)
    return _ran(match) if match else None


def _ran(closing: re.Match[str]) -> int:
    return sum(map(int, _RAN.findall(closing["counts"])))


def tests_run(lines: Sequence[str]) -> int | None:
    """Over every session in the output; None when none has ended."""
    counts = matching(lines, _COUNTS).values()
    return sum(map(_ran, counts)) if counts else None


def closing_lines(lines: Sequence[str], entries: Sequence[SummaryLine]) -> tuple[int, ...]:
    """Numbers of the lines never to be cut."""
    ends = {*matching(lines, _STOPPED), *matching(lines, _COUNTS)}
    return (*(e.number for e in entries[:_SHOWN]), *sorted(ends))
