"""The command line's shape: which commands there are and how one is called."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from atlas_retry import __version__
from atlas_retry.cli.help import GroupedCommands, add_examples


def _leave(code: object, **_: object) -> None:
    raise typer.Exit(code if isinstance(code, int) else 0)


MODULES = (
    "checks",
    "judging",
    "runs",
    "history",
    "delivering",
    "receipts",
    "resuming",
    "learnings",
    "workspaces",
    "fleet",
    "hooks",
    "setup",
    "configuration",
)
"""Of this package, in the order of `--help`; each adds its commands."""
CHECKS = frozenset({"validate", "format", "lint", "test"})
"""What is called most is built alone: start-up."""


def _version(wanted: bool) -> None:  # noqa: FBT001 - the shape of a typer callback
    if wanted:
        print(f"atlas {__version__}")
        raise typer.Exit


def _top(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Make a project's checks pass."""


def application(modules: Sequence[str] = MODULES) -> typer.Typer:
    """The command line with the commands of these modules."""
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
    app.callback()(_top)
    for name in modules:
        import_module(f"atlas_retry.cli.{name}").add_to(app)
    add_examples(app)
    return app


def run_command(arguments: Sequence[str] | None) -> int:
    """Run one command line; its exit code. Typer itself reports usage errors, and exits with 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    app = application(("checks",) if words[:1] and words[0] in CHECKS else MODULES)
    try:
        app(args=words, prog_name="atlas")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
