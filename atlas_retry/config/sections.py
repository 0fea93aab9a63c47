"""The keys of a configuration, their types, limits and defaults. Reads nothing.

The words under a key are its documentation: the example, the reference and the JSON Schema are
made from them.
"""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from atlas_retry.config.fields import (
    Attempts,
    Backend,
    FreeText,
    Glob,
    Jobs,
    Model,
    Pattern,
    Seconds,
    ShellLine,
    Text,
    Version,
    amount,
    whole,
)
from atlas_retry.config.gate_keys import (
    Accept,
    Command,
    Custom,
    QualityGate,
    ReviewGate,
    StrictSection,
)
from atlas_retry.model import Kind, Session
from atlas_retry.settings import (
    Ask,
    GuardMode,
    HookMode,
    Isolation,
    OnCascade,
    OnExhausted,
    ReviewMode,
)


class ValidationSection(StrictSection):
    """The gates: commands that must exit 0."""

    format: list[Command] = Field(default=[], examples=[["ruff format ."]])
    """Formatters. They change files, so they run first, one at a time and in order."""
    lint: list[Command] = Field(
        default=[],
        examples=[["ruff check .", {"name": "types", "run": "mypy src", "required": False}]],
    )
    """Linters and type checkers."""
    test: list[Command] = Field(
        default=[],
        examples=[[{"run": "pytest -q", "timeout": "10m", "recheck": "pytest -q --lf"}]],
    )
    """Tests. A run in which no test ran is no success."""
    pre_commit: list[Command] = Field(default=[], examples=[["pre-commit run --all-files"]])
    """Hooks. They change files, so they run one at a time."""
    build: list[Command] = Field(default=[])
    """Builds; one attempt by default, because they are usually deterministic."""
    review: list[ReviewGate] = Field(default=[])
    """Judgements: an agent reads the diff and says pass, or what to change."""
    custom: list[Custom] = Field(default=[])
    """Anything else; each must say its `max_retries`."""
    timeout: Seconds = Field(default="5m")  # type: ignore[assignment]
    """Of one run of one command: 90 (seconds), 90s, 10m, 1h30m; at most 24h."""
    parallel: bool = True
    """Run lint, test, build and custom gates side by side."""
    jobs: Jobs = "auto"
    """How many side by side; auto = one per processor, and beside them those that mostly wait."""


class StrategyStep(StrictSection):
    """How one attempt differs from others."""

    ask: Annotated[Ask, Field(strict=False)] = Ask.FIX
    """fix, or diagnose: the cause first, by another approach than those that failed."""
    room: Annotated[float, *amount(0.1, 10)] = 1
    """Times `context.max_chars`."""
    session: Annotated[Session, Field(strict=False)] | None = None
    """new or resume; null = as `agent.session` says."""
    model: Model | None = None
    """null = as `agent.models` says."""
    models: dict[Annotated[Kind, Field(strict=False)], Model] = Field(default={})
    """By kind of gate, where all that fail are of that kind: `{lint: haiku}`."""


class RetrySection(StrictSection):
    """How long to try."""

    ai_retry_enabled: bool = True
    """false: --ai-fix is refused."""
    max_ai_retry_attempts: Attempts | None = 3
    """Attempts of a run, and of each gate that does not say its own `max_retries`; 0 = no agent,
    null = no limit."""
    flake_reruns: Annotated[int, *whole(0, 10)] = 1
    """How often a failed test gate is run again, unchanged, before money is spent."""
    max_cost_usd: Annotated[float, *amount(0, 100_000)] | None = 5
    """Budget of a run in US dollars; null = no limit."""
    max_minutes: Annotated[float, *amount(0, 1440)] | None = 60
    """Budget of a run in minutes; null = no limit."""
    on_exhausted: Annotated[OnExhausted, Field(strict=False)] = OnExhausted.BEST
    """What stays when a run does not end green: the best attempt, the last one (keep), or what was
    there before (restore)."""
    strategy: Annotated[list[StrategyStep], Field(min_length=1)] | None = None
    """By attempt: what is asked (ask), room, session, model and models; the last one repeats; null
    = the third and later ones start afresh, with 1.5 times the room, and ask for a diagnosis."""
    on_failure: ShellLine | None = None
    """A command that gets the run's JSON on stdin when it did not end green."""


class Agent(StrictSection):
    """Who repairs."""

    backend: Backend = "claude-code"
    """claude-code, anthropic, codex, gemini, opencode, aider, mini-swe-agent, command, scripted, or
    package.module:factory."""
    models: Annotated[list[Model], Field(min_length=1)] = Field(
        default=["sonnet", "sonnet", "opus"]
    )
    """By attempt; the last one repeats. Other CLIs than Claude Code choose their own by default."""
    session: Annotated[list[Annotated[Session, Field(strict=False)]], Field(min_length=1)] = Field(
        default=[Session.NEW, Session.RESUME, Session.NEW]
    )
    """By attempt: a new conversation, or the last one resumed; the last word repeats."""
    effort: list[Literal["low", "medium", "high", "xhigh", "max"]] = Field(default=[])
    """By attempt, where the agent knows efforts; the last one repeats; empty = the agent's own."""
    command: ShellLine | None = None
    """Of the command backend: "my-agent --edit < {prompt_file}"."""
    path: Text | None = None
    """Of the Claude Code CLI, if it is not on PATH; of the scripted backend: its edits."""
    max_turns: Annotated[int, *whole(1, 10_000)] | None = None
    """Of one attempt; null = no limit."""
    timeout: Seconds = Field(default="30m")  # type: ignore[assignment]
    """Of one attempt."""
    idle_timeout: Seconds = Field(default="10m")  # type: ignore[assignment]
    """Of one attempt without a sign of life."""
    permission_mode: Literal[
        "acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"
    ] = "acceptEdits"
    """Of the Claude Code CLI; acceptEdits confines edits to the workspace."""
    extra_args: list[FreeText] = Field(default=[])
    """Added to the command line of an agent that is a CLI, but for the command backend."""
    isolation: Annotated[Isolation, Field(strict=False)] = Isolation.NONE
    """auto, overlay or none: whether attempts work in layers over the workspace."""
    writable: list[Text] = Field(default=[])
    """Folders outside the workspace that an isolated run may write."""


class Context(StrictSection):
    """What the agent's prompt holds."""

    max_chars: Annotated[int, *whole(1000, 1_000_000)] = 16_000
    """Of a whole prompt."""
    max_chars_per_error: Annotated[int, *whole(100, 1_000_000)] = 2_000
    """Of one error's text, cut in the middle."""
    trace: Literal["auto", "off"] = "auto"
    """Run failing tests (pytest, unittest, go test, jest, vitest, mocha, node) once more, aside, to
    rank code by what only they execute; auto = where the gate itself took at most 20 seconds."""


class PromptSection(StrictSection):
    """The project's own words in every prompt."""

    preamble: FreeText = ""
    """Said first."""
    gates: dict[str, Text] = Field(default={})
    """Said when a gate failed, by kind or name: {lint: "Never disable a rule."}."""


class Guard(StrictSection):
    """What an attempt may not do."""

    mode: Annotated[GuardMode, Field(strict=False)] = GuardMode.BLOCK
    """block, warn or off."""
    protect: list[Glob] = Field(default=[])
    """Files that no attempt may change, added to the built-in ones."""
    allow: list[Glob] = Field(default=[])
    """Files that may be changed although they look like tests or configuration."""
    review: Annotated[ReviewMode, Field(strict=False)] = ReviewMode.HOLD
    """What becomes of sources that branch on the tests' own values: hold them for a person to look
    at, or only note them."""
    hook: Annotated[HookMode, Field(strict=False)] = HookMode.TELL
    """What the Stop hook of Claude Code does with changes that are held: tell the user, or block
    the end of the turn."""


class CascadeSection(StrictSection):
    """When a batch has a common cause."""

    enabled: bool = True
    """Watch for it."""
    threshold: Annotated[int, *whole(1, 1000)] = 3
    """Failed workspaces ..."""
    window_size: Annotated[int, *whole(1, 1000)] = 5
    """... among the last this many that finished."""
    on_cascade: Annotated[OnCascade, Field(strict=False)] = OnCascade.PAUSE_AND_ALERT
    """pause_and_alert: start no further workspace; alert: only say so."""


class Batch(StrictSection):
    """Several workspaces at once."""

    jobs: Annotated[int, *whole(1, 64)] = 2
    """Workspaces side by side."""
    cascade_detection: CascadeSection = CascadeSection()
    """Stop when many fail for the same reason."""


class Triage(StrictSection):
    """What to know about a failure before spending."""

    baseline: Text | None = None
    """A git revision: failures that are there as well are marked as not of this change."""
    accept: Accept = "none"
    """baseline: gates without an `accept` of their own let pass what is there at `baseline`."""


class Configuration(StrictSection):
    """A whole configuration."""

    version: Version = 1
    """Of this format."""
    validation: ValidationSection = ValidationSection()
    """The gates: commands that must exit 0, and judgements."""
    quality_gates: list[QualityGate] = Field(default=[])
    """Gates in another spelling: [{name: lint, command: ..., required: true, max_retries: 3}]."""
    retry: RetrySection = RetrySection()
    """How long to try."""
    agent: Agent = Agent()
    """Who repairs."""
    context: Context = Context()
    """What the agent's prompt holds."""
    prompt: PromptSection = PromptSection()
    """The project's own words in every prompt."""
    guard: Guard = Guard()
    """What an attempt may not do."""
    batch: Batch = Batch()
    """Several workspaces at once."""
    triage: Triage = Triage()
    """What to know about a failure before spending."""
    budgets: dict[
        Literal["day", "month", "repository_day", "repository_month"],
        Annotated[float, *amount(0, 1_000_000)],
    ] = Field(default={})
    """US dollars that all runs of a calendar day or month may cost together, everywhere or in one
    repository; only in ~/.config/atlas/config.yaml: {day: 10, month: 100, repository_day: 5}."""
    parsers: dict[str, Pattern] = Field(default={})
    """Readers for the output of your own tools, each a regular expression with named groups:
    {mytool: '^(?P<path>.+?):(?P<line>[0-9]+): (?P<message>.+)$'}."""


def keys(model: type[BaseModel] = Configuration) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Every key there is with its field, in order, positions in lists left out of the path."""
    for name, field in model.model_fields.items():
        yield (name,), field
        if inner := inner_model(field.annotation):
            yield from (((name, *path), deeper) for path, deeper in keys(inner))


def inner_model(annotation: object) -> type[BaseModel] | None:
    """The model in an annotation such as `list[Model]` or `Model | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (inner_model(argument) for argument in get_args(annotation))
    return next(filter(None, inner), None)
