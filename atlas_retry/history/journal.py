"""Records one run in the journal as it happens, with the rows of `entries`.

An attempt's row is written before money is spent, and completed afterwards.
"""

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from atlas_retry.errors import AtlasError, Interrupted, StateError
from atlas_retry.events import AgentActivity, AttemptStarted, Emit, Event, Notice
from atlas_retry.history import archive, learning
from atlas_retry.history.database import REMEDY, connect, remedy, writing
from atlas_retry.history.entries import move, record_activity, write
from atlas_retry.history.states import RunState
from atlas_retry.history.values import OpenAttempt, Opening, RunRow
from atlas_retry.model import Level, Outcome, Validation, paid

T = TypeVar("T")


class Journal:
    """An observer of one run, with access to earlier runs.

    Raises StateError if AttemptStarted cannot be written, so that no money is spent without a
    record; of any other failure it warns once.
    """

    def __init__(self, connection: sqlite3.Connection | None, opening: Opening, emit: Emit) -> None:
        self._connection = connection
        self.opening = opening
        self._emit = emit
        self._lock = threading.Lock()
        self._last_activity: tuple[str | None, float | None] = (None, None)
        self._has_warned = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, AgentActivity):
            news = (event.session_id, paid(event.cost_usd))
            if news not in (self._last_activity, (None, None)):
                self._last_activity = news
                self._try(lambda to: record_activity(to, self.opening.run_id, *news))
        elif isinstance(event, AttemptStarted):
            self._must_write(event)
        else:
            self._try(lambda to: write(to, self.opening, event))

    def unfinished(self, root: str) -> tuple[RunRow, OpenAttempt | None] | None:
        """The latest run in a workspace if it was interrupted. The caller holds the lock."""
        newest = self._try(lambda journal: archive.runs(journal, root, limit=1))
        if not newest or not newest[0].is_open:
            return None
        return newest[0], self._try(lambda journal: archive.open_attempt(journal, newest[0].id))

    def interrupted_usd(self, root: str) -> float:
        """Cost of interrupted runs in a workspace that no report contains."""
        run_id = self.opening.run_id
        return self._try(lambda journal: archive.interrupted_usd(journal, root, but=run_id)) or 0.0

    def recall(self, failed: Validation) -> tuple[str, ...]:
        """A few short lines about earlier runs of the repository with the same failures."""
        repository = self.opening.repository
        return self._try(lambda journal: learning.recalled(journal, repository, failed)) or ()

    def learn(self, outcome: Outcome) -> str | None:
        """Store a run's learning record, and return its id if the run did not end green."""
        record = learning.record_of(outcome)
        if record is None:
            return None
        name = self._try(lambda to: learning.store(to, self.opening.repository, record))
        return None if outcome.verdict.is_green else name

    def interrupted(self, reason: str) -> None:
        """Record that the run was interrupted."""
        self._try(lambda to: move(to, self.opening.run_id, RunState.INTERRUPTED, reason))

    def _must_write(self, event: AttemptStarted) -> None:
        refusal = f"attempt {event.number} is not started, because the journal cannot be written"
        if self._connection is None:
            raise StateError(refusal, remedy=REMEDY)
        try:
            with self._lock, writing(self._connection) as to:
                write(to, self.opening, event)
        except sqlite3.Error as error:
            raise StateError(f"{refusal}: {error}", remedy=remedy(error)) from error

    def _try(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        """Result of a function in its own transaction; None if the journal fails."""
        if self._connection is None:
            return None
        try:
            with self._lock, writing(self._connection) as to:
                return act(to)
        except (sqlite3.Error, StateError) as error:
            if not self._has_warned:
                self._has_warned = True
                text = f"events cannot be recorded: {error}; {remedy(error)}"
                self._emit(Notice(level=Level.WARNING, text=text))
            return None


@contextmanager
def opened_journal(home: Path, opening: Opening, emit: Emit) -> Iterator[Journal]:
    """The journal of a state directory, opened for one run; records an error that ends the run.

    Without a usable journal, a run that may spend money is refused with StateError; any other
    run continues with a warning.
    """
    connection = None
    try:
        connection = connect(home)
    except StateError as error:
        if opening.order.ai_fix:
            raise StateError(
                f"no attempt can be started without a record: {error.message}",
                remedy=error.remedy,
            ) from error
        text = f"this run is not recorded: {error.message}"
        emit(Notice(level=Level.WARNING, text=text))
    kept = Journal(connection, opening, emit)
    try:
        yield kept
    except AtlasError as error:
        kept.interrupted(error.message)
        raise
    except Interrupted as end:
        kept.interrupted(f"ended by {signal.Signals(end.signum).name}")
        raise
    finally:
        if connection:
            connection.close()
