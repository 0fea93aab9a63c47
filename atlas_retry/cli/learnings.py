"""`atlas learnings` and `atlas stats`: lessons and statistics of earlier runs."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from atlas_retry.cli import options, places
from atlas_retry.cli.app import app, examples, learnings_app
from atlas_retry.cli.documents import LearningsDocument, write
from atlas_retry.history import database, learning, statistics
from atlas_retry.reports.documents import encode
from atlas_retry.reports.screen.lines import harmless


@learnings_app.callback(invoke_without_command=True, no_args_is_help=False)
def list_by_default(context: typer.Context) -> None:
    """List the learning records, or show, annotate or forget one."""
    if context.invoked_subcommand is None:
        list_all()


@learnings_app.command("list", epilog=examples("atlas learnings list"))
def list_all(*, json: options.Json = False) -> None:
    """List the learning records, newest first."""
    with places.journal() as connection:
        records = learning.every(connection)
    _write(records, learning.list_of(records), as_json=json)


@learnings_app.command(epilog=examples("atlas learnings show lr-2026-01-31-001"))
def show(record_id: options.RecordId, *, json: options.Json = False) -> None:
    """Show one record."""
    with places.journal() as connection:
        record = learning.one(connection, record_id)
    _write([record], learning.page_of(record), as_json=json)


def _write(records: Iterable[learning.Kept], text: str, *, as_json: bool) -> None:
    if as_json:
        write(LearningsDocument(records=tuple(records)))
    else:
        sys.stdout.write(harmless(text))


@learnings_app.command(
    epilog=examples("atlas learnings note lr-2026-01-31-001 'The clock is faked.'")
)
def note(
    record_id: options.RecordId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The note, in your words.")],
) -> None:
    """Annotate a record: later prompts use your words instead of its own."""
    with database.opened(places.home()) as connection:
        learning.note(connection, record_id, text)


@learnings_app.command(epilog=examples("atlas learnings forget lr-2026-01-31-001"))
def forget(record_id: options.RecordId) -> None:
    """Forget a record."""
    with database.opened(places.home()) as connection:
        learning.forget(connection, record_id)


@app.command(epilog=examples("atlas stats --since 7d"))
def stats(
    *,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only runs since then: 7d, 12h, 2w or a date."),
    ] = None,
    json: options.Json = False,
    export: Annotated[
        Literal["csv", "json"] | None, typer.Option(help="Print every run as one row.")
    ] = None,
) -> None:
    """Show fix rates, costs, and slow or flaky gates."""
    begin = statistics.moment(since, datetime.now(UTC))
    with places.journal() as connection:
        if export:
            rows = statistics.exported(connection, begin)
            sys.stdout.write(statistics.as_csv(rows) if export == "csv" else encode(rows))
            return
        whole = statistics.statistics(connection, begin)
    if json:
        sys.stdout.write(encode(whole))
    else:
        sys.stdout.write(statistics.as_text(whole))
