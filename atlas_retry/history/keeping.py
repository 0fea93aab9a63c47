"""Write down what a person does with a run: undo, abandon, prune. Touches no workspace."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from atlas_retry.history.database import writing
from atlas_retry.history.moves import move
from atlas_retry.history.states import RunState
from atlas_retry.history.values import RunRow


def undone(to: sqlite3.Connection, run: RunRow, snapshot_id: str) -> None:
    """What was there before the run is there again."""
    with writing(to):
        move(to, run.id, RunState.UNDONE, "atlas undo")
        _left(to, run, snapshot_id)


def picked(to: sqlite3.Connection, run: RunRow, name: str, snapshot_id: str) -> None:
    """The workspace holds another tree of the run."""
    with writing(to):
        move(to, run.id, run.state, f"atlas pick {name}")
        _left(to, run, snapshot_id)


def abandoned(to: sqlite3.Connection, run: RunRow, reason: str) -> None:
    """A person has given the run up. Raises StateError when it is no longer theirs to give up."""
    with writing(to):
        move(to, run.id, RunState.ABANDONED, reason)


def interrupted(to: sqlite3.Connection, run: RunRow, reason: str) -> None:
    """It came out that the run was cut off."""
    with writing(to):
        move(to, run.id, RunState.INTERRUPTED, reason)


def continued(to: sqlite3.Connection, run: RunRow, at: str, spent_ms: int) -> None:
    """A run that was cut off goes on; so long it had been running before.

    What the turn had cost that was cut off is kept beside what it will cost from now on.
    """
    with writing(to):
        to.execute(
            "UPDATE runs SET segment_at = ?, spent_ms = ? WHERE id = ?", (at, spent_ms, run.id)
        )
        to.execute(
            "UPDATE attempts SET lost_usd = lost_usd + told_usd, told_usd = NULL"
            " WHERE run = ? AND ended_at IS NULL AND reply IS NULL AND told_usd NOT NULL",
            (run.id,),
        )


def moved(to: sqlite3.Connection, before: str, root: str, repository: str) -> None:
    """A workspace is somewhere else now, and its runs with it."""
    with writing(to):
        to.execute(
            "UPDATE runs SET root = ?, repository = ? WHERE root = ?", (root, repository, before)
        )


def _left(to: sqlite3.Connection, run: RunRow, snapshot_id: str) -> None:
    to.execute("UPDATE runs SET left_behind = ? WHERE id = ?", (snapshot_id, run.id))


def prunable(rows: Sequence[RunRow], *, keep: int, before: datetime) -> tuple[RunRow, ...]:
    """The runs that may go: beyond the newest `keep` of their workspace, or begun `before`.

    Never the newest of a workspace. `rows` are in any order.
    """
    seen: dict[str, int] = {}
    found = []
    for row in sorted(rows, key=lambda row: row.started_at, reverse=True):
        place = seen.setdefault(row.root, 0)
        seen[row.root] += 1
        may_go = place >= keep or datetime.fromisoformat(row.started_at) < before
        if place > 0 and not row.pruned and may_go:
            found.append(row)
    return tuple(found)


def pruned(to: sqlite3.Connection, rows: Sequence[RunRow]) -> None:
    """Their snapshots and folders are gone; what statistics need stays."""
    with writing(to):
        names = [(row.id,) for row in rows]
        to.executemany("UPDATE runs SET pruned = 1, final = NULL WHERE id = ?", names)
        to.executemany("DELETE FROM outputs WHERE run = ?", names)
        to.executemany("UPDATE attempts SET document = NULL, reply = NULL WHERE run = ?", names)
    to.execute("VACUUM")
