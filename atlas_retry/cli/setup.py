"""`atlas demo` and `atlas init`: the first commands that somebody types."""

import os
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.cli import options


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("demo")(demo)
    app.command("init")(init)


def demo(
    *,
    agent: Annotated[
        str, typer.Option("--agent", help="claude-code spends money; scripted does not.")
    ] = "scripted",
    plain: options.Plain = False,
) -> int:
    """Show the whole loop on a scratch project: no key, no network, a few seconds."""
    from atlas_retry.cli.demo import show
    from atlas_retry.reports.screen.console import screen

    return show(agent, os.environ, screen(os.environ, plain=plain))


def init(
    path: options.PathArgument = Path(),
    *,
    print_only: Annotated[
        bool, typer.Option("--print", help="Show the configuration, write nothing.")
    ] = False,
) -> int:
    """Look at the project and write `.atlas/config.yaml` with the gates it uses."""
    from atlas_retry.config.init import write_configuration

    return write_configuration(path.resolve(), os.environ, print_only=print_only)
