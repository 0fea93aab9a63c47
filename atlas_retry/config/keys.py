"""The keys of the configuration: gates, and the sections of `settings`. Reads nothing.

The docstring of a key is its documentation, as in `settings`.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from atlas_retry.patterns import words
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
    HookSettings,
    PromptSettings,
    RetrySettings,
    Seconds,
    ShellLine,
    Text,
    amount,
    that,
)

MAX_JOBS = 256
PATTERN_GROUPS = words("path line column end_line end_column rule level message test rest")
"""Named groups that `diagnostics.table.LineFormat` reads."""


def _pattern(value: str) -> bool:
    try:
        pattern = re.compile(value)
    except re.error as error:
        raise ValueError(f"expected a regular expression ({error})") from error
    if not pattern.groupindex or not PATTERN_GROUPS.issuperset(pattern.groupindex):
        raise ValueError(f"expected named groups from {', '.join(sorted(PATTERN_GROUPS))}")
    return True


def _folder(value: str) -> bool:
    is_inside = not value.startswith(("/", "~")) and ".." not in value.split("/")
    return bool(value.strip()) and "\0" not in value and is_inside


Accept = Literal["none", "baseline"]
"""Which problems a gate tolerates."""
When = Literal["always", "ci"]
"""Where a gate runs."""
Folder = Annotated[str, that(_folder, "a path inside the project, relative and without ..")]
Variable = Annotated[
    str,
    that(
        lambda name: name.isidentifier() and name.isascii(), "the name of an environment variable"
    ),
]
Pattern = Annotated[str, that(_pattern)]
Extends = Annotated[str | tuple[str, ...], Meta(description="a path or a list of paths")]
Jobs = Annotated[
    int | Literal["auto"],
    that(
        lambda jobs: jobs == "auto" or 1 <= jobs <= MAX_JOBS,
        f"auto or a whole number from 1 to {MAX_JOBS}",
    ),
]


# --- the gates -------------------------------------------------------------------------------


class ReportKeys(ConfigSection, frozen=True, kw_only=True):
    """A machine-readable file that a gate writes in addition to its output."""

    format: Text
    """junit, nunit, trx, xunit, checkstyle, pmd, sarif, rdjson, gitlab-codequality, eslint-json,
    golangci-json, mypy-json, pyright-json or ruff-json."""
    path: Folder
    """Path of the file, relative to the gate's `cwd`."""


class Check(ConfigSection, frozen=True, kw_only=True):
    """Keys of every gate."""

    name: Text | None = None
    """Name on screen and for --only, of no other gate; by default derived from the command."""
    required: bool = True
    """false: a failure is reported, but the validation can still pass."""
    max_retries: Attempts | None = None
    """How often the agent may try to fix this gate; by default `retry.max_ai_retry_attempts`,
    without it test 3, review 2, build 1."""
    timeout: Seconds | None = None
    """Time limit for one run, instead of `validation.timeout`."""


class CommandKeys(Check, frozen=True, kw_only=True):
    """Keys of every gate with a command."""

    fix: ShellLine | None = None
    """Command of the tool's own fixer, run before any money is spent."""
    recheck: ShellLine | None = None
    """Narrower command to run after an attempt; the gate passes only once `run` does."""
    cwd: Folder = "."
    """Folder to run in, relative to the folder that this configuration applies to."""
    env: Mapping[Variable, FreeText] = {}
    """Environment variables to set."""
    pass_env: tuple[Variable, ...] = ()
    """Environment variables with secrets to pass; other secrets are removed."""
    accept: Accept | None = None
    """baseline: passes if it reports no problem that is new since `triage.baseline`; by default
    `triage.accept`."""
    inputs: tuple[Glob, ...] = ()
    """Files that the result depends on, as in .gitignore, from the repository's root; empty = all.
    Between attempts, a gate that passed runs again only if one of them changed; a run passes
    only after all gates ran."""
    files: tuple[Glob, ...] = ()
    """Files that `{files}` in `run`, `fix` and `recheck` stands for, like `inputs`; by default
    `inputs`. All of them, or with `validate --changed` and `--staged` those that changed."""
    after: tuple[Text, ...] = ()
    """Names of gates whose output it reads: it runs once they have ended, whatever their result."""
    when: When = "always"
    """ci: it runs only where the variable `CI` is set, and if --only names it."""
    writes: bool | None = None
    """true: it changes files, so it runs alone; by default true for format and pre_commit."""
    exit_code: Literal["check", "trust"] = "check"
    """trust: exit code 0 passes, even if the summary or the report of a test runner counts
    failures."""
    keep_daemons: bool = False
    """true: do not stop processes that outlive it (build servers)."""
    network: Literal["host", "none"] = "host"
    """none: only a private loopback interface; needs bubblewrap."""
    parser: Text | None = None
    """Parser of its output, if atlas does not recognise the tool: a key of `parsers`, or a
    built-in one."""
    report: ReportKeys | None = None
    """Machine-readable file that it writes: {format: junit, path: out/junit.xml}. The formats:
    junit, nunit, trx, xunit, checkstyle, pmd, sarif, rdjson, gitlab-codequality, eslint-json,
    golangci-json, mypy-json, pyright-json, ruff-json."""


class CommandGate(CommandKeys, frozen=True, kw_only=True):
    """A command that must exit with 0, or a mapping with these keys."""

    run: ShellLine
    """The command, a line for /bin/sh -c."""


class CustomGate(CommandGate, frozen=True, kw_only=True):
    """A mapping with at least `run` and `max_retries`, for a gate of another kind."""

    max_retries: Attempts
    """Attempts to fix this gate; required for a custom gate."""


class QualityGate(CommandKeys, frozen=True, kw_only=True):
    """A mapping with these keys, in addition to those of a gate."""

    name: Text
    """lint, test ... make it a gate of that kind; any other name a custom gate."""
    command: ShellLine
    """The command, a line for /bin/sh -c."""


class ReviewGate(Check, frozen=True, kw_only=True):
    """A mapping with these keys, and required, max_retries and timeout."""

    name: Text
    """Name on screen and for --only."""
    prompt: Text
    """What the agent judges."""
    agent: Backend | None = None
    """Agent that judges, instead of `agent.backend`."""
    paths: tuple[Glob, ...] = ()
    """Files of the diff to judge; empty = all."""


Command = ShellLine | CommandGate


class ValidationKeys(ConfigSection, frozen=True, kw_only=True):
    """The gates: commands that must exit with 0, and reviews."""

    format: tuple[Command, ...] = ()
    """Formatters. They change files, so they run first, one at a time and in order."""
    lint: tuple[Command, ...] = ()
    """Linters and type checkers."""
    test: tuple[Command, ...] = ()
    """Tests. A run in which no test ran is not a success."""
    pre_commit: tuple[Command, ...] = ()
    """Pre-commit hooks. They change files, so they run one at a time."""
    build: tuple[Command, ...] = ()
    """Builds; by default only one attempt, because they are usually deterministic."""
    review: tuple[ReviewGate, ...] = ()
    """Reviews: an agent reads the diff, and passes it or says what to change."""
    custom: tuple[CustomGate, ...] = ()
    """Other commands; each needs `max_retries`."""
    timeout: Seconds = "5m"
    """Time limit for one run of one command: 90 (seconds), 90s, 10m, 1h30m; at most 24h."""
    parallel: bool = True
    """Run builds in parallel, and then lint, test and custom gates."""
    jobs: Jobs = "auto"
    """Gates to run at once; auto = one per processor, plus those that mostly wait."""
    setup: ShellLine | None = None
    """A command that `--as-committed` runs before the gates, such as npm ci."""


# --- the whole -------------------------------------------------------------------------------


class TriageKeys(ConfigSection, frozen=True, kw_only=True):
    """How to treat failures that are older than the change."""

    baseline: Text | None = None
    """A git revision; failures that exist there too are marked as older than this change."""
    accept: Accept = "none"
    """baseline: gates without their own `accept` tolerate the problems of `baseline`."""


class Configuration(ConfigSection, frozen=True, kw_only=True):
    """A whole configuration."""

    version: Annotated[int, Meta(ge=1, le=1, description="1")] = 1
    """Version of this format."""
    extends: Extends = ()
    """Other files, whose keys are below the file's own; paths are relative to it, and of a list the
    later ones override the earlier ones. A file may extend one outside the repository."""
    validation: ValidationKeys = ValidationKeys()
    """The gates: commands that must exit with 0, and reviews."""
    quality_gates: tuple[QualityGate, ...] = ()
    """Gates in another form: [{name: lint, command: ..., required: true, max_retries: 3}]."""
    retry: RetrySettings = RetrySettings()
    """Limits of a run."""
    agent: AgentSettings = AgentSettings()
    """The agent that fixes failures."""
    context: ContextSettings = ContextSettings()
    """Contents of the agent's prompt."""
    prompt: PromptSettings = PromptSettings()
    """The project's own text in every prompt."""
    guard: GuardSettings = GuardSettings()
    """What an attempt must not change."""
    hook: HookSettings = HookSettings()
    """The end of an agent's turn."""
    batch: BatchSettings = BatchSettings()
    """Runs of several workspaces."""
    triage: TriageKeys = TriageKeys()
    """How to treat failures that are older than the change."""
    budgets: Mapping[
        Literal["day", "month", "repository_day", "repository_month"],
        Annotated[float, amount(0, 1_000_000)],
    ] = {}
    """Cost limits in US dollars for all runs of a calendar day or month, in total or for each
    repository; only in ~/.config/atlas/config.yaml: {day: 10, month: 100, repository_day: 5}."""
    parsers: Mapping[str, Pattern] = {}
    """Parsers for the output of your own tools, each a regular expression with named groups:
    {mytool: '^(?P<path>.+?):(?P<line>[0-9]+): (?P<message>.+)$'}."""


@cache
def keys(section: type[Struct] = Configuration) -> Mapping[tuple[str, ...], FieldInfo]:
    """Every key with its field, in order; paths have no positions in lists."""
    return dict(_keys(section))


def _keys(section: type[Struct]) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for field in fields(section):
        yield (field.name,), field
        if inner := section_in(field.type):
            yield from (((field.name, *path), deeper) for path, deeper in _keys(inner))


def section_in(kind: object) -> type[ConfigSection] | None:
    """The section class in an annotation like `tuple[Step, ...]` or `Step | None`."""
    if isinstance(kind, type) and issubclass(kind, ConfigSection):
        return kind
    return next(filter(None, map(section_in, get_args(kind))), None)
