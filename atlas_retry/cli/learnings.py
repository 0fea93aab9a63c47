"""`atlas learnings` and `atlas stats`: what runs have taught, and how they have gone."""

import os
import sys
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from atlas_retry.cli import options

Id = Annotated[str, typer.Argument(metavar="ID", help="As lr-2026-01-31-001.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    group = typer.Typer(help="What runs have taught.", invoke_without_command=True)
    group.callback()(_listed)
    group.command("list")(list_all)
    group.command("show")(show)
    group.command("note")(note)
    group.command("forget")(forget)
    app.add_typer(group, name="learnings", rich_help_panel=None)
    app.command("stats")(stats)


def _listed(context: typer.Context) -> int:
    """List the records, or do something with one."""
    return list_all() if context.invoked_subcommand is None else 0


def list_all(*, json: options.Json = False) -> int:
    """List what runs have taught, the newest first."""
    from atlas_retry import history, state_dir
    from atlas_retry.history import learning
    from atlas_retry.reports.documents import encode
    from atlas_retry.reports.screen.lines import harmless

    with history.reading(state_dir.locate(os.environ)) as connection:
        found = learning.every(connection)
    sys.stdout.write(encode(found) if json else harmless(learning.list_of(found)))
    return 0


def show(name: Id, *, json: options.Json = False) -> int:
    """Show one record."""
    from atlas_retry import history, state_dir
    from atlas_retry.history import learning
    from atlas_retry.reports.documents import encode
    from atlas_retry.reports.screen.lines import harmless

    with history.reading(state_dir.locate(os.environ)) as connection:
        found = learning.one(connection, name)
    sys.stdout.write(encode(found) if json else harmless(learning.page_of(found)))
    return 0


def note(name: Id, text: Annotated[str, typer.Argument(help="The note, in your words.")]) -> int:
    """Annotate a record: later prompts say your words instead of its own."""
    from atlas_retry import history, state_dir
    from atlas_retry.history import learning

    with history.opened(state_dir.locate(os.environ)) as connection:
        learning.note(connection, name, text)
    return 0


def forget(name: Id) -> int:
    """Forget a record."""
    from atlas_retry import history, state_dir
    from atlas_retry.history import learning

    with history.opened(state_dir.locate(os.environ)) as connection:
        learning.forget(connection, name)
    return 0


def stats(
    *,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="7d, 12h, 2w or a date.")
    ] = None,
    json: options.Json = False,
    export: Annotated[
        Literal["csv", "json"] | None,
        typer.Option("--export", help="Every run as one row, on stdout."),
    ] = None,
) -> int:
    """Say what is fixed how often, at what cost, and which gates are slow or flaky."""
    from atlas_retry import history, state_dir
    from atlas_retry.history import statistics
    from atlas_retry.reports.documents import encode

    begin = statistics.moment(since, datetime.now(UTC))
    with history.reading(state_dir.locate(os.environ)) as connection:
        if export:
            rows = statistics.exported(connection, begin)
            sys.stdout.write(statistics.as_csv(rows) if export == "csv" else encode(rows))
            return 0
        found = statistics.statistics(connection, begin)
    if json:
        sys.stdout.write(encode(found))
    else:
        statistics.show(found, sys.stdout)
    return 0
