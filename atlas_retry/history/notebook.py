"""Learning records for a person: listed, shown, annotated, forgotten."""

import sqlite3

from atlas_retry.errors import UsageError
from atlas_retry.history.database import writing
from atlas_retry.history.learning import Kept, kept_of
from atlas_retry.text.units import counted

_COLUMNS = "SELECT id, made_at, note, document FROM learnings"


def every(connection: sqlite3.Connection) -> tuple[Kept, ...]:
    """All records, the newest first."""
    rows = connection.execute(f"{_COLUMNS} WHERE document NOT NULL ORDER BY made_at DESC, id DESC")
    return tuple(kept_of(row) for row in rows)


def one(connection: sqlite3.Connection, name: str) -> Kept:
    """The record of this id. Raises UsageError."""
    query = f"{_COLUMNS} WHERE id = ? AND document NOT NULL"
    if row := connection.execute(query, (name,)).fetchone():
        return kept_of(row)
    raise UsageError(f"{name} is no learning record", remedy="atlas learnings")


def note(connection: sqlite3.Connection, name: str, text: str) -> None:
    """Write a person's words beside a record; prompts then say these instead. Raises UsageError."""
    one(connection, name)
    with writing(connection):
        connection.execute("UPDATE learnings SET note = ? WHERE id = ?", (text or None, name))


def forget(connection: sqlite3.Connection, name: str) -> None:
    """Drop what a record says; its id is not used again. Raises UsageError."""
    one(connection, name)
    with writing(connection):
        connection.execute(
            "UPDATE learnings SET document = NULL, note = NULL WHERE id = ?", (name,)
        )
        connection.execute("DELETE FROM learning_keys WHERE learning = ?", (name,))


def list_of(records: tuple[Kept, ...]) -> str:
    """One line a record."""
    if not records:
        return "nothing has been learned yet: a run in which an agent was asked leaves a record\n"
    return "".join(f"{_line(kept)}\n" for kept in records)


def _line(kept: Kept) -> str:
    record = kept.record
    tail = kept.note or record.final_error or record.attempts[-1].summary
    attempts = counted(len(record.attempts), "attempt")
    head = f"{kept.id}  {record.failure_type:<10}  {record.verdict:<9}  {attempts:<10}"
    return f"{head}  {', '.join(record.gates)}: {tail}".rstrip(": ")


def page_of(kept: Kept) -> str:
    """All that a record says."""
    record = kept.record
    lines = [
        f"{kept.id} of {kept.made_at[:10]}: {record.failure_type} ended {record.verdict}",
        f"  run        {record.run_id} in {record.workspace}",
        f"  gates      {', '.join(record.gates)}",
        f"  rules      {', '.join(dict.fromkeys(rule for _, rule in record.rules))}",
        f"  files      {', '.join(record.files_involved)}",
    ]
    for tried in record.attempts:
        how = "everything passed" if tried.fell_short is None else tried.fell_short
        what = f"{', '.join(tried.paths) or 'no file'}: {tried.summary}".rstrip(": ")
        lines.append(f"  attempt {tried.number}  {what} -> {how}")
    if record.final_error:
        lines.append(f"  ended      {record.final_error}")
    if record.escalation_required:
        lines.append("  a person is needed: " + f"atlas diff {record.run_id}")
    if kept.note:
        lines.append(f"  note       {kept.note}")
    return "\n".join(lines) + "\n"
