"""Runs, timelines and restorations as text. Reads only the event log."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from atlas_retry.history import event_log
from atlas_retry.history.rescue import HELD, START, pick_hint
from atlas_retry.history.values import RunRow, Transition
from atlas_retry.reports.screen.lines import harmless, printable
from atlas_retry.text.units import MAX_NAMED, counted, first_few, labelled, seconds, usd
from atlas_retry.workspace.snapshot.restoring import INDEX, Restored

MAX_DIFFERING = 5


class _LogLine(Struct, frozen=True):
    """The fields of a logged event that a timeline shows."""

    time: str
    event: str
    message: str


class TimelineStep(Struct, frozen=True, kw_only=True):
    """One line of a timeline."""

    at: str
    what: str
    text: str


def list_of(rows: Sequence[RunRow]) -> str:
    """A list with one line per run."""
    if not rows:
        return "no runs here yet; atlas retry starts one\n"
    lines = ""
    for row in rows:
        began = row.started_at[:16].replace("T", " ")
        attempts = counted(row.attempts, "attempt")
        cost = usd(row.cost_usd, at_least=row.unpaid)
        took = seconds(row.duration_ms) if row.duration_ms is not None else ""
        line = f"{row.id}  {began} UTC  {state_of(row):<17}  {attempts:<10}  {cost:>12}  {took:>8}"
        lines += f"{line}  {harmless(row.reason or '')}".rstrip() + "\n"
    return lines


def state_of(row: RunRow) -> str:
    """Verdict of a run, else its state."""
    if row.state in ("abandoned", "undone") or row.verdict is None:
        return row.state.value.replace("_", " ")
    return row.verdict.value.replace("_", " ")


def timeline(folder: Path, moves: Sequence[Transition]) -> tuple[TimelineStep, ...]:
    """The steps of a run from its event log, else from its states."""
    try:
        content = (folder / event_log.NAME).read_bytes()
    except OSError:
        content = b""
    steps = []
    for raw in content.splitlines():
        try:
            line = msgspec.json.decode(raw, type=_LogLine)
        except msgspec.DecodeError:
            continue  # incomplete, as atlas was killed
        steps.append(TimelineStep(at=line.time, what=line.event, text=line.message))
    return tuple(steps) or tuple(
        TimelineStep(at=move.at, what=move.to_state, text=move.reason) for move in moves
    )


def timeline_text(row: RunRow, steps: Sequence[TimelineStep]) -> str:
    """The timeline as text, with times of day."""
    head = f"run {row.id} in {row.root}: {state_of(row)} (times in UTC)\n"
    return head + "".join(f"{step.at[11:23]}  {harmless(step.text)}\n" for step in steps)


def restoration_text(
    row: RunRow, done: Restored, name: str, headline: str, others: Sequence[str] = ()
) -> str:
    """The result of an undo or a pick; `headline` says what of the snapshot `name` was restored.

    `others` are restored files that no agent had changed.
    """
    lines = [_how_far(done, headline)]
    for names, what in (
        (done.ended, "ended"),
        (done.changed, "restored"),
        (others, f"of these changed by a gate or a person ({pick_hint(row.id, HELD)})"),
        (done.git, "restored in git"),
        (done.lost, "changed or deleted, and in no snapshot"),
        (done.unheld, "ignored, changed or deleted, and in no snapshot"),
        ((*done.conflicts, *done.git_conflicts), "edited since, so not changed"),
    ):
        if names:
            lines.append(f"  {what}: {first_few(map(printable, names))}")
    if not done.changed and not done.git:
        lines.append("  nothing to restore")
    else:
        lines += labelled("redo" if name == START else "go back", f"atlas pick {row.id} {HELD}")
    lines += _taking_edited(row, done, name)
    return "\n".join(lines) + "\n"


def _how_far(done: Restored, headline: str) -> str:
    if done.differs:
        how_far = "partly" if done.changed or done.git else "not"
        unlike = first_few(map(printable, done.differs), MAX_DIFFERING)
        return f"{how_far} {headline}; still different: {unlike}"
    if done.lost:
        return "not everything could be restored"
    return f"{headline}, except ignored files that are in no snapshot" if done.unheld else headline


def _taking_edited(row: RunRow, done: Restored, name: str) -> tuple[str, ...]:
    """How to restore the files that were edited since as well."""
    files = [shlex.quote(path) for path in done.conflicts if path != INDEX][:MAX_NAMED]
    if not files:
        return ()
    command = f"atlas pick {row.id} {name} --path {' --path '.join(files)}"
    return labelled("to restore what was edited as well", printable(command))
