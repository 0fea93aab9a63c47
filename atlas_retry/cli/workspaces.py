"""`atlas workspace` and `atlas status`: named workspaces and their states."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.cli import options, places
from atlas_retry.cli.app import app, examples, workspace_app
from atlas_retry.cli.documents import NamedWorkspace, WorkspacesDocument, write
from atlas_retry.cli.output import print_commands
from atlas_retry.history import overview
from atlas_retry.reports.documents import encode
from atlas_retry.reports.screen.lines import printable
from atlas_retry.run.folders import left_to_do
from atlas_retry.workspace.worktrees import (
    add_worktree,
    list_worktrees,
    names_around,
    remove_worktree,
)


@workspace_app.command(epilog=examples("atlas workspace add api --from main"))
def add(
    name: options.Name,
    *,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="REV", help="Where its branch starts; by default HEAD."),
    ] = None,
) -> None:
    """Create a workspace on its own branch, `atlas/NAME`."""
    print(add_worktree(places.workspace_at(), name, start))
    print_commands("next", f"atlas retry {name} --ai-fix")


@workspace_app.command("list", epilog=examples("atlas workspace list"))
def list_all(*, json: options.Json = False) -> None:
    """List the named workspaces of this repository."""
    worktrees = list_worktrees(places.workspace_at().common_dir)
    if json:
        rows = (
            NamedWorkspace(name=w.name, branch=w.branch, root=str(w.root), is_there=w.is_there)
            for w in worktrees
        )
        write(WorkspacesDocument(workspaces=tuple(rows)))
        return
    width = max((len(one.name) for one in worktrees), default=0)
    for one in worktrees:
        gone = "" if one.is_there else "  (its folder is gone)"
        branch = one.branch or "no branch"
        print(f"{one.name:<{width}}  {branch}  {printable(str(one.root))}{gone}")
    if not worktrees:
        print_commands("no named workspaces; make one", "atlas workspace add NAME")


@workspace_app.command(epilog=examples("atlas workspace remove api"))
def remove(
    name: options.Name,
    *,
    force: Annotated[
        bool, typer.Option(help="Remove it even if its changes or commits exist nowhere else.")
    ] = False,
) -> None:
    """Remove a workspace, unless its work exists nowhere else."""
    remove_worktree(places.workspace_at(), name, force=force)


@app.command(epilog=examples("atlas status --json"))
def status(*, json: options.Json = False) -> None:
    """Show the state, last verdict, age and cost of each workspace."""
    waiting = [one.root for one in left_to_do(places.home())]
    names = names_around(Path.cwd(), environ=os.environ)
    with places.journal() as connection:
        entries = overview.entries(connection, places.home(), os.environ, names, waiting)
    if json:
        sys.stdout.write(encode(overview.StatusDocument(workspaces=entries)))
    else:
        sys.stdout.write(overview.table(entries, datetime.now(UTC)))
