"""The keys of a whole configuration: its gates, and the sections of `settings`. Reads nothing.

The words under a key are its documentation, as in `settings`.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from atlas_retry.settings import (
    AgentSettings,
    Attempts,
    Backend,
    BatchSettings,
    ConfigSection,
    ContextSettings,
    FreeText,
    Glob,
    GuardSettings,
    PromptSettings,
    RetrySettings,
    Seconds,
    ShellLine,
    Text,
    amount,
    that,
)

MAX_JOBS = 256
PATTERN_GROUPS = frozenset(
    ("path", "line", "column", "end_line", "end_column", "rule", "level", "message", "test", "rest")
)
"""What `diagnostics.table.LineFormat` reads."""


def _pattern(value: str) -> bool:
    try:
        pattern = re.compile(value)
    except re.error as error:
        raise ValueError(f"expected a regular expression ({error})") from error
    return bool(pattern.groupindex) and PATTERN_GROUPS.issuperset(pattern.groupindex)


def _folder(value: str) -> bool:
    is_inside = not value.startswith(("/", "~")) and ".." not in value.split("/")
    return bool(value.strip()) and "\0" not in value and is_inside


def _variable(value: str) -> bool:
    return value.isidentifier() and value.isascii()


def _jobs(value: str | int) -> bool:
    return isinstance(value, str) or 1 <= value <= MAX_JOBS


Accept = Literal["none", "baseline"]
"""Which problems a gate lets pass."""
Folder = Annotated[str, that(_folder, "a path inside the project, relative and without ..")]
Variable = Annotated[str, that(_variable, "the name of an environment variable")]
Pattern = Annotated[str, that(_pattern, f"named groups, of {', '.join(sorted(PATTERN_GROUPS))}")]
Jobs = Annotated[int | Literal["auto"], that(_jobs, f"auto or a whole number from 1 to {MAX_JOBS}")]


# --- the gates -------------------------------------------------------------------------------


class ReportKeys(ConfigSection, frozen=True, kw_only=True):
    """A machine-readable file that a gate writes beside its output."""

    format: Text
    """junit, sarif, eslint-json, ruff-json ..."""
    path: Folder
    """Of the file, relative to the gate's `cwd`."""


class Check(ConfigSection, frozen=True, kw_only=True):
    """What every gate may say."""

    name: Text | None = None
    """Shown, and taken by --only; derived from the command when left out."""
    required: bool = True
    """false: a failure is reported but fails nothing."""
    max_retries: Attempts | None = None
    """Attempts this gate may cost; by default what `retry` says, else test 3, review 2, build 1."""
    timeout: Seconds | None = None
    """Of one run, instead of `validation.timeout`."""


class CommandKeys(Check, frozen=True, kw_only=True):
    """What every gate with a command may say."""

    fix: ShellLine | None = None
    """The tool's own fixer, run before any money is spent."""
    recheck: ShellLine | None = None
    """A narrower command for the runs after an attempt; a green counts only after `run`."""
    cwd: Folder = "."
    """Where it runs, relative to the folder this file speaks for."""
    env: Mapping[Variable, FreeText] = {}
    """Variables set for it."""
    pass_env: tuple[Variable, ...] = ()
    """Names of secrets that it may see; other secrets are taken out of its environment."""
    accept: Accept | None = None
    """baseline: green where it shows no problem that `triage.baseline` lacks; by default what
    `triage.accept` says."""
    inputs: tuple[Glob, ...] = ()
    """Files that its result depends on, as in .gitignore, from the repository's root; empty = all.
    Between attempts a gate that passed runs again only where one of them moved; the last green of a
    run is always of all gates."""
    writes: bool | None = None
    """It changes files, so it runs alone; by default true for format and pre_commit."""
    keep_daemons: bool = False
    """Leave processes alive that outlive it (build servers)."""
    network: Literal["host", "none"] = "host"
    """none: it runs with a loopback of its own and nothing else; needs bubblewrap."""
    parser: Text | None = None
    """How to read its output, if atlas does not recognise the tool: a name of `parsers`, or a
    built-in one."""
    report: ReportKeys | None = None
    """A machine-readable file that it writes: {format: junit, path: out/junit.xml}."""


class CommandGate(CommandKeys, frozen=True, kw_only=True):
    """A command, which must exit 0; or a mapping with these keys."""

    run: ShellLine
    """The command, a line for /bin/sh -c."""


class CustomGate(CommandGate, frozen=True, kw_only=True):
    """A command of no known kind, as a mapping that says `run` and `max_retries`."""

    max_retries: Attempts
    """Attempts this gate may cost; required for a custom gate."""


class QualityGate(CommandKeys, frozen=True, kw_only=True):
    """A mapping with these keys, in addition to those of a gate."""

    name: Text
    """lint, test ... make it a gate of that kind; any other a custom one."""
    command: ShellLine
    """The command, a line for /bin/sh -c."""


class ReviewGate(Check, frozen=True, kw_only=True):
    """A mapping with these keys, beside required, max_retries and timeout."""

    name: Text
    """Shown, and taken by --only."""
    prompt: Text
    """What to judge."""
    agent: Backend | None = None
    """Which agent judges, instead of `agent.backend`."""
    paths: tuple[Glob, ...] = ()
    """Only these files of the diff; empty = all."""


Command = ShellLine | CommandGate


class ValidationKeys(ConfigSection, frozen=True, kw_only=True):
    """The gates: commands that must exit 0, and judgements."""

    format: tuple[Command, ...] = ()
    """Formatters. They change files, so they run first, one at a time and in order."""
    lint: tuple[Command, ...] = ()
    """Linters and type checkers."""
    test: tuple[Command, ...] = ()
    """Tests. A run in which no test ran is not a success."""
    pre_commit: tuple[Command, ...] = ()
    """Hooks. They change files, so they run one at a time."""
    build: tuple[Command, ...] = ()
    """Builds; one attempt by default, because they are usually deterministic."""
    review: tuple[ReviewGate, ...] = ()
    """Judgements: an agent reads the diff and says pass, or what to change."""
    custom: tuple[CustomGate, ...] = ()
    """Anything else; each must say its `max_retries`."""
    timeout: Seconds = "5m"
    """Of one run of one command: 90 (seconds), 90s, 10m, 1h30m; at most 24h."""
    parallel: bool = True
    """Run lint, test, build and custom gates side by side."""
    jobs: Jobs = "auto"
    """Gates to run at once; auto = one per processor, not counting those that mostly wait."""


# --- the whole -------------------------------------------------------------------------------


class TriageKeys(ConfigSection, frozen=True, kw_only=True):
    """What to know about a failure before spending."""

    baseline: Text | None = None
    """A git revision: failures that are there as well are marked as not of this change."""
    accept: Accept = "none"
    """baseline: gates without an `accept` of their own let pass what is there at `baseline`."""


class Configuration(ConfigSection, frozen=True, kw_only=True):
    """A whole configuration."""

    version: Annotated[Literal[1], Meta(description="1")] = 1
    """Of this format."""
    validation: ValidationKeys = ValidationKeys()
    """The gates: commands that must exit 0, and judgements."""
    quality_gates: tuple[QualityGate, ...] = ()
    """Gates in another spelling: [{name: lint, command: ..., required: true, max_retries: 3}]."""
    retry: RetrySettings = RetrySettings()
    """How long to try."""
    agent: AgentSettings = AgentSettings()
    """The agent that fixes failures."""
    context: ContextSettings = ContextSettings()
    """Contents of the agent's prompt."""
    prompt: PromptSettings = PromptSettings()
    """The project's own text in every prompt."""
    guard: GuardSettings = GuardSettings()
    """What an attempt may not do."""
    batch: BatchSettings = BatchSettings()
    """Several workspaces at once."""
    triage: TriageKeys = TriageKeys()
    """What to know about a failure before spending."""
    budgets: Mapping[
        Literal["day", "month", "repository_day", "repository_month"],
        Annotated[float, amount(0, 1_000_000)],
    ] = {}
    """US dollars that all runs of a calendar day or month may cost together, everywhere or in one
    repository; only in ~/.config/atlas/config.yaml: {day: 10, month: 100, repository_day: 5}."""
    parsers: Mapping[str, Pattern] = {}
    """Readers for the output of your own tools, each a regular expression with named groups:
    {mytool: '^(?P<path>.+?):(?P<line>[0-9]+): (?P<message>.+)$'}."""


@cache
def keys(section: type[Struct] = Configuration) -> Mapping[tuple[str, ...], FieldInfo]:
    """Every key there is with its field, in order, positions in lists left out of the path."""
    return dict(_keys(section))


def _keys(section: type[Struct]) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for field in fields(section):
        yield (field.name,), field
        if inner := section_in(field.type):
            yield from (((field.name, *path), deeper) for path, deeper in _keys(inner))


def section_in(kind: object) -> type[ConfigSection] | None:
    """The section in an annotation such as `tuple[Step, ...]` or `Step | None`."""
    if isinstance(kind, type) and issubclass(kind, ConfigSection):
        return kind
    return next(filter(None, map(section_in, get_args(kind))), None)
