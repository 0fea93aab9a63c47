"""Drops old runs with their snapshots, folders and documents; never a workspace's newest.

Also drops cached results of gates.
"""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from atlas_retry import state_dir
from atlas_retry.errors import WorkspaceError
from atlas_retry.events import seconds_of
from atlas_retry.history import archive
from atlas_retry.history.database import opened, writing
from atlas_retry.history.values import RunRow
from atlas_retry.workspace import discovery
from atlas_retry.workspace.isolation import layers, overlay
from atlas_retry.workspace.snapshot import pins, store


def prune(
    environ: Mapping[str, str], *, keep: int, days: float, dry_run: bool = False
) -> tuple[RunRow, ...]:
    """Drop runs, and overlays of runs that cannot be resumed; returns the (would-be) dropped runs.

    Raises StateError.
    """
    home = state_dir.locate(environ)
    before = datetime.now(UTC) - timedelta(days=days)
    with opened(home) as connection:
        known = archive.runs(connection)
        rows = _prunable(known, keep=keep, before=before)
        if dry_run:
            return rows
        _drop_layers(home, known)
        there = [row for row in known if not row.pruned]
        staying = [row for row in there if row not in rows]
        for root, some in groupby(sorted(rows, key=lambda row: row.root), lambda row: row.root):
            began = (seconds_of(row.started_at) for row in staying if row.root == root)
            oldest_s = min(began, default=0.0)
            _drop(home, Path(root), [*some], oldest_s=oldest_s, environ=environ)
        names = [(row.id,) for row in rows]
        with writing(connection) as to:  # keeps what statistics need
            to.executemany("UPDATE runs SET pruned = 1, final = NULL WHERE id = ?", names)
            to.executemany("DELETE FROM outputs WHERE run = ?", names)
            to.executemany("UPDATE attempts SET document = NULL, reply = NULL WHERE run = ?", names)
        connection.execute("VACUUM")
    shutil.rmtree(home / "answers", ignore_errors=True)
    return rows


def _prunable(rows: Sequence[RunRow], *, keep: int, before: datetime) -> tuple[RunRow, ...]:
    """Runs after the newest `keep` of their workspace, or started before `before`.

    Never the newest of a workspace. `rows` are sorted, newest first.
    """
    seen: dict[str, int] = {}
    prunable = []
    for row in rows:
        place = seen.get(row.root, 0)
        seen[row.root] = place + 1
        may_go = place >= keep or datetime.fromisoformat(row.started_at) < before
        if place > 0 and not row.pruned and may_go:
            prunable.append(row)
    return tuple(prunable)


def _drop_layers(home: Path, rows: Sequence[RunRow]) -> None:
    """Drop overlays of runs that cannot be resumed: only a workspace's newest run can."""
    newest = {row.root: row for row in reversed(rows)}
    for row in rows:
        if not row.is_open or newest[row.root] is not row:
            overlay.remove_layers(layers.layers_folder(home, row.id))


def _drop(
    home: Path, root: Path, rows: list[RunRow], *, oldest_s: float, environ: Mapping[str, str]
) -> None:
    """Drop runs of a workspace; `oldest_s` is when the oldest of those that stay began."""
    for row in rows:
        shutil.rmtree(home / "runs" / row.id, ignore_errors=True)
    try:
        ws = discovery.open_workspace(root, home, environ=environ)
    except WorkspaceError:
        # the work tree is gone, so its snapshots are of no use
        shutil.rmtree(home / "workspaces" / state_dir.key_of(root), ignore_errors=True)
        return
    prefixes = tuple(f"runs/{row.id}/" for row in rows)
    store.drop(ws, *(name for name in store.kept(ws) if name.startswith(prefixes)))
    store.compact(ws)
    pins.sweep(ws, oldest_s)
