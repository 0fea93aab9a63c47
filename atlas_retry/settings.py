"""What a configuration says, as values with their defaults. Reading one is `config`'s work."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, TypeVar

from msgspec import Struct, field

from atlas_retry.model import Budget, Gate, Kind, Session

T = TypeVar("T")
UNLIMITED_ATTEMPTS = sys.maxsize
DEFAULT_ATTEMPTS = 3
ATTEMPTS_BY_KIND = {Kind.TEST: 3, Kind.REVIEW: 2, Kind.BUILD: 1}


def nth(values: Sequence[T], number: int) -> T | None:
    """The value of the n-th attempt, from 1; the last one repeats. None: there are none."""
    return values[min(number, len(values)) - 1] if values else None


class OnExhausted(StrEnum):
    """What stays in the workspace when a run does not end green."""

    BEST = "best"
    KEEP = "keep"
    RESTORE = "restore"


class GuardMode(StrEnum):
    """What a violation does."""

    BLOCK = "block"
    WARN = "warn"
    OFF = "off"


class ReviewMode(StrEnum):
    """What becomes of sources that branch on the tests' own values."""

    NOTE = "note"
    HOLD = "hold"


class HookMode(StrEnum):
    """What the Stop hook does with changes that were held."""

    TELL = "tell"
    BLOCK = "block"


class OnCascade(StrEnum):
    """What a batch does when a cascade is detected."""

    PAUSE_AND_ALERT = "pause_and_alert"
    ALERT = "alert"


class Ask(StrEnum):
    """What an attempt is asked for."""

    FIX = "fix"
    DIAGNOSE = "diagnose"
    """The cause first, by another approach than those that failed; then the fix."""


class Step(Struct, frozen=True, kw_only=True):
    """One row of `retry.strategy`: how an attempt differs from others."""

    ask: Ask = Ask.FIX
    room: float = 1.0
    """Times `context.max_chars`."""
    session: Session | None = None
    """None: as `agent.session` says."""
    model: str | None = None
    """None: as `agent.models` says."""
    models: tuple[tuple[str, str], ...] = ()
    """By kind of gate, where all that fail are of that kind."""


STRATEGY = (Step(), Step(), Step(ask=Ask.DIAGNOSE, room=1.5, session=Session.NEW))


class RetrySettings(Struct, frozen=True, kw_only=True):
    """The `retry` section."""

    ai_retry_enabled: bool = True
    ai_retry_origin: str = "the defaults"
    """Where `ai_retry_enabled` was said, for the refusal's message."""
    budget: Budget = field(default_factory=Budget)
    attempts_configured: int | None = None
    """What `max_ai_retry_attempts` was set to, for `attempts_allowed`; None = nobody set it."""
    flake_reruns: int = 1
    on_exhausted: OnExhausted = OnExhausted.BEST
    strategy: tuple[Step, ...] = STRATEGY
    """By attempt; the last one repeats."""
    on_failure: str | None = None


class Isolation(StrEnum):
    """`agent.isolation`: whether attempts change the user's tree itself."""

    AUTO = "auto"
    """In layers over it where that is possible."""
    OVERLAY = "overlay"
    NONE = "none"


class AgentSettings(Struct, frozen=True, kw_only=True):
    """The `agent` section."""

    backend: str = "claude-code"
    models: tuple[str, ...] = ("sonnet", "sonnet", "opus")
    session: tuple[Session, ...] = (Session.NEW, Session.RESUME, Session.NEW)
    effort: tuple[str, ...] = ()
    command: str | None = None
    path: str | None = None
    max_turns: int | None = None
    timeout_s: float = 1800.0
    idle_timeout_s: float = 600.0
    permission_mode: str = "acceptEdits"
    extra_args: tuple[str, ...] = ()
    isolation: Isolation = Isolation.NONE
    writable: tuple[str, ...] = ()


class ContextSettings(Struct, frozen=True, kw_only=True):
    """The `context` section."""

    max_chars: int = 16_000
    max_chars_per_error: int = 2_000
    trace: Literal["auto", "off"] = "auto"


class PromptSettings(Struct, frozen=True, kw_only=True):
    """The `prompt` section: the user's own words, added to every prompt."""

    preamble: str = ""
    gates: tuple[tuple[str, str], ...] = ()
    """Kind or name of a gate, and what to say when it failed."""


class GuardSettings(Struct, frozen=True, kw_only=True):
    """The `guard` section."""

    mode: GuardMode = GuardMode.BLOCK
    protect: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    review: ReviewMode = ReviewMode.HOLD
    hook: HookMode = HookMode.TELL


class CascadeSettings(Struct, frozen=True, kw_only=True):
    """The `batch.cascade_detection` section."""

    enabled: bool = True
    threshold: int = 3
    window_size: int = 5
    on_cascade: OnCascade = OnCascade.PAUSE_AND_ALERT


class BatchSettings(Struct, frozen=True, kw_only=True):
    """The `batch` section."""

    jobs: int = 2
    cascade: CascadeSettings = field(default_factory=CascadeSettings)


class Settings(Struct, frozen=True, kw_only=True):
    """A whole configuration, checked."""

    gates: tuple[Gate, ...]
    """In the order of `Kind`, then as written."""
    jobs: int = 1
    """Readers side by side; 1 when `validation.parallel` is false."""
    auto_jobs: bool = False
    """Whether readers that mostly wait may run beside as many."""
    retry: RetrySettings = field(default_factory=RetrySettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)
    guard: GuardSettings = field(default_factory=GuardSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    budgets: tuple[tuple[str, float], ...] = ()
    """Of several runs together, in US dollars: day, month, repository_day, repository_month."""
    triage_baseline: str | None = None
    parsers: tuple[tuple[str, str], ...] = ()
    """Name and regular expression of the user's own parsers."""
    sources: tuple[str, ...] = ()
    """Absolute paths of the files it was read from: the guard protects them."""
    warnings: tuple[str, ...] = ()
    """What is allowed but unwise, each with its place, for `atlas config check`."""


def attempts_allowed(gate: Gate, *, flag: int | None = None, configured: int | None = None) -> int:
    """How many attempts this gate may cost; 0 = none at all.

    Its own `max_retries`, else the flag, else what the configuration sets for all gates, else the
    default of its kind, else 3.
    """
    told = (gate.max_retries, flag, configured, ATTEMPTS_BY_KIND.get(gate.kind))
    return next((limit for limit in told if limit is not None), DEFAULT_ATTEMPTS)


def attempts_of_run(settings: Settings, *, flag: int | None = None) -> int:
    """How many attempts a run may cost: those of its required gate that may cost the most."""
    configured = settings.retry.attempts_configured
    if (configured if flag is None else flag) == 0:
        return 0
    required = (gate for gate in settings.gates if gate.required)
    allowed = (attempts_allowed(gate, flag=flag, configured=configured) for gate in required)
    return max(allowed, default=0)
