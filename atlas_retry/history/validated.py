"""A validation that changed files, represented as a run so that it can be undone like one.

Only its snapshots before and after the gates are kept.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import process, state_dir
from atlas_retry.errors import AtlasError
from atlas_retry.history.rescue import END, START, held_runs, held_under
from atlas_retry.history.values import RunRow
from atlas_retry.workspace import discovery, locking, restoring, shadow, snapshots

SUFFIX = "-validation"
"""Suffix of a validation's id, which distinguishes it from a run's."""
KEPT = 20
"""Validations kept for each workspace."""
_ID_TIME = "%Y%m%d-%H%M%S-%f" + SUFFIX
"""Precise enough to order validations among runs, which have milliseconds."""


class HeldBefore(Struct, kw_only=True):
    """The state before gates that may write."""

    id: str
    start: snapshots.Snapshot
    changed: bool = True
    """Whether gates changed files; the caller sets it to False if they did not."""


@contextmanager
def holding(
    ws: discovery.Workspace, snapshot: Callable[[], snapshots.Snapshot]
) -> Iterator[HeldBefore | None]:
    """Keep snapshots before and after gates run, if they change something.

    `snapshot` takes a snapshot of the workspace.
    Yields None if a run holds the workspace, or if no snapshot can be taken; gates run anyway.
    """
    held = None
    with suppress(AtlasError, OSError):
        if locking.holder(ws) is None:
            new_id = datetime.now(UTC).strftime(_ID_TIME)
            start = snapshot()
            _pulse(ws, new_id).touch(0o600)
            shadow.keep(ws, held_under(new_id, START), start.id)
            held = HeldBefore(id=new_id, start=start)
    if held is None:
        yield None
        return
    with process.orderly():
        try:
            with state_dir.beating(_pulse(ws, held.id)):
                yield held
        finally:
            with suppress(AtlasError), process.uninterruptible("what gates changed is being held"):
                _end(ws, held, snapshot)


def _pulse(ws: discovery.Workspace, run_id: str) -> Path:
    """A file whose time stamp is the last sign of life; it remains only after a kill."""
    return ws.home / f"{run_id}.pulse"


def _end(
    ws: discovery.Workspace, held: HeldBefore, snapshot: Callable[[], snapshots.Snapshot]
) -> None:
    _pulse(ws, held.id).unlink(missing_ok=True)
    after = snapshot() if held.changed else held.start
    held.changed = after.work != held.start.work
    if held.changed:
        shadow.keep(ws, held_under(held.id, END), after.id)
        runs = held_runs(ws)
        for old in sorted(filter(is_validation, runs))[:-KEPT]:
            shadow.drop(ws, *(held_under(old, name) for name in runs[old]))
            _pulse(ws, old).unlink(missing_ok=True)
    else:
        shadow.drop(ws, held_under(held.id, START))


def is_validation(run_id: str) -> bool:
    """Whether this is the id of a validation."""
    return run_id.endswith(SUFFIX)


def run_of(ws: discovery.Workspace, name: str | None) -> RunRow | None:
    """The validation with this id, by default the newest that is not undone; else None."""
    runs = held_runs(ws)
    ids = {*filter(is_validation, runs)}
    for one in sorted(ids if name is None else ids & {name}, reverse=True):
        start, end = runs[one].get(START), runs[one].get(END)
        if start and (name or start != end):
            return _run(ws, one, start, end)
    return None


def bring(ws: discovery.Workspace, run_id: str, snapshot_id: str) -> None:
    """Record that the workspace was set to a snapshot after the validation."""
    shadow.keep(ws, held_under(run_id, END), snapshot_id)


def _run(ws: discovery.Workspace, run_id: str, start: str, end: str | None) -> RunRow:
    begun = datetime.strptime(run_id, _ID_TIME).replace(tzinfo=UTC).isoformat()
    run = RunRow.of_snapshots(run_id, str(ws.root), begun, start=start, ended_at=_ended(ws, run_id))
    return replace(run, left_behind=end)


def _ended(ws: discovery.Workspace, run_id: str) -> str:
    """When it had ended for certain: now or, if killed, soon after its last sign of life."""
    ended = datetime.now(UTC)
    with suppress(OSError):
        pulse_s = _pulse(ws, run_id).stat().st_mtime
        ended = datetime.fromtimestamp(pulse_s + restoring.AFTERMATH_S, UTC)
    return ended.isoformat()
