"""Commands about earlier runs: `log`, `diff`, `pick`, `undo`, `prune`."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry import process
from atlas_retry.cli import options, places
from atlas_retry.cli.app import app, examples
from atlas_retry.cli.documents import (
    DiffDocument,
    LogDocument,
    PruneDocument,
    RestoredDocument,
    TimelineDocument,
    write,
)
from atlas_retry.cli.output import print_commands
from atlas_retry.errors import ExitCode, StateError, UsageError, WorkspaceError
from atlas_retry.events import seconds_of
from atlas_retry.guard.places import is_product
from atlas_retry.history import (
    archive,
    database,
    entries,
    identity,
    picking,
    pruning,
    rescue,
    texts,
)
from atlas_retry.history.overview import as_seen, is_running
from atlas_retry.history.states import RunState
from atlas_retry.history.values import RunRow
from atlas_retry.reports.screen.lines import printable
from atlas_retry.run.held import is_pickable
from atlas_retry.state_dir import TURN, VALIDATION
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.isolation.isolated import lock
from atlas_retry.workspace.snapshot import store
from atlas_retry.workspace.snapshot.restoring import INDEX, Restored
from atlas_retry.workspace.snapshot.trees import changes, patch

MAX_DAYS = 36_500
MAX_EARLIER = 20
"""Number of runs that are searched for one that changed files."""


@app.command(epilog=examples("atlas log", "atlas log 20260131 --json"))
def log(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="Run to show, by its id or its start; without it, all runs here are listed.",
            autocompletion=options.complete_runs,
        ),
    ] = None,
    *,
    json: options.Json = False,
) -> None:
    """List the runs of this workspace, or show the timeline of one."""
    root = places.root()
    follow(root)
    with places.journal() as connection:
        if run is None:
            rows = [_seen(row) for row in archive.runs(connection, str(root))]
            if json:
                write(LogDocument(runs=tuple(rows)))
            else:
                sys.stdout.write(texts.list_of(rows))
            return
        row = _seen(archive.find(connection, run, str(root)))
        moves = archive.transitions(connection, row.id)
    steps = texts.timeline(places.home() / "runs" / row.id, moves)
    if json:
        write(TimelineDocument(run=row, steps=steps))
    else:
        sys.stdout.write(texts.timeline_text(row, steps))


def _seen(row: RunRow) -> RunRow:
    return as_seen(row, is_running=is_running(row, places.home(), os.environ))


@app.command(epilog=examples("atlas diff", "atlas diff 20260131 2"))
def diff(
    run: options.Run = None,
    attempt: Annotated[str | None, typer.Argument(metavar="[N]", help="An attempt.")] = None,
    *,
    json: options.Json = False,
) -> None:
    """Print the changes of a run, or of one of its attempts."""
    row = run_of(run, "diff", *filter(None, (run, attempt)))
    ws = workspace_of(row)
    before, after = rescue.span(ws, row, attempt)
    text = patch(ws, before, after)
    if json:
        whole = text.decode("utf-8", "surrogateescape")

        write(DiffDocument(run_id=row.id, attempt=attempt, patch=whole))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text)
    if not text:
        of = f"attempt {attempt} of run {row.id}" if attempt else f"run {row.id}"
        print(f"{of} left no change", file=sys.stderr)


@app.command(epilog=examples("atlas pick 20260131 2", "atlas pick 20260131 2 --held"))
def pick(
    run: options.NamedRun,
    attempt: Annotated[str, typer.Argument(metavar="N", help="An attempt, or a held snapshot.")],
    *,
    held: Annotated[
        bool, typer.Option(help="Include its held changes; refused ones stay out.")
    ] = False,
    path: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="Only this file or folder; repeatable.")
    ] = None,
    merge: Annotated[
        bool,
        typer.Option(help="Merge into what the file is now; refuse where both changed a place."),
    ] = False,
    json: options.Json = False,
) -> ExitCode:
    """Set the workspace to the files of one attempt."""
    if path and held:
        raise UsageError("--path and --held exclude each other")
    if merge and not path:
        raise UsageError("--merge needs a file", remedy=f"atlas pick {run} {attempt} --path FILE")
    flags = [flag for flag, is_set in (("--held", held), ("--merge", merge)) if is_set]
    paths = chain.from_iterable(("--path", each) for each in path or ())
    row = run_of(run, "pick", run, attempt, *flags, *paths)
    refused = _refused(row, attempt) if held else frozenset()
    ws = workspace_of(row)
    if path:
        with lock(ws):
            pick_files = picking.merge_files if merge else picking.pick_files
            done = pick_files(ws, row, attempt, path)
        text = f"{'merged' if merge else 'taken'}: {', '.join(path)} from {_snapshot(row, attempt)}"
        return _report(row, done, attempt, text, as_json=json)
    with _alone(ws):
        done = picking.pick(ws, row, attempt, refused)
        _record(ws, row, done.now, row.state, f"atlas pick {row.id} {attempt}")
    return _report(row, done, attempt, f"taken: {_snapshot(row, attempt)}", as_json=json)


def _snapshot(row: RunRow, name: str) -> str:
    if name == rescue.HELD:
        return f"the state before the last undo or pick of {_named(row)}"
    return f"{'attempt' if name.isdigit() else 'snapshot'} {name} of {_named(row)}"


def _refused(row: RunRow, number: str) -> frozenset[str]:
    """What is not to be picked of an attempt: what was refused, and what a build makes again.

    Raises UsageError where nothing was held of it that can be picked.
    """
    with places.journal() as connection:
        attempts = archive.attempts(connection, row.id)
    holding = {str(attempt.number): attempt for attempt in attempts if is_pickable(attempt)}
    if number not in holding:
        held = any(str(attempt.number) == number and attempt.held for attempt in attempts)
        other = f"atlas pick {row.id} {min(holding)} --held" if holding else f"atlas log {row.id}"
        why = ": changes for review are in the workspace already; to drop them" if held else ""
        raise UsageError(
            f"nothing that can be picked was held of attempt {number} of run {row.id}{why}",
            remedy=f"atlas undo {row.id}" if held else other,
        )
    refused = (violation.path for violation in holding[number].violations)
    return frozenset({*refused, *filter(is_product, holding[number].unseen)})


@app.command(epilog=examples("atlas undo", "atlas undo 20260131"))
def undo(run: options.Run = None, *, json: options.Json = False) -> ExitCode:
    """Restore the files from before a run, a turn of Claude Code, or gates that changed files.

    The present files are kept: `atlas pick` restores them.
    """
    attempt, is_readable, others = None, True, tuple[str, ...]()
    try:
        row = _newest_or(run)
        if not rescue.is_unrecorded(row.id):
            with places.journal() as connection:
                attempt = archive.open_attempt(connection, row.id)
    except StateError as error:
        # undo needs only the snapshots, not the journal
        print(f"atlas: {error.message}; undo needs only the snapshots", file=sys.stderr)
        row, is_readable = rescue.known_by_refs(places.workspace_at(), run), False
    rescue.rebuild(Path(row.root), places.home(), row.start, os.environ)
    ws = workspace_of(row)
    with _alone(ws):
        done = rescue.undo(ws, row, places.home() / "runs" / row.id, attempt)
        if is_readable:
            _record(ws, row, done.now, RunState.UNDONE, "atlas undo")
            is_whole = attempt is None and not rescue.is_unrecorded(row.id)
            others = _by_no_agent(row, done) if is_whole else ()
    headline = f"undone: {_named(row)}"
    code = _report(row, done, rescue.START, headline, others, as_json=json)
    was_nothing = not done.changed and not done.git
    is_answered = run or json or not is_readable
    if was_nothing and not is_answered:
        _name_earlier(ws, row)
    return code


def _name_earlier(ws: Workspace, row: RunRow) -> None:
    """Print how to undo the newest earlier run whose changes are still there, if there is one."""
    with places.journal() as connection:
        rows = archive.runs(connection, row.root, limit=MAX_EARLIER)
    held = rescue.held_runs(ws)
    for one in rows:
        is_lost = one.pruned or rescue.START not in held.get(one.id, {})
        is_gone = is_lost or one.is_open or one.state is RunState.UNDONE
        is_earlier = _began_s(one) < _began_s(row)
        if is_earlier and not is_gone and changes(ws, *rescue.span(ws, one, None)):
            print_commands("an earlier run changed files", f"atlas undo {one.id}", to=sys.stdout)
            return


def _by_no_agent(row: RunRow, done: Restored) -> tuple[str, ...]:
    """The restored files that no attempt of a run had changed; none if it had no attempt."""
    with places.journal() as connection:
        attempts = archive.attempts(connection, row.id)
    changes = chain.from_iterable(attempt.changes for attempt in attempts)
    agents = {INDEX, *(change.path for change in changes)}
    agents.update(*(attempt.unseen for attempt in attempts))
    return tuple(path for path in done.changed if path not in agents) if attempts else ()


def _record(ws: Workspace, row: RunRow, snapshot_id: str, state: RunState, by: str) -> None:
    """Record the snapshot that the workspace was set to."""
    if rescue.is_unrecorded(row.id):
        store.keep(ws, rescue.held_under(row.id, rescue.END), snapshot_id)
    else:
        with database.opened(places.home()) as connection:
            entries.record(connection, row, state, by, left=snapshot_id)


def _named(row: RunRow) -> str:
    if row.id.endswith(VALIDATION):
        return f"the gates of {row.started_at[:19].replace('T', ' ')} UTC"
    return f"{'the turn' if row.id.endswith(TURN) else 'run'} {row.id}"


def _newest_or(run: str | None) -> RunRow:
    """The run, turn or validation with this id, else the newest. Raises UsageError, StateError."""
    other = _unrecorded(run)
    if other is None or run:
        return other or run_of(run, "undo", *filter(None, [run]))
    try:
        return max(other, run_of(None), key=_began_s)
    except (StateError, UsageError):
        return other


def _unrecorded(run: str | None) -> RunRow | None:
    """The turn of Claude Code or validation with this id, else the newest."""
    with suppress(WorkspaceError):
        return rescue.unrecorded(places.workspace_at(places.root()), run)
    return None


def _began_s(row: RunRow) -> float:
    return seconds_of(row.started_at)


@app.command(epilog=examples("atlas prune --days 7 --dry-run", "atlas prune --keep 10"))
def prune(
    *,
    keep: Annotated[
        int, typer.Option(help="Keep the newest N runs of each workspace.", min=1)
    ] = 50,
    days: Annotated[float, typer.Option(help="Drop runs older than N days.", min=0)] = 30.0,
    dry_run: Annotated[bool, typer.Option(help="List the runs that would be dropped.")] = False,
    json: options.Json = False,
) -> None:
    """Drop old runs and their snapshots, but never the newest run of a workspace."""
    if not days <= MAX_DAYS:
        raise UsageError(f"--days {days}: a number from 0 to {MAX_DAYS} is expected")
    rows = pruning.prune(os.environ, keep=keep, days=days, dry_run=dry_run)
    if json:
        write(PruneDocument(runs=tuple(rows), dry_run=dry_run))
    elif dry_run:
        sys.stdout.write(texts.list_of(rows))
    what = "would be dropped" if dry_run else "dropped"
    last = f"{len(rows)} runs {what}; their costs and verdicts stay in atlas stats"
    print(last, file=sys.stderr if json else sys.stdout)


def run_of(run: str | None, *words: str) -> RunRow:
    """The run with this id or prefix of an id, else the newest here. Raises UsageError.

    A run of another workspace is refused; `words` are the command that its workspace is told.
    """
    follow(places.root())
    if run and (other := _unrecorded(run)):
        return other
    with places.journal() as connection:
        row = archive.find(connection, run, str(places.root()))
    if words and row.root != str(places.root()):
        raise UsageError(
            f"run {row.id} is of another workspace, {row.root}",
            remedy=shlex.join(("atlas", "-C", row.root, *words)),
        )
    return row


def workspace_of(row: RunRow) -> Workspace:
    """The workspace of a run. Raises UsageError if it no longer exists."""
    if not Path(row.root).is_dir():
        raise UsageError(
            f"{row.root}, the folder of run {row.id}, no longer exists",
            remedy=f"clone the repository to {row.root} again, then: "
            f"atlas -C {shlex.quote(row.root)} undo {row.id}",
        )
    return places.workspace_at(row.root)


@contextmanager
def _alone(ws: Workspace) -> Iterator[None]:
    """Lock the workspace, and delay signals until the end. Raises WorkspaceError."""
    what = f"{ws.root} is being restored"
    with lock(ws), process.orderly(), process.uninterruptible(what):
        yield


def _report(
    row: RunRow,
    done: Restored,
    name: str,
    headline: str,
    others: Sequence[str] = (),
    *,
    as_json: bool = False,
) -> ExitCode:
    """Print the result; 1 if some files are not as the headline says."""
    is_whole = not any((done.conflicts, done.git_conflicts, done.lost, done.differs))
    if as_json:
        write(RestoredDocument.of(row.id, done, success=is_whole))
    else:
        sys.stdout.write(texts.restoration_text(row, done, name, headline, others))
    return ExitCode.OK if is_whole else ExitCode.FAILED


def follow(root: Path) -> None:
    """Find out whether a workspace without runs was moved here, and take over its runs.

    Raises StateError, WorkspaceError.
    """
    with places.journal() as connection:
        if not (root / ".git").exists() or archive.runs(connection, str(root), limit=1):
            return
    ws = places.workspace_at(root)
    for other, is_certain in identity.moved_here(ws):
        if is_certain or _is_agreed(other.root):
            with lock(ws), database.opened(places.home()) as connection:
                old = identity.take_over(ws, other)
                entries.moved(connection, other.root, str(ws.root), str(ws.common_dir))
                shutil.rmtree(old)
            where = printable(other.root)
            print(f"this workspace was {where} before; its runs are here now", file=sys.stderr)
            return


def _is_agreed(root: str) -> bool:
    """Ask whether this is the moved workspace: every clone has the same first commit."""
    question = f"the runs of {printable(root)}, which is gone: are they this workspace's"
    if places.can_ask(sys.stderr):
        with process.interruptible():
            return typer.confirm(f"{question}?", err=True)
    print(f"{question}? On a terminal atlas asks.", file=sys.stderr)
    return False
