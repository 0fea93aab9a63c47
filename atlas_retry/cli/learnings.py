"""`atlas learnings` and `atlas stats`: lessons and statistics of earlier runs."""

import sys
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from atlas_retry.cli import here, options
from atlas_retry.history import database, learning
from atlas_retry.reports.documents import encode
from atlas_retry.reports.screen.lines import harmless

Id = Annotated[str, typer.Argument(metavar="ID", help="For example lr-2026-01-31-001.")]


def list_by_default(context: typer.Context) -> int:
    """List the learning records, or show, annotate or forget one."""
    return list_all() if context.invoked_subcommand is None else 0


def list_all(*, json: options.Json = False) -> int:
    """List the learning records, newest first."""
    with here.journal() as connection:
        records = learning.every(connection)
    sys.stdout.write(encode(records) if json else harmless(learning.list_of(records)))
    return 0


def show(name: Id, *, json: options.Json = False) -> int:
    """Show one record."""
    with here.journal() as connection:
        record = learning.one(connection, name)
    sys.stdout.write(encode(record) if json else harmless(learning.page_of(record)))
    return 0


def note(name: Id, text: Annotated[str, typer.Argument(help="The note, in your words.")]) -> int:
    """Annotate a record: later prompts use your words instead of its own."""
    with database.opened(here.home()) as connection:
        learning.note(connection, name, text)
    return 0


def forget(name: Id) -> int:
    """Forget a record."""
    with database.opened(here.home()) as connection:
        learning.forget(connection, name)
    return 0


def stats(
    *,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only runs since 7d, 12h, 2w or a date."),
    ] = None,
    json: options.Json = False,
    export: Annotated[
        Literal["csv", "json"] | None,
        typer.Option("--export", help="Print every run as one row."),
    ] = None,
) -> int:
    """Show fix rates, costs, and slow or flaky gates."""
    from atlas_retry.history import statistics

    begin = statistics.moment(since, datetime.now(UTC))
    with here.journal() as connection:
        if export:
            rows = statistics.exported(connection, begin)
            sys.stdout.write(statistics.as_csv(rows) if export == "csv" else encode(rows))
            return 0
        whole = statistics.statistics(connection, begin)
    if json:
        sys.stdout.write(encode(whole))
    else:
        sys.stdout.write(statistics.as_text(whole))
    return 0
