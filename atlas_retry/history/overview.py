"""Where every workspace stands. Its columns are what `atlas status` shows."""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from atlas_retry import workspace
from atlas_retry.errors import WorkspaceError
from atlas_retry.history import archive
from atlas_retry.history.telling import state_of
from atlas_retry.history.values import RunRow
from atlas_retry.model import Verdict
from atlas_retry.reports.documents import encode
from atlas_retry.reports.screen.lines import printable
from atlas_retry.text.commands import copyable
from atlas_retry.text.units import usd

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


class Standing(Struct, frozen=True, kw_only=True):
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


class UntouchedWorkspace(Struct, frozen=True, kw_only=True):
    """A workspace that has had no run."""

    name: str
    root: str
    state: str


NO_RUN, NOT_STARTED = "no run yet", "not started"


class StatusEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One workspace of `atlas status --json`; what only a run can tell is null without one."""

    name: str
    root: str
    state: str
    is_running: bool = False
    is_waiting: bool = False
    """Whether a batch that paused has not started it."""
    run_id: str | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    last_at: str | None = None
    attempts: int = 0
    cost_usd: float = 0.0
    """Of all its runs."""


class StatusDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="atlas.status/1"
):
    """Where every workspace stands."""

    workspaces: tuple[StatusEntry, ...]


def standings(
    connection: sqlite3.Connection, home: Path, environ: Mapping[str, str]
) -> tuple[Standing, ...]:
    """Every workspace that has had a run and is still there, the latest first."""
    return tuple(
        Standing(run=row, cost_usd=cost, is_running=row.is_open and _is_held(row, home, environ))
        for row, cost in archive.newest_of_each(connection)
        if Path(row.root).is_dir()
    )


def _is_held(row: RunRow, home: Path, environ: Mapping[str, str]) -> bool:
    try:
        ws = workspace.open_workspace(Path(row.root), home, environ=environ)
    except WorkspaceError:
        return False
    return workspace.holder(ws) is not None


def not_run(
    names: Mapping[str, Path], waiting: Collection[str], found: Sequence[Standing]
) -> tuple[UntouchedWorkspace, ...]:
    """The named workspaces, and those that a paused batch has not started, which have had no run.

    `names` are roots by name, `waiting` absolute paths.
    """
    known = {one.run.root for one in found}
    roots = {str(root): name for name, root in names.items()}
    roots |= {root: Path(root).name for root in waiting if root not in roots}
    return tuple(
        UntouchedWorkspace(name=name, root=root, state=NOT_STARTED if root in waiting else NO_RUN)
        for root, name in sorted(roots.items())
        if root not in known
    )


def as_json(
    found: Sequence[Standing], others: Sequence[UntouchedWorkspace], waiting: Collection[str]
) -> str:
    """`atlas.status/1`."""
    rows = tuple(_entry(one, waiting) for one in found)
    rest = tuple(
        StatusEntry(name=one.name, root=one.root, state=one.state, is_waiting=one.root in waiting)
        for one in others
    )
    return encode(StatusDocument(workspaces=rows + rest))


def _entry(one: Standing, waiting: Collection[str]) -> StatusEntry:
    return StatusEntry(
        name=one.run.name,
        root=one.run.root,
        state=one.state,
        is_running=one.is_running,
        is_waiting=one.run.root in waiting,
        run_id=one.run.id,
        verdict=one.run.verdict,
        reason=one.run.reason,
        last_at=one.run.last_at,
        attempts=one.run.attempts,
        cost_usd=one.cost_usd,
    )


def table(
    found: Sequence[Standing],
    now: datetime,
    others: Sequence[UntouchedWorkspace] = (),
    waiting: Collection[str] = (),
) -> str:
    """One line a workspace, then what to type next."""
    if not found and not others:
        return "no workspace has had a run; atlas retry makes one\n"
    rows = [("workspace", "state", "age", "cost", "path")]
    rows += [
        (
            one.run.name,
            one.state,
            age(one.run.last_at, now),
            usd(one.cost_usd, at_least=one.run.unpaid),
            one.run.root,
        )
        for one in found
    ]
    rows += [(one.name, one.state, "", "", one.root) for one in others]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4]])
        for row in rows
    ]
    return "".join(f"{printable(line)}\n" for line in (*lines, *_next(found, waiting)))


def _next(found: Sequence[Standing], waiting: Collection[str]) -> Iterator[str]:
    cut_off = [one for one in found if one.was_cut_off]
    if waiting or len(cut_off) > 1:
        yield f"{len(cut_off)} cut off, {len(waiting)} not started"
        yield from copyable("next", "atlas resume --all")
    elif cut_off:
        yield from copyable("next", f"atlas resume {cut_off[0].run.root}")


def age(time: str, now: datetime) -> str:
    """How long ago, in the largest unit that is at least one: `3 d`."""
    passed_s = int((now - datetime.fromisoformat(time)).total_seconds())
    for unit_s, unit in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "min")):
        if passed_s >= unit_s:
            return f"{passed_s // unit_s} {unit}"
    return f"{max(passed_s, 0)} s"
