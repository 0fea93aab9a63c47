"""`atlas workspace`: named workspaces beside the repository. Runs nothing in them."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.cli import options
from atlas_retry.text.commands import copyable

Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, - and _.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    group = typer.Typer(help="Named workspaces: git worktrees beside the repository.")
    group.command("add")(add)
    group.command("list")(list_)
    group.command("remove")(remove)
    app.add_typer(group, name="workspace", no_args_is_help=True)


def add(
    name: Name,
    *,
    start: Annotated[
        str | None, typer.Option("--from", metavar="REV", help="Where it starts; else HEAD.")
    ] = None,
) -> int:
    """Make a workspace on a branch of its own, `atlas/NAME`."""
    from atlas_retry import state_dir, workspace

    here = workspace.open_workspace(Path.cwd(), state_dir.locate(os.environ), environ=os.environ)
    made = workspace.add_worktree(here, name, start)
    print(made)
    print(*copyable("next", f"atlas retry {name} --ai-fix"), sep="\n", file=sys.stderr)
    return 0


def list_(*, as_json: options.Json = False) -> int:
    """List the named workspaces of this repository."""
    from atlas_retry import state_dir, workspace
    from atlas_retry.reports.screen.lines import printable

    here = workspace.open_workspace(Path.cwd(), state_dir.locate(os.environ), environ=os.environ)
    found = workspace.list_worktrees(here)
    if as_json:
        rows = ((one.name, one.branch, str(one.root), one.is_there) for one in found)
        names = ("name", "branch", "root", "is_there")
        entries = [dict(zip(names, row, strict=True)) for row in rows]
        print(json.dumps(entries, indent=2))
        return 0
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        gone = "" if one.is_there else "  (its folder is gone)"
        branch = one.branch or "no branch"
        print(f"{one.name:<{width}}  {branch}  {printable(str(one.root))}{gone}")
    if not found:
        print(
            *copyable("no named workspaces; make one", "atlas workspace add NAME"),
            sep="\n",
            file=sys.stderr,
        )
    return 0


def remove(
    name: Name,
    *,
    force: Annotated[
        bool,
        typer.Option("--force", help="Even with changes or commits that nothing else holds."),
    ] = False,
) -> int:
    """Remove a workspace; work that is nowhere else is kept unless --force says so."""
    from atlas_retry import state_dir, workspace

    here = workspace.open_workspace(Path.cwd(), state_dir.locate(os.environ), environ=os.environ)
    workspace.remove_worktree(here, name, force=force)
    return 0
