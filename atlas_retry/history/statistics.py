"""Statistics of runs: fix rates, costs, and slow or flaky gates."""

import csv
import io
import re
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from atlas_retry.errors import UsageError
from atlas_retry.history.database import dicts
from atlas_retry.reports.screen.lines import aligned
from atlas_retry.text.units import counted, seconds, usd

MAX_ROWS, BAR_CHARS = 12, 20
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
Row = dict[str, str | int | float | None]
"""Values by column name, which ends with the unit: `_ms`, `_usd`."""


class Statistics(Struct, frozen=True, kw_only=True, tag_field="schema", tag="atlas.stats/1"):
    """Statistics of the runs since a time."""

    since: str
    runs: int
    with_attempts: int
    """Runs with attempts."""
    fixed: int
    """Runs with attempts that ended green."""
    cost_usd: float
    cost_per_fix_usd: float | None
    """Total cost, of failures too, per fixed run."""
    unreported: int
    """Attempts whose agent reported no cost."""
    duration_per_fix_ms: float | None
    """Mean duration of the runs that an agent fixed."""
    verdicts: tuple[Row, ...]
    attempts: tuple[Row, ...]
    """Fix rates by attempt number; `failed` is the number of attempts made; cost and duration are
    means."""
    agents: tuple[Row, ...]
    """The same by agent and model."""
    kinds: tuple[Row, ...]
    gates: tuple[Row, ...]
    """How often each gate failed before the first attempt, and was fixed."""
    rules: tuple[Row, ...]
    flaky: tuple[Row, ...]
    slowest: tuple[Row, ...]


_TOTALS = """
    SELECT count(*) AS runs, count(*) FILTER (WHERE attempts) AS with_attempts,
      count(*) FILTER (WHERE attempts AND verdict = 'fixed') AS fixed,
      coalesce(sum(cost_usd), 0) AS cost_usd,
      sum(cost_usd) / nullif(count(*) FILTER (WHERE attempts AND verdict = 'fixed'), 0)
        AS cost_per_fix_usd,
      (SELECT count(*) FROM attempts WHERE run IN (SELECT id FROM runs WHERE started_at >= ?1)
       AND attempts.ended_at NOT NULL AND attempts.cost_usd IS NULL) AS unreported,
      avg(duration_ms) FILTER (WHERE attempts AND verdict = 'fixed') AS duration_per_fix_ms
    FROM runs WHERE started_at >= ?1
"""
_VERDICTS = """
    SELECT coalesce(verdict, state) AS name, count(*) AS runs FROM runs WHERE started_at >= ?
    GROUP BY 1 ORDER BY 2 DESC
"""
_TURNS = """
    SELECT {} AS name, count(*) AS failed, coalesce(sum(passed), 0) AS fixed,
      avg(coalesce(passed, 0)) AS share, avg(cost_usd) AS cost_usd, avg(duration_ms) AS duration_ms
    FROM attempts WHERE ended_at NOT NULL AND run IN (SELECT id FROM runs WHERE started_at >= ?)
    GROUP BY 1 ORDER BY {}
"""
_FAILED = """
    WITH first AS (
      SELECT run, max(validations.number) AS number FROM validations
      JOIN runs ON runs.id = run AND started_at >= ? WHERE attempt IS NULL GROUP BY run
    ), last AS (
      SELECT run, max(validation) AS number FROM attempts WHERE validation NOT NULL GROUP BY run
    )
    SELECT before.{} AS name, count(*) AS failed, sum(NOT after.blocks) AS fixed,
      avg(NOT after.blocks) AS share
    FROM last CROSS JOIN first USING (run)
    CROSS JOIN gate_results AS before
      ON before.run = first.run AND before.validation = first.number AND before.blocks
    CROSS JOIN gate_results AS after ON after.run = last.run
      AND after.validation = last.number AND after.position = before.position
    GROUP BY 1 ORDER BY 2 DESC LIMIT 12
"""
_RULES = """
    SELECT rule AS name, sum(fixed + remaining) AS failed, sum(fixed) AS fixed,
      1.0 * sum(fixed) / sum(fixed + remaining) AS share
    FROM rules WHERE run IN (SELECT id FROM runs WHERE started_at >= ?)
    GROUP BY 1 HAVING sum(fixed + remaining) ORDER BY 2 DESC LIMIT 12
"""
_GATES = """
    SELECT name, count(*) AS ran, sum(status = 'flaky') AS flaky, avg(duration_ms) AS mean_ms,
      max(duration_ms) AS max_ms
    FROM gate_results WHERE run IN (SELECT id FROM runs WHERE started_at >= ?)
      AND status NOT IN ('skipped', 'broken')
    GROUP BY 1 ORDER BY mean_ms DESC
"""

_RUNS = """
    SELECT id AS run, started_at, ended_at, root AS workspace, repository,
      coalesce(verdict, state) AS verdict, attempts, cost_usd, duration_ms
    FROM runs WHERE started_at >= ? ORDER BY started_at, rowid
"""
_COUNTED = {
    "attempts": "attempt made fixed",
    "agents": "agent attempts fixed",
    "kinds": "kind failed fixed",
    "gates": "gate failed fixed",
    "rules": "problems failed fixed",
}
"""Headings of the rows and the first two columns of a table."""
_TABLES = {
    "verdicts": _VERDICTS,
    "attempts": _TURNS.format("cast(number AS TEXT)", "min(number)"),
    "agents": _TURNS.format("agent || coalesce(' ' || model, '')", "2 DESC"),
    "kinds": _FAILED.format("kind"),
    "gates": _FAILED.format("name"),
    "rules": _RULES,
    "slowest": _GATES,
}


def statistics(connection: sqlite3.Connection, since: str) -> Statistics:
    """Statistics of the runs since `since` (ISO 8601, UTC)."""
    (totals,) = _rows(connection, _TOTALS, since)
    tables = {name: _rows(connection, query, since) for name, query in _TABLES.items()}
    flaky = [row for row in tables["slowest"] if row["flaky"]]
    flaky.sort(key=lambda row: -float(row["flaky"] or 0))
    tables |= {"flaky": flaky[:MAX_ROWS], "slowest": tables["slowest"][:MAX_ROWS]}
    return msgspec.convert({"since": since, **totals, **tables}, Statistics)


def exported(connection: sqlite3.Connection, since: str) -> list[Row]:
    """Every run since `since`, oldest first, as rows of a table."""
    return _rows(connection, _RUNS, since)


def as_csv(rows: Sequence[Row]) -> str:
    """CSV (RFC 4180) with a header; empty without rows."""
    out = io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(out, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue()


def _rows(connection: sqlite3.Connection, query: str, since: str) -> list[Row]:
    rows = list(dicts(connection.execute(query, (since,))))
    return msgspec.convert(rows, list[Row])


def as_text(statistics: Statistics) -> str:
    """The totals and the tables."""
    titles = ("attempts", "agents", "kinds", "gates", "rules", "flaky", "slowest")
    tables = (_table(title, getattr(statistics, title)) for title in titles)
    return "".join((*_headlines(statistics), *tables))


def _table(title: str, rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    columns = [name.removesuffix("_ms").removesuffix("_usd") for name in rows[0]]
    first = _COUNTED.get(title, "").split()
    columns[: len(first)] = first
    columns = [f"mean {name}" if name in ("cost", "duration") else name for name in columns]
    cells = [[_cell(name, value) for name, value in row.items()] for row in rows]
    return f"\n{title}\n{aligned([columns, *cells], numbers=True)}"


def _headlines(statistics: Statistics) -> Iterator[str]:
    if not statistics.runs:
        yield "no runs yet; atlas retry starts one\n"
        return
    ends = (f"{row['runs']} {row['name']}".replace("_", " ") for row in statistics.verdicts)
    ended = f"{counted(statistics.runs, 'run')}: {', '.join(ends)}"
    cost = usd(statistics.cost_usd, at_least=bool(statistics.unreported))
    yield f"all repositories on this machine: {ended}; cost: {cost}\n"
    if asked := statistics.with_attempts:
        share = f"{statistics.fixed / asked:.0%}"
        yield f"an agent attempted {counted(asked, 'run')} and fixed {statistics.fixed} ({share})\n"
    if statistics.cost_per_fix_usd is not None and statistics.duration_per_fix_ms is not None:
        took = seconds(round(statistics.duration_per_fix_ms))
        each = usd(statistics.cost_per_fix_usd, at_least=bool(statistics.unreported))
        yield f"a fix takes {took}; cost: {each}\n"


def _cell(name: str, value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if name == "share":
        return f"{'█' * round(value * BAR_CHARS)} {value:>4.0%}"
    if name.endswith("_ms"):
        return seconds(round(value))
    return usd(value) if name.endswith("_usd") else str(value)


def moment(text: str | None, now: datetime) -> str:
    """A date, or a time ago as `7d`, `12h`, `2w`, as ISO 8601 in UTC; empty for None.

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
            f"--since {text!r} is not a time, such as 7d, 12h, 2w or 2026-01-31",
            remedy="atlas stats --since 7d",
        ) from error
    return then.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
