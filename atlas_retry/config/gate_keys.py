"""The keys of a gate, in each of its spellings. Reads nothing; `sections` has all other keys."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from atlas_retry.config.fields import (
    Attempts,
    Backend,
    Folder,
    FreeText,
    Glob,
    Seconds,
    ShellLine,
    Text,
    Variable,
)

Accept = Literal["none", "baseline"]
"""Which problems a gate lets pass."""


class StrictSection(BaseModel):
    """Strict: a bool is no number, "3" is none either; unknown keys are errors."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        validate_default=True,
    )


class ReportKeys(StrictSection):
    """A machine-readable file that a gate writes beside its output."""

    format: Text
    """junit, sarif, eslint-json, ruff-json ..."""
    path: Folder
    """Of the file, relative to the gate's `cwd`."""


class Check(StrictSection):
    """What every gate may say."""

    name: Text | None = None
    """Shown, and taken by --only; derived from the command when left out."""
    required: bool = True
    """false: a failure is reported but fails nothing."""
    max_retries: Attempts | None = None
    """Attempts this gate may cost; by default what `retry` says, else test 3, review 2, build 1."""
    timeout: Seconds | None = None
    """Of one run, instead of `validation.timeout`."""


class CommandKeys(Check):
    """What every gate with a command may say."""

    fix: ShellLine | None = None
    """The tool's own fixer, run before any money is spent."""
    recheck: ShellLine | None = None
    """A narrower command for the runs after an attempt; a green counts only after `run`."""
    cwd: Folder = "."
    """Where it runs, relative to the folder this file speaks for."""
    env: dict[Variable, FreeText] = Field(default={})
    """Variables set for it."""
    pass_env: list[Variable] = Field(default=[])
    """Names of secrets that it may see; other secrets are taken out of its environment."""
    accept: Accept | None = None
    """baseline: green where it shows no problem that `triage.baseline` lacks; by default what
    `triage.accept` says."""
    inputs: list[Glob] = Field(default=[])
    """Files that its result depends on, as in .gitignore, from the repository's root; empty = all.
    Between attempts a gate that passed runs again only where one of them moved; the last green of a
    run is always of all gates."""
    writes: bool | None = None
    """It changes files, so nothing runs beside it; by default true for format and pre_commit."""
    keep_daemons: bool = False
    """Leave processes alive that outlive it (build servers)."""
    network: Literal["host", "none"] = "host"
    """none: it runs with a loopback of its own and nothing else; needs bubblewrap."""
    parser: Text | None = None
    """How to read its output, if atlas does not recognise the tool: a name of `parsers`, or a
    built-in one."""
    report: ReportKeys | None = None
    """A machine-readable file that it writes: {format: junit, path: out/junit.xml}."""


class CommandGate(CommandKeys):
    """A command, which must exit 0; or a mapping with these keys."""

    run: ShellLine
    """The command, a line for /bin/sh -c."""


class CustomGate(CommandGate):
    """A command of no known kind, as a mapping that says `run` and `max_retries`."""

    max_retries: Attempts
    """Attempts this gate may cost; required for a custom gate."""


class QualityGate(CommandKeys):
    """A mapping with these keys, beside those of a gate."""

    name: Text
    """lint, test ... make it a gate of that kind; any other a custom one."""
    command: ShellLine
    """The command, a line for /bin/sh -c."""


class ReviewGate(Check):
    """A mapping with these keys, beside required, max_retries and timeout."""

    name: Text
    """Shown, and taken by --only."""
    prompt: Text
    """What to judge."""
    agent: Backend | None = None
    """Which agent judges, instead of `agent.backend`."""
    paths: list[Glob] = Field(default=[])
    """Only these files of the diff; empty = all."""


def _spelled_out(value: object) -> object:
    if isinstance(value, dict | CommandGate):
        return value
    if isinstance(value, str):
        return {"run": value}
    raise ValueError("expected a command, as text or as a mapping with the key run")


Command = Annotated[
    CommandGate, BeforeValidator(_spelled_out, json_schema_input_type=str | CommandGate)
]


def _mapping_only(value: object) -> object:
    if isinstance(value, dict | CustomGate):
        return value
    raise ValueError("expected a mapping: a custom gate must say run and max_retries")


Custom = Annotated[CustomGate, BeforeValidator(_mapping_only, json_schema_input_type=CustomGate)]
