"""Review gates: an agent judges a diff. It sees no text of the author; edits nothing."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import state_dir
from atlas_retry.agents.answers import decoded, schema_of
from atlas_retry.agents.review import opinion
from atlas_retry.digests import sha256_of
from atlas_retry.events import now
from atlas_retry.model import Agent, AgentReply, AgentRequest, Gate, GateResult, ReplyStatus, Status
from atlas_retry.source.excerpt import anchor
from atlas_retry.text.redaction import clean
from atlas_retry.text.units import counted
from atlas_retry.workspace.snapshot.trees import source_tree

ANSWERED = "this change was reviewed before, with this answer: nothing is spent"
MAX_ANSWERS = 500
"""Answers kept, the latest."""


class ReviewInputs(Struct, frozen=True, kw_only=True):
    """Inputs shared by the reviews of a validation."""

    root: Path
    diff: Callable[[], str]
    """Returns the changes to review."""
    agent: Callable[[Gate], Agent]
    """Returns the reviewer for a gate. Raises AgentError."""
    promised_usd: Callable[[], float | None]
    """Returns the cost limit of the next review; None for unlimited."""
    redact: Callable[[str], str]
    scratch: Path
    answers: Path
    """Folder with the answers to earlier reviews."""
    backend: str
    """Agent of gates without their own."""
    model: str | None = None
    attempt: int = 1
    idle_timeout_s: float | None = None


def review(gate: Gate, desk: ReviewInputs) -> GateResult:
    """Run a review gate; without changes to review it is not run."""
    started_at, clock = now(), time.monotonic()
    return replace(
        _result(gate, desk),
        started_at=started_at,
        completed_at=now(),
        duration_ms=round((time.monotonic() - clock) * 1000),
    )


def _result(gate: Gate, desk: ReviewInputs) -> GateResult:
    diff = opinion.chosen(desk.diff(), gate.paths)
    if not diff.strip():
        return _ended(gate, Status.SKIPPED, error="not run: nothing has changed to review")
    # what an answer depends on: who is asked, what, and about which change
    parts = (gate.agent or desk.backend, desk.model or "", gate.prompt or "", diff)
    asked = sha256_of("\0".join(parts).encode(errors="replace"))
    known = desk.answers / f"{asked}.json"
    before = decoded(known.read_bytes(), opinion.Opinion) if known.is_file() else None
    if before:
        return replace(_with(before, gate, desk), notes=(ANSWERED,))
    promised_usd = desk.promised_usd()
    if promised_usd is not None and promised_usd <= 0:
        return _ended(gate, Status.FAILED, error="the budget has no money left for a review")
    name = "".join(char if char.isalnum() else "-" for char in gate.name)[:40]
    scratch = state_dir.folder(desk.scratch, f"review-{name}")
    text = opinion.prompt(gate.prompt or "", diff, os.urandom(4).hex(), desk.redact)
    (scratch / "prompt.md").write_text(text, encoding="utf-8", errors="replace")
    request = AgentRequest(
        prompt=text,
        workspace=str(desk.root),
        scratch=str(scratch),
        attempt=desk.attempt,
        model=desk.model,
        cost_usd=promised_usd,
        timeout_s=gate.timeout_s,
        idle_timeout_s=desk.idle_timeout_s,
        schema=msgspec.json.encode(schema_of(opinion.Opinion)),
    )
    reply = desk.agent(gate)(request)
    answer = opinion.read(reply.structured or reply.summary)
    if answer and reply.status is ReplyStatus.DONE:
        _remember(known, answer)
    return replace(_judged(gate, desk, reply, answer), cost_usd=reply.cost_usd)


def _remember(file: Path, answer: opinion.Opinion) -> None:
    """Keep an answer, and drop the oldest; without space for it, it is asked for again."""
    with suppress(OSError):
        state_dir.replace_file(file, msgspec.json.encode(answer))
        kept = sorted(file.parent.glob("*.json"), key=lambda one: one.stat().st_mtime)
        for old in kept[:-MAX_ANSWERS]:
            old.unlink(missing_ok=True)


def _judged(
    gate: Gate, desk: ReviewInputs, reply: AgentReply, answer: opinion.Opinion | None
) -> GateResult:
    if reply.status is ReplyStatus.TIMED_OUT:
        return _ended(gate, Status.TIMED_OUT, error=reply.error)
    if reply.status is not ReplyStatus.DONE:
        why = "; ".join(filter(None, (reply.error, reply.remedy)))
        return _ended(gate, Status.BROKEN, error=why or "no reviewer is available")
    if answer is None:
        return _ended(gate, Status.BROKEN, error="the reviewer gave no valid answer")
    return _with(answer, gate, desk)


def _with(answer: opinion.Opinion, gate: Gate, desk: ReviewInputs) -> GateResult:
    problems = anchor(opinion.diagnostics(answer, gate.name), source_tree(desk.root).read)
    text = desk.redact(clean("".join(f"{diagnostic.text}\n" for diagnostic in problems)))
    if answer.passes:
        return _ended(gate, Status.PASSED, stdout=text)
    error = f"the reviewer has {counted(len(problems), 'problem')}"
    failed = _ended(gate, Status.FAILED, stdout=text, error=error)
    return replace(failed, diagnostics=problems)


def _ended(gate: Gate, status: Status, *, stdout: str = "", error: str | None = None) -> GateResult:
    triage = {Status.PASSED: None, Status.SKIPPED: None, Status.BROKEN: "environment"}
    return GateResult(
        name=gate.name,
        kind=gate.kind,
        command=gate.run,
        required=gate.required,
        status=status,
        success=status in (Status.PASSED, Status.SKIPPED),
        stdout=stdout,
        error=error,
        triage=triage.get(status, "code"),
    )
