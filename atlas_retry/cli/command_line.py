"""Runs a command line; importing the module of a command registers it."""

import os
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError

from atlas_retry.cli.app import app
from atlas_retry.errors import ExitCode, UsageError
from atlas_retry.text.commands import TypedIn

MODULES = {
    "accepting": "accept",
    "checks": "validate format lint test",
    "configuration": "config",
    "delivering": "deliver",
    "demo": "demo",
    "fleet": "fleet",
    "history": "log diff pick undo prune",
    "hook.allowing": "hook",
    "hook.beginning": "hook",
    "hook.ending": "hook",
    "hook.installing": "hook",
    "hook.resulting": "hook",
    "judging": "guard prompt",
    "learnings": "stats learnings",
    "mcp": "mcp",
    "proposing": "init",
    "proving": "prove",
    "receipts": "verify",
    "resuming": "resume",
    "runs": "retry",
    "workspaces": "workspace status",
}
"""Modules of this package, and the commands that each registers."""
_TYPES = {
    "is not in the range": "is not",
    "a valid float range": "a number",
    "a valid int range": "a whole number",
}
"""What Typer says of types, and what people call them."""


def register(words: Sequence[str] = ()) -> None:
    """Register the command that these words begin with, else all: together they take 0.1 s."""
    called = set(words[:1])
    mine = [name for name, commands in MODULES.items() if called & {*commands.split()}]
    if "_ATLAS_COMPLETE" in os.environ:
        mine = []
    for name in mine or MODULES:
        import_module(f"atlas_retry.cli.{name}")


def run_command(words: Sequence[str]) -> int:
    """Run a command line and return its exit code. Raises UsageError."""
    words = _in_folder(words)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    register(words)
    try:
        code = app(args=_with_values(words), prog_name="atlas", standalone_mode=False)
    except SystemExit as end:  # completion
        code = end.code
    except NoArgsIsHelpError as error:
        error.show()
        return ExitCode.USAGE
    except ClickException as error:
        raise _usage_error(error) from error
    except typer.Abort:
        return ExitCode.FAILED
    return code if isinstance(code, int) else 0


def _in_folder(words: Sequence[str]) -> Sequence[str]:
    """The words behind `-C DIR`, in that directory, as git and make know it. Raises UsageError.

    Each DIR, and a folder among the words behind it, is relative to the one before.
    """
    folder = ""
    while words[:1] == ["-C"]:
        if len(words) == 1:
            raise UsageError("-C needs a directory", remedy="atlas -C DIR COMMAND")
        try:
            os.chdir(words[1])
        except OSError as error:
            raise UsageError(f"-C {words[1]}: {error.strerror}") from error
        folder = os.path.join(folder, words[1])  # noqa: PTH118 - start-up
        words = words[2:]
    TypedIn.folder = folder
    return words


def _with_values(words: Sequence[str]) -> list[str]:
    """The words with the value that `--changed` has without REV, which Typer cannot express.

    The next word is its REV unless it is an option or a folder.
    """
    line = list(words)
    for at, word in enumerate(words):
        if word == "--changed":
            value = "".join(words[at + 1 : at + 2])
            has_none = not value or value.startswith("-") or Path(value).is_dir()
            line[at] += "=" if has_none else ""
    return line


def _usage_error(error: ClickException) -> UsageError:
    """A wrong command line in the form of every other error."""
    context, option = getattr(error, "ctx", None), getattr(error, "param", None)
    text = error.format_message().rstrip(".")
    if option is not None and ": " in text:  # Invalid value for '--jobs' / '-j': ...
        text = f"{max(option.opts, key=len)}: {text.partition(': ')[2]}"
    text = re.sub(r" \(Possible options: (.*)\)", r"; did you mean \1?", text)
    for typed, plain in _TYPES.items():
        text = text.replace(typed, plain)
    path = context.command_path if context else "atlas"
    return UsageError(text[:1].lower() + text[1:], remedy=f"{path} -h")
