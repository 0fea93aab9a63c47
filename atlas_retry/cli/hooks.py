"""`atlas hook`: the hooks of Claude Code, Codex CLI and Cursor."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from atlas_retry.cli import options

For = Annotated[
    Literal["claude", "codex", "cursor"], typer.Option("--for", help="The agent whose hooks.")
]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    group = typer.Typer(help="Gates at the end of every turn of Claude Code, Codex CLI or Cursor.")
    group.command("install")(install)
    group.command("uninstall")(uninstall)
    group.command("allow")(allow)
    group.command("start")(start)
    group.command("stop")(stop)
    app.add_typer(group, name="hook", no_args_is_help=True)


def start() -> int:
    """Keep what is there as a session starts or a prompt is given, as JSON on stdin.

    Says nothing and always exits with 0: at a prompt, exit code 2 would swallow the prompt.
    """
    from atlas_retry.cli.hook import beginning

    beginning.start(sys.stdin.buffer.read(), os.environ)
    return 0


def stop(
    *,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds that the hook itself is given.")
    ] = 600.0,
) -> int:
    """Answer the end of a turn, given as JSON on stdin: go on, or the gates are green.

    Always exits with 0: exit code 2 would block the turn, and any other hides the answer.
    """
    import msgspec

    from atlas_retry.cli.hook import answering, hosts
    from atlas_retry.reports.documents import encode

    try:
        turn = hosts.read_turn(sys.stdin.buffer.read())
        answer = answering.stop(turn, os.environ, timeout_s=timeout)
        print(encode(hosts.document(answer, turn)), end="")
    except msgspec.MsgspecError as error:
        answer = answering.not_judged(f"the hook's input cannot be read: {error}")
        print(encode(answer), end="")
    if answer.system_message:
        print(answer.system_message, file=sys.stderr)
    return 0


def install(
    path: options.PathArgument = Path(),
    *,
    host: For = "claude",
    print_only: Annotated[
        bool, typer.Option("--print", help="Show the settings, write nothing.")
    ] = False,
) -> int:
    """Write the hooks into the agent's settings of the project, beside what is there."""
    from atlas_retry import config
    from atlas_retry.cli.hook import settings_file
    from atlas_retry.cli.hook.hosts import HOSTS

    root = config.root_of(path.resolve())
    if print_only:
        print(settings_file.planned(root, os.environ, HOSTS[host]), end="")
        return 0
    file, changed = settings_file.install(root, os.environ, HOSTS[host])
    print(f"{'the hooks are in' if changed else 'the hooks were there already, in'} {file}")
    return 0


def uninstall(path: options.PathArgument = Path(), *, host: For = "claude") -> int:
    """Take the hooks out of the agent's settings again."""
    from atlas_retry import config
    from atlas_retry.cli.hook import settings_file
    from atlas_retry.cli.hook.hosts import HOSTS

    file, changed = settings_file.uninstall(config.root_of(path.resolve()), HOSTS[host])
    print(f"{'the hooks are out of' if changed else 'no hooks of atlas were in'} {file}")
    return 0


def allow(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or folder, as it was named.")],
) -> int:
    """Allow a change that the guard objects to, in this session: typed by a person only."""
    from atlas_retry.cli.hook import allowing

    recorded = allowing.allow(path, Path.cwd(), os.environ, has_terminal=sys.stdin.isatty())
    print(f"{recorded} may change in the sessions of Claude Code that were seen here")
    return 0
