"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.cli import completing

PathArgument = Annotated[Path, typer.Argument(metavar="PATH", help="A directory in the workspace.")]
WorkspaceArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKSPACE", help="A name or a directory.", autocompletion=completing.workspaces
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="KIND_OR_NAME",
        help="Run only these gates; repeatable.",
        autocompletion=completing.gates,
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
        autocompletion=completing.formats,
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
        help="Start from a recorded failure: report, JUnit, SARIF or log; - is stdin.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="GLOB", help="Files that may be changed; repeatable."),
]
AiFix = Annotated[
    bool, typer.Option("--ai-fix", help="Let the agent fix what fails; this may cost money.")
]


def verbosity(quiet: bool, verbose: int) -> int:  # noqa: FBT001 - two flags become one number
    """-1 for `-q`, else how often `-v` was given."""
    return -1 if quiet else verbose
