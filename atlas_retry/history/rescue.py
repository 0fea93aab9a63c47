"""Restores the state before a run without losing work, and finds the snapshots of runs.

Takes a snapshot of the present state first. Files edited since the run are reported and stay.
"""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import msgspec
from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.events import seconds_of
from atlas_retry.history import event_log
from atlas_retry.history.states import RunState
from atlas_retry.history.values import OpenAttempt, RunRow
from atlas_retry.patterns import regex
from atlas_retry.state_dir import TURN, VALIDATION
from atlas_retry.text.units import labelled
from atlas_retry.workspace import discovery, gitmoves, gitunder, installed
from atlas_retry.workspace.snapshot import git_state, pins, restoring, store, trees
from atlas_retry.workspace.snapshot.restoring import Restored
from atlas_retry.workspace.snapshot.snapshots import load, snapshot
from atlas_retry.workspace.snapshot.unheld import moved_caches
from atlas_retry.workspace.walk import remove_special_rules

START, ORIGIN, END, HELD, BEGUN = "start", "origin", "end", "undone", "undoing"
_TIME, _TIME_CHARS = "%Y%m%d-%H%M%S-%f", 22
_UNRECORDED = regex(rf"\d{{8}}-\d{{6}}-\d{{6}}(?:{VALIDATION}|{TURN})")
"""Ids as `state_dir.exact_id` makes them."""
ALL_ENDED = "all-ended"
"""File in a run's folder, made by the watchdog of a killed atlas when all processes had ended."""


def held_under(run_id: str, name: str) -> str:
    """The full name of a run's snapshot."""
    return f"runs/{run_id}/{name}"


def held_runs(ws: discovery.Workspace) -> dict[str, dict[str, str]]:
    """The snapshots of every run by short name."""
    held: dict[str, dict[str, str]] = {}
    for name, snapshot_id in store.kept(ws).items():
        match name.split("/", 2):
            case ["runs", run_id, what]:
                held.setdefault(run_id, {})[what] = snapshot_id
    return held


def snapshots(ws: discovery.Workspace, run: RunRow) -> dict[str, str]:
    """The snapshots of one run by short name."""
    return held_runs(ws).get(run.id, {})


def is_lost(ws: discovery.Workspace, run: RunRow) -> bool:
    """Whether a run's start was held, and is no more: it can be neither undone nor continued."""
    return bool(run.start) and START not in snapshots(ws, run)


def how_to_undo(ws: discovery.Workspace, run_id: str, label: str) -> tuple[str, ...]:
    """Lines with the command that restores what was there before a run, or that there is none."""
    if START in held_runs(ws).get(run_id, {}):
        return labelled(label, f"atlas undo {run_id}")
    return (f"this run cannot be undone: {ws.shadow} does not hold its start",)


def undo(
    ws: discovery.Workspace, run: RunRow, folder: Path, attempt: OpenAttempt | None
) -> Restored:
    """Restore the state before a run. The caller holds the workspace's lock.

    `attempt` is the one that was running when the run was interrupted. An undo that was killed
    can be repeated. Raises WorkspaceError.
    """
    ended = process.end_marked(run.mark) if run.is_open else ()
    held = snapshots(ws, run)
    if START not in held:
        raise WorkspaceError(
            f"run {run.id} has no snapshot {START!r}: it was pruned or deleted",
            remedy="atlas log",
        )
    run_ended_s = end_of_run_s(run, folder)
    known = _known(run, held, attempt)
    removed = remove_special_rules(ws.root)  # the first look at the tree would wait for them
    if BEGUN not in held:  # otherwise a killed undo has already held the state
        _hold(ws, run, known, run_ended_s)
    # first, because the index belongs to a HEAD, and refs need their objects
    given = pins.put_back(ws, run.start)
    if is_unrecorded(run.id):  # no trace says what gates or an agent of the hook did, but the time
        git, theirs = git_state.put_back_moved(ws, run.start, run_ended_s, run.left_behind)
    else:
        git = undo_agents_git(ws, folder, is_open=run.is_open)
        theirs = tuple(sorted(git_state.moved_git(ws, run.start)))
    again = git_state.put_back_destroyed(ws, run.start, given.again)
    git = tuple(dict.fromkeys((*given.inside, *git, *again)))
    theirs = tuple(name for name in theirs if name not in again)
    committed = gitunder.committed_since(ws, run.start, known)
    if known and committed:
        moved = trees.changes(ws, known, run.start, ignored=True)
        paths = {change.path for change in moved} - committed
        done = restoring.restore(ws, run.start, paths, since=known)
    elif known:
        done = restoring.restore(ws, run.start, since=known)
    else:
        begun = _begun(ws, run)
        done = restoring.restore_but_edited(ws, run.start, run_ended_s, committed, begun)
    store.drop(ws, held_under(run.id, BEGUN))
    _edited_of(ws, run).unlink(missing_ok=True)
    done = replace(done, changed=(*done.changed, *(p for p in removed if p not in done.changed)))
    installed_again = _undo_installed(ws, run, folder, run_ended_s, attempt)
    done = replace(done, changed=(*done.changed, *installed_again))
    lost = tuple(f"{name} in git (its objects)" for name in given.lost)
    done = replace(done, git=git, git_conflicts=theirs, ended=ended, lost=(*done.lost, *lost))
    done = checked(ws, done, run.start)
    done = replace(done, unheld=(*done.unheld, *moved_caches(ws.root, folder)))
    return replace(done, differs=(*done.differs, *git_state.moved_git(ws, run.start)))


def rebuild(root: Path, home: Path, start: str, environ: Mapping[str, str]) -> None:
    """Make the repository of a work tree again if its folder was removed and its objects are held.

    Raises WorkspaceError.
    """
    if root.is_dir() and not (root / ".git").exists():
        pins.rebuild(discovery.unopened(root, home, environ=environ), start)


def _undo_installed(
    ws: discovery.Workspace,
    run: RunRow,
    folder: Path,
    run_ended_s: float,
    attempt: OpenAttempt | None,
) -> tuple[str, ...]:
    """Restore what gates installed after turns, and what an unjudged turn changed there.

    That is one of the hook, or a killed one: after every other, what it changed was put back.
    """
    every = (installed.undo_written(ws.root, one) for one in _attempts(folder))
    given = tuple(chain.from_iterable(every))
    until_s = run_ended_s
    if attempt:
        began_s = max(map(seconds_of, (run.segment_at, attempt.started_at)))
    elif run.id.endswith(TURN):
        began_s = seconds_of(run.started_at)
        until_s = installed.turn_ended_s(ws.installed) or run_ended_s
    else:
        return given
    return (*given, *installed.put_back_between(ws.root, ws.installed, began_s, until_s))


def undo_agents_git(ws: discovery.Workspace, folder: Path, *, is_open: bool) -> tuple[str, ...]:
    """Undo what the agent's git did in the turns of a run, the last one first; returns names.

    What git would run is restored only for a run that `is_open`: later it may be the user's.
    """
    done: list[str] = []
    for attempt in _attempts(folder):
        turn = gitmoves.turned(ws, attempt)
        if turn and not is_open:
            turn = replace(turn, moves=replace(turn.moves, runs=()))
        if turn and gitmoves.undo(ws, turn, attempt):
            done += (*turn.moves.agents, *turn.moves.runs)
    return tuple(done)


def _attempts(folder: Path) -> list[Path]:
    """The folders of a run's attempts, the last one first."""
    numbers = (path for path in (folder / "attempts").glob("*") if path.name.isdecimal())
    return sorted(numbers, key=lambda path: int(path.name), reverse=True)


def checked(ws: discovery.Workspace, done: Restored, snapshot_id: str) -> Restored:
    """The result, with the files that still differ from the snapshot."""
    return replace(
        done,
        lost=(*done.lost, *restoring.unheld(ws, snapshot_id)),
        unheld=restoring.unheld(ws, snapshot_id, ignored=True),
        now=snapshot_id,
        differs=restoring.differing(ws, snapshot_id),
    )


def _hold(ws: discovery.Workspace, run: RunRow, known: str | None, run_ended_s: float) -> None:
    """Hold the present state, what of it is edited, and the state that the run left."""
    there = snapshot(ws)
    moved = (change.path for change in trees.changes(ws, run.start, there.id, ignored=True))
    edited = map(os.fsencode, restoring.edited_after(ws, moved, run_ended_s))
    _edited_of(ws, run).write_bytes(msgspec.msgpack.encode([*edited]))
    if there.tree != load(ws, run.start).tree:
        store.keep(ws, held_under(run.id, HELD), there.id)
    if run.state is not RunState.UNDONE:
        store.keep(ws, held_under(run.id, END), known or there.id)
    store.keep(ws, held_under(run.id, BEGUN), there.id)


def _edited_of(ws: discovery.Workspace, run: RunRow) -> Path:
    return ws.home / f"{run.id}.edited"


def _begun(ws: discovery.Workspace, run: RunRow) -> restoring.Begun | None:
    """The state in which the first try of this undo began."""
    with suppress(OSError, msgspec.MsgspecError):
        edited = msgspec.msgpack.decode(_edited_of(ws, run).read_bytes(), type=list[bytes])
        names = frozenset(map(os.fsdecode, edited))
        return restoring.Begun(snapshot=snapshots(ws, run)[BEGUN], edited=names)
    return None


def is_unrecorded(run_id: str) -> bool:
    """Whether this is the id of a validation or a turn, which the journal does not know."""
    return _UNRECORDED.fullmatch(run_id) is not None


def unrecorded(ws: discovery.Workspace, name: str | None) -> RunRow | None:
    """The validation or turn with this id, by default the newest that changed files; else None."""
    runs = held_runs(ws)
    ids = {*filter(is_unrecorded, runs)}
    for one in sorted(ids if name is None else ids & {name}, reverse=True):
        start, end = runs[one].get(START), runs[one].get(END)
        if start and (name or start != end):
            began = datetime.strptime(one[:_TIME_CHARS], _TIME).replace(tzinfo=UTC).isoformat()
            # it had ended for certain by now or, if killed, soon after its last sign of life
            ended = datetime.now(UTC)
            with suppress(OSError):
                pulse_s = pulse_of(ws, one).stat().st_mtime
                ended = datetime.fromtimestamp(pulse_s + restoring.AFTERMATH_S, UTC)
            ended_at, root = ended.isoformat(), str(ws.root)
            run = RunRow.of_snapshots(one, root, began, start=start, ended_at=ended_at)
            return replace(run, left_behind=end)
    return None


def pulse_of(ws: discovery.Workspace, run_id: str) -> Path:
    """A file whose time stamp is the last sign of life; it remains only after a kill."""
    return ws.home / f"{run_id}.pulse"


def known_by_refs(ws: discovery.Workspace, name: str | None) -> RunRow:
    """A run, by default the newest, made from its snapshots because the journal is lost.

    Raises UsageError if there is none.
    """
    held = {run_id: of[START] for run_id, of in held_runs(ws).items() if START in of}
    ids = [run_id for run_id in held if run_id.startswith(name or "")]
    if not ids:
        raise UsageError(f"{ws.root} has no snapshot of a run {name or ''}")
    newest, never = max(ids), "1970-01-01T00:00:00Z"
    return RunRow.of_snapshots(newest, str(ws.root), never, start=held[newest])


def span(ws: discovery.Workspace, run: RunRow, name: str | None) -> tuple[str, str]:
    """The snapshots before and after an attempt's turn, or before and after the whole run.

    Raises UsageError for an unknown attempt.
    """
    held = snapshots(ws, run)
    if name is None:
        after = held.get(END) or run.left_behind or held.get(ORIGIN)
        return run.start, snapshot(ws).id if run.is_open or not after else after
    if name not in held or f"{name}-before" not in held:
        raise no_attempt(run, name, held)
    return held[f"{name}-before"], held[name]


def no_attempt(run: RunRow, name: str, held: Collection[str]) -> UsageError:
    """The error about an attempt that a run does not have."""
    known = ", ".join(sorted(other for other in held if other.isdecimal())) or "none"
    why = f"run {run.id} has no attempt {name!r}; its attempts: {known}"
    return UsageError(why, remedy=f"atlas log {run.id}")


def last_sign_of_life_s(run: RunRow, folder: Path) -> float:
    """Last sign of life of a run, in seconds since the epoch."""
    event_s = seconds_of(run.ended_at or run.last_at)
    log = folder / event_log.NAME
    return event_s if run.ended_at or not log.exists() else max(event_s, log.stat().st_mtime)


def end_of_run_s(run: RunRow, folder: Path) -> float:
    """Time after which changes are not the run's, in seconds since the epoch.

    A run that recorded its end had stopped all of its processes.
    """
    is_sudden = run.ended_at is None and run.state is not RunState.INTERRUPTED
    alive_s = last_sign_of_life_s(run, folder)
    if not is_sudden:
        return alive_s
    with suppress(OSError):
        all_ended_s = (folder / ALL_ENDED).stat().st_mtime
        if all_ended_s >= alive_s:  # otherwise of an earlier kill
            return all_ended_s
    return alive_s + restoring.AFTERMATH_S


def _known(run: RunRow, held: Mapping[str, str], attempt: OpenAttempt | None) -> str | None:
    """Snapshot of the state that the run left; None if it was killed in the middle."""
    if run.left_behind:
        return run.left_behind
    if run.verdict is not None:
        return held.get(ORIGIN)
    return attempt.snapshot if attempt and attempt.restored else None


def pick_hint(run_id: str, name: str) -> str:
    """How to take a file of a run's snapshot again."""
    return f"to get a file back: atlas pick {run_id} {name} --path FILE"


def unfinished(attempt: OpenAttempt | None) -> str:
    """Name of the snapshot of an interrupted attempt, or of a run interrupted between attempts."""
    return f"{attempt.number}-unfinished" if attempt else "unfinished"
