"""Reads runs from the journal. Writes nothing."""

import sqlite3

import msgspec
from msgspec.structs import replace

from atlas_retry.errors import UsageError
from atlas_retry.history.database import dicts
from atlas_retry.history.values import OpenAttempt, Order, Remains, RunRow, Transition
from atlas_retry.model import AgentReply, Attempt, GateCourse, Kind, Status, Validation
from atlas_retry.text.json_text import read

_UNPAID = (
    "EXISTS(SELECT 1 FROM attempts WHERE run = id"
    " AND cost_usd IS NULL AND (ended_at NOT NULL OR reply IS NULL))"
)
_COLUMNS = ", ".join(RunRow.__struct_fields__).replace("unpaid", f"{_UNPAID} AS unpaid")
_NEWEST = "ORDER BY started_at DESC, rowid DESC"
_REVIEWS = (
    "(SELECT total(json_extract(value, '$.cost_usd')) FROM outputs,"
    " json_each(outputs.document, '$.results') WHERE outputs.run = runs.id)"
)
"""Cost of a run's reviews so far; 0 for ended runs, which have no outputs."""

_SPENT = f"total(iif(verdict NOT NULL, runs.cost_usd, coalesce(reported, 0) + {_REVIEWS}))"
_REPORTED = (
    "LEFT JOIN (SELECT run, total(coalesce(cost_usd, told_usd, 0) + lost_usd) AS reported,"
    " max(coalesce(cost_usd, told_usd)) AS dearest FROM attempts GROUP BY run) ON run = id"
)


def runs(
    connection: sqlite3.Connection, root: str | None = None, limit: int = -1
) -> tuple[RunRow, ...]:
    """Runs of one workspace or of all, newest first."""
    return _select(connection, ":root IS NULL OR root = :root", limit, root=root)


def newest_of_each(connection: sqlite3.Connection) -> tuple[tuple[RunRow, float], ...]:
    """The newest run of every workspace, and the total cost of its runs."""
    costs = dict(connection.execute("SELECT root, sum(cost_usd) FROM runs GROUP BY root"))
    newest = f"rowid = (SELECT rowid FROM runs WHERE root = one.root {_NEWEST} LIMIT 1)"  # noqa: S608 - constants
    return tuple((row, float(costs[row.root])) for row in _select(connection, newest))


def find(connection: sqlite3.Connection, name: str | None, root: str) -> RunRow:
    """The run with this id or unique prefix of an id; by default the workspace's newest.

    Raises UsageError with the known ids.
    """
    if name is None:
        if newest := runs(connection, root, limit=1):
            return newest[0]
        raise UsageError(f"no run is recorded in {root}", remedy="atlas status")
    rows = _select(connection, "substr(id, 1, length(:name)) = :name", name=name)
    exact = [row for row in rows if row.id == name] or rows
    if len(exact) == 1:
        return exact[0]
    known = ", ".join(row.id for row in (rows or runs(connection, root, limit=5))[:5])
    problem = f"{name} is the start of several runs" if rows else f"no run {name}"
    if known:
        raise UsageError(f"{problem}; there are: {known}", remedy="atlas log")
    raise UsageError(problem, remedy="atlas status")


def _select(
    connection: sqlite3.Connection, condition: str, limit: int = -1, **values: str | None
) -> tuple[RunRow, ...]:
    """The runs that satisfy a condition, newest first."""
    query = f"SELECT {_COLUMNS} FROM runs AS one WHERE {condition} {_NEWEST} LIMIT {limit}"  # noqa: S608 - constants
    rows = dicts(connection.execute(query, values))
    return tuple(msgspec.convert(row, RunRow, strict=False) for row in rows)


def order_of(connection: sqlite3.Connection, run_id: str) -> Order:
    """The order of a run."""
    row = connection.execute("SELECT asked FROM runs WHERE id = ?", (run_id,)).fetchone()
    return read(row[0], Order)


def batch_usd(connection: sqlite3.Connection, batch: str, *, but: str) -> tuple[float, float]:
    """Cost of all runs of a batch except one, and of their most expensive attempt.

    Interrupted runs count with the cost that the agent had reported.
    """
    spent, dearest = connection.execute(
        f"SELECT {_SPENT}, max(dearest) FROM runs {_REPORTED}"  # noqa: S608 - constants
        " WHERE json_extract(asked, '$.batch') = ? AND id <> ?",
        (batch, but),
    ).fetchone()
    return spent, dearest or 0.0


def interrupted_usd(connection: sqlite3.Connection, root: str, *, but: str) -> float:
    """Cost of a workspace's interrupted runs that no report contains.

    A run that ends reports the interrupted runs before it.
    """
    (cost_usd,) = connection.execute(
        "SELECT total(cost_usd) FROM runs WHERE root = :root AND id <> :but AND verdict IS NULL"
        " AND rowid > (SELECT coalesce(max(rowid), 0) FROM runs"
        " WHERE root = :root AND verdict NOT NULL)",
        {"root": root, "but": but},
    ).fetchone()
    return float(cost_usd)


def of_batch(connection: sqlite3.Connection, batch: str) -> tuple[RunRow, ...]:
    """The runs of a batch, or the run with this id, newest first."""
    condition = "id = :batch OR json_extract(asked, '$.batch') = :batch"
    return _select(connection, condition, batch=batch)


def spent_usd(
    connection: sqlite3.Connection,
    since: str,
    repository: str | None,
    *,
    but: str,
    batch: str | None,
) -> float:
    """Cost of all runs since `since` (ISO 8601, UTC) except one, and of reviews without a run.

    In one repository or everywhere; without the runs of `batch`, which has its own budget.
    """
    (spent,) = connection.execute(
        f"SELECT {_SPENT} FROM runs {_REPORTED} WHERE started_at >= :since AND id <> :but"  # noqa: S608 - constants
        " AND (:repository IS NULL OR repository = :repository)"
        " AND (:batch IS NULL OR json_extract(asked, '$.batch') IS NOT :batch)",
        {"since": since, "repository": repository, "but": but, "batch": batch},
    ).fetchone()
    (reviews,) = connection.execute(
        "SELECT total(cost_usd) FROM paid_reviews WHERE at >= :since"
        " AND (:repository IS NULL OR repository = :repository)",
        {"since": since, "repository": repository},
    ).fetchone()
    return float(spent) + float(reviews)


def gates_of(connection: sqlite3.Connection, run_id: str) -> tuple[GateCourse, ...]:
    """Each gate's status in the first and the last validation of a run, in order."""
    query = (
        "SELECT one.name, one.kind, one.status, other.status FROM gate_results AS one"
        " JOIN gate_results AS other USING (run, position)"
        " WHERE run = ? AND one.validation = (SELECT min(validation) FROM gate_results"
        " WHERE run = one.run) AND other.validation = (SELECT max(validation) FROM gate_results"
        " WHERE run = one.run) ORDER BY position"
    )
    return tuple(
        GateCourse(name=name, kind=Kind(kind), before=Status(before), after=Status(after))
        for name, kind, before, after in connection.execute(query, (run_id,))
    )


def final_of(connection: sqlite3.Connection, run_id: str) -> Validation | None:
    """The last validation of a failed or interrupted run."""
    row = connection.execute(
        "SELECT final FROM runs WHERE id = :run AND final NOT NULL UNION ALL"
        " SELECT document FROM (SELECT document FROM outputs WHERE run = :run"
        " ORDER BY number DESC) LIMIT 1",
        {"run": run_id},
    ).fetchone()
    return read(row[0], Validation) if row else None


def attempts(connection: sqlite3.Connection, run_id: str) -> tuple[Attempt, ...]:
    """The finished attempts of a run, in order; without validations if the run has ended."""
    rows = connection.execute(
        "SELECT attempts.document, outputs.document FROM attempts LEFT JOIN outputs"
        " ON outputs.run = attempts.run AND outputs.number = attempts.validation"
        " WHERE attempts.run = ? AND ended_at NOT NULL ORDER BY attempts.number",
        (run_id,),
    )
    attempts = []
    for document, output in rows:
        validation = read(output, Validation) if output else None
        attempts.append(replace(read(document, Attempt), validation=validation))
    return tuple(attempts)


def remains(connection: sqlite3.Connection, run_id: str) -> Remains:
    """The state of an interrupted run."""
    documents = connection.execute(
        "SELECT document FROM validations JOIN outputs USING (run, number)"
        " WHERE run = ? AND attempt IS NULL ORDER BY number",
        (run_id,),
    )
    query = f"SELECT {_REVIEWS} FROM runs WHERE id = ?"  # noqa: S608 - constants
    (reviews_usd,) = connection.execute(query, (run_id,)).fetchone()
    return Remains(
        order=order_of(connection, run_id),
        validations=tuple(read(document, Validation) for (document,) in documents),
        attempts=attempts(connection, run_id),
        open_attempt=open_attempt(connection, run_id),
        reviews_usd=reviews_usd,
    )


def open_attempt(connection: sqlite3.Connection, run_id: str) -> OpenAttempt | None:
    """The unfinished attempt of a run."""
    cursor = connection.execute(
        "SELECT number, snapshot, session_id, reply, restored, started_at,"
        " lost_usd + iif(reply IS NULL, coalesce(told_usd, 0), 0) AS lost_usd"
        " FROM attempts WHERE run = ? AND ended_at IS NULL",
        (run_id,),
    )
    row = next(dicts(cursor), None)
    if row is None:
        return None
    reply = read(str(row["reply"]), AgentReply) if row["reply"] else None
    return msgspec.convert(row | {"reply": reply}, OpenAttempt, strict=False)


def transitions(connection: sqlite3.Connection, run_id: str) -> tuple[Transition, ...]:
    """Every transition of a run, in order."""
    cursor = connection.execute(
        "SELECT at, to_state, reason FROM transitions WHERE run = ? ORDER BY rowid",
        (run_id,),
    )
    return tuple(msgspec.convert(row, Transition) for row in dicts(cursor))
