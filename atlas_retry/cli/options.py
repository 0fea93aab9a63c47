"""Options that several commands share, and shell completion of their values."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.errors import AtlasError

# --- completion: never fails, never prints ---------------------------------------------------


def _beginning(incomplete: str, values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value.startswith(incomplete)]


def _gates(incomplete: str) -> list[str]:
    from atlas_retry import config

    with suppress(AtlasError):
        gates = config.load(Path.cwd(), environ=os.environ, overrides={}).gates
        return _beginning(incomplete, [*(gate.kind for gate in gates), *(g.name for g in gates)])
    return []


def complete_agents(incomplete: str) -> list[str]:
    """The built-in backends."""
    from atlas_retry.agents import AGENTS

    return _beginning(incomplete, AGENTS)


def _formats(incomplete: str) -> list[str]:
    from atlas_retry.reports.formats import REPORTS

    return _beginning(incomplete, [f"{name}=" for name in REPORTS])


def complete_runs(incomplete: str) -> list[str]:
    """The runs of this workspace, newest first."""
    from atlas_retry.cli import here
    from atlas_retry.history import archive

    with suppress(AtlasError), here.journal() as connection:
        rows = archive.runs(connection, str(here.root()))
        return _beginning(incomplete, [row.id for row in rows])
    return []


def complete_workspaces(incomplete: str) -> list[str]:
    """Named workspaces and folders that start with this text."""
    from atlas_retry.cli import here
    from atlas_retry.workspace import worktrees

    names: list[str] = []
    with suppress(AtlasError):
        names += [one.name for one in worktrees.list_worktrees(here.workspace_at().common_dir)]
    folder = Path(incomplete).parent if incomplete else Path()
    with suppress(OSError):
        names += [str(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    return _beginning(incomplete, names)


# --- options ---------------------------------------------------------------------------------

PathArgument = Annotated[Path, typer.Argument(metavar="PATH", help="A directory in the workspace.")]
WorkspaceArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKSPACE", help="A name or a directory.", autocompletion=complete_workspaces
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="KIND_OR_NAME",
        help="Run only these gates; repeatable.",
        autocompletion=_gates,
    ),
]
Fix = Annotated[bool, typer.Option("--fix", help="Run the gates' own fixers first.")]
Check = Annotated[
    bool | None,
    typer.Option("--check/--no-check", help="A gate that changes files fails (default in CI)."),
]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failure.")]
FlakeReruns = Annotated[
    int, typer.Option("--flake-reruns", min=0, help="Re-run a failing test gate up to N times.")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Gates to run at once; by default one per processor."),
]
Reused = Annotated[bool, typer.Option("--reuse", help="Skip gates that passed on the same files.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Reports = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        metavar="FORMAT=PATH",
        help="Write a report; repeatable.",
        autocompletion=_formats,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the verdict.")]
Verbose = Annotated[
    int,
    typer.Option("--verbose", "-v", count=True, show_default=False, help="Show more; repeatable."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Print lines without control codes.")]
From = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Start from a recorded failure: a report, JUnit, SARIF or log; - is stdin.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="GLOB",
        help="Files that may change although they look like tests or settings; repeatable.",
    ),
]
AiFix = Annotated[
    bool, typer.Option("--ai-fix", help="Let the agent fix what fails; this may cost money.")
]

MaxAttempts = Annotated[
    int | None,
    typer.Option("--max-attempts", min=0, help="Attempts per run; by default as configured."),
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost-usd", min=0, help="US dollars per run; by default as configured."),
]
MaxMinutes = Annotated[
    float | None,
    typer.Option("--max-minutes", min=0, help="Minutes per run; by default as configured."),
]


def verbosity(quiet: bool, verbose: int) -> int:  # noqa: FBT001 - two flags become one number
    """-1 for `-q`, else the number of `-v` flags."""
    return -1 if quiet else verbose
