"""What each event writes into the journal. Opens nothing and decides nothing."""

import sqlite3

from msgspec.structs import replace

from atlas_retry.events import (
    AgentReplied,
    AttemptFinished,
    AttemptRestored,
    AttemptStarted,
    Event,
    RunFinished,
    RunStarted,
    ValidationFinished,
    ViolationsFound,
)
from atlas_retry.history.documents import read, text_of
from atlas_retry.history.moves import move, note
from atlas_retry.history.rules import Tally, tally
from atlas_retry.history.states import RunState, state_after
from atlas_retry.history.values import Opening
from atlas_retry.model import Attempt, Outcome, ReplyStatus, Validation
from atlas_retry.settings import OnExhausted
from atlas_retry.text.json_text import encodable


def write(to: sqlite3.Connection, opening: Opening, event: Event) -> None:
    """Write one event down. Raises sqlite3.Error."""
    run_id = opening.run_id
    attempt = _open_attempt(to, run_id)
    match event:
        case RunStarted():
            _run_started(to, opening, event)
        case ValidationFinished():
            _validated(to, run_id, event.validation, attempt, event.time)
        case AttemptStarted():
            _attempt_started(to, run_id, event)
        case AgentReplied():
            _replied(to, run_id, event)
        case AttemptRestored():
            to.execute(
                "UPDATE attempts SET restored = 1 WHERE run = ? AND number = ?",
                (run_id, event.number),
            )
        case ViolationsFound():
            _violated(to, run_id, event, attempt)
        case AttemptFinished():
            _attempt_finished(to, run_id, event.result, event.time)
        case RunFinished():
            _run_finished(to, opening, event.outcome, event.time)
        case _:
            pass
    state = state_after(event, in_attempt=attempt is not None)
    if state is not None and not isinstance(event, RunStarted):
        move(to, run_id, state, event.message)


def _open_attempt(to: sqlite3.Connection, run_id: str) -> int | None:
    query = "SELECT number FROM attempts WHERE run = ? AND ended_at IS NULL"
    found = to.execute(query, (run_id,)).fetchone()
    return int(found[0]) if found else None


def told(
    to: sqlite3.Connection, run_id: str, session_id: str | None, cost_usd: float | None
) -> None:
    """What the agent says of its conversation while it works."""
    to.execute(
        "UPDATE attempts SET session_id = coalesce(?, session_id),"
        " told_usd = coalesce(?, told_usd) WHERE run = ? AND ended_at IS NULL",
        (session_id, cost_usd, run_id),
    )
    _count_cost(to, run_id)


def _run_started(to: sqlite3.Connection, opening: Opening, event: RunStarted) -> None:
    where, order = event.facts, opening.order
    _give_up_others(to, opening.run_id, where.root)
    to.execute(
        "INSERT INTO runs (id, root, name, repository, head, state, with_agent, started_at,"
        " segment_at, last_at, start, asked, mark) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            opening.run_id,
            where.root,
            where.name,
            opening.repository,
            where.head,
            RunState.PENDING,
            order.ai_fix,
            event.time,
            event.time,
            event.time,
            event.start_snapshot,
            text_of(order),
            opening.mark,
        ),
    )
    note(to, opening.run_id, None, RunState.PENDING, event.message)
    if opening.recorded:
        _validated(to, opening.run_id, opening.recorded, None, event.time)


def _give_up_others(to: sqlite3.Connection, run_id: str, root: str) -> None:
    """A run that was cut off in this workspace can no longer go on once another starts."""
    left = to.execute(
        "SELECT id FROM runs WHERE root = ? AND verdict IS NULL AND state NOT IN (?, ?)",
        (root, RunState.ABANDONED, RunState.UNDONE),
    ).fetchall()
    for (other,) in left:
        move(to, other, RunState.ABANDONED, f"run {run_id} was started in its place")


def _validated(
    to: sqlite3.Connection, run_id: str, validation: Validation, attempt: int | None, at: str
) -> None:
    (number,) = to.execute("SELECT count(*) FROM validations WHERE run = ?", (run_id,)).fetchone()
    to.execute(
        "INSERT INTO validations VALUES (?, ?, ?, ?, ?)",
        (run_id, number, attempt, at, validation.success),
    )
    document = text_of(validation)
    to.execute("INSERT INTO outputs VALUES (?, ?, ?)", (run_id, number, document))
    to.executemany(
        "INSERT INTO gate_results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (run_id, number, position, r.name, r.kind, r.status, r.blocks, r.duration_ms, r.triage)
            for position, r in enumerate(validation.results)
        ],
    )


def _attempt_started(to: sqlite3.Connection, run_id: str, event: AttemptStarted) -> None:
    """An attempt that goes on keeps what is known of its conversation and of its reply."""
    to.execute(
        "INSERT INTO attempts (run, number, agent, model, session_id, snapshot, started_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET snapshot = excluded.snapshot,"
        " restored = 0",
        (
            run_id,
            event.number,
            event.agent,
            event.model,
            event.session_id,
            event.snapshot,
            event.time,
        ),
    )
    to.execute("UPDATE runs SET attempts = max(attempts, ?) WHERE id = ?", (event.number, run_id))


def _replied(to: sqlite3.Connection, run_id: str, event: AgentReplied) -> None:
    if event.reply.status is ReplyStatus.UNAVAILABLE:
        return
    to.execute(
        "UPDATE attempts SET reply = ?, session_id = coalesce(?, session_id), cost_usd = ?"
        " WHERE run = ? AND number = ?",
        (text_of(event.reply), event.reply.session_id, event.reply.cost_usd, run_id, event.number),
    )
    _count_cost(to, run_id)


def _count_cost(to: sqlite3.Connection, run_id: str) -> None:
    to.execute(
        "UPDATE runs SET cost_usd ="
        " (SELECT total(coalesce(cost_usd, told_usd, 0) + lost_usd) FROM attempts"
        " WHERE run = runs.id) WHERE id = ?",
        (run_id,),
    )


def _violated(
    to: sqlite3.Connection, run_id: str, event: ViolationsFound, attempt: int | None
) -> None:
    to.executemany(
        "INSERT INTO violations VALUES (?, ?, ?, ?, ?, ?)",
        [
            (run_id, attempt, v.rule, encodable(v.path), v.line, encodable(v.detail))
            for v in event.violations
        ],
    )


def _attempt_finished(to: sqlite3.Connection, run_id: str, attempt: Attempt, at: str) -> None:
    number = _number_of(to, run_id, attempt)
    _write_rules(to, run_id, attempt)
    to.execute(
        "UPDATE attempts SET agent = ?, model = ?, session_id = ?, ended_at = ?, passed = ?,"
        " cost_usd = ?, duration_ms = ?, validation = ?, document = ?, reply = NULL,"
        " lost_usd = 0"
        " WHERE run = ? AND number = ?",
        (
            attempt.agent,
            attempt.model,
            attempt.session_id,
            at,
            attempt.validation is not None and attempt.validation.success,
            attempt.cost_usd,
            attempt.duration_ms,
            number,
            text_of(replace(attempt, validation=None)),
            run_id,
            attempt.number,
        ),
    )
    _count_cost(to, run_id)


def _number_of(to: sqlite3.Connection, run_id: str, attempt: Attempt) -> int | None:
    """The number of the attempt's deciding validation, which is the latest."""
    if attempt.validation is None:
        return None
    query = "SELECT max(number) FROM validations WHERE run = ?"
    return int(to.execute(query, (run_id,)).fetchone()[0])


def _write_rules(to: sqlite3.Connection, run_id: str, attempt: Attempt) -> None:
    if attempt.validation is None:
        return
    found = to.execute(
        "SELECT document FROM validations JOIN outputs USING (run, number) WHERE run = :run"
        " AND (attempt IS NULL OR number IN"
        " (SELECT validation FROM attempts WHERE run = :run AND number < :number"
        " AND validation NOT NULL))"
        " ORDER BY number DESC LIMIT 1",
        {"run": run_id, "number": attempt.number},
    ).fetchone()
    before = read(found[0], Validation) if found else Validation()
    rows = tally(before, attempt.validation)
    to.executemany(
        "INSERT OR REPLACE INTO rules VALUES (?, ?, ?, ?, ?, ?)",
        [(run_id, attempt.number, rule, *_counts(counts)) for rule, counts in rows.items()],
    )


def _counts(counts: Tally) -> tuple[int, int, int]:
    return counts.fixed, counts.remaining, counts.introduced


def _run_finished(to: sqlite3.Connection, opening: Opening, outcome: Outcome, at: str) -> None:
    """The outputs go: what a stopped run needs to go on, an ended one does not."""
    run_id = opening.run_id
    to.execute("DELETE FROM outputs WHERE run = ?", (run_id,))
    # begun, but the agent could not be had: no attempt
    to.execute("DELETE FROM attempts WHERE run = ? AND ended_at IS NULL", (run_id,))
    final = None if outcome.verdict.is_green else text_of(outcome.final)
    to.execute(
        "UPDATE runs SET verdict = ?, reason = ?, ended_at = ?, duration_ms = ?, cost_usd = ?,"
        " left_behind = ?, learning = ?, final = ?, attempts = ? WHERE id = ?",
        (
            outcome.verdict,
            encodable(outcome.final_error) if outcome.final_error else None,
            at,
            outcome.duration_ms,
            outcome.cost_usd,
            left_behind(outcome, opening.order.on_exhausted),
            outcome.learning_record_id,
            final,
            len(outcome.attempts),
            run_id,
        ),
    )


def left_behind(outcome: Outcome, on_exhausted: OnExhausted) -> str | None:
    """The snapshot whose tree the run left in the workspace; None: the one called `origin`."""
    kept = next((a.result for a in reversed(outcome.attempts) if a.kept), None)
    if kept or outcome.verdict.is_green or not outcome.attempts:
        return kept
    if on_exhausted is OnExhausted.RESTORE:
        return outcome.start_snapshot
    return outcome.attempts[-1].result if on_exhausted is OnExhausted.KEEP else None
