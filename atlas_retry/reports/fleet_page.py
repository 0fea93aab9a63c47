"""A batch of a fleet as one HTML page: each repository's result, fix and cost."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from atlas_retry.reports.page.elements import document, table, tag
from atlas_retry.text.units import usd

WAYS = {
    "clean": "passed without changes",
    "fixer": "fixed by the gates' fixers",
    "replay": "fixed by another one's patch",
    "agent": "fixed by an agent",
    "failed": "still fails",
    "broken": "could not be run",
    "unpaid": "not asked: the budget was spent",
    "given_up": "given up: it cost too many workers",
    "": "not done",
}
"""Text for each ending, in the order of the page."""
COLUMNS = ("repository", "", "attempts", "cost", "branch", "error", "report")


class ItemRow(Struct, frozen=True, kw_only=True):
    """One repository of a batch."""

    name: str
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
    title = f"{'✓' if green == len(rows) else '✗'} {batch}: {green} of {len(rows)} green"
    unreported = f", at most {usd(held_usd)} more on lost machines" if held_usd else ""
    main = tag(
        "main",
        tag("h1", title),
        tag("p", f"{usd(known_usd)} spent{unreported}"),
        table("Endings", ("", "repositories", "cost", "each"), _ways(rows)),
        table("Repositories", COLUMNS, _each(rows)),
    )
    return document(title, tag("body", main))


def _ways(rows: Sequence[ItemRow]) -> Iterable[tuple[str, ...]]:
    for ending, words in WAYS.items():
        costs = [row.cost_usd for row in rows if row.ending == ending]
        if costs:
            yield words, str(len(costs)), usd(sum(costs)), usd(sum(costs) / len(costs))


def _each(rows: Sequence[ItemRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        cost, attempts = usd(row.cost_usd), str(row.attempts)
        yield row.name, WAYS[row.ending], attempts, cost, row.delivered, row.error, row.report
