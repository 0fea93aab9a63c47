"""Keep one run's record in the journal, as it happens. Which rows an event makes is `entries`'.

An attempt's row is there before money is spent and completed after.
"""

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from atlas_retry.errors import AtlasError, Interrupted, StateError
from atlas_retry.events import AgentActivity, AttemptStarted, Emit, Event, Notice
from atlas_retry.history import learning
from atlas_retry.history.database import REMEDY, connect, writing
from atlas_retry.history.entries import heard, move, write
from atlas_retry.history.states import RunState
from atlas_retry.history.values import CutOff, Opening
from atlas_retry.model import Level, Outcome, Validation, paid

_UNFINISHED = (
    "SELECT id, mark, cost_usd, verdict IS NULL AND state NOT IN ('abandoned', 'undone') FROM runs"
    " WHERE root = ? ORDER BY started_at DESC, rowid DESC LIMIT 1"
)
_CUT_OFF_USD = """
    SELECT coalesce(sum(cost_usd), 0) FROM runs AS one WHERE root = ? AND id <> ?
    AND verdict IS NULL AND rowid > (SELECT coalesce(max(rowid), 0) FROM runs AS other
      WHERE other.root = one.root AND verdict NOT NULL)
"""
"""A run that ends reports what was cut off before it, so nothing before it is left to report."""
Writing = Callable[[sqlite3.Connection], None]


class Journal:
    """An observer of one run, and what earlier runs have to say to it.

    It raises StateError at AttemptStarted when that cannot be written, so that nothing is spent
    which nobody would know of; of anything else that fails it warns once.
    """

    def __init__(self, connection: sqlite3.Connection | None, opening: Opening, emit: Emit) -> None:
        self._connection = connection
        self.opening = opening
        self._emit = emit
        self._lock = threading.Lock()
        self._heard: tuple[str | None, float | None] = (None, None)
        self._has_warned = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, AgentActivity):
            self._hear(event)
        elif isinstance(event, AttemptStarted):
            self._must_write(event)
        else:
            self._try(lambda to: write(to, self.opening, event))

    def unfinished(self, root: str) -> CutOff | None:
        """The latest run in this workspace, when it was cut off. To be asked under its lock."""
        for name, mark, cost_usd, is_open in self._read(_UNFINISHED, root):
            if is_open:
                return CutOff(id=str(name), mark=str(mark), cost_usd=float(str(cost_usd)))
        return None

    def cut_off_usd(self, root: str) -> float:
        """What runs in this workspace have cost that were cut off, and that no report contains."""
        rows = self._read(_CUT_OFF_USD, root, self.opening.run_id)
        return float(str(rows[0][0])) if rows else 0.0

    def recall(self, failed: Validation) -> tuple[str, ...]:
        """What earlier runs of the repository teach about these failures: few, short lines."""
        return learning.recalled(self._read, self.opening.repository, failed)

    def learn(self, outcome: Outcome) -> str | None:
        """Record what a run teaches; the record's id where the run did not end green."""
        record = learning.record_of(outcome)
        made: list[str] = []
        if record:
            self._try(lambda to: made.append(learning.store(to, self.opening.repository, record)))
        return made[0] if made and not outcome.verdict.is_green else None

    def cut_off(self, reason: str) -> None:
        """The run goes no further."""
        self._try(lambda to: move(to, self.opening.run_id, RunState.INTERRUPTED, reason))

    def _hear(self, event: AgentActivity) -> None:
        news = (event.session_id, paid(event.cost_usd))
        if news not in (self._heard, (None, None)):
            self._heard = news
            self._try(lambda to: heard(to, self.opening.run_id, *news))

    def _must_write(self, event: AttemptStarted) -> None:
        refusal = f"attempt {event.number} is not started, because the journal cannot be written"
        if self._connection is None:
            raise StateError(refusal, remedy=REMEDY)
        try:
            with self._lock, writing(self._connection) as to:
                write(to, self.opening, event)
        except sqlite3.Error as error:
            raise StateError(f"{refusal}: {error}", remedy=REMEDY) from error

    def _try(self, act: Writing) -> None:
        if self._connection is None:
            return
        try:
            with self._lock, writing(self._connection) as to:
                act(to)
        except (sqlite3.Error, StateError) as error:
            self._warn(error)

    def _read(self, query: str, *values: str) -> Sequence[tuple[object, ...]]:
        if self._connection is None:
            return ()
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            self._warn(error)
            return ()

    def _warn(self, error: sqlite3.Error | StateError) -> None:
        if not self._has_warned:
            self._has_warned = True
            text = f"what happens cannot be recorded: {error}; {REMEDY}"
            self._emit(Notice(level=Level.WARNING, text=text))


@contextmanager
def journal(home: Path, opening: Opening, emit: Emit) -> Iterator[Journal]:
    """The journal of a state directory, opened for one run; an error that ends the run is noted.

    Where it cannot be used, a run that may spend money is refused with StateError, any other one
    goes on without, with a warning.
    """
    connection = _connected(home, opening, emit)
    kept = Journal(connection, opening, emit)
    try:
        yield kept
    except (AtlasError, Interrupted) as error:
        kept.cut_off(_reason(error))
        raise
    finally:
        if connection:
            connection.close()


def _connected(home: Path, opening: Opening, emit: Emit) -> sqlite3.Connection | None:
    try:
        return connect(home)
    except StateError as error:
        if opening.order.ai_fix:
            raise StateError(
                f"no attempt can be started, for nothing could be recorded of it: {error.message}",
                remedy=error.remedy,
            ) from error
        text = f"this run is not recorded: {error.message}"
        emit(Notice(level=Level.WARNING, text=text))
        return None


def _reason(error: AtlasError | Interrupted) -> str:
    if isinstance(error, Interrupted):
        return f"ended by {signal.Signals(error.signum).name}"
    return error.message
