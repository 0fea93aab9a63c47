"""The JSON documents of commands that report no run and no validation, and the schema of all."""

import sys
from functools import reduce
from operator import or_
from typing import Any

from msgspec import Struct

from atlas_retry.config.sources import EffectiveKey
from atlas_retry.errors import AtlasError, ConfigError
from atlas_retry.history.learning import Kept
from atlas_retry.history.overview import StatusDocument
from atlas_retry.history.statistics import Statistics
from atlas_retry.history.texts import TimelineStep
from atlas_retry.history.values import RunRow
from atlas_retry.model import Gate, OpenReview
from atlas_retry.reports.documents import Document, GuardDocument, TurnResult, encode
from atlas_retry.reports.documents import schema as schema_of
from atlas_retry.run.proving import ProvenGate
from atlas_retry.workspace.snapshot.restoring import Restored


class Written(Struct, frozen=True, tag_field="schema"):
    """A document, known by its field `schema`."""


class ErrorDocument(Written, frozen=True, kw_only=True, tag="atlas.error/1"):
    """A command that ended without a result, a wrong command line included."""

    error: str
    remedy: str | None = None
    exit_code: int
    place: str | None = None
    """`file:line:column` of a wrong configuration."""


class LogDocument(Written, frozen=True, kw_only=True, tag="atlas.log/1"):
    """`atlas log`: the runs of a workspace, newest first."""

    runs: tuple[RunRow, ...]


class TimelineDocument(Written, frozen=True, kw_only=True, tag="atlas.timeline/1"):
    """`atlas log RUN`."""

    run: RunRow
    steps: tuple[TimelineStep, ...]


class PruneDocument(Written, frozen=True, kw_only=True, tag="atlas.prune/1"):
    """`atlas prune`."""

    runs: tuple[RunRow, ...]
    dry_run: bool


class DiffDocument(Written, frozen=True, kw_only=True, tag="atlas.diff/1"):
    """`atlas diff`."""

    run_id: str
    attempt: str | None
    patch: str


class RestoredDocument(Written, frozen=True, kw_only=True, tag="atlas.restored/1"):
    """`atlas undo` and `atlas pick`."""

    run_id: str
    success: bool
    """Whether the files are as they were asked to be."""
    restored: tuple[str, ...]
    git: tuple[str, ...]
    conflicts: tuple[str, ...]
    """Edited since, so not changed."""
    lost: tuple[str, ...]
    """In no snapshot."""
    differs: tuple[str, ...]

    @classmethod
    def of(cls, run_id: str, done: Restored, *, success: bool) -> "RestoredDocument":
        """The document of a restoration."""
        return cls(
            run_id=run_id,
            success=success,
            restored=tuple(done.changed),
            git=tuple(done.git),
            conflicts=(*done.conflicts, *done.git_conflicts),
            lost=tuple(done.lost),
            differs=tuple(done.differs),
        )


class DeliveryDocument(Written, frozen=True, kw_only=True, tag="atlas.delivery/1"):
    """`atlas deliver`."""

    delivered: bool
    notes: tuple[str, ...] = ()
    """What was done, or why nothing was, in sentences."""


class ConfigurationDocument(Written, frozen=True, kw_only=True, tag="atlas.configuration/1"):
    """`atlas config show`."""

    values: tuple[EffectiveKey, ...]


class CheckDocument(Written, frozen=True, kw_only=True, tag="atlas.configuration-check/1"):
    """`atlas config check`."""

    gates: int
    sources: tuple[str, ...]
    warnings: tuple[str, ...]


class GatesDocument(Written, frozen=True, kw_only=True, tag="atlas.gates/1"):
    """`atlas validate --list`."""

    gates: tuple[Gate, ...]


class InitialGate(Struct, frozen=True, kw_only=True):
    """A gate that `atlas init` found."""

    kind: str
    run: str
    reason: str
    """Where it was found."""
    outcome: str
    """How its trial run ended, in one or two words."""
    duration_s: float | None


class InitDocument(Written, frozen=True, kw_only=True, tag="atlas.init/1"):
    """`atlas init`."""

    wrote: str | None
    """Path of the configuration; None with `--print`."""
    configuration: str
    gates: tuple[InitialGate, ...]
    warnings: tuple[str, ...]
    """Gates that may check nothing."""
    not_understood: tuple[str, ...]
    """Lines of CI."""


class AcceptDocument(Written, frozen=True, kw_only=True, tag="atlas.accept/1"):
    """`atlas accept` of changes that were left for review."""

    accepted: tuple[OpenReview, ...]


class NamedWorkspace(Struct, frozen=True, kw_only=True):
    """A worktree that `atlas workspace add` made."""

    name: str
    branch: str | None
    root: str
    is_there: bool


class WorkspacesDocument(Written, frozen=True, kw_only=True, tag="atlas.workspaces/1"):
    """`atlas workspace list`."""

    workspaces: tuple[NamedWorkspace, ...]


class LearningsDocument(Written, frozen=True, kw_only=True, tag="atlas.learnings/1"):
    """`atlas learnings list` and `show`."""

    records: tuple[Kept, ...]


class FleetReportDocument(Written, frozen=True, kw_only=True, tag="atlas.fleet-report/1"):
    """`atlas fleet report`."""

    batch: str
    rows: tuple[Any, ...]
    """How each repository ended."""


class ProofDocument(Written, frozen=True, kw_only=True, tag="atlas.prove/1"):
    """`atlas prove`."""

    success: bool
    gates: tuple[ProvenGate, ...]


DOCUMENTS: tuple[Any, ...] = (
    Document,
    GuardDocument,
    StatusDocument,
    Statistics,
    ErrorDocument,
    LogDocument,
    TimelineDocument,
    PruneDocument,
    DiffDocument,
    RestoredDocument,
    DeliveryDocument,
    ConfigurationDocument,
    CheckDocument,
    GatesDocument,
    InitDocument,
    AcceptDocument,
    WorkspacesDocument,
    LearningsDocument,
    FleetReportDocument,
    ProofDocument,
    TurnResult,
)


def write(document: Struct) -> None:
    """Write the one document of a command to standard output."""
    sys.stdout.write(encode(document))


def write_error(error: AtlasError, exit_code: int) -> None:
    """Write the document of a command that ended without a result."""
    place = str(error.place) if isinstance(error, ConfigError) else None
    write(ErrorDocument(error=error.message, remedy=error.remedy, exit_code=exit_code, place=place))


def schema() -> dict[str, object]:
    """JSON Schema 2020-12 of every document."""
    return schema_of(reduce(or_, DOCUMENTS))
