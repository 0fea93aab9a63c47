"""Run a workspace under an id of the caller's: asked for again, it goes on or is only reported."""

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import config, history, state_dir
from atlas_retry.errors import UsageError
from atlas_retry.events import Emit
from atlas_retry.history import RunRow, archive
from atlas_retry.model import Outcome, Validation, Verdict, WorkspaceFacts
from atlas_retry.run.one import Asked, Finished, opened_with, run_one
from atlas_retry.run.resume import resume

_ID = re.compile(r"[A-Za-z0-9]+([._-]?[A-Za-z0-9])*")
MAX_ID_CHARS = 100


def run_once(
    folder: Path, run_id: str, asked: Asked, environ: Mapping[str, str], emit: Emit
) -> Finished:
    """One run for this id, whatever became of earlier calls: money is spent once, up to one limit.

    One that was cut off goes on, of one that has ended the outcome comes from the journal. One that
    had asked nobody yet starts over, and has the id only as its batch. Raises UsageError for an id
    that cannot be or is another workspace's, and as `run_one` and `resume`.
    """
    if len(run_id) > MAX_ID_CHARS or not _ID.fullmatch(run_id):
        raise UsageError(
            f"{run_id!r} cannot be the id of a run", remedy="letters, digits and single - . _"
        )
    root = config.root_of(folder.resolve())
    with history.reading(state_dir.locate(environ)) as connection:
        earlier = archive.of_batch(connection, run_id)
    if elsewhere := [row.root for row in earlier if row.root != str(root)]:
        raise UsageError(f"run {run_id} is of {elsewhere[0]}", remedy="another --run-id")
    if earlier and earlier[0].verdict:
        return Finished(opened=None, outcome=_recorded(earlier[0], earlier[0].verdict, environ))
    if earlier and earlier[0].is_open:
        return resume(earlier[0], environ, emit, ai_fix=asked.order.ai_fix)
    order = replace(asked.order, batch=run_id)
    asked = replace(asked, order=order, run_id=None if earlier else run_id)
    opened = opened_with(folder, asked, environ)
    return Finished(opened=opened, outcome=run_one(opened, asked, emit))


def _recorded(row: RunRow, verdict: Verdict, environ: Mapping[str, str]) -> Outcome:
    """What the journal holds of a run that has ended: not the output of gates that passed."""
    with history.reading(state_dir.locate(environ)) as connection:
        final = archive.final_of(connection, row.id) or Validation()
        attempts = archive.attempts(connection, row.id)
    return Outcome(
        run_id=row.id,
        verdict=verdict,
        workspace=WorkspaceFacts(name=row.name, root=row.root, head=row.head),
        baseline=Validation(),
        final=final,
        attempts=attempts,
        final_error=row.reason,
        cost_usd=row.cost_usd,
        duration_ms=row.duration_ms or 0,
        learning_record_id=row.learning,
        start_snapshot=row.start,
    )
