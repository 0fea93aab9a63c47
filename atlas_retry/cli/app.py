"""The commands of `atlas`, how each is called, and what `--help` shows."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from typer.core import TyperGroup

from atlas_retry import __version__
from atlas_retry.cli.calls import KEPT, function_of, keeping
from atlas_retry.cli.options import described, with_values
from atlas_retry.errors import UsageError

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.exceptions import ClickException


USAGE = 2
HELP = "Run a project's checks; with --ai-fix, let an agent fix what fails, without cheating."
EXIT_CODES = (
    "Exit codes: 0 all passes, 1 something fails, 2 wrong usage or configuration, 3 could not run."
    " Help of a command: atlas COMMAND -h"
)
_TYPES = {"a valid float range": "a number", "a valid int range": "a whole number"}
"""Names of types that Typer shows, and what people call them."""


class CommandRow(Struct, frozen=True):
    """A command."""

    function: str
    """Module in this package and function in it; imported when the command is called."""
    examples: str
    summary: str | None = None
    """Help text; by default the first line of the function's docstring."""


COMMANDS = {
    "demo": CommandRow("demo.demo", "atlas demo"),
    "init": CommandRow("proposing.init", "atlas init\natlas init --print --no-try"),
    "config show": CommandRow("configuration.show", "atlas config show"),
    "config check": CommandRow("configuration.check", "atlas config check"),
    "config take": CommandRow("configuration.take", "atlas config take origin/main"),
    "config schema": CommandRow(
        "configuration.schema", "atlas config schema --report > report.schema.json"
    ),
    "validate": CommandRow(
        "checks.validate",
        "atlas validate\natlas validate --only lint --fix\natlas validate --changed origin/main\n"
        "atlas validate --only test --report junit=junit.xml",
    ),
    "format": CommandRow(
        "checks.validate_kind",
        "atlas format --fix",
        "Run the format gates: validate --only format.",
    ),
    "lint": CommandRow(
        "checks.validate_kind",
        "atlas lint\natlas lint --fix",
        "Run the lint gates: validate --only lint.",
    ),
    "test": CommandRow(
        "checks.validate_kind", "atlas test --json", "Run the test gates: validate --only test."
    ),
    "guard": CommandRow(
        "judging.guard", "atlas guard . --base origin/main\natlas guard --base HEAD~1 --json"
    ),
    "prove": CommandRow("proving.prove_gates", "atlas prove\natlas prove --only test --faults 20"),
    "verify": CommandRow("receipts.verify", "atlas verify receipt.json --signers allowed_signers"),
    "prompt": CommandRow("judging.prompt", "atlas prompt\natlas prompt --from report.json"),
    "retry": CommandRow(
        "runs.retry",
        "atlas retry .\natlas retry . --ai-fix --max-cost-usd 1\n"
        "atlas retry . --ai-fix --since origin/main",
    ),
    "resume": CommandRow("resuming.resume", "atlas resume\natlas resume --ai-fix"),
    "hook install": CommandRow("hook.installing.install", "atlas hook install --for codex"),
    "hook uninstall": CommandRow("hook.installing.uninstall", "atlas hook uninstall"),
    "hook allow": CommandRow("hook.allowing.hook_allow", "atlas hook allow tests/test_api.py"),
    "hook result": CommandRow("hook.resulting.result", "atlas hook result --json"),
    "hook start": CommandRow("hook.beginning.hook_start", "atlas hook start < turn.json"),
    "hook stop": CommandRow("hook.ending.hook_stop", "atlas hook stop < turn.json"),
    "mcp": CommandRow("mcp.mcp", "atlas mcp"),
    "log": CommandRow("history.log", "atlas log\natlas log 20260131 --json"),
    "diff": CommandRow("history.diff", "atlas diff\natlas diff 20260131 2"),
    "pick": CommandRow("history.pick", "atlas pick 20260131 2\natlas pick 20260131 2 --held"),
    "accept": CommandRow(
        "accepting.accept", "atlas accept 20260131\natlas accept 20260131 src/api.py"
    ),
    "undo": CommandRow("history.undo", "atlas undo\natlas undo 20260131"),
    "deliver": CommandRow("delivering.deliver", "atlas deliver --patch fix.patch"),
    "stats": CommandRow("learnings.stats", "atlas stats --since 7d"),
    "learnings list": CommandRow("learnings.list_all", "atlas learnings list"),
    "learnings show": CommandRow("learnings.show", "atlas learnings show lr-2026-01-31-001"),
    "learnings note": CommandRow(
        "learnings.note", "atlas learnings note lr-2026-01-31-001 'The clock is faked.'"
    ),
    "learnings forget": CommandRow("learnings.forget", "atlas learnings forget lr-2026-01-31-001"),
    "prune": CommandRow("history.prune", "atlas prune --days 7 --dry-run\natlas prune --keep 10"),
    "workspace add": CommandRow("workspaces.add", "atlas workspace add api --from main"),
    "workspace list": CommandRow("workspaces.list_all", "atlas workspace list"),
    "workspace remove": CommandRow("workspaces.remove", "atlas workspace remove api"),
    "status": CommandRow("workspaces.status", "atlas status --json"),
    "fleet worker": CommandRow(
        "fleet.worker", "atlas fleet worker --queue lint --slots 4 --store s3://fleet/atlas"
    ),
    "fleet start": CommandRow(
        "fleet.start", "atlas fleet start manifest.yaml --id ruff-0.18 --store s3://fleet/atlas"
    ),
    "fleet status": CommandRow("fleet.status", "atlas fleet status ruff-0.18"),
    "fleet pause": CommandRow(
        "fleet.pause", "atlas fleet pause ruff-0.18 --why 'the registry is down'"
    ),
    "fleet resume": CommandRow("fleet.resume", "atlas fleet resume ruff-0.18"),
    "fleet stop": CommandRow("fleet.stop", "atlas fleet stop ruff-0.18"),
    "fleet report": CommandRow(
        "fleet.report",
        "atlas fleet report ruff-0.18 --store s3://fleet/atlas --html fleet.html",
    ),
}
HIDDEN = ("hook start", "hook stop")
"""Commands that only an agent's hooks call."""
GROUPS = {
    "config": "Show or check the configuration.",
    "hook": "Run the gates at the end of every turn of Claude Code, Codex CLI or Cursor.",
    "learnings": "Lessons from earlier runs.",
    "workspace": "Named workspaces: git worktrees next to the repository.",
    "fleet": "Run many repositories on many machines, with Temporal.",
}
"""Commands with subcommands, and their help."""
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
        known = self.list_commands(ctx)
        width = max(map(len, known))
        for heading, names in HEADINGS.items():
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(limit=200))
                for name in names
                if name in known
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)


def _name_numbers(command: "Command") -> None:
    for option in command.params:
        if option.metavar is None and option.type.name.startswith(("int", "float")):
            option.metavar = "N"
        # Typer writes {RUN} for an argument, which no other help does
        if option.param_type_name == "argument" and option.required and option.metavar:
            option.make_metavar = _plain(option.metavar)  # type: ignore[method-assign]
    for inner in getattr(command, "commands", {}).values():
        _name_numbers(inner)


def _plain(metavar: str) -> "Callable[..., str]":
    return lambda *_, **__: metavar


def _leave(code: object, **_: object) -> None:
    raise typer.Exit(code if isinstance(code, int) else 0)


def _version(wanted: bool) -> None:  # noqa: FBT001 - the shape of a typer callback
    if wanted:
        print(f"atlas {__version__}")
        raise typer.Exit


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
    """Run a project's checks; with --ai-fix, let an agent fix what fails, without cheating."""


def application(names: Iterable[str] = COMMANDS, words: Sequence[str] = ()) -> typer.Typer:
    """The Typer application with these commands, to be called with these words."""
    app = typer.Typer(
        name="atlas",
        cls=GroupedCommands,
        help=HELP,
        epilog=EXIT_CODES,
        no_args_is_help=True,
        rich_markup_mode=None,  # start-up: rich would be imported for every --help
        pretty_exceptions_enable=False,
        result_callback=_leave,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    groups = {"": app}
    for name in names:
        above, _, own = name.rpartition(" ")
        above, own = (name, "") if name in GROUPS else (above, own)
        if above not in groups:
            groups[above] = _group(above)
            app.add_typer(groups[above], name=above)
        if own:
            row = COMMANDS[name]
            command = groups[above].command(
                own, help=row.summary, epilog=_epilog(row.examples), hidden=name in HIDDEN
            )
            function = described(function_of(row.function), name)
            is_kept = row.function in KEPT
            command(keeping(function, row.function, name, words) if is_kept else function)
    return app


def _group(name: str) -> typer.Typer:
    is_listed = name == "learnings"
    group = typer.Typer(
        help=GROUPS[name], no_args_is_help=not is_listed, invoke_without_command=is_listed
    )
    group.callback()(function_of("learnings.list_by_default") if is_listed else _nothing)
    return group


def _nothing() -> None:
    """Callback of a group that does nothing itself."""


def _epilog(examples: str) -> str:
    word = "Examples" if "\n" in examples else "Example"
    return f"\b\n{word}:\n  " + examples.replace("\n", "\n  ")


def run_command(words: Sequence[str]) -> int:
    """Run a command line and return its exit code. Raises UsageError."""
    from typer._click.exceptions import ClickException, NoArgsIsHelpError

    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    called = [name for name in COMMANDS if words[:1] == name.split()[:1]]
    if not called and "_ATLAS_COMPLETE" not in os.environ:  # `atlas --help` lists no subcommands
        called = [*GROUPS, *(name for name in COMMANDS if " " not in name)]
    app = application(called or COMMANDS, words)
    try:
        code = app(args=with_values(words), prog_name="atlas", standalone_mode=False)
    except SystemExit as end:  # completion
        code = end.code
    except NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except ClickException as error:
        raise _usage_error(error) from error
    except typer.Abort:
        return 1
    return code if isinstance(code, int) else 0


def _usage_error(error: "ClickException") -> UsageError:
    """A wrong command line in the form of every other error."""
    context, option = getattr(error, "ctx", None), getattr(error, "param", None)
    text = error.format_message().rstrip(".")
    if option is not None and ": " in text:  # Invalid value for '--jobs' / '-j': ...
        text = f"{max(option.opts, key=len)}: {text.partition(': ')[2]}"
    for typed, plain in _TYPES.items():
        text = text.replace(typed, plain)
    path = context.command_path if context else "atlas"
    return UsageError(text[:1].lower() + text[1:], remedy=f"{path} -h")
