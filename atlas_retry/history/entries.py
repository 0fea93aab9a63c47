"""Writes the journal's entries, for events and for commands of the user. Opens nothing."""

import sqlite3
from collections import Counter
from itertools import chain

from msgspec.structs import replace

from atlas_retry.diagnostics.counting import compared
from atlas_retry.errors import StateError
from atlas_retry.events import (
    AgentReplied,
    AttemptFinished,
    AttemptRestored,
    AttemptStarted,
    Event,
    RunFinished,
    RunStarted,
    ValidationFinished,
    now,
)
from atlas_retry.history.database import writing
from atlas_retry.history.learning import rules_by_fingerprint
from atlas_retry.history.states import RunState, follows, state_after
from atlas_retry.history.values import Opening, RunRow
from atlas_retry.model import Attempt, Outcome, ReplyStatus, Validation
from atlas_retry.text.json_text import encodable, read, text_of


def write(to: sqlite3.Connection, opening: Opening, event: Event) -> None:
    """Record one event. Raises sqlite3.Error."""
    run_id = opening.run_id
    query = "SELECT number FROM attempts WHERE run = ? AND ended_at IS NULL"
    (attempt,) = to.execute(query, (run_id,)).fetchone() or (None,)
    match event:
        case RunStarted():
            _run_started(to, opening, event)
        case ValidationFinished():
            _validated(to, run_id, event.validation, attempt, event.time)
        case AttemptStarted():  # a resumed one keeps its session and reply
            row = (event.agent, event.model, event.session_id, event.snapshot, event.time)
            to.execute(
                "INSERT INTO attempts"
                " (run, number, agent, model, session_id, snapshot, started_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET snapshot = excluded.snapshot, restored = 0",
                (run_id, event.number, *row),
            )
            counting = "UPDATE runs SET attempts = max(attempts, ?) WHERE id = ?"
            to.execute(counting, (event.number, run_id))
        case AgentReplied(reply=reply) if reply.status is not ReplyStatus.UNAVAILABLE:
            to.execute(
                "UPDATE attempts SET reply = ?, session_id = coalesce(?, session_id), cost_usd = ?"
                " WHERE run = ? AND number = ?",
                (text_of(reply), reply.session_id, reply.cost_usd, run_id, event.number),
            )
            _count_cost(to, run_id)
        case AttemptRestored():
            _update(to, "attempts", {"run": run_id, "number": event.number}, restored=1)
        case AttemptFinished():
            _attempt_finished(to, run_id, event.result, event.time)
        case RunFinished():
            _run_finished(to, opening, event.outcome, event.time)
        case _:
            pass
    state = state_after(event, in_attempt=attempt is not None)
    if state is not None and not isinstance(event, RunStarted):
        move(to, run_id, state, event.message)


def _update(to: sqlite3.Connection, table: str, row: dict[str, object], **values: object) -> None:
    pairs = ", ".join(f"{name} = :{name}" for name in values)
    key = " AND ".join(f"{name} = :{name}" for name in row)
    to.execute(f"UPDATE {table} SET {pairs} WHERE {key}", values | row)  # noqa: S608 - constants


def record_activity(
    to: sqlite3.Connection, run_id: str, session_id: str | None, cost_usd: float | None
) -> None:
    """Record the session and cost that the agent reports while it works."""
    to.execute(
        "UPDATE attempts SET session_id = coalesce(?, session_id),"
        " told_usd = coalesce(?, told_usd) WHERE run = ? AND ended_at IS NULL",
        (session_id, cost_usd, run_id),
    )
    _count_cost(to, run_id)


def _run_started(to: sqlite3.Connection, opening: Opening, event: RunStarted) -> None:
    run_id, root = opening.run_id, event.facts.root
    # an interrupted run in this workspace can no longer be resumed
    left = to.execute(
        "SELECT id FROM runs WHERE root = ? AND verdict IS NULL AND state NOT IN (?, ?)",
        (root, RunState.ABANDONED, RunState.UNDONE),
    ).fetchall()
    for (other,) in left:
        move(to, other, RunState.ABANDONED, f"run {run_id} was started in its place")
    row = {
        "id": run_id,
        "root": root,
        "name": event.facts.name,
        "repository": opening.repository,
        "head": event.facts.head,
        "state": RunState.PENDING,
        "with_agent": opening.order.ai_fix,
        "started_at": event.time,
        "segment_at": event.time,
        "last_at": event.time,
        "start": event.start_snapshot,
        "asked": text_of(opening.order),
        "mark": opening.mark,
    }
    marks = ", ".join(f":{name}" for name in row)
    to.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({marks})", row)  # noqa: S608 - constants
    note(to, run_id, None, RunState.PENDING, event.message)
    if opening.recorded:
        _validated(to, run_id, opening.recorded, None, event.time)


def _validated(
    to: sqlite3.Connection, run_id: str, validation: Validation, attempt: int | None, at: str
) -> None:
    (number,) = to.execute("SELECT count(*) FROM validations WHERE run = ?", (run_id,)).fetchone()
    row = (run_id, number, attempt, at, validation.success)
    to.execute("INSERT INTO validations VALUES (?, ?, ?, ?, ?)", row)
    to.execute("INSERT INTO outputs VALUES (?, ?, ?)", (run_id, number, text_of(validation)))
    to.executemany(
        "INSERT INTO gate_results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (run_id, number, position, r.name, r.kind, r.status, r.blocks, r.duration_ms, r.triage)
            for position, r in enumerate(validation.results)
        ],
    )


def _count_cost(to: sqlite3.Connection, run_id: str) -> None:
    to.execute(
        "UPDATE runs SET cost_usd ="
        " (SELECT total(coalesce(cost_usd, told_usd, 0) + lost_usd) FROM attempts"
        " WHERE run = runs.id) WHERE id = ?",
        (run_id,),
    )


def _attempt_finished(to: sqlite3.Connection, run_id: str, attempt: Attempt, at: str) -> None:
    number = None
    if attempt.validation is not None:
        query = "SELECT max(number) FROM validations WHERE run = ?"
        (number,) = to.execute(query, (run_id,)).fetchone()
        # the problems of each rule fixed, remaining and introduced since the last validation
        document = to.execute(
            "SELECT document FROM validations JOIN outputs USING (run, number) WHERE run = :run"
            " AND (attempt IS NULL OR number IN"
            " (SELECT validation FROM attempts WHERE run = :run AND number < :number"
            " AND validation NOT NULL))"
            " ORDER BY number DESC LIMIT 1",
            {"run": run_id, "number": attempt.number},
        ).fetchone()
        before = read(document[0], Validation) if document else Validation()
        counts = tally(before, attempt.validation)
        to.executemany(
            "INSERT OR REPLACE INTO rules VALUES (?, ?, ?, ?, ?, ?)",
            [(run_id, attempt.number, rule, *three) for rule, three in counts.items()],
        )
    _update(
        to,
        "attempts",
        {"run": run_id, "number": attempt.number},
        agent=attempt.agent,
        model=attempt.model,
        session_id=attempt.session_id,
        ended_at=at,
        passed=attempt.passed,
        cost_usd=attempt.cost_usd,
        duration_ms=attempt.duration_ms,
        validation=number,
        document=text_of(replace(attempt, validation=None)),
        reply=None,
        lost_usd=0,
    )
    _count_cost(to, run_id)


def tally(before: Validation, after: Validation) -> dict[str, tuple[int, ...]]:
    """Numbers of problems of each rule that were fixed, remain and were introduced."""
    rules = rules_by_fingerprint(before) | rules_by_fingerprint(after)
    # of a gate that no parser reads, each line counts as the gate: `name: line`
    counts = [
        Counter(rules.get(one) or one.partition(": ")[0] for one in prints)
        for prints in compared(before, after)
    ]
    names = sorted({*chain.from_iterable(counts)})
    return {name: tuple(count[name] for count in counts) for name in names}


def _run_finished(to: sqlite3.Connection, opening: Opening, outcome: Outcome, at: str) -> None:
    """Record the end of a run, and drop the outputs, which only a resumed run needs."""
    run_id, on_exhausted = opening.run_id, opening.order.on_exhausted
    # the snapshot that the run left in the workspace; None for the one named `origin`
    left = next((a.result for a in reversed(outcome.attempts) if a.kept), None)
    if not left and outcome.attempts and not outcome.verdict.is_green:
        last = {"restore": outcome.start_snapshot, "keep": outcome.attempts[-1].result}
        left = last.get(on_exhausted)
    to.execute("DELETE FROM outputs WHERE run = ?", (run_id,))
    # started, but no agent was available: not an attempt
    to.execute("DELETE FROM attempts WHERE run = ? AND ended_at IS NULL", (run_id,))
    _update(
        to,
        "runs",
        {"id": run_id},
        verdict=outcome.verdict,
        reason=encodable(outcome.final_error) if outcome.final_error else None,
        ended_at=at,
        duration_ms=outcome.duration_ms,
        cost_usd=outcome.cost_usd,
        left_behind=left,
        learning=outcome.learning_record_id,
        final=None if outcome.verdict.is_green else text_of(outcome.final),
        attempts=len(outcome.attempts),
    )


def move(to: sqlite3.Connection, run_id: str, state: RunState, reason: str) -> None:
    """Set the state of a run. Raises StateError for a transition that is not in the table."""
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
    """Record a transition without checking it."""
    at = now()
    to.execute("UPDATE runs SET state = ?, last_at = ? WHERE id = ?", (state, at, run_id))
    row = (run_id, at, before, state, encodable(reason))
    to.execute("INSERT INTO transitions VALUES (?, ?, ?, ?, ?)", row)


def record(
    to: sqlite3.Connection, run: RunRow, state: RunState, reason: str, *, left: str | None = None
) -> None:
    """Record a run's new state and, if given, the snapshot that its workspace now has.

    Raises StateError for a transition that is not in the table.
    """
    with writing(to):
        move(to, run.id, state, reason)
        to.execute(
            "UPDATE runs SET left_behind = coalesce(?, left_behind) WHERE id = ?", (left, run.id)
        )


def continued(to: sqlite3.Connection, run: RunRow, at: str, spent_ms: int) -> None:
    """Record that an interrupted run is resumed, and its duration until then.

    The cost of the interrupted turn is kept apart from its cost from now on.
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


def paid_review(to: sqlite3.Connection, repository: str, at: str, cost_usd: float) -> None:
    """Record what a review outside of runs cost, for the budgets."""
    with writing(to):
        to.execute("INSERT INTO paid_reviews VALUES (?, ?, ?)", (repository, at, cost_usd))


def moved(to: sqlite3.Connection, before: str, root: str, repository: str) -> None:
    """Record that a workspace and its runs have moved to another folder."""
    with writing(to):
        to.execute(
            "UPDATE runs SET root = ?, repository = ? WHERE root = ?", (root, repository, before)
        )
