"""Learning records of runs: how they are made, found again and shortened for prompts.

Records stay in their repository: text of one project never reaches prompts of another.
"""

import json
import re
import sqlite3
from collections.abc import Collection, Iterator

import msgspec
from msgspec import Struct

from atlas_retry.errors import UsageError
from atlas_retry.events import now
from atlas_retry.history.database import dicts, writing
from atlas_retry.model import Attempt, Diagnostic, Outcome, Validation
from atlas_retry.text.json_text import read, text_of
from atlas_retry.text.redaction import clean
from atlas_retry.text.units import bounded, changed, counted

MAX_LINES, MAX_CHARS, MAX_KEYS, MAX_CHANGES = 3, 240, 400, 3
_EMPTY_WORDS = """
a all and are as been bug by check checks complete completed correct correctly done error
errors everything failing failure failures fix fixed fixes for gate gates good green has
have i in is issue issues it made make my no now of ok passed passes passing pass problem
problems resolved run should so succeeded success suite task test tests that the them there
this to was were with work worked works you your
"""
"""Words of summaries that do not tell what was changed."""
_SAYS_NOTHING = frozenset(_EMPTY_WORDS.split())
MIN_WORDS = 2
"""Minimum of other words in a useful summary."""


class Tried(Struct, frozen=True, kw_only=True):
    """One attempt and its result."""

    number: int
    summary: str
    paths: tuple[str, ...]
    changes: tuple[str, ...] = ()
    """Changes in the form `calc.py (+1 -1)`, the largest first."""
    fixed: tuple[str, ...]
    """Fingerprints of fixed problems."""
    fell_short: str | None
    """Why it did not succeed; None if everything passed."""


class Record(Struct, frozen=True, kw_only=True):
    """The learning record of one run."""

    run_id: str
    workspace: str
    failure_type: str
    """Kind of the first gate that failed."""
    verdict: str
    gates: tuple[str, ...]
    """Gates that failed before the first attempt."""
    rules: tuple[tuple[str, str], ...]
    """Fingerprint and rule of each problem before the first attempt."""
    places: tuple[tuple[str, str], ...] = ()
    """Rule and file, and rule and symbol, of each problem."""
    files_involved: tuple[str, ...]
    attempts: tuple[Tried, ...]
    final_error: str | None
    escalation_required: bool


class Kept(Struct, frozen=True, kw_only=True):
    """A record in the journal."""

    id: str
    made_at: str
    note: str | None
    record: Record


def rule_of(diagnostic: Diagnostic) -> str:
    """The rule's name: `ruff F401`, or only the tool."""
    return f"{diagnostic.tool} {diagnostic.rule_id}" if diagnostic.rule_id else diagnostic.tool


def rules_by_fingerprint(validation: Validation) -> dict[str, str]:
    """Rules of all problems of failed gates; a failure without problems counts as its gate."""
    rules: dict[str, str] = {}
    for result in validation.failures:
        named = {d.fingerprint: rule_of(d) for d in result.diagnostics if d.fingerprint}
        rules |= named or {f"{result.name}:{result.status}": result.name}
    return rules


def record_of(outcome: Outcome) -> Record | None:
    """The record of a run; None without attempts."""
    if not outcome.attempts:
        return None
    failed = outcome.baseline
    involved = {diagnostic.path for diagnostic in failed.diagnostics if diagnostic.path}
    attempts: list[Tried] = []
    for attempt in outcome.attempts:
        by_size = sorted(attempt.changes, key=lambda c: -(c.added or 0) - (c.removed or 0))
        tried = Tried(
            number=attempt.number,
            summary=_short(attempt.summary),
            paths=tuple(change.path for change in attempt.changes),
            changes=tuple(map(changed, by_size)),
            fixed=attempt.fixed,
            fell_short=_shortfall(attempt),
        )
        attempts.append(tried)
        involved.update(tried.paths)
    return Record(
        run_id=outcome.run_id,
        workspace=outcome.workspace.root,
        failure_type=failed.failed_step or "",
        verdict=outcome.verdict,
        gates=tuple(result.name for result in failed.failures),
        rules=tuple(rules_by_fingerprint(failed).items())[:MAX_KEYS],
        places=_places(failed),
        files_involved=tuple(sorted(involved)),
        attempts=tuple(attempts),
        final_error=outcome.final_error,
        escalation_required=outcome.escalation_required,
    )


def _places(failed: Validation) -> tuple[tuple[str, str], ...]:
    """Rule and file, and rule and symbol, of each problem."""
    places: dict[tuple[str, str], None] = {}
    for diagnostic in failed.diagnostics:
        rule = rule_of(diagnostic)
        places |= {(rule, place): None for place in (diagnostic.path, diagnostic.symbol) if place}
    return tuple(places)[:MAX_KEYS]


def _shortfall(attempt: Attempt) -> str | None:
    if attempt.error:
        return _short(attempt.error)
    if attempt.rolled_back:
        return "the guard refused it: " + ", ".join({v.rule: None for v in attempt.violations})
    held = ", ".join({h.path: None for h in attempt.held if h.needed})
    if held:
        return f"it passes only with a change that is held for a person: {held}"
    if attempt.validation is None:
        return "what it changed was restored" if attempt.changes else "it changed nothing"
    if attempt.validation.success:
        return None
    worse = "worse than before, and reverted; " if attempt.worse else ""
    return f"{worse}still failing: " + ", ".join(r.name for r in attempt.validation.failures)


def _short(text: str) -> str:
    """One bounded line without control characters."""
    return bounded(" ".join(clean(text).split()), MAX_CHARS)


def store(to: sqlite3.Connection, repository: str, record: Record) -> str:
    """Store a record, and return its id, `lr-YYYY-MM-DD-NNN`, numbered by day."""
    at = now()
    day = at[:10]
    (count,) = to.execute(
        "SELECT count(*) FROM learnings WHERE id LIKE ?", (f"lr-{day}-%",)
    ).fetchone()
    name = f"lr-{day}-{count + 1:03d}"
    to.execute(
        "INSERT INTO learnings VALUES (?, ?, ?, ?, NULL)", (name, repository, at, text_of(record))
    )
    keys = {_key(rule, place) for rule, place in record.places}
    to.executemany("INSERT INTO learning_keys VALUES (?, ?)", [(key, name) for key in sorted(keys)])
    return name


def _key(rule: str, place: str) -> str:
    return f"{rule} in {place}"


def recalled(
    connection: sqlite3.Connection, repository: str, failed: Validation
) -> tuple[str, ...]:
    """A few short lines about earlier runs of this repository with the same failures.

    Only the same rule in the same file or symbol counts. Annotated records come first, then the
    newest.
    """
    keys = [_key(rule, place) for rule, place in _places(failed)]
    if not keys:
        return ()
    records = _kept(connection.execute(_RECALL, (repository, json.dumps(keys))))
    lines = (_line(kept, keys) for kept in records)
    return tuple(dict.fromkeys(line for line in lines if line))[:MAX_LINES]


_RECALL = (
    "SELECT id, made_at, note, document FROM learnings JOIN learning_keys ON learning = id"
    " WHERE repository = ? AND document NOT NULL"
    " AND key IN (SELECT value FROM json_each(?))"
    " GROUP BY id ORDER BY note IS NULL, made_at DESC LIMIT 12"
)


def _kept(cursor: sqlite3.Cursor) -> Iterator[Kept]:
    for row in dicts(cursor):
        yield msgspec.convert(row | {"record": read(str(row["document"]), Record)}, Kept)


def _line(kept: Kept, keys: Collection[str]) -> str | None:
    """A record as one line; None if neither a note nor the summary tells what was changed."""
    record = kept.record
    shared = [key for rule, place in record.places if (key := _key(rule, place)) in keys]
    about = ", ".join(shared[:2])
    if kept.note:
        return _short(f"{about}: {kept.note}")
    last = record.attempts[-1]
    words = {*re.findall(r"\w+", last.summary.lower())}
    if len(words - _SAYS_NOTHING) < MIN_WORDS:
        return None
    changes = ", ".join(last.changes[:MAX_CHANGES])
    if last.fell_short is None:
        return _short(f"{about}: fixed by an earlier run, which changed {changes}: {last.summary}")
    return _short(
        f"{about}: an earlier run changed {changes} and failed ({last.fell_short}): {last.summary}"
    )


_COLUMNS = "SELECT id, made_at, note, document FROM learnings"


def every(connection: sqlite3.Connection) -> tuple[Kept, ...]:
    """All records, newest first."""
    query = f"{_COLUMNS} WHERE document NOT NULL ORDER BY made_at DESC, id DESC"
    return tuple(_kept(connection.execute(query)))


def one(connection: sqlite3.Connection, name: str) -> Kept:
    """The record with this id. Raises UsageError."""
    query = f"{_COLUMNS} WHERE id = ? AND document NOT NULL"
    for kept in _kept(connection.execute(query, (name,))):
        return kept
    raise UsageError(f"{name} is not a learning record", remedy="atlas learnings")


def note(connection: sqlite3.Connection, name: str, text: str) -> None:
    """Annotate a record; prompts then use the note instead. Raises UsageError."""
    one(connection, name)
    with writing(connection):
        connection.execute("UPDATE learnings SET note = ? WHERE id = ?", (text or None, name))


def forget(connection: sqlite3.Connection, name: str) -> None:
    """Delete the content of a record; its id is not reused. Raises UsageError."""
    one(connection, name)
    with writing(connection):
        connection.execute(
            "UPDATE learnings SET document = NULL, note = NULL WHERE id = ?", (name,)
        )
        connection.execute("DELETE FROM learning_keys WHERE learning = ?", (name,))


def list_of(records: tuple[Kept, ...]) -> str:
    """A list with one line per record."""
    if not records:
        return "no learning records yet: every run with an attempt leaves one\n"
    lines = ""
    for kept in records:
        record = kept.record
        tail = kept.note or record.final_error or record.attempts[-1].summary
        attempts = counted(len(record.attempts), "attempt")
        head = f"{kept.id}  {record.failure_type:<10}  {record.verdict:<9}  {attempts:<10}"
        lines += f"{head}  {', '.join(record.gates)}: {tail}".rstrip(": ") + "\n"
    return lines


def page_of(kept: Kept) -> str:
    """A record in full."""
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
