"""`atlas fleet`: many repositories on many machines. Needs the package extra `fleet`."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas_retry import state_dir
from atlas_retry.cli import options
from atlas_retry.cli.app import examples, fleet_app
from atlas_retry.cli.documents import FleetReportDocument, write
from atlas_retry.cli.output import print_commands
from atlas_retry.errors import ExitCode, UsageError
from atlas_retry.reports.documents import encode
from atlas_retry.text.commands import quoted
from atlas_retry.text.own_environment import installing

if TYPE_CHECKING:
    from atlas_retry.fleet.batch import BatchStatus
    from atlas_retry.fleet.client import Live
    from atlas_retry.fleet.store import Store


@fleet_app.command(
    epilog=examples("atlas fleet worker --queue lint --slots 4 --store s3://fleet/atlas")
)
def worker(
    *,
    store: options.Store,
    server: options.Server = None,
    queue: options.Queue = "atlas",
    slots: Annotated[int, typer.Option(help="Runs at once.", min=1)] = 2,
    agents: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="BACKEND", help="An agent that runs may use; repeatable."),
    ] = None,
    max_cost_usd: options.MaxCostUsd = None,
    max_attempts: options.MaxAttempts = None,
    max_minutes: options.MaxMinutes = None,
) -> ExitCode:
    """Execute the runs of batches until it is stopped.

    Its limits override those of a manifest.
    """
    _require()
    from atlas_retry.fleet import client as connection
    from atlas_retry.fleet import tries
    from atlas_retry.fleet.assignment import Policy, Workplace
    from atlas_retry.fleet.worker import work

    home = state_dir.locate(os.environ)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(connection.SECRETS)}
    at = Workplace(
        home=home,
        machine=tries.machine_id(home),
        store=_store(store),
        policy=Policy(
            agents=tuple(agents or ()),
            max_cost_usd=max_cost_usd,
            max_attempts=max_attempts,
            max_minutes=max_minutes,
        ),
        environ={**environ, "ATLAS_HOME": str(home)},
    )

    connection.ask(server, lambda client: work(client, queue, slots, at))
    return ExitCode.OK


@fleet_app.command(
    epilog=examples("atlas fleet start manifest.yaml --id ruff-0.18 --store s3://fleet/atlas")
)
def start(
    manifest: Annotated[
        Path, typer.Argument(metavar="MANIFEST.yaml", help="The repositories and the budget.")
    ],
    *,
    store: options.Store,
    server: options.Server = None,
    queue: options.Queue = "atlas",
    batch: Annotated[
        str | None, typer.Option("--id", help="Id of the batch; by default file name and time.")
    ] = None,
) -> ExitCode:
    """Start a batch, and print its id."""
    _require()
    from atlas_retry.fleet import client
    from atlas_retry.fleet import manifest as manifests

    whole = manifests.read(manifest)
    name = batch or f"{manifest.stem}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    place = _store(store)
    client.ask(server, lambda to: client.start(to, queue, place, name, whole))
    print(name)
    where = f" --server {quoted(server)}" if server else ""
    print_commands("next", f"atlas fleet status {quoted(name)}{where}")
    return ExitCode.OK


@fleet_app.command(epilog=examples("atlas fleet status ruff-0.18"))
def status(
    batch: options.Batch,
    *,
    server: options.Server = None,
    wait: Annotated[bool, typer.Option(help="Wait until the batch has ended.")] = False,
    json: options.Json = False,
) -> ExitCode:
    """Show the progress of a batch; with --wait exit with 0 if every run passes, else 1."""
    _require()
    from atlas_retry.fleet import client

    if wait:
        client.ask(server, lambda to: client.wait(to, batch))
    live = client.ask(server, lambda to: client.live(to, batch))
    print(encode(live) if json else "\n".join(_lines(live)), end="" if json else "\n")
    return _code(live.status) if wait else ExitCode.OK


@fleet_app.command(epilog=examples("atlas fleet pause ruff-0.18 --why 'the registry is down'"))
def pause(
    batch: options.Batch,
    *,
    server: options.Server = None,
    why: Annotated[
        str, typer.Option(metavar="TEXT", help="The reason, shown in the status.")
    ] = "by hand",
) -> ExitCode:
    """Start no more runs; let the running ones finish."""
    return _signal(server, batch, "pause", why)


@fleet_app.command(epilog=examples("atlas fleet resume ruff-0.18"))
def resume(batch: options.Batch, *, server: options.Server = None) -> ExitCode:
    """Continue a batch that was paused, by hand or for a common cause."""
    return _signal(server, batch, "resume")


@fleet_app.command(epilog=examples("atlas fleet stop ruff-0.18"))
def stop(batch: options.Batch, *, server: options.Server = None) -> ExitCode:
    """End a batch and its running runs."""
    return _signal(server, batch, "stop")


@fleet_app.command(
    epilog=examples("atlas fleet report ruff-0.18 --store s3://fleet/atlas --html fleet.html")
)
def report(
    batch: options.Batch,
    *,
    store: options.Store,
    server: options.Server = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a self-contained page.")
    ] = None,
    json: options.Json = False,
) -> ExitCode:
    """Show how each repository ended, what fixed it, and its cost."""
    _require()
    from atlas_retry.fleet import client
    from atlas_retry.reports import fleet_page

    now = client.ask(server, lambda to: client.live(to, batch)).status
    rows = client.rows(_store(store), now)
    if html:
        page = fleet_page.report(batch, rows, known_usd=now.known_usd, held_usd=now.held_usd)
        html.write_text(page, encoding="utf-8")
    if json:
        write(FleetReportDocument(batch=batch, rows=tuple(rows)))
    for row in () if json else rows:
        print(
            f"{row.name}: {fleet_page.WAYS[row.ending]} (${row.cost_usd:.2f}) {row.error}".strip()
        )
    return _code(now)


def _require() -> None:
    """Raise UsageError if the extra is not installed."""
    from importlib.util import find_spec

    if missing := [name for name in ("temporalio", "fsspec") if find_spec(name) is None]:
        raise UsageError(
            f"atlas fleet needs {' and '.join(missing)}",
            remedy=installing(*missing),
        )


def _store(url: str) -> "Store":
    from atlas_retry.fleet.store import Store

    return Store(url)


def _signal(server: str | None, batch: str, name: str, *arguments: str) -> ExitCode:
    _require()
    from atlas_retry.fleet import client

    client.ask(server, lambda to: client.signal(to, batch, name, *arguments))
    return ExitCode.OK


def _code(status: "BatchStatus") -> ExitCode:
    green = sum(items for ending, items in status.ended.items() if ending.is_green)
    return ExitCode.OK if green == status.items else ExitCode.FAILED


def _lines(live: "Live") -> list[str]:
    now = live.status
    ended = ", ".join(f"{items} {ending}" for ending, items in now.ended.items())
    limit = "" if now.limit_usd is None else f" of ${now.limit_usd:.2f}"
    held = f", ${now.held_usd:.2f} held for lost machines" if now.held_usd else ""
    running = f"{len(now.running)} under way"
    lines = [
        f"{now.batch}: {now.items} items: {ended or 'none has ended'}, {running}",
        f"${now.known_usd:.2f}{limit} spent, ${now.promised_usd:.2f} promised{held}",
    ]
    lines += [f"paused: {now.paused}"] if now.paused else []
    lines += ["stopped"] if now.stopped else []
    return lines + [
        f"  {beat.run}: attempt {beat.attempt}, ${beat.cost_usd:.2f}, machine {beat.machine}"
        for beat in live.runs
    ]
