"""What happened before: `log`, `diff`, `pick`, `undo`, `resume`, `learnings`, `stats`, `prune`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas_retry.cli import options
from atlas_retry.errors import StateError, UsageError

if TYPE_CHECKING:
    from atlas_retry.history import RunRow
    from atlas_retry.history.rescue import PutBack
    from atlas_retry.workspace import Workspace

Run = Annotated[
    str | None, typer.Argument(metavar="RUN", help="An id or its start; else the newest here.")
]
MAX_DAYS = 36_500
GivenRun = Annotated[str, typer.Argument(metavar="RUN", help="An id or its start.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("log")(log)
    app.command("diff")(diff)
    app.command("pick")(pick)
    app.command("undo")(undo)
    app.command("prune")(prune)


def log(run: Run = None, *, json: options.Json = False) -> int:
    """List the runs of this workspace, or tell one as a timeline."""
    from atlas_retry import history, state  # noqa: PLC0415 - start-up
    from atlas_retry.history import archive, telling  # noqa: PLC0415 - start-up

    home = state.home(os.environ)
    with history.reading(home) as connection:
        if run is None:
            rows = archive.runs(connection, _root())
            _show(telling.as_json(rows) if json else telling.list_of(rows))
            return 0
        row = archive.find(connection, run, _root())
        steps = telling.timeline(home / "runs" / row.id, archive.transitions(connection, row.id))
    _show(telling.as_json(steps) if json else telling.timeline_text(row, steps))
    return 0


def diff(
    run: GivenRun,
    attempt: Annotated[str | None, typer.Argument(metavar="[N]", help="An attempt.")] = None,
) -> int:
    """Print what attempt N changed, or the whole run."""
    from atlas_retry import workspace  # noqa: PLC0415 - start-up
    from atlas_retry.history import rescue  # noqa: PLC0415 - start-up

    row = _found(run)
    ws = _workspace(row)
    before, after = rescue.span(ws, row, attempt)
    sys.stdout.flush()
    sys.stdout.buffer.write(workspace.patch(ws, before, after))
    return 0


def pick(
    run: GivenRun,
    attempt: Annotated[str, typer.Argument(metavar="N", help="An attempt, or a held snapshot.")],
) -> int:
    """Take attempt N's tree into the workspace."""
    from atlas_retry import history, state, workspace  # noqa: PLC0415 - start-up
    from atlas_retry.history import keeping, rescue  # noqa: PLC0415 - start-up

    row = _found(run)
    ws = _workspace(row)
    with workspace.lock(ws), history.opened(state.home(os.environ)) as connection:
        done = rescue.pick(ws, row, attempt)
        keeping.picked(connection, row, attempt, done.now)
    return _told(row, done, f"the workspace holds {attempt} of run {row.id}")


def undo(run: Run = None) -> int:
    """Put back what was there before a run; whatever goes is held."""
    from atlas_retry import history, state, workspace  # noqa: PLC0415 - start-up
    from atlas_retry.history import archive, keeping, rescue  # noqa: PLC0415 - start-up

    home = state.home(os.environ)
    try:
        row = _found(run)
        with history.reading(home) as connection:
            attempt = archive.open_attempt(connection, row.id)
    except StateError as error:
        return _undo_without_journal(run, error)
    ws = _workspace(row)
    with workspace.lock(ws):
        done = rescue.undo(ws, row, home / "runs" / row.id, attempt)
        with history.opened(home) as connection:
            keeping.undone(connection, row, done.now)
    return _told(row, done, f"as it was before run {row.id} of {row.started_at}")


def _undo_without_journal(run: str | None, error: StateError) -> int:
    """The snapshots are enough to put back what was there, whatever became of the journal."""
    from atlas_retry import state, workspace  # noqa: PLC0415 - start-up
    from atlas_retry.history import rescue  # noqa: PLC0415 - start-up

    home = state.home(os.environ)
    print(f"atlas: {error.message}; the snapshots tell what was there", file=sys.stderr)
    ws = workspace.open_workspace(Path.cwd(), home, environ=os.environ)
    row = rescue.known_by_refs(ws, run)
    with workspace.lock(ws):
        done = rescue.undo(ws, row, home / "runs" / row.id, None)
    return _told(row, done, f"as it was before run {row.id}")


def prune(
    *,
    keep: Annotated[int, typer.Option("--keep", min=1, help="So many runs a workspace.")] = 50,
    days: Annotated[float, typer.Option("--days", min=0, help="Older ones go.")] = 30.0,
) -> int:
    """Drop old runs with their snapshots, never the newest of a workspace."""
    if not days <= MAX_DAYS:
        raise UsageError(f"--days {days}: a number from 0 to {MAX_DAYS} is expected")
    from atlas_retry.history import pruning  # noqa: PLC0415 - start-up

    count = pruning.prune(os.environ, keep=keep, days=days)
    print(f"{count} runs dropped; what they cost and how they ended stays in atlas stats")
    return 0


def _root() -> str:
    from atlas_retry import config  # noqa: PLC0415 - start-up

    return str(config.root_of(Path.cwd()).resolve())


def _found(run: str | None) -> "RunRow":
    from atlas_retry import history, state  # noqa: PLC0415 - start-up
    from atlas_retry.history import archive  # noqa: PLC0415 - start-up

    with history.reading(state.home(os.environ)) as connection:
        return archive.find(connection, run, _root())


def _workspace(row: "RunRow") -> "Workspace":
    from atlas_retry import state, workspace  # noqa: PLC0415 - start-up

    if not Path(row.root).is_dir():
        raise UsageError(
            f"{row.root}, where run {row.id} was, is no longer there",
            remedy=f"clone the repository to {row.root} again, then: atlas undo {row.id}",
        )
    return workspace.open_workspace(Path(row.root), state.home(os.environ), environ=os.environ)


def _told(row: "RunRow", done: "PutBack", headline: str) -> int:
    """What was done, for a person; 1 where something of theirs was left as it is."""
    from atlas_retry.history import telling  # noqa: PLC0415 - start-up

    _show(telling.put_back(row, done, headline))
    return 1 if done.left_alone else 0


def _show(text: str) -> None:
    sys.stdout.write(text)
