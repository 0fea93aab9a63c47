"""`atlas learnings` and `atlas stats`: lessons and statistics of earlier runs."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

import typer

from atlas_retry.cli import here
from atlas_retry.history import database, learning
from atlas_retry.reports.documents import encode
from atlas_retry.reports.screen.lines import harmless


def list_by_default(context: typer.Context) -> int:
    """List the learning records, or show, annotate or forget one."""
    return list_all() if context.invoked_subcommand is None else 0


def list_all(*, json: bool = False) -> int:
    """List the learning records, newest first."""
    with here.journal() as connection:
        records = learning.every(connection)
    _write(records, learning.list_of(records), as_json=json)
    return 0


def show(record_id: str, *, json: bool = False) -> int:
    """Show one record."""
    with here.journal() as connection:
        record = learning.one(connection, record_id)
    _write([record], learning.page_of(record), as_json=json)
    return 0


def _write(records: Iterable[learning.Kept], text: str, *, as_json: bool) -> None:
    if as_json:
        from atlas_retry.cli.documents import LearningsDocument, write

        write(LearningsDocument(records=tuple(records)))
    else:
        sys.stdout.write(harmless(text))


def note(record_id: str, text: str) -> int:
    """Annotate a record: later prompts use your words instead of its own."""
    with database.opened(here.home()) as connection:
        learning.note(connection, record_id, text)
    return 0


def forget(record_id: str) -> int:
    """Forget a record."""
    with database.opened(here.home()) as connection:
        learning.forget(connection, record_id)
    return 0


def stats(
    *,
    since: str | None = None,
    json: bool = False,
    export: Literal["csv", "json"] | None = None,
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
