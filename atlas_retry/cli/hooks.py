"""`atlas hook`: the Stop hook of Claude Code."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.cli import options


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    group = typer.Typer(help="Gates at the end of every turn of Claude Code.")
    group.command("stop")(stop)
    group.command("install")(install)
    app.add_typer(group, name="hook", no_args_is_help=True)


def stop(
    *,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds that the hook itself is given.")
    ] = 600.0,
) -> int:
    """Answer the end of a turn, told as JSON on stdin: go on, or the gates are green.

    Always exits with 0: exit code 2 would block the turn, and any other hides the answer.
    """
    from atlas_retry import hook  # noqa: PLC0415 - start-up
    from atlas_retry.reports.documents import encode  # noqa: PLC0415 - start-up

    answer = hook.stop(sys.stdin.buffer.read(), os.environ, timeout_s=timeout)
    print(encode(answer), end="")
    if answer.system_message:
        print(answer.system_message, file=sys.stderr)
    return 0


def install(
    path: options.PathArgument = Path(),
    *,
    print_only: Annotated[
        bool, typer.Option("--print", help="Show the settings, write nothing.")
    ] = False,
) -> int:
    """Write the Stop hook into `.claude/settings.json`, beside what is there."""
    from atlas_retry import config, hook  # noqa: PLC0415 - start-up

    root = config.root_of(path.resolve())
    if print_only:
        print(hook.planned(root, os.environ), end="")
        return 0
    file, changed = hook.install(root, os.environ)
    print(f"{'the Stop hook is in' if changed else 'the Stop hook was there already, in'} {file}")
    return 0
