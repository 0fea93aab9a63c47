"""Budgets of several runs: what the day and the month have cost so far, according to the journal.

Days and months are of the local calendar; a run counts for the day on which it began.
A review without a run counts for the day on which it was made.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.errors import UsageError
from atlas_retry.events import Emit, Notice, now
from atlas_retry.history import archive, database, entries, values
from atlas_retry.model import Level
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.text.commands import quoted
from atlas_retry.text.units import usd

WARNED_AT = (0.9, 0.75, 0.5)
_NAMES = {
    "day": "for today",
    "month": "for this month",
    "repository_day": "of this repository for today",
    "repository_month": "of this repository for this month",
}


class BudgetStanding(Struct, frozen=True, kw_only=True):
    """One budget, and what other runs have spent of it."""

    key: str
    limit_usd: float
    spent_usd: float

    @property
    def left_usd(self) -> float:
        return max(self.limit_usd - self.spent_usd, 0.0)

    def words(self, more_usd: float = 0.0) -> str:
        """`the budget for today: $7.60 of $10.00 are spent`."""
        spent = usd(self.spent_usd + more_usd)
        return f"the budget {_NAMES[self.key]}: {spent} of {usd(self.limit_usd)} are spent"

    def warned_at(self, more_usd: float = 0.0) -> float:
        """The highest share in WARNED_AT that is reached; 0 for none."""
        reached = (self.spent_usd + more_usd) / self.limit_usd if self.limit_usd else 1.0
        return next((share for share in WARNED_AT if reached >= share), 0.0)


def standing(opened: OpenWorkspace, order: values.Order, *, but: str) -> tuple[BudgetStanding, ...]:
    """Every budget that is set, without the cost of the run `but`. Raises StateError."""
    if not opened.settings.budgets:
        return ()
    with database.reading(opened.state) as connection:
        return tuple(
            BudgetStanding(
                key=key,
                limit_usd=limit_usd,
                spent_usd=archive.spent_usd(
                    connection,
                    _since(key),
                    str(opened.git.common_dir) if key.startswith("repository") else None,
                    but=but,
                    batch=order.batch,
                ),
            )
            for key, limit_usd in opened.settings.budgets
        )


def record_review(opened: OpenWorkspace, cost_usd: float) -> None:
    """Count the cost of a review without a run in the budgets. Raises StateError."""
    with database.opened(opened.state) as connection:
        entries.paid_review(connection, str(opened.git.common_dir), now(), cost_usd)


def limited(opened: OpenWorkspace, standings: Sequence[BudgetStanding]) -> OpenWorkspace:
    """The workspace with its budget limited to the least that is left of any budget.

    Raises UsageError if one is spent.
    """
    if not standings:
        return opened
    least = min(standings, key=lambda one: one.left_usd)
    if not least.left_usd:
        raise UsageError(
            f"--ai-fix is refused by {least.words()}",
            remedy=f"wait, or raise budgets.{least.key} in ~/.config/atlas/config.yaml; "
            f"atlas retry {quoted(opened.root)}, without --ai-fix, costs nothing",
        )
    settings = opened.settings
    own_usd = settings.retry.budget.cost_usd
    cost_usd = least.left_usd if own_usd is None else min(own_usd, least.left_usd)
    retry = replace(settings.retry, max_cost_usd=cost_usd)
    return replace(opened, settings=replace(settings, retry=retry))


def warn(standings: Sequence[BudgetStanding], emit: Emit, more_usd: float | None = None) -> None:
    """Warn about each budget of which a half, three quarters or nine tenths are spent.

    With `more_usd`, the cost of the run, only about those that the run brought to a higher share.
    """
    for one in standings:
        before, now = one.warned_at(), one.warned_at(more_usd or 0.0)
        if now > (0.0 if more_usd is None else before):
            emit(Notice(level=Level.WARNING, text=one.words(more_usd or 0.0)))


def _since(key: str) -> str:
    """Start of the day or month, in UTC, as the journal writes it."""
    today = datetime.now().astimezone()
    start = today.replace(hour=0, minute=0, second=0, microsecond=0)
    if key.endswith("month"):
        start = start.replace(day=1)
    return start.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
