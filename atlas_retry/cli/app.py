"""The Typer application that commands register with, and how `--help` lists them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer._click.types import FloatRange, IntRange
from typer.core import TyperGroup

from atlas_retry import __version__

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

HELP = "Run a project's checks; with --ai-fix, let an agent fix what fails, without cheating."
EXIT_CODES = (
    "Exit codes: 0 all passes, 1 something fails, 2 wrong usage or configuration, 3 could not run."
    " Help of a command: atlas COMMAND -h"
)
HEADINGS = {
    "Begin": ("demo", "init", "config"),
    "Check": ("validate", "format", "lint", "test", "guard", "prove", "verify", "prompt"),
    "Fix": ("retry", "resume", "hook", "mcp"),
    "Look back": (
        "log",
        "diff",
        "pick",
        "accept",
        "undo",
        "deliver",
        "stats",
        "learnings",
        "prune",
    ),
    "Several workspaces": ("workspace", "status", "fleet"),
}


class GroupedCommands(TyperGroup):
    """Lists every command under its heading, in whole sentences."""

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":
        """The command, with N as the metavar of its numeric options."""
        command = super().get_command(ctx, cmd_name)
        if command:
            _name_numbers(command)
        return command

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the lists."""
        if ctx.parent:  # a group of commands below this one has no headings
            rows = [
                (name, one.get_short_help_str(limit=200))
                for name, one in self.commands.items()
                if not one.hidden
            ]
            with formatter.section("Commands"):
                formatter.write_dl(rows)
            return
        known = self.list_commands(ctx)
        width = max(map(len, known))
        for heading, names in HEADINGS.items():
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(limit=200))
                for name in names
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)


def _name_numbers(command: "Command") -> None:
    for option in command.params:
        if option.default is False:  # its opposite is what happens without it
            option.secondary_opts = []
        if option.metavar is None and option.type.name.startswith(("int", "float")):
            option.metavar = "N"
        _describe_range(option.type)
        # Typer writes {RUN} for an argument, which no other help does
        if option.param_type_name == "argument" and option.required and option.metavar:
            option.make_metavar = _plain(option.metavar)  # type: ignore[method-assign]
    for inner in getattr(command, "commands", {}).values():
        _name_numbers(inner)


def _describe_range(kind: object) -> None:
    """Say `1 or more` where Typer writes x>=1."""
    if isinstance(kind, IntRange | FloatRange):
        words = f"{kind.min} or more" if kind.max is None else f"{kind.min} to {kind.max}"
        kind._describe_range = _plain(words)  # type: ignore[method-assign]  # noqa: SLF001


def _plain(metavar: str) -> "Callable[..., str]":
    return lambda *_, **__: metavar


def examples(*lines: str) -> str:
    """What a command's help shows below its options."""
    word = "Examples" if len(lines) > 1 else "Example"
    return "\n  ".join((f"\b\n{word}:", *lines))


def _version(wanted: bool) -> None:  # noqa: FBT001 - the shape of a typer callback
    if wanted:
        print(f"atlas {__version__}")
        raise typer.Exit


def _group(name: str, summary: str) -> typer.Typer:
    group = typer.Typer(cls=GroupedCommands, help=summary, no_args_is_help=True)
    app.add_typer(group, name=name)
    return group


app = typer.Typer(
    name="atlas",
    cls=GroupedCommands,
    help=HELP,
    epilog=EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode=None,  # rich would be imported for every --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
config_app = _group("config", "Show or check the configuration.")
hook_app = _group(
    "hook", "Run the gates at the end of every turn of Claude Code and five other agents."
)
learnings_app = _group("learnings", "Lessons from earlier runs.")
workspace_app = _group("workspace", "Named workspaces: git worktrees next to the repository.")
fleet_app = _group("fleet", "Run many repositories on many machines, with Temporal.")


@app.callback()
def _top(
    *,
    directory: Annotated[
        Path | None, typer.Option("-C", metavar="DIR", help="Work in this directory.")
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """See `HELP`."""
