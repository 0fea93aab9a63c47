"""Where every workspace stands. Its columns are what `atlas status` shows."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from atlas_retry import workspace
from atlas_retry.errors import WorkspaceError
from atlas_retry.history import archive
from atlas_retry.history.telling import state_of
from atlas_retry.history.values import RunRow
from atlas_retry.units import usd

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One workspace, by its newest run."""

    run: RunRow
    cost_usd: float
    """Of all its runs."""
    is_running: bool

    @property
    def was_cut_off(self) -> bool:
        """Whether its run has no end and nobody is running it."""
        return self.run.is_open and not self.is_running

    @property
    def state(self) -> str:
        """For a person."""
        return "interrupted" if self.was_cut_off else state_of(self.run)


def standings(
    connection: sqlite3.Connection, home: Path, environ: Mapping[str, str]
) -> tuple[Standing, ...]:
    """Every workspace that has had a run, the latest first."""
    return tuple(
        Standing(run=row, cost_usd=cost, is_running=row.is_open and _is_held(row, home, environ))
        for row, cost in archive.newest_of_each(connection)
    )


def _is_held(row: RunRow, home: Path, environ: Mapping[str, str]) -> bool:
    try:
        ws = workspace.open_workspace(Path(row.root), home, environ=environ)
    except WorkspaceError:
        return False
    return workspace.holder(ws) is not None


def table(found: Sequence[Standing], now: datetime) -> str:
    """One line a workspace."""
    if not found:
        return "no workspace has had a run; atlas retry makes one\n"
    rows = [("workspace", "state", "age", "cost", "path")]
    rows += [
        (one.run.name, one.state, age(one.run.last_at, now), usd(one.cost_usd), one.run.root)
        for one in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "".join(
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4]])
        + "\n"
        for row in rows
    )


def age(time: str, now: datetime) -> str:
    """How long ago, in the largest unit that is at least one: `3 d`."""
    passed_s = int((now - datetime.fromisoformat(time)).total_seconds())
    for unit_s, unit in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "min")):
        if passed_s >= unit_s:
            return f"{passed_s // unit_s} {unit}"
    return f"{max(passed_s, 0)} s"
