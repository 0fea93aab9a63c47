"""A validation that changed files, represented as a run so that it can be undone like one.

Only its snapshots before and after the gates are kept.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from atlas_retry import process, state_dir
from atlas_retry.errors import AtlasError
from atlas_retry.history.rescue import END, START, held_runs, held_under, pulse_of
from atlas_retry.workspace import discovery, locking
from atlas_retry.workspace.snapshot import snapshots, store

KEPT = 20
"""Validations kept for each workspace."""


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
            new_id = state_dir.exact_id(state_dir.VALIDATION)
            start = snapshot()
            pulse_of(ws, new_id).touch(0o600)
            store.keep(ws, held_under(new_id, START), start.id)
            held = HeldBefore(id=new_id, start=start)
    if held is None:
        yield None
        return
    with process.orderly():
        try:
            with state_dir.beating(pulse_of(ws, held.id)):
                yield held
        finally:
            with suppress(AtlasError), process.uninterruptible("what gates changed is being held"):
                _end(ws, held, snapshot)


def _end(
    ws: discovery.Workspace, held: HeldBefore, snapshot: Callable[[], snapshots.Snapshot]
) -> None:
    pulse_of(ws, held.id).unlink(missing_ok=True)
    after = snapshot() if held.changed else held.start
    held.changed = after.tree != held.start.tree
    if held.changed:
        store.keep(ws, held_under(held.id, END), after.id)
        runs = held_runs(ws)
        ids = sorted(name for name in runs if name.endswith(state_dir.VALIDATION))
        for old in ids[:-KEPT]:
            store.drop(ws, *(held_under(old, name) for name in runs[old]))
            pulse_of(ws, old).unlink(missing_ok=True)
    else:
        store.drop(ws, held_under(held.id, START))
