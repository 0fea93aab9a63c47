"""The state of every workspace, for `atlas status`."""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.errors import AtlasError, WorkspaceError
from atlas_retry.history import archive, rescue, reviews
from atlas_retry.history.states import RunState
from atlas_retry.history.texts import state_of
from atlas_retry.history.values import RunRow
from atlas_retry.model import OpenReview, Verdict
from atlas_retry.reports.screen.lines import aligned, printable
from atlas_retry.text.commands import quoted
from atlas_retry.text.units import labelled, usd
from atlas_retry.workspace import discovery, locking

_UNITS = (("d", 86_400), ("h", 3600), ("min", 60))


class StatusEntry(Struct, frozen=True, kw_only=True):
    """One workspace with its newest run; fields of the run are null without one."""

    name: str
    root: str
    state: str
    """State as shown to people."""
    is_running: bool = False
    is_waiting: bool = False
    """Whether a paused batch has not started it yet."""
    run_id: str | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    last_at: str | None = None
    attempts: int = 0
    cost_usd: float = 0.0
    """Total cost of its runs."""
    unpaid: bool = False
    """As in `RunRow`."""
    open_reviews: tuple[OpenReview, ...] = ()
    """Changes in the workspace that a person must review."""
    unread: str | None = None
    """Why these are not known."""

    @property
    def is_interrupted(self) -> bool:
        """Whether its run was interrupted and no process continues it."""
        is_open = self.state == "interrupted" and self.verdict is None
        return is_open and not self.is_running


class StatusDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag="atlas.status/1"):
    """The state of every workspace."""

    workspaces: tuple[StatusEntry, ...]


def as_seen(run: RunRow, *, is_running: bool) -> RunRow:
    """The run with its state as shown: a killed one recorded no end, and is interrupted."""
    is_killed = run.is_open and not is_running
    return replace(run, state=RunState.INTERRUPTED) if is_killed else run


def is_running(run: RunRow, home: Path, environ: Mapping[str, str]) -> bool:
    """Whether a process holds the lock of the workspace in which the run has not ended."""
    with suppress(WorkspaceError):
        if run.is_open and Path(run.root).is_dir():
            ws = discovery.open_workspace(Path(run.root), home, environ=environ)
            return locking.holder(ws) is not None
    return False


def interrupted_runs(
    connection: sqlite3.Connection, home: Path, environ: Mapping[str, str]
) -> tuple[RunRow, ...]:
    """The newest runs that were interrupted and that no process continues, latest first."""
    waiting = (run for run, _, runs in _newest(connection, home, environ) if not runs)
    return tuple(run for run in waiting if run.is_open)


def entries(
    connection: sqlite3.Connection,
    home: Path,
    environ: Mapping[str, str],
    names: Mapping[str, Path],
    waiting: Collection[str],
) -> tuple[StatusEntry, ...]:
    """Every existing workspace with a run, latest first; then those without.

    `names` are roots by name, `waiting` absolute paths that a paused batch has not started yet.
    """
    entries = [
        StatusEntry(
            name=run.name,
            root=run.root,
            state=_shown(as_seen(run, is_running=runs), home, environ),
            is_running=runs,
            is_waiting=run.root in waiting,
            run_id=run.id,
            verdict=run.verdict,
            reason=run.reason,
            last_at=run.last_at,
            attempts=run.attempts,
            cost_usd=cost_usd,
            unpaid=run.unpaid,
        )
        for run, cost_usd, runs in _newest(connection, home, environ)
    ]
    entries = [_with_reviews(entry, home, environ) for entry in entries]
    roots = {root: Path(root).name for root in waiting}
    roots |= {str(root): name for name, root in names.items()}
    for entry in entries:
        roots.pop(entry.root, None)
    for root, name in sorted(roots.items()):
        is_waiting = root in waiting
        state = "not started" if is_waiting else "no run yet"
        entries.append(StatusEntry(name=name, root=root, state=state, is_waiting=is_waiting))
    return tuple(entries)


def _with_reviews(entry: StatusEntry, home: Path, environ: Mapping[str, str]) -> StatusEntry:
    """The entry with its open reviews; what cannot be read in one workspace hides no other."""
    root = Path(entry.root)
    try:
        asked = reviews.kept(home, root)
        settings = config.load(root, environ=environ, overrides={}) if asked else None
        baseline = settings.triage_baseline if settings else None
        return replace(entry, open_reviews=reviews.still_open(asked, root, environ, baseline))
    except AtlasError as error:
        return replace(entry, unread=" ".join(str(error).split()))


def _shown(run: RunRow, home: Path, environ: Mapping[str, str]) -> str:
    """The state as shown to people; an interrupted run may have lost what it continues from."""
    state = state_of(run)
    if run.state is not RunState.INTERRUPTED:
        return state

    with suppress(WorkspaceError):
        ws = discovery.open_workspace(Path(run.root), home, environ=environ)
        if rescue.is_lost(ws, run):
            return f"{state}, its snapshots are gone"
    return state


def _newest(
    connection: sqlite3.Connection, home: Path, environ: Mapping[str, str]
) -> Iterator[tuple[RunRow, float, bool]]:
    """The newest run of each workspace, the cost of all its runs, and whether it is running."""
    for run, cost_usd in archive.newest_of_each(connection):
        if Path(run.root).is_dir():
            yield run, cost_usd, is_running(run, home, environ)


def table(entries: Sequence[StatusEntry], now: datetime) -> str:
    """One line per workspace, then the next command."""
    if not entries:
        return "no runs yet; atlas retry starts one\n"
    rows = [("workspace", "state", "age", "cost", "path")]
    for entry in entries:
        ago = age(entry.last_at, now) if entry.last_at else ""
        cost = usd(entry.cost_usd, at_least=entry.unpaid) if entry.run_id else ""
        rows.append((entry.name, entry.state, ago, cost, entry.root))
    following = (f"{printable(line)}\n" for line in _next(entries))
    return "workspaces of all repositories on this machine\n" + aligned(rows) + "".join(following)


def _next(entries: Sequence[StatusEntry]) -> Iterator[str]:
    interrupted = [entry.root for entry in entries if entry.is_interrupted]
    waiting = sum(entry.is_waiting for entry in entries)
    if waiting or len(interrupted) > 1:
        yield f"{len(interrupted)} interrupted, {waiting} not started"
        yield from labelled("next", "atlas resume --all")
    elif interrupted:
        yield from labelled("next", f"atlas resume {quoted(interrupted[0])}")
    for entry in entries:
        if entry.open_reviews:
            yield f"{entry.name}: {reviews.one_line(entry.open_reviews)}"
        if entry.unread:
            yield f"{entry.name}: its open reviews are not known: {entry.unread}"


def age(time: str, now: datetime) -> str:
    """Time since then in the largest unit that fits: `3 d`."""
    passed_s = max(0, int((now - datetime.fromisoformat(time)).total_seconds()))
    unit, unit_s = next((one for one in _UNITS if passed_s >= one[1]), ("s", 1))
    return f"{passed_s // unit_s} {unit}"
