"""The command line's shape: which commands there are and how one is called."""

from collections.abc import Sequence
from typing import Annotated

import typer

from atlas_retry import __version__
from atlas_retry.cli import (
    checks,
    configuration,
    history,
    hooks,
    judging,
    learnings,
    resuming,
    runs,
    setup,
    workspaces,
)
from atlas_retry.cli.help import GroupedCommands, add_examples


def _leave(code: object, **_: object) -> None:
    raise typer.Exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    name="atlas",
    cls=GroupedCommands,
    help="Make a project's checks pass.",
    no_args_is_help=True,
    rich_markup_mode=None,  # start-up: rich would be imported for every --help
    pretty_exceptions_enable=False,
    result_callback=_leave,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - the shape of a typer callback
    if wanted:
        print(f"atlas {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which atlas.")
    ] = False,
) -> None:
    """Make a project's checks pass."""


for _commands in (
    checks,
    judging,
    runs,
    history,
    resuming,
    learnings,
    workspaces,
    hooks,
    setup,
    configuration,
):
    _commands.add_to(app)
add_examples(app)


def run_command(arguments: Sequence[str] | None) -> int:
    """Run one command line; its exit code. Typer itself tells usage errors, and exits with 2."""
    try:
        app(args=list(arguments) if arguments is not None else None, prog_name="atlas")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
