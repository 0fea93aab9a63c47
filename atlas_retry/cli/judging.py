"""`atlas prompt` and `atlas guard`: what would be sent, and what would be refused."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.cli import options
from atlas_retry.errors import UsageError
from atlas_retry.model import Violation

CLEAN, VIOLATED = 0, 1


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("prompt")(prompt)
    app.command("guard")(guard)


def prompt(
    workspace: options.WorkspaceArgument = ".",
    *,
    start_from: options.From = None,
    max_chars: Annotated[
        int | None, typer.Option("--max-chars", min=200, help="Of the whole prompt.")
    ] = None,
) -> int:
    """Print the prompt that would be sent; spends nothing."""
    from atlas_retry.cli import output  # noqa: PLC0415 - start-up
    from atlas_retry.many import find  # noqa: PLC0415 - start-up
    from atlas_retry.preview import preview  # noqa: PLC0415 - start-up

    (folder,) = find([workspace], Path.cwd(), os.environ)
    recorded = output.recorded(start_from)
    text = preview(folder, os.environ, {}, recorded=recorded, max_chars=max_chars)
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return 0


def guard(
    path: options.PathArgument = Path(),
    *,
    base: Annotated[
        str, typer.Option("--base", metavar="REV_OR_DIR", help="What it was before the change.")
    ],
    start_from: options.From = None,
    outside: Annotated[
        list[str] | None,
        typer.Option("--outside", metavar="BEFORE:AFTER", help="Compare this too; repeatable."),
    ] = None,
    allow: options.Allow = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Run the original tests on the new sources.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Judge a change: 0 nothing to object to, 1 violations. Executes nothing without --replay."""
    from atlas_retry import judge  # noqa: PLC0415 - start-up
    from atlas_retry.cli import output  # noqa: PLC0415 - start-up
    from atlas_retry.judge.base import with_base_configuration  # noqa: PLC0415 - start-up
    from atlas_retry.reports.documents import encode, guard_document  # noqa: PLC0415 - start-up

    recorded = output.recorded(start_from)
    asked = judge.Asked(
        workspace=path.resolve(),
        base=base,
        gates=recorded.gates if recorded else (),
        failing=recorded.validation.failures if recorded else (),
        outside=tuple(_places(pair) for pair in outside or ()),
        allow=tuple(allow or ()),
        with_replay=replay,
    )
    violations = judge.judge_change(with_base_configuration(asked, os.environ), os.environ)
    if json:
        print(encode(guard_document(violations)))
    else:
        _tell(violations)
    return VIOLATED if violations else CLEAN


def _places(pair: str) -> tuple[Path, Path]:
    before, colon, after = pair.partition(":")
    if not colon:
        raise UsageError(f"--outside {pair} is not BEFORE:AFTER", remedy="--outside OLD:NEW")
    return Path(before), Path(after)


def _tell(violations: Sequence[Violation]) -> None:
    from atlas_retry.wording import printable  # noqa: PLC0415 - start-up

    for seen in violations:
        place = f"{seen.path}:{seen.line}" if seen.line else seen.path
        print(f"{printable(place)}: {seen.rule}: {seen.detail}")
    count = len(violations)
    print(f"{count} violation{'' if count == 1 else 's'}" if count else "nothing to object to")
