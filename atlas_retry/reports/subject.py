"""What a report holds, as one value for every format; it formats nothing."""

from collections.abc import Mapping

from msgspec import Struct, field

from atlas_retry.model import Gate, Outcome, Validation, WorkspaceFacts
from atlas_retry.reports import findings


class Recorded(Struct, frozen=True, kw_only=True):
    """What a report held."""

    validation: Validation
    workspace: WorkspaceFacts | None = None
    gates: tuple[Gate, ...] = ()
    """All gates of the project, where the report lists them; a green one has no result."""


class Subject(Struct, frozen=True, kw_only=True):
    """A validation or a whole run, and where it ran."""

    result: Validation | Outcome
    workspace: WorkspaceFacts
    patches: Mapping[int, str] = field(default_factory=dict)
    """Unified diff of each attempt, by its number; only the HTML report shows them."""
    prompts: Mapping[int, str] = field(default_factory=dict)
    """Prompt of each attempt, by its number; only the HTML report shows them."""
    junit: Mapping[str, bytes] = field(default_factory=dict)
    """JUnit XML that a gate's own runner wrote, by the gate's `log_path`; only JUnit merges it."""

    @property
    def validation(self) -> Validation:
        """The state that counts: the validation itself, or a run's last one."""
        return self.result if isinstance(self.result, Validation) else self.result.final

    @property
    def run(self) -> Outcome | None:
        return self.result if isinstance(self.result, Outcome) else None

    @property
    def findings(self) -> tuple[findings.Finding, ...]:
        """What the guard answered to the attempts of a run."""
        return findings.of_run(self.run) if self.run else ()

    @property
    def success(self) -> bool:
        """Whether atlas would exit 0."""
        return self.run.verdict.is_green if self.run else self.validation.success
