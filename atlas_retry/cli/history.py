"""What happened before: `log`, `diff`, `pick`, `undo`, `resume`, `learnings`, `stats`, `prune`."""

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas_retry.cli import completing, options
from atlas_retry.errors import StateError, UsageError, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from atlas_retry.history import RunRow
    from atlas_retry.history.rescue import Restoration
    from atlas_retry.workspace import Workspace

Run = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="An id or its start; by default the newest here.",
        autocompletion=completing.runs,
    ),
]
MAX_DAYS = 36_500
GivenRun = Annotated[
    str, typer.Argument(metavar="RUN", help="An id or its start.", autocompletion=completing.runs)
]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("log")(log)
    app.command("diff")(diff)
    app.command("pick")(pick)
    app.command("undo")(undo)
    app.command("prune")(prune)


def log(run: Run = None, *, json: options.Json = False) -> int:
    """List the runs of this workspace, or show one as a timeline."""
    from atlas_retry import history, state_dir
    from atlas_retry.cli.moving import follow
    from atlas_retry.history import archive, telling
    from atlas_retry.reports.documents import encode

    home = state_dir.locate(os.environ)
    follow(Path(_root()))
    with history.reading(home) as connection:
        if run is None:
            rows = archive.runs(connection, _root())
            _show(encode(rows) if json else telling.list_of(rows))
            return 0
        row = archive.find(connection, run, _root())
        steps = telling.timeline(home / "runs" / row.id, archive.transitions(connection, row.id))
    _show(encode(steps) if json else telling.timeline_text(row, steps))
    return 0


def diff(
    run: Run = None,
    attempt: Annotated[str | None, typer.Argument(metavar="[N]", help="An attempt.")] = None,
) -> int:
    """Print what attempt N changed, or the whole run; without RUN of the newest one here."""
    from atlas_retry import workspace
    from atlas_retry.history import rescue

    row = found_run(run)
    ws = workspace_of(row)
    before, after = rescue.span(ws, row, attempt)
    sys.stdout.flush()
    sys.stdout.buffer.write(workspace.patch(ws, before, after))
    return 0


def pick(
    run: GivenRun,
    attempt: Annotated[str, typer.Argument(metavar="N", help="An attempt, or a held snapshot.")],
    *,
    held: Annotated[
        bool, typer.Option("--held", help="Take its held changes as well; refused ones stay out.")
    ] = False,
    path: Annotated[
        list[str] | None, typer.Option("--path", help="Only this file or folder; repeatable.")
    ] = None,
) -> int:
    """Take attempt N's tree into the workspace."""
    from atlas_retry import history, state_dir
    from atlas_retry.history import keeping, rescue

    if path and held:
        raise UsageError("--path and --held exclude each other")
    home, row = state_dir.locate(os.environ), found_run(run)
    if path:
        return _pick_files(row, attempt, path)
    refused = _refused(row, attempt) if held else frozenset()
    ws = workspace_of(row)
    with _alone(ws), history.opened(home) as connection:
        done = rescue.pick(ws, row, attempt, refused)
        if not _brought(ws, row, done.now):
            reason = f"atlas pick {attempt}"
            keeping.record(connection, row, row.state, reason, left=done.now)
    return _told(row, done, f"as in {attempt} of run {row.id}")


def _pick_files(row: "RunRow", name: str, paths: list[str]) -> int:
    from atlas_retry import workspace
    from atlas_retry.history import rescue

    ws = workspace_of(row)
    with workspace.lock(ws):
        done = rescue.pick_files(ws, row, name, paths)
    return _told(row, done, f"{', '.join(paths)}: as {name} of run {row.id} has it")


def _refused(row: "RunRow", number: str) -> frozenset[str]:
    """What the guard refused of an attempt. Raises UsageError where nothing was held of it."""
    from atlas_retry import history, state_dir
    from atlas_retry.history import archive
    from atlas_retry.run.held import held_paths

    with history.reading(state_dir.locate(os.environ)) as connection:
        attempts = archive.attempts(connection, row.id)
    holding = [str(attempt.number) for attempt in attempts if held_paths(attempt)]
    if number not in holding:
        known = ", ".join(holding) or "none"
        raise UsageError(
            f"nothing was held of attempt {number} of run {row.id}",
            remedy=f"attempts of which something was: {known}",
        )
    found = next(attempt for attempt in attempts if str(attempt.number) == number)
    return frozenset(violation.path for violation in found.violations)


def undo(run: Run = None) -> int:
    """Restore what was there before a run, a turn of Claude Code, or gates that changed files.

    Whatever goes is held.
    """
    from atlas_retry import history, state_dir
    from atlas_retry.history import archive, keeping, rescue

    home = state_dir.locate(os.environ)
    if other := _turn_or_validation(run):
        return _undo_other(other)
    try:
        row = found_run(run)
        with history.reading(home) as connection:
            attempt = archive.open_attempt(connection, row.id)
    except StateError as error:
        return _undo_without_journal(run, error)
    ws = workspace_of(row)
    with _alone(ws):
        done = rescue.undo(ws, row, home / "runs" / row.id, attempt)
        with history.opened(home) as connection:
            state = history.RunState.UNDONE
            keeping.record(connection, row, state, "atlas undo", left=done.now)
    return _told(row, done, f"as it was before run {row.id} of {row.started_at}")


def _turn_or_validation(run: str | None) -> "RunRow | None":
    """The turn of Claude Code, or validation, that is named, or that is newer than any run here."""
    other = _other(run)
    if other is None or run:
        return other
    try:
        return other if _began_s(other) > _began_s(found_run(None)) else None
    except (StateError, UsageError):
        return other


def _other(run: str | None) -> "RunRow | None":
    """The turn of Claude Code, or validation, of this id; without one the newest."""
    from atlas_retry import state_dir, workspace
    from atlas_retry.cli.hook import undoing
    from atlas_retry.history import validated

    home, root = state_dir.locate(os.environ), Path(_root())
    found = [undoing.turn_run(home, root, run)]
    with suppress(WorkspaceError):
        ws = workspace.open_workspace(root, home, environ=os.environ)
        found.append(validated.run_of(ws, run))
    return max(filter(None, found), key=_began_s, default=None)


def _began_s(row: "RunRow") -> float:
    from atlas_retry.events import seconds_of

    return seconds_of(row.started_at)


def _undo_other(row: "RunRow") -> int:
    from atlas_retry import state_dir
    from atlas_retry.history import rescue, validated

    ws = workspace_of(row)
    with _alone(ws):
        done = rescue.undo(ws, row, state_dir.locate(os.environ) / "runs" / row.id, None)
        _brought(ws, row, done.now)
    is_validation = validated.is_validation(row.id)
    what = "the gates" if is_validation else "the turn of Claude Code"
    return _told(row, done, f"as it was before {what} of {row.started_at}")


def _brought(ws: "Workspace", row: "RunRow", snapshot_id: str) -> bool:
    """Write down what the workspace was brought to; whether it is no run of the journal."""
    from atlas_retry import state_dir
    from atlas_retry.cli.hook import memory, undoing
    from atlas_retry.history import validated

    if validated.is_validation(row.id):
        validated.bring(ws, row.id, snapshot_id)
    elif undoing.is_turn(row.id):
        memory.bring(state_dir.locate(os.environ), row.id, snapshot_id)
    else:
        return False
    return True


def _undo_without_journal(run: str | None, error: StateError) -> int:
    """The snapshots are enough to restore what was there, whatever became of the journal."""
    from atlas_retry import state_dir, workspace
    from atlas_retry.history import rescue

    home = state_dir.locate(os.environ)
    print(f"atlas: {error.message}; the snapshots have what was there", file=sys.stderr)
    ws = workspace.open_workspace(Path.cwd(), home, environ=os.environ)
    row = rescue.known_by_refs(ws, run)
    with _alone(ws):
        done = rescue.undo(ws, row, home / "runs" / row.id, None)
    return _told(row, done, f"as it was before run {row.id}")


def prune(
    *,
    keep: Annotated[
        int, typer.Option("--keep", min=1, help="Keep the newest N runs of each workspace.")
    ] = 50,
    days: Annotated[
        float, typer.Option("--days", min=0, help="Drop runs older than N days.")
    ] = 30.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs that would be dropped.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Drop old runs with their snapshots, never the newest of a workspace."""
    if not days <= MAX_DAYS:
        raise UsageError(f"--days {days}: a number from 0 to {MAX_DAYS} is expected")
    from atlas_retry.history import pruning

    rows = pruning.prune(os.environ, keep=keep, days=days, dry_run=dry_run)
    if json or dry_run:
        from atlas_retry.history import telling
        from atlas_retry.reports.documents import encode

        _show(encode(rows) if json else telling.list_of(rows))
    what = "would be dropped" if dry_run else "dropped"
    last = f"{len(rows)} runs {what}; what they cost and how they ended stays in atlas stats"
    print(last, file=sys.stderr if json else sys.stdout)
    return 0


def _root() -> str:
    from atlas_retry import config

    return str(config.root_of(Path.cwd()).resolve())


def found_run(run: str | None) -> "RunRow":
    """The run of this id or its start, else the newest here. Raises UsageError."""
    from atlas_retry import history, state_dir
    from atlas_retry.cli.moving import follow
    from atlas_retry.history import archive

    follow(Path(_root()))
    home = state_dir.locate(os.environ)
    if run and (other := _other(run)):
        return other
    with history.reading(home) as connection:
        return archive.find(connection, run, _root())


def workspace_of(row: "RunRow") -> "Workspace":
    """The workspace that a run was in. Raises UsageError where it is gone."""
    from atlas_retry import state_dir, workspace

    if not Path(row.root).is_dir():
        raise UsageError(
            f"{row.root}, where run {row.id} was, is no longer there",
            remedy=f"clone the repository to {row.root} again, then: atlas undo {row.id}",
        )
    return workspace.open_workspace(
        Path(row.root), state_dir.locate(os.environ), environ=os.environ
    )


@contextmanager
def _alone(ws: "Workspace") -> "Iterator[None]":
    """Be the only one in the workspace, and come to the end of what is begun. WorkspaceError."""
    from atlas_retry import process, workspace

    what = f"{ws.root} is being restored"
    with workspace.lock(ws), process.orderly(), process.uninterruptible(what):
        yield


def _told(row: "RunRow", done: "Restoration", headline: str) -> int:
    """What was done, for a person; 1 where something is not as the headline says."""
    from atlas_retry.history import telling

    _show(telling.restoration_text(row, done, headline))
    return 1 if done.left_alone or done.lost or done.differs else 0


def _show(text: str) -> None:
    sys.stdout.write(text)
