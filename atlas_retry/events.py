"""Events as frozen values; an observer is a callable that takes one. Nothing is printed here."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.model import (
    AgentReply,
    Attempt,
    ExtraRun,
    Gate,
    GateResult,
    Held,
    Level,
    Outcome,
    Validation,
    Verdict,
    Violation,
    WorkspaceFacts,
)
from atlas_retry.patterns import regex


def now() -> str:
    """The time in UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(time: str) -> float:
    """Seconds since the epoch of a time that `now` wrote."""
    return datetime.fromisoformat(time).timestamp()


class EventScope(Struct, frozen=True, kw_only=True):
    """What an event belongs to; filled in by the emitter, not by the code that reports it."""

    workspace: str | None = None
    run: str | None = None
    attempt: int | None = None
    max_attempts: int | None = None
    """None if unlimited, or if no attempt is running."""
    failed_step: str | None = None
    """Kind of the first gate that blocked in the latest validation."""


class Event(Struct, frozen=True, kw_only=True):
    """Something that happened."""

    said: ClassVar[str] = ""
    """Its message, as a format of the event."""
    time: str = field(default_factory=now)
    level: Level = Level.NOTE
    scope: EventScope = EventScope()

    @property
    def kind(self) -> str:
        """Name of the event in the log: `GateStarted` is `gate_started`."""
        return _CAPITAL.sub("_", type(self).__name__).lower()

    @property
    def message(self) -> str:
        """One line for a person."""
        return self.said.format(self) if self.said else self.kind.replace("_", " ")


_CAPITAL = regex(r"(?<!^)(?=[A-Z])")
Emit = Callable[[Event], None]


def unseen(_: Event) -> None:
    """An emitter that drops every event."""


def fan_out(observers: Iterable[Emit]) -> Emit:
    """An emitter that hands every event to each observer, in order."""
    listeners = tuple(observers)

    def emit(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return emit


def within(emit: Emit, scope: EventScope) -> Emit:
    """An emitter that sets `scope` on every event that has none."""

    def stamped(event: Event) -> None:
        emit(event if event.scope != EventScope() else replace(event, scope=scope))

    return stamped


def following(emit: Emit, scope: EventScope) -> Emit:
    """An emitter for one run: events without a scope get the latest one."""
    latest = scope

    def stamped(event: Event) -> None:
        nonlocal latest
        latest = event.scope if event.scope != EventScope() else latest
        emit(replace(event, scope=latest))

    return stamped


class Notice(Event, frozen=True, kw_only=True):
    """A message for a person that has no event of its own."""

    said = "{0.text}"
    text: str


class ValidationStarted(Event, frozen=True, kw_only=True):
    """All gates are about to run."""

    gates: tuple[Gate, ...]

    @property
    def message(self) -> str:
        return f"running {len(self.gates)} {'gate' if len(self.gates) == 1 else 'gates'}"


class GateStarted(Event, frozen=True, kw_only=True):
    """A command of a gate starts."""

    said = "{0.gate}: {0.command}"
    gate: str
    command: str


class GateProgress(Event, frozen=True, kw_only=True):
    """The latest output of a running gate; not stored."""

    gate: str
    last_line: str
    elapsed_s: float


class GateFinished(Event, frozen=True, kw_only=True):
    """The final result of one gate in this validation."""

    result: GateResult

    @property
    def message(self) -> str:
        tail = f": {self.result.error}" if self.result.error else ""
        return f"{self.result.name} {self.result.status} ({self.result.duration_ms} ms){tail}"


class GateRanAgain(Event, frozen=True, kw_only=True):
    """A gate, or a part of it, ran besides the validations themselves."""

    gate: str
    reason: str
    duration_ms: int

    @property
    def message(self) -> str:
        return f"{self.gate} ran again for {self.duration_ms / 1000:.1f} s: {self.reason}"


def noting(emit: Emit, extra: list[ExtraRun]) -> Emit:
    """An emitter that also notes every run of a gate besides the validations."""

    def noted(event: Event) -> None:
        if isinstance(event, GateRanAgain):
            extra.append(
                ExtraRun(
                    gate=event.gate,
                    reason=event.reason,
                    duration_ms=event.duration_ms,
                    attempt=event.scope.attempt,
                )
            )
        emit(event)

    return noted


class ValidationFinished(Event, frozen=True, kw_only=True):
    """Every gate that can run has run."""

    said = "{0.validation.counts}"
    validation: Validation


class FixerFinished(Event, frozen=True, kw_only=True):
    """A gate's own `fix` command ended."""

    gate: str
    command: str
    success: bool
    changed: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        files = "1 file" if len(self.changed) == 1 else f"{len(self.changed)} files"
        return f"fixer of {self.gate} changed {files}"


class RunStarted(Event, frozen=True, kw_only=True):
    """The start snapshot is taken; nothing has been changed yet."""

    said = "run in {0.facts.root}"
    facts: WorkspaceFacts
    start_snapshot: str
    left_out: tuple[str, ...] = ()
    """Files that the snapshot does not hold."""


class AttemptStarted(Event, frozen=True, kw_only=True):
    """Emitted before any money is spent; an observer that raises stops the attempt."""

    number: int
    agent: str
    model: str | None
    session_id: str | None
    snapshot: str
    """Snapshot of the tree that the agent starts from."""
    prompt_chars: int
    prompt_path: str

    @property
    def message(self) -> str:
        of = f" of {self.scope.max_attempts}" if self.scope.max_attempts else ""
        return f"attempt {self.number}{of}: {self.agent} {self.model or ''}".rstrip()


class AgentActivity(Event, frozen=True, kw_only=True):
    """What the agent is doing: the tool and the file."""

    said = "{0.text}"
    text: str
    session_id: str | None = None
    cost_usd: float | None = None
    turns: int | None = None
    """Turns of the model so far, the current one included; None if the agent does not report it."""


class _Retried(Event, frozen=True, kw_only=True):
    said = "[RETRY {0.number}] {0.reason}"
    number: int
    """Number of the try that failed, the last one included."""
    reason: str


class TransportRetried(_Retried, frozen=True, kw_only=True):
    """The agent repeats a request on its own; `[RETRY n] ...`. Never counts as an attempt."""


class AnswerRetried(_Retried, frozen=True, kw_only=True):
    """One file of an agent's answer cannot be used and is asked for again, up to a limit."""


class AgentReplied(Event, frozen=True, kw_only=True):
    """The agent's turn is over and paid for, but not judged yet."""

    said = "attempt {0.number}: the agent's turn is over ({0.reply.status})"
    number: int
    reply: AgentReply


class ViolationsFound(Event, frozen=True, kw_only=True):
    """The guard refused or held changes of an attempt, and reverted them."""

    violations: tuple[Violation, ...]
    held: tuple[Held, ...] = ()
    left: tuple[str, ...] = ()
    """Paths of violations that cannot be reverted."""
    rolled_back: bool

    @property
    def message(self) -> str:
        noun = "violation" if len(self.violations) == 1 else "violations"
        counted = ((self.violations, noun), (self.held, "held"))
        return ", ".join(
            f"{len(changes)} {word}: {changes[0].rule} in {changes[0].path}"
            for changes, word in counted
            if changes
        )


class AttemptRestored(Event, frozen=True, kw_only=True):
    """An attempt was abandoned and all its changes were reverted."""

    said = "attempt {0.number}: its changes are reverted"
    number: int


class AttemptFinished(Event, frozen=True, kw_only=True):
    """Emitted after the validation that follows the agent's turn."""

    result: Attempt

    @property
    def message(self) -> str:
        attempt, validation = self.result, self.result.validation
        if validation is None:
            return f"attempt {attempt.number} {_unvalidated(attempt)}"
        if validation.success:
            subject = "Tests passed" if self.scope.failed_step == "test" else "All checks passed"
            return f"{subject} on attempt {attempt.number}"
        of = f"/{self.scope.max_attempts}" if self.scope.max_attempts else ""
        return f"{validation.failed_step} failed (attempt {attempt.number}{of})"


def _unvalidated(attempt: Attempt) -> str:
    """Why no gate ran after an attempt."""
    if not attempt.changes:
        is_hidden = " but files that git ignores (not-under-git)" if attempt.unseen else ""
        return f"changed nothing{is_hidden}"
    if attempt.ends is Verdict.REJECTED:
        return "was not validated: the guard ended the run"
    if attempt.ends is not None and not attempt.rolled_back:
        return "was not validated: git changed its files meanwhile"
    return "left nothing to validate: its changes were reverted"


class _WithOutcome(Event, frozen=True, kw_only=True):
    outcome: Outcome

    @property
    def message(self) -> str:
        return ": ".join(filter(None, (self.outcome.verdict, self.outcome.final_error)))


class RunFinished(_WithOutcome, frozen=True, kw_only=True):
    """The run has ended; nothing follows."""


class WorkspaceFinished(_WithOutcome, frozen=True, kw_only=True):
    """One of several workspaces has ended, as the `number`-th of `total`."""

    number: int
    total: int

    @property
    def message(self) -> str:
        return f"{super().message} ({self.number} of {self.total})"
