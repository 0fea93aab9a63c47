"""Move a run from state to state, as the table of states allows, and remember why."""

import sqlite3

from atlas_retry.errors import StateError
from atlas_retry.events import now
from atlas_retry.history.states import RunState, follows


def move(to: sqlite3.Connection, run_id: str, state: RunState, reason: str) -> None:
    """Say that a run is now in `state`. Raises StateError where the table has no such step."""
    found = to.execute("SELECT state FROM runs WHERE id = ?", (run_id,)).fetchone()
    if found is None:
        return
    before = RunState(found[0])
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
