"""Configuration as values: sections with their keys, limits, defaults and descriptions.

The docstring under a key is its documentation: the example, the reference and the JSON Schema are
made from it. `config` reads configurations.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from atlas_retry.errors import Place, near
from atlas_retry.model import Budget, Gate, Kind, Session

T = TypeVar("T")
UNLIMITED_ATTEMPTS = sys.maxsize
DEFAULT_ATTEMPTS = 3
ATTEMPTS_BY_KIND = {Kind.TEST: 3, Kind.REVIEW: 2, Kind.BUILD: 1}
DAY_S = 86_400
DURATION = r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?"
CLI_BACKENDS = ("codex", "gemini", "opencode", "aider", "mini-swe-agent", "command")
"""CLIs whose models are chosen in their own settings."""
BACKENDS = ("claude-code", "anthropic", *CLI_BACKENDS, "scripted")
CONFIGURATION_FILES = (".atlas/config.yaml", ".atlas/config.yml", "atlas.yaml", "atlas.yml")
"""POSIX paths, in order of precedence."""


def in_ci(environ: Mapping[str, str]) -> bool:
    """Whether this is a CI job, where nobody watches; `CI=false`, `CI=0` and `CI=` say no."""
    return environ.get("CI", "").strip().lower() not in ("", "0", "false", "no", "off")


def for_attempt(values: Sequence[T], number: int) -> T | None:
    """The value for the n-th attempt, from 1; the last one repeats. None if there are no values."""
    return values[min(number, len(values)) - 1] if values else None


# --- what a value may be ---------------------------------------------------------------------


def whole(low: int, high: int) -> Meta:
    """Limits of a whole number, both included."""
    return Meta(ge=low, le=high, description=f"a whole number from {low} to {high}")


def amount(low: float, high: float) -> Meta:
    """Limits of a number, both included."""
    return Meta(ge=low, le=high, description=f"a number from {low} to {high}")


def that(holds: Callable[[Any], object], description: str | None = None) -> Meta:
    """A check that a value must pass; it may also raise ValueError with what was expected."""
    return Meta(description=description, extra={"holds": holds})


def seconds(value: float | str) -> float:
    """Seconds of a duration in a configuration; 0 if it is invalid or over a day."""
    match = re.fullmatch(DURATION, value.strip()) if isinstance(value, str) else None
    if match and any(match.groups()):
        hours, minutes, rest = (float(number or 0) for number in match.groups())
        value = hours * 3600 + minutes * 60 + rest
    return float(value) if not isinstance(value, str) and 0 < value <= DAY_S else 0


def _text(value: str) -> bool:
    return bool(value.strip()) and "\0" not in value


def _command(value: str) -> bool:
    return _text(value) and len(value.strip().splitlines()) == 1


def _glob(value: str) -> bool:
    return _text(value) and not value.startswith("/") and ".." not in value.split("/")


def _backend(value: str) -> bool:
    if value in BACKENDS or re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", value):
        return True
    known = f"{', '.join(BACKENDS)} or package.module:factory"
    raise ValueError(f"expected {known}{near(value, BACKENDS)}")


def _model(value: str) -> object:
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*", value)


Seconds = Annotated[
    float | str,
    that(seconds, "a duration such as 90 (seconds), 90s, 10m or 1h30m, over 0 and at most 24h"),
]
Text = Annotated[str, that(_text, "text")]
FreeText = Annotated[str, that(lambda value: "\0" not in value, "text")]
ShellLine = Annotated[
    str,
    # one argument of a process may have 128 KiB on Linux (MAX_ARG_STRLEN)
    Meta(
        max_length=100_000,
        description="a command of one line (join lines with && or call a script),"
        " of at most 100000 characters and without a NUL byte",
        extra={"holds": _command},
    ),
]
Glob = Annotated[str, that(_glob, "a glob relative to the root of the workspace, without ..")]
Model = Annotated[str, that(_model, "the name of a model, such as sonnet, opus or haiku")]
Backend = Annotated[str, that(_backend)]
Attempts = Annotated[int, whole(0, 100)]
NON_EMPTY = Meta(
    description="a list of at least one item",
    extra={"holds": bool},
    extra_json_schema={"minItems": 1},
)
"""At least one item in what the user writes; a default may be empty."""


# --- the words of some keys ------------------------------------------------------------------


OnExhausted = Literal["best", "keep", "restore"]
"""What stays in the workspace when a run does not end green."""
GuardMode = Literal["block", "warn", "off"]
"""What happens on a violation."""
ReviewMode = Literal["note", "hold"]
"""What happens to sources that branch on the tests' own values."""
OlderMode = Literal["block", "tell"]
HookMode = Literal["tell", "block"]
"""What the Stop hook does with held changes."""
HookTime = Literal["turn", "push"]
"""When the hook runs the gates."""
OnCascade = Literal["pause_and_alert", "alert"]
"""What a batch does when a cascade is detected."""
Ask = Literal["fix", "diagnose"]
"""What an attempt asks for; diagnose: first the cause, by a different approach than those that
failed, then the fix."""
Isolation = Literal["auto", "overlay", "none"]
"""Whether attempts work in an overlay over the user's tree; auto: if that is possible."""


# --- the sections ----------------------------------------------------------------------------


class ConfigSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys of a configuration."""


class Step(ConfigSection, frozen=True, kw_only=True):
    """How one attempt differs from others."""

    ask: Ask = "fix"
    """fix, or diagnose: first the cause, by a different approach than those that failed."""
    room: Annotated[float, amount(0.1, 10)] = 1
    """Prompt size as a multiple of `context.max_chars`."""
    session: Session | None = None
    """new or resume; null = as in `agent.session`."""
    model: Model | None = None
    """null = as in `agent.models`."""
    models: Mapping[Kind, Model] = {}
    """Model by kind of gate, used if all failing gates are of that kind: `{lint: haiku}`."""


STRATEGY = (Step(), Step(), Step(ask="diagnose", room=1.5, session=Session.NEW))


class RetrySettings(ConfigSection, frozen=True, kw_only=True):
    """How long to try."""

    ai_retry_enabled: bool = True
    """false: --ai-fix is refused."""
    max_ai_retry_attempts: Attempts | None = 3
    """Attempts of a run, and of each gate without its own `max_retries`; 0 = no agent, null = no
    limit."""
    flake_reruns: Annotated[int, whole(0, 10)] = 1
    """Times a failed test gate is run again, unchanged, before money is spent."""
    max_cost_usd: Annotated[float, amount(0, 100_000)] | None = 5
    """Budget of a run in US dollars; null = no limit."""
    max_minutes: Annotated[float, amount(0, 1440)] | None = 60
    """Budget of a run in minutes; null = no limit."""
    prove: Literal["off", "changed"] = "off"
    """changed: after a fix, plant faults in the functions that it touched, on a copy; name those
    with which no test fails."""
    on_exhausted: OnExhausted = "best"
    """What stays when a run does not end in a pass: the best attempt, the last one (keep), or the
    state before the run (restore)."""
    strategy: Annotated[tuple[Step, ...], NON_EMPTY] | None = None
    """By attempt: ask, room, session, model and models; the last one repeats; null = the third and
    later ones start a new session, with 1.5 times the room, and ask for a diagnosis."""
    on_failure: ShellLine | None = None
    """A command that gets the run's JSON on stdin if it did not end in a pass."""

    @property
    def budget(self) -> Budget:
        return Budget(
            attempts=self.max_ai_retry_attempts,
            cost_usd=self.max_cost_usd,
            wall_s=None if self.max_minutes is None else self.max_minutes * 60,
        )


class AgentSettings(ConfigSection, frozen=True, kw_only=True):
    """The agent that fixes failures."""

    backend: Backend = "claude-code"
    """claude-code, anthropic, codex, gemini, opencode, aider, mini-swe-agent, command, scripted, or
    package.module:factory."""
    models: Annotated[tuple[Model, ...], NON_EMPTY] = ("sonnet", "sonnet", "opus")
    """Models by attempt; the last one repeats. CLIs except Claude Code have their own default."""
    session: Annotated[tuple[Session, ...], NON_EMPTY] = (Session.NEW, Session.RESUME, Session.NEW)
    """By attempt: new, or resume to continue the last conversation; the last value repeats."""
    effort: tuple[Literal["low", "medium", "high", "xhigh", "max"], ...] = ()
    """Effort by attempt, if the agent supports it; the last repeats; empty = its default."""
    command: ShellLine | None = None
    """Command of the command backend: "my-agent --edit < {prompt_file}"."""
    path: Text | None = None
    """Path of the Claude Code CLI, if not on PATH; for the scripted backend, of its edits."""
    max_turns: Annotated[int, whole(1, 10_000)] | None = None
    """Most turns of one attempt; null = no limit."""
    timeout: Seconds = "30m"
    """Time limit of one attempt."""
    idle_timeout: Seconds = "10m"
    """Time limit of one attempt without any sign of activity."""
    permission_mode: Literal[
        "acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"
    ] = "acceptEdits"
    """Permission mode of the Claude Code CLI; acceptEdits confines edits to the workspace."""
    extra_args: tuple[FreeText, ...] = ()
    """Arguments added to the command line of an agent CLI, except the command backend."""
    isolation: Isolation = "none"
    """auto, overlay or none: whether attempts work in an overlay over the workspace."""
    writable: tuple[Text, ...] = ()
    """Folders outside the workspace that an isolated run may write."""

    @property
    def timeout_s(self) -> float:
        return seconds(self.timeout)

    @property
    def idle_timeout_s(self) -> float:
        return seconds(self.idle_timeout)


class ContextSettings(ConfigSection, frozen=True, kw_only=True):
    """Contents of the agent's prompt."""

    max_chars: Annotated[int, whole(1000, 1_000_000)] = 16_000
    """Size limit of a whole prompt."""
    max_chars_per_error: Annotated[int, whole(100, 1_000_000)] = 2_000
    """Size limit of one error's text, which is cut in the middle."""
    trace: Literal["auto", "off"] = "auto"
    """Run failing tests (pytest, unittest, go test, jest, vitest, mocha, node) again: once to rank
    code by what only they execute, if the gate took at most 20 seconds, and on parts of your change
    to find the hunk with which one began to fail, for at most a minute."""


class PromptSettings(ConfigSection, frozen=True, kw_only=True):
    """The project's own text in every prompt."""

    preamble: FreeText = ""
    """Text at the start of the prompt."""
    gates: Mapping[str, Text] = {}
    """Text if a gate failed, by kind or name: {lint: "Never disable a rule."}."""


class GuardSettings(ConfigSection, frozen=True, kw_only=True):
    """What an attempt may not do."""

    mode: GuardMode = "block"
    """What happens on a violation: block, warn or off."""
    protect: tuple[Glob, ...] = ()
    """Files that no attempt may change, in addition to the built-in ones."""
    allow: tuple[Glob, ...] = ()
    """Files that may be changed although they look like tests or configuration."""
    review: ReviewMode = "hold"
    """What happens to sources that branch on the tests' own values: hold them for a person to
    review, or only note them."""
    hook: HookMode = "tell"
    """What the Stop hook of Claude Code does with held changes: tell the user, or block the end of
    the turn."""


class HookSettings(ConfigSection, frozen=True, kw_only=True):
    """The end of an agent's turn: `atlas hook`."""

    when: HookTime = "turn"
    """When the gates run: at the end of every turn, or only before the agent's shell commits or
    pushes. The guard judges every turn."""
    older: OlderMode = "block"
    """What happens to failures without a problem that is new since the prompt, as far as results
    were known then: block the end of the turn, or only tell the user."""


class CascadeSettings(ConfigSection, frozen=True, kw_only=True):
    """Detection of a common cause of failures in a batch."""

    enabled: bool = True
    """Look for a common cause of failures."""
    threshold: Annotated[int, whole(1, 1000)] = 3
    """Number of failures that is a cascade, among the last `window_size` finished workspaces."""
    window_size: Annotated[int, whole(1, 1000)] = 5
    """Number of finished workspaces to look back at."""
    on_cascade: OnCascade = "pause_and_alert"
    """pause_and_alert: start no further workspace; alert: only report it."""


class BatchSettings(ConfigSection, frozen=True, kw_only=True):
    """Several workspaces at once."""

    jobs: Annotated[int, whole(1, 64)] = 2
    """Workspaces to run at once."""
    cascade_detection: CascadeSettings = CascadeSettings()
    """Stop when many fail for the same reason."""


class Settings(Struct, frozen=True, kw_only=True):
    """A whole configuration, checked."""

    gates: tuple[Gate, ...]
    """In the order of `Kind`, then as written."""
    jobs: int = 1
    """Gates that only read to run at once; 1 if `validation.parallel` is false."""
    auto_jobs: bool = False
    """Whether gates that mostly wait may run in addition to `jobs`."""
    setup: str | None = None
    """A command that makes a fresh clone ready for the gates."""
    retry: RetrySettings = RetrySettings()
    ai_retry_origin: str = "the defaults"
    """Where `retry.ai_retry_enabled` was set, for the refusal's message."""
    attempts_configured: int | None = None
    """Value of `retry.max_ai_retry_attempts`; None = not set."""
    agent: AgentSettings = AgentSettings()
    context: ContextSettings = ContextSettings()
    prompt: PromptSettings = PromptSettings()
    guard: GuardSettings = GuardSettings()
    hook: HookSettings = HookSettings()
    batch: BatchSettings = BatchSettings()
    budgets: tuple[tuple[str, float], ...] = ()
    """Limits of several runs together, in USD: day, month, repository_day, repository_month."""
    triage_baseline: str | None = None
    triage_place: Place = Place("the configuration")
    """Where `triage.baseline` was set."""
    parsers: tuple[tuple[str, str], ...] = ()
    """Name and regular expression of the user's own parsers."""
    sources: tuple[str, ...] = ()
    """Absolute paths of the files it was read from; the guard protects them."""
    warnings: tuple[str, ...] = ()
    """Warnings of `atlas config check`, each with its place."""


def attempts_allowed(gate: Gate, *, flag: int | None = None, configured: int | None = None) -> int:
    """Most attempts for this gate; 0 = none at all.

    Its own `max_retries`, else the flag, else the configured limit for all gates, else the default
    of its kind, else 3.
    """
    limits = (gate.max_retries, flag, configured, ATTEMPTS_BY_KIND.get(gate.kind))
    return next((limit for limit in limits if limit is not None), DEFAULT_ATTEMPTS)


def attempts_of_run(settings: Settings, *, flag: int | None = None) -> int:
    """Most attempts of a run: the highest limit among its required gates."""
    configured = settings.attempts_configured
    if (configured if flag is None else flag) == 0:
        return 0
    required = (gate for gate in settings.gates if gate.required)
    allowed = (attempts_allowed(gate, flag=flag, configured=configured) for gate in required)
    return max(allowed, default=0)
