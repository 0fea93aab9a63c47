"""The input of all report formats."""

from collections.abc import Mapping

from msgspec import Struct, field

from atlas_retry.model import Gate, OpenReview, Outcome, Validation, WorkspaceFacts
from atlas_retry.reports import findings


class Recorded(Struct, frozen=True, kw_only=True):
    """The content of a report that was read."""

    validation: Validation
    workspace: WorkspaceFacts | None = None
    gates: tuple[Gate, ...] = ()
    """All gates of the project, if the report lists them."""


class Subject(Struct, frozen=True, kw_only=True):
    """A validation or a whole run, and where it ran."""

    result: Validation | Outcome
    workspace: WorkspaceFacts
    patches: Mapping[int, str] = field(default_factory=dict)
    """Unified diff of each attempt, by number; only for the HTML report."""
    prompts: Mapping[int, str] = field(default_factory=dict)
    """Prompt of each attempt, by number; only for the HTML report."""
    open_reviews: tuple[OpenReview, ...] = ()
    """Changes in the workspace that a person must review; of a run, they are in its outcome."""
    junit: Mapping[str, bytes] = field(default_factory=dict)
    """JUnit XML of a gate's own runner, by the gate's `log_path`; only for the JUnit report."""

    @property
    def validation(self) -> Validation:
        """The validation itself, or the final one of a run."""
        return self.result if isinstance(self.result, Validation) else self.result.final

    @property
    def run(self) -> Outcome | None:
        return self.result if isinstance(self.result, Outcome) else None

    @property
    def findings(self) -> tuple[findings.Finding, ...]:
        """The guard's answers to the attempts of a run."""
        return findings.of_run(self.run) if self.run else ()

    @property
    def success(self) -> bool:
        """Whether atlas would exit with 0."""
        if self.run:
            return self.run.verdict.is_green
        return self.validation.success and not self.open_reviews
