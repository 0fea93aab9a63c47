"""Options and arguments that several commands have, and shell completion of their values."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import typer

from atlas_retry.errors import AtlasError

# --- completion: never fails, never prints ---------------------------------------------------


def _beginning(incomplete: str, values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value.startswith(incomplete)]


def complete_gates(incomplete: str) -> list[str]:
    """Kinds and names of the gates here that start with this text."""
    from atlas_retry import config

    with suppress(AtlasError):
        gates = config.load(Path.cwd(), environ=os.environ, overrides={}).gates
        return _beginning(incomplete, [*(gate.kind for gate in gates), *(g.name for g in gates)])
    return []


def complete_agents(incomplete: str) -> list[str]:
    """Agents that start with this text."""
    from atlas_retry.agents import AGENTS

    return _beginning(incomplete, AGENTS)


def complete_formats(incomplete: str) -> list[str]:
    """Formats of reports that start with this text."""
    from atlas_retry.reports.formats import REPORTS

    return _beginning(incomplete, [f"{name}=" for name in REPORTS])


def complete_runs(incomplete: str) -> list[str]:
    """Ids of runs here that start with this text."""
    from atlas_retry.cli import places
    from atlas_retry.history import archive

    with suppress(AtlasError), places.journal() as connection:
        rows = archive.runs(connection, str(places.root()))
        return _beginning(incomplete, [row.id for row in rows])
    return []


def complete_workspaces(incomplete: str) -> list[str]:
    """Named workspaces and folders that start with this text."""
    from atlas_retry.cli import places
    from atlas_retry.workspace import worktrees

    names: list[str] = []
    with suppress(AtlasError):
        names += [one.name for one in worktrees.list_worktrees(places.workspace_at().common_dir)]
    folder = Path(incomplete).parent if incomplete else Path()
    with suppress(OSError):
        names += [str(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    return _beginning(incomplete, names)


# --- parameters ------------------------------------------------------------------------------

AiFix = Annotated[bool, typer.Option(help="Let the agent fix what fails; this may cost money.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB",
        help="Files that may change although they look like tests or settings; repeatable.",
    ),
]
Batch = Annotated[str, typer.Argument(metavar="ID", help="The batch.")]
Check = Annotated[
    bool | None,
    typer.Option("--check/--no-check", help="A gate that changes files fails (default in CI)."),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read this configuration instead.")
]
Fix = Annotated[bool, typer.Option(help="Run the gates' own fixers first.")]
Folder = Annotated[Path, typer.Argument(metavar="PATH", help="A directory in the workspace.")]
Host = Annotated[
    Literal["claude", "codex", "gemini", "copilot", "qwen", "cursor"],
    typer.Option("--for", help="The agent."),
]
Json = Annotated[bool, typer.Option(help="Print one JSON document on stdout.")]
MaxAttempts = Annotated[
    int | None,
    typer.Option(help="Stop a run after this many attempts (default: 3, from config).", min=0),
]
MaxCostUsd = Annotated[
    float | None,
    typer.Option(help="Stop a run at this cost in dollars (default: 5, from config).", min=0),
]
MaxMinutes = Annotated[
    float | None,
    typer.Option(help="Stop a run after this many minutes (default: 60, from config).", min=0),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, - and _.")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND_OR_NAME",
        help="Run only these gates; repeatable.",
        autocompletion=complete_gates,
    ),
]
Plain = Annotated[bool, typer.Option(help="Print lines without control codes.")]
Queue = Annotated[
    str, typer.Option(metavar="NAME", help="The task queue that workers and batches share.")
]
Quiet = Annotated[
    int,
    typer.Option(
        "--quiet", "-q", help="Print one line; twice: none.", count=True, show_default=False
    ),
]
RecordId = Annotated[str, typer.Argument(metavar="ID", help="For example lr-2026-01-31-001.")]
Report = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FORMAT=PATH", help="Write a report; repeatable.", autocompletion=complete_formats
    ),
]
NamedRun = Annotated[
    str,
    typer.Argument(metavar="RUN", help="An id or its start.", autocompletion=complete_runs),
]
Run = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="An id or its start; by default the newest here.",
        autocompletion=complete_runs,
    ),
]
Server = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Address of Temporal; by default $TEMPORAL_ADDRESS."),
]
StartFrom = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Start from a recorded failure: a report, JUnit, SARIF or log; - is stdin.",
    ),
]
Store = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="A folder or s3://BUCKET/PREFIX that all machines can access.",
        envvar="ATLAS_FLEET_STORE",
    ),
]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        help="Show commands as they start, and all problems.",
        count=True,
        show_default=False,
    ),
]
Workspace = Annotated[
    str,
    typer.Argument(
        metavar="WORKSPACE", help="A name or a directory.", autocompletion=complete_workspaces
    ),
]
