"""`atlas prompt` and `atlas guard`: what would be sent, and what would be refused."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.cli import options

CLEAN, VIOLATED = 0, 1


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("prompt")(prompt)


def prompt(
    workspace: options.PathArgument = Path(),
    *,
    start_from: options.From = None,
    max_chars: Annotated[int | None, typer.Option("--max-chars", min=200)] = None,
) -> int:
    """Print the prompt that would be sent; spends nothing."""
    from atlas_retry.cli import output  # noqa: PLC0415 - start-up
    from atlas_retry.preview import preview  # noqa: PLC0415 - start-up

    recorded = output.recorded(start_from)
    text = preview(workspace.resolve(), os.environ, recorded=recorded, max_chars=max_chars)
    sys.stdout.write(text)
    return 0
