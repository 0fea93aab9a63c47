"""What a run teaches later ones: a record, how it is found again, and how little of it is said.

Records stay within their repository: one project's words never reach another's prompts.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence

from msgspec import Struct

from atlas_retry.events import now
from atlas_retry.history.documents import read, text_of
from atlas_retry.history.rules import rules_by_fingerprint
from atlas_retry.model import Attempt, Outcome, Validation
from atlas_retry.redaction import clean

MAX_LINES, MAX_CHARS, MAX_KEYS = 3, 240, 400
_MADE_OF_A_RULE = "rule:"


class Tried(Struct, frozen=True, kw_only=True):
    """What one attempt did, and how that went."""

    number: int
    summary: str
    paths: tuple[str, ...]
    fixed: tuple[str, ...]
    """Fingerprints."""
    fell_short: str | None
    """None: everything passed after it."""


class Record(Struct, frozen=True, kw_only=True):
    """What one run teaches."""

    run_id: str
    workspace: str
    failure_type: str
    """Kind of the first gate that failed."""
    verdict: str
    gates: tuple[str, ...]
    """Those that failed before the first attempt."""
    rules: tuple[tuple[str, str], ...]
    """Fingerprint and rule of each complaint before the first attempt."""
    files_involved: tuple[str, ...]
    attempts: tuple[Tried, ...]
    final_error: str | None
    escalation_required: bool


class Kept(Struct, frozen=True, kw_only=True):
    """A record as the journal holds it."""

    id: str
    made_at: str
    note: str | None
    record: Record


def record_of(outcome: Outcome) -> Record | None:
    """What a run teaches; nothing when no attempt was made."""
    if not outcome.attempts:
        return None
    failed = outcome.baseline
    involved = {d.path for r in failed.failures for d in r.diagnostics if d.path}
    changed = {change.path for attempt in outcome.attempts for change in attempt.changes}
    return Record(
        run_id=outcome.run_id,
        workspace=outcome.workspace.root,
        failure_type=failed.failed_step or "",
        verdict=outcome.verdict,
        gates=tuple(result.name for result in failed.failures),
        rules=tuple(rules_by_fingerprint(failed).items())[:MAX_KEYS],
        files_involved=tuple(sorted(involved | changed)),
        attempts=tuple(_tried(attempt) for attempt in outcome.attempts),
        final_error=outcome.final_error,
        escalation_required=outcome.escalation_required,
    )


def _tried(attempt: Attempt) -> Tried:
    return Tried(
        number=attempt.number,
        summary=_short(attempt.summary),
        paths=tuple(change.path for change in attempt.changes),
        fixed=attempt.fixed,
        fell_short=_shortfall(attempt),
    )


def _shortfall(attempt: Attempt) -> str | None:
    if attempt.error:
        return _short(attempt.error)
    if attempt.rolled_back:
        return "the guard refused it: " + ", ".join({v.rule: None for v in attempt.violations})
    if attempt.validation is None:
        return "it changed nothing"
    if attempt.validation.success:
        return None
    return "still failing: " + ", ".join(r.name for r in attempt.validation.failures)


def _short(text: str) -> str:
    """One harmless line."""
    line = " ".join(clean(text).split())
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 4]} ..."


def store(to: sqlite3.Connection, repository: str, record: Record) -> str:
    """Write a record down; its id, `lr-YYYY-MM-DD-NNN`, counted by the day."""
    at = now()
    day = at[:10]
    (count,) = to.execute(
        "SELECT count(*) FROM learnings WHERE id LIKE ?", (f"lr-{day}-%",)
    ).fetchone()
    name = f"lr-{day}-{count + 1:03d}"
    to.execute(
        "INSERT INTO learnings VALUES (?, ?, ?, ?, NULL)", (name, repository, at, text_of(record))
    )
    keys = {key for name, rule in record.rules for key in _keys(name, rule)}
    to.executemany("INSERT INTO learning_keys VALUES (?, ?)", [(key, name) for key in sorted(keys)])
    return name


def _keys(fingerprint: str, rule: str) -> tuple[str, str]:
    return f"fingerprint:{fingerprint}", f"{_MADE_OF_A_RULE}{rule}"


def keys_of(failed: Validation) -> tuple[str, ...]:
    """By what a record about these failures would be found."""
    found = (_keys(name, rule) for name, rule in rules_by_fingerprint(failed).items())
    return tuple(dict.fromkeys(key for pair in found for key in pair))[:MAX_KEYS]


Query = Callable[[str, str, str], Sequence[Sequence[object]]]
"""Hands SQL and its two values to the journal; the rows."""


def recalled(query: Query, repository: str, failed: Validation) -> tuple[str, ...]:
    """What earlier runs of this repository teach about these failures: few, short lines.

    What matches by fingerprint comes first, then what somebody has annotated, then the newest.
    """
    wanted = keys_of(failed)
    return _lines(query(_RECALL, repository, json.dumps(wanted)), wanted) if wanted else ()


_RECALL = (
    "SELECT id, made_at, note, document FROM learnings JOIN learning_keys ON learning = id"
    " WHERE repository = ? AND document NOT NULL"
    " AND key IN (SELECT value FROM json_each(?))"
    " GROUP BY id ORDER BY min(key), note IS NULL, made_at DESC LIMIT 12"
)


def kept_of(row: Sequence[object]) -> Kept:
    """The record in a row of id, made_at, note and document."""
    name, made_at, note, document = row
    return Kept(
        id=str(name),
        made_at=str(made_at),
        note=None if note is None else str(note),
        record=read(str(document), Record),
    )


def _lines(rows: Sequence[Sequence[object]], keys: Sequence[str]) -> tuple[str, ...]:
    """What a prompt says of these records: at most three lines, none said twice."""
    told = (_line(kept_of(row), frozenset(keys)) for row in rows)
    return tuple(dict.fromkeys(line for line in told if line))[:MAX_LINES]


def _line(kept: Kept, keys: frozenset[str]) -> str | None:
    record = kept.record
    shared = [rule for name, rule in record.rules if not keys.isdisjoint(_keys(name, rule))]
    about = ", ".join(dict.fromkeys(shared[:2])) or record.failure_type
    if kept.note:
        return _short(f"{about}: {kept.note}")
    last = record.attempts[-1]
    if last.fell_short is None:
        did = last.summary or "no summary"
        return _short(f"{about}: an earlier run fixed it in {', '.join(last.paths[:3])}: {did}")
    return _short(f"{about}: an earlier run tried this and failed ({last.fell_short}): "
                  f"{last.summary or ', '.join(last.paths[:3])}")  # fmt: skip
