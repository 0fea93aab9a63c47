r"""Writes the JSON documents `atlas.report/1`, `atlas.run/1` and `atlas.batch/1`.

Fields are only ever added. The output is always valid JSON: a byte that was not UTF-8 (a lone
surrogate in Python) is written as the six characters `\udcNN`, NaN as null.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import __version__
from atlas_retry.model import (
    Answer,
    AttemptFacts,
    ExtraRun,
    GateResult,
    Held,
    Kind,
    OpenReview,
    Outcome,
    RunFacts,
    Status,
    Validation,
    Violation,
    WorkspaceFacts,
)
from atlas_retry.reports.subject import Subject
from atlas_retry.text import json_text

REPORT, RUN, BATCH, GUARD = "atlas.report/1", "atlas.run/1", "atlas.batch/1", "atlas.guard/1"
OWN_LIST = {
    Kind.FORMAT: "format_results",
    Kind.LINT: "lint_results",
    Kind.TEST: "test_results",
    Kind.PRE_COMMIT: "pre_commit_results",
}
"""Field for the results of a kind; all others are in `other_results`."""
LISTS = (*OWN_LIST.values(), "other_results")


class ReportDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=REPORT):
    """One validation."""

    atlas_version: str
    workspace: WorkspaceFacts
    success: bool
    failed_step: str | None
    duration_ms: int
    started_at: str
    completed_at: str
    format_results: tuple[GateResult, ...]
    lint_results: tuple[GateResult, ...]
    test_results: tuple[GateResult, ...]
    pre_commit_results: tuple[GateResult, ...]
    other_results: tuple[GateResult, ...]
    extra_runs: tuple[ExtraRun, ...]
    """Gates that ran again within it, with the reason."""
    open_reviews: tuple[OpenReview, ...]
    """Changes in the workspace that a person must review: with any, it is no success."""


class AttemptDocument(AttemptFacts, frozen=True, kw_only=True):
    """One agent turn and the report of the validation after it."""

    report: ReportDocument | None


class RunDocument(RunFacts, frozen=True, kw_only=True, tag_field="schema", tag=RUN):
    """One `atlas retry` of one workspace."""

    success: bool
    baseline: ReportDocument
    final: ReportDocument
    attempts: tuple[AttemptDocument, ...]
    cost_usd: float | None


class Cascade(Struct, frozen=True, kw_only=True):
    """Whether many workspaces failed for one cause, and the reaction."""

    cascade_detected: bool = False
    failures_in_window: int = 0
    threshold: int = 0
    action: str | None = None
    diagnosis: str | None = None
    recommendation: str | None = None


class BatchDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=BATCH):
    """One `atlas retry` of several workspaces."""

    runs: tuple[RunDocument, ...]
    cost_usd: float | None
    not_started: tuple[str, ...]
    cascade: Cascade


Document = ReportDocument | RunDocument | BatchDocument


class GuardDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=GUARD):
    """`atlas.guard/1`."""

    violations: tuple[Violation, ...]
    held: tuple[Held, ...]
    noted: tuple[Answer, ...]


class TurnResult(Struct, frozen=True, kw_only=True, tag_field="schema", tag="atlas.hook/1"):
    """What `atlas hook result` says of the last turn that was judged."""

    gates: str = ""
    """green, red, unsure (held changes, gates that could not run) or unjudged."""
    line: str
    """The first line of the answer."""
    sent_back: bool = False
    """Whether the turn was to continue; at the limit it was not."""
    failed: tuple[str, ...] = ()
    """Names of the gates, or `the guard`."""
    tree: str | None = None
    """Id of the files that were judged; None without git."""
    session_id: str = ""
    root: str = ""
    ended_at: str = ""


def report_document(
    validation: Validation, workspace: WorkspaceFacts, open_reviews: tuple[OpenReview, ...] = ()
) -> ReportDocument:
    """The document of a validation, with results by kind."""
    by_list: dict[str, tuple[GateResult, ...]] = dict.fromkeys(LISTS, ())
    for result in validation.results:
        has_passed = result.success and result.status is not Status.SKIPPED
        shown = replace(result, success=has_passed)
        by_list[OWN_LIST.get(result.kind, "other_results")] += (shown,)
    more = {
        "atlas_version": __version__,
        "workspace": workspace,
        "success": validation.success and not open_reviews,
        "open_reviews": open_reviews,
        **by_list,
    }
    return ReportDocument(**_same(validation, ReportDocument) | more)


def run_document(outcome: Outcome) -> RunDocument:
    """The document of a run."""
    where = outcome.workspace
    attempts = []
    for attempt in outcome.attempts:
        report = report_document(attempt.validation, where) if attempt.validation else None
        attempts.append(AttemptDocument(**_same(attempt, AttemptDocument) | {"report": report}))
    more = {
        "success": outcome.verdict.is_green,
        "baseline": report_document(outcome.baseline, where),
        "final": report_document(outcome.final, where),
        "attempts": tuple(attempts),
    }
    return RunDocument(**_same(outcome, RunDocument) | more)


def _same(value: Struct, document: type[Struct]) -> dict[str, Any]:
    """The fields that the value and the document share."""
    names = document.__struct_fields__
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def batch_document(
    outcomes: Sequence[Outcome], *, not_started: Sequence[str], cascade: Cascade
) -> BatchDocument:
    """The document of several runs; `not_started` names the remaining workspaces."""
    return BatchDocument(
        runs=tuple(run_document(outcome) for outcome in outcomes),
        cost_usd=sum(outcome.cost_usd for outcome in outcomes),
        not_started=tuple(not_started),
        cascade=cascade,
    )


def report(subject: Subject) -> str:
    """`atlas.report/1` or `atlas.run/1`, indented, with a newline at the end."""
    run = subject.run
    if run:
        return encode(run_document(run))
    where, asked = subject.workspace, subject.open_reviews
    return encode(report_document(subject.validation, where, asked))


def encode(document: object) -> str:
    """Indented JSON of any document or value, with a newline at the end."""
    return msgspec.json.format(json_text.encode(document), indent=2).decode() + "\n"


def schema(documents: object = Document) -> dict[str, object]:
    """JSON Schema 2020-12 of a union of documents, by default of runs and validations."""
    (whole,), components = msgspec.json.schema_components([documents])
    for name in ("AttemptDocument", "RunDocument"):  # fields with defaults are written too
        components[name]["required"] = list(components[name]["properties"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, "$defs": components}
