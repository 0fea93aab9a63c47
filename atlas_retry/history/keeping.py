"""Write down the states of a run, and what a person does with it. Touches no workspace."""

import sqlite3

from atlas_retry.errors import StateError
from atlas_retry.events import now
from atlas_retry.history.database import writing
from atlas_retry.history.states import RunState, follows
from atlas_retry.history.values import RunRow


def move(to: sqlite3.Connection, run_id: str, state: RunState, reason: str) -> None:
    """Say that a run is now in `state`. Raises StateError where the table has no such step."""
    row = to.execute("SELECT state FROM runs WHERE id = ?", (run_id,)).fetchone()
    if row is None:
        return
    before = RunState(row[0])
    if not follows(before, state):
        raise StateError(f"run {run_id} is {before}, and from there it cannot become {state}")
    note(to, run_id, before, state, reason)


def note(
    to: sqlite3.Connection, run_id: str, before: RunState | None, state: RunState, reason: str
) -> None:
    """Write a step down, whatever the table says."""
    at = now()
    to.execute("UPDATE runs SET state = ?, last_at = ? WHERE id = ?", (state, at, run_id))
    to.execute(
        "INSERT INTO transitions VALUES (?, ?, ?, ?, ?)", (run_id, at, before, state, reason)
    )


def record(
    to: sqlite3.Connection, run: RunRow, state: RunState, reason: str, *, left: str | None = None
) -> None:
    """What became of a run, and the snapshot that its workspace now holds, where that is known.

    Raises StateError where the table of states has no such step.
    """
    with writing(to):
        move(to, run.id, state, reason)
        to.execute(
            "UPDATE runs SET left_behind = coalesce(?, left_behind) WHERE id = ?", (left, run.id)
        )


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
