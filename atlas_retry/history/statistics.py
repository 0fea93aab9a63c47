"""How runs have gone: what is fixed how often, at what cost, and which gates are slow or flaky."""

import re
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec
from msgspec import Struct

from atlas_retry.errors import UsageError

MAX_ROWS = 12
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
T = TypeVar("T")


class Rate(Struct, frozen=True, kw_only=True):
    """How often something that failed was fixed."""

    name: str
    failed: int
    fixed: int

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return self.fixed / self.failed if self.failed else 0.0


class Turns(Struct, frozen=True, kw_only=True):
    """Attempts of one number, or of one agent and model."""

    name: str
    failed: int
    """How many were made: each began because something failed."""
    fixed: int
    """After so many of them everything passed."""
    cost_usd: float | None
    """On average, of those that told it."""
    duration_ms: float | None
    """On average."""

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return self.fixed / self.failed if self.failed else 0.0


class GateTimes(Struct, frozen=True, kw_only=True):
    """How long a gate takes, and how often it was flaky."""

    name: str
    ran: int
    flaky: int
    mean_ms: float
    max_ms: int


class Verdicts(Struct, frozen=True, kw_only=True):
    """How many runs ended so."""

    name: str
    runs: int


class Statistics(Struct, frozen=True, kw_only=True):
    """All of it, of the runs since a time."""

    since: str
    runs: int
    with_attempts: int
    """Runs in which an agent was asked."""
    fixed: int
    """Of these, how many ended green."""
    cost_usd: float
    cost_per_fix_usd: float | None
    """Of everything spent, the failures included."""
    duration_per_fix_ms: float | None
    """On average, of the runs that an agent fixed."""
    verdicts: tuple[Verdicts, ...]
    attempts: tuple[Turns, ...]
    """By number: how often does attempt 2 fix it?"""
    agents: tuple[Turns, ...]
    kinds: tuple[Rate, ...]
    rules: tuple[Rate, ...]
    flaky: tuple[GateTimes, ...]
    slowest: tuple[GateTimes, ...]


_TOTALS = """
    SELECT count(*) AS runs, count(*) FILTER (WHERE attempts) AS with_attempts,
      count(*) FILTER (WHERE attempts AND verdict = 'fixed') AS fixed,
      coalesce(sum(cost_usd), 0) AS cost_usd,
      sum(cost_usd) / nullif(count(*) FILTER (WHERE attempts AND verdict = 'fixed'), 0)
        AS cost_per_fix_usd,
      avg(duration_ms) FILTER (WHERE attempts AND verdict = 'fixed') AS duration_per_fix_ms
    FROM runs WHERE started_at >= ?
"""
_VERDICTS = """
    SELECT coalesce(verdict, state) AS name, count(*) AS runs FROM runs WHERE started_at >= ?
    GROUP BY 1 ORDER BY 2 DESC
"""
_TURNS = """
    SELECT {} AS name, count(*) AS failed, coalesce(sum(passed), 0) AS fixed,
      avg(cost_usd) AS cost_usd, avg(duration_ms) AS duration_ms
    FROM attempts WHERE ended_at NOT NULL AND started_at >= ? GROUP BY 1 ORDER BY {}
"""
_ATTEMPTS = _TURNS.format("cast(number AS TEXT)", "min(number)")
_AGENTS = _TURNS.format("agent || coalesce(' ' || model, '')", "2 DESC")
_KINDS = """
    WITH first AS (
      SELECT run, max(validations.number) AS number FROM validations
      JOIN runs ON runs.id = run AND started_at >= ? WHERE attempt IS NULL GROUP BY run
    ), last AS (
      SELECT run, max(validation) AS number FROM attempts WHERE validation NOT NULL GROUP BY run
    )
    SELECT before.kind AS name, count(*) AS failed, sum(NOT after.blocks) AS fixed
    FROM last CROSS JOIN first USING (run)
    CROSS JOIN gate_results AS before
      ON before.run = first.run AND before.validation = first.number AND before.blocks
    CROSS JOIN gate_results AS after ON after.run = last.run
      AND after.validation = last.number AND after.position = before.position
    GROUP BY 1 ORDER BY 2 DESC
"""
_RULES = """
    SELECT rule AS name, sum(fixed + remaining) AS failed, sum(fixed) AS fixed
    FROM rules JOIN runs ON runs.id = run WHERE started_at >= ?
    GROUP BY 1 HAVING sum(fixed + remaining) ORDER BY 2 DESC LIMIT 12
"""
_GATES = """
    SELECT gate_results.name AS name, count(*) AS ran, sum(status = 'flaky') AS flaky,
      avg(gate_results.duration_ms) AS mean_ms, max(gate_results.duration_ms) AS max_ms
    FROM gate_results JOIN runs ON runs.id = run
    WHERE started_at >= ? AND status NOT IN ('skipped', 'broken') GROUP BY 1
"""

_RUNS = """
    SELECT id AS run, started_at, ended_at, root AS workspace, repository,
      coalesce(verdict, state) AS verdict, attempts, cost_usd, duration_ms
    FROM runs WHERE started_at >= ? ORDER BY started_at, rowid
"""


def statistics(connection: sqlite3.Connection, since: str) -> Statistics:
    """Of the runs that began at `since` (ISO 8601, UTC) or later."""
    gates = _all(connection, _GATES, since, GateTimes)
    (totals,) = _dicts(connection, _TOTALS, since)
    return Statistics(
        since=since,
        verdicts=_all(connection, _VERDICTS, since, Verdicts),
        attempts=_all(connection, _ATTEMPTS, since, Turns),
        agents=_all(connection, _AGENTS, since, Turns),
        kinds=_all(connection, _KINDS, since, Rate),
        rules=_all(connection, _RULES, since, Rate),
        flaky=tuple(sorted((g for g in gates if g.flaky), key=lambda g: -g.flaky))[:MAX_ROWS],
        slowest=tuple(sorted(gates, key=lambda gate: -gate.mean_ms))[:MAX_ROWS],
        **msgspec.convert(totals, dict[str, int | float | None]),  # type: ignore[arg-type]
    )


def exported(connection: sqlite3.Connection, since: str) -> list[dict[str, object]]:
    """Every run that began at `since` or later, the oldest first, as the columns of a table."""
    return _dicts(connection, _RUNS, since)


def _all(connection: sqlite3.Connection, query: str, since: str, kind: type[T]) -> tuple[T, ...]:
    return tuple(msgspec.convert(row, kind) for row in _dicts(connection, query, since))


def _dicts(connection: sqlite3.Connection, query: str, since: str) -> list[dict[str, object]]:
    found = connection.execute(query, (since,))
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def moment(text: str | None, now: datetime) -> str:
    """When `7d`, `12h`, `2w` ago was, or a date, as ISO 8601 in UTC; the beginning for none.

    Raises UsageError.
    """
    if text is None:
        return ""
    ago = re.fullmatch(r"(\d+)([hdw])", text)
    try:
        if ago:
            then = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            then = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--since {text!r} is no time", remedy="--since 7d, 12h, 2w or 2026-01-31"
        ) from error
    return then.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
