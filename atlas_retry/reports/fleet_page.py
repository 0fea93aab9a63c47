"""A batch of a fleet as one HTML page: each repository's result, fix and cost."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from atlas_retry.reports.page.rendering import render
from atlas_retry.text.units import usd

WAYS = {
    "failed": "still fails",
    "broken": "could not be run",
    "given_up": "given up: it cost too many workers",
    "unpaid": "not asked: the budget was spent",
    "": "not done",
    "agent": "fixed by an agent",
    "replay": "fixed by another one's patch",
    "fixer": "fixed by the gates' fixers",
    "clean": "passed without changes",
}
"""Text for each ending, in the order of the page: what a person has to look at is first."""


class ItemRow(Struct, frozen=True, kw_only=True):
    """One repository of a batch."""

    name: str
    url: str = ""
    """Its page, if its address is one."""
    ending: str
    """A key of `WAYS`."""
    is_green: bool
    cost_usd: float
    attempts: int
    delivered: str
    """Name of the branch."""
    error: str
    report: str
    """Location of its `atlas.run/1`."""


def report(batch: str, rows: Sequence[ItemRow], *, known_usd: float, held_usd: float) -> str:
    """The page; `held_usd` is the possible cost of lost machines that have not reported it."""
    green = sum(row.is_green for row in rows)
    is_good = green == len(rows)
    unreported = f", at most {usd(held_usd)} more on lost machines" if held_usd else ""
    return render(
        "fleet.html",
        title=f"{'✓' if is_good else '✗'} {batch}: {green} of {len(rows)} pass",
        batch=batch,
        sign="✓" if is_good else "✗",
        style_of_verdict="good" if is_good else "bad",
        headline=f"{green} of {len(rows)} repositories pass",
        facts=[f"{usd(known_usd)} spent{unreported}"],
        groups=[*_groups(rows)],
        is_link=lambda address: address.startswith(("https://", "http://", "file://")),
    )


def _groups(rows: Sequence[ItemRow]) -> Iterator[dict[str, object]]:
    """The repositories that ended in one way, for the template."""
    for ending, words in WAYS.items():
        same = [row for row in rows if row.ending == ending]
        if same:
            yield {
                "id": ending or "open",
                "words": words,
                "style": "good" if same[0].is_green else "bad" if ending else "warn",
                "cost_usd": sum(row.cost_usd for row in same),
                "rows": same,
            }
