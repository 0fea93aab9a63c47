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
        str, typer.Option("--agent", help="scripted costs nothing; claude-code spends money.")
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
    no_try: Annotated[
        bool, typer.Option("--no-try", help="Do not run each gate once to see how it ends.")
    ] = False,
    plain: options.Plain = False,
) -> int:
    """Look at the project, try its gates once, and write `.atlas/config.yaml`.

    Each gate runs on a copy of the project, at most two minutes; no file of the project changes.
    """
    from atlas_retry.cli.proposing import Wish, initialise

    return initialise(
        path.resolve(), os.environ, Wish(print_only=print_only, tries=not no_try, plain=plain)
    )
