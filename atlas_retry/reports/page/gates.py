"""What the page shows of gates and their problems.

Tests are listed by name, other problems by file and rule; after the first ones they are folded.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from atlas_retry.model import Diagnostic, GateResult, Status
from atlas_retry.reports.phrases import plain
from atlas_retry.reports.problems import SIGNS, listed, more, position
from atlas_retry.text.units import bounded

MAX_OUTPUT_CHARS = 20_000
UNFOLDED, MAX_LISTED = 20, 200
MAX_MESSAGE_CHARS = 240


def weight(result: GateResult) -> str:
    """`bad`, `good` or `warn`."""
    return "bad" if result.blocks else "good" if result.status is Status.PASSED else "warn"


def ends_of(text: str) -> str:
    """The first and last part of a gate's output."""
    shown = plain(text.strip("\n"))
    left_out = len(shown) - MAX_OUTPUT_CHARS
    if left_out <= 0:
        return shown
    half = MAX_OUTPUT_CHARS // 2
    return f"{shown[:half]}\n... {left_out} characters left out ...\n{shown[-half:]}"


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Tests as the gate had them, worst first; then the others by place."""

    def order(one: Diagnostic) -> tuple[bool, str, str, int]:
        if one.test_id is not None:
            return (False, "", "", 0)
        line = one.region.start_line if one.region else 0
        return (True, one.path or "", one.rule_id or "", line)

    return sorted(diagnostics, key=order)[:MAX_LISTED]


def by_file(
    diagnostics: Iterable[Diagnostic],
) -> Iterator[tuple[str, list[tuple[str | None, Sequence[Diagnostic]]]]]:
    """Path and its problems by rule; tests have no path, and stand alone."""
    for (is_test, path), group in groupby(
        diagnostics, lambda one: (one.test_id is not None, one.path)
    ):
        if is_test:
            yield "", [(one.rule_id, (one,)) for one in group]
        else:
            rules = groupby(group, lambda one: one.rule_id)
            yield path or "", [(rule, [*same]) for rule, same in rules]


def where(one: Diagnostic) -> str:
    """The test's id, else the place in the file whose heading names the path."""
    if one.test_id:
        return one.test_id
    return position(one).removeprefix(f"{one.path}:") if one.path and one.region else ""


def first_line(message: str) -> str:
    """The first line, cut; the whole message is folded below it."""
    return bounded(message.partition("\n")[0], MAX_MESSAGE_CHARS)


VALUES = {
    "by_file": by_file,
    "ends_of": ends_of,
    "first_line": first_line,
    "in_order": in_order,
    "listed": listed,
    "max_listed": MAX_LISTED,
    "more": more,
    "position": position,
    "signs": SIGNS,
    "unfolded": UNFOLDED,
    "weight": weight,
    "where": where,
}
"""For the template `gates.html`."""
