"""Drop old runs: their snapshots, their folders, their documents. Never a workspace's newest.

Remembered results of gates go as well: to run the gates makes them again.
"""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from atlas_retry import state_dir
from atlas_retry.errors import WorkspaceError
from atlas_retry.history import archive
from atlas_retry.history.database import opened, writing
from atlas_retry.history.values import RunRow
from atlas_retry.workspace import discovery, layers, overlay, shadow


def prune(
    environ: Mapping[str, str], *, keep: int, days: float, dry_run: bool = False
) -> tuple[RunRow, ...]:
    """The runs that were dropped, or would be; with them the layers of which no run can go on.

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
        for root, some in groupby(sorted(rows, key=lambda row: row.root), lambda row: row.root):
            _drop(home, Path(root), [*some], environ)
        names = [(row.id,) for row in rows]
        with writing(connection) as to:  # what statistics need stays
            to.executemany("UPDATE runs SET pruned = 1, final = NULL WHERE id = ?", names)
            to.executemany("DELETE FROM outputs WHERE run = ?", names)
            to.executemany("UPDATE attempts SET document = NULL, reply = NULL WHERE run = ?", names)
        connection.execute("VACUUM")
    shutil.rmtree(home / "answers", ignore_errors=True)
    return rows


def _prunable(rows: Sequence[RunRow], *, keep: int, before: datetime) -> tuple[RunRow, ...]:
    """The runs that may go: beyond the newest `keep` of their workspace, or begun `before`.

    Never the newest of a workspace. `rows` begin with the newest.
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
    """Only the newest run of a workspace can go on; one that has just begun is in no row yet."""
    newest = {row.root: row for row in reversed(rows)}
    going_on = {row.id for row in newest.values() if row.is_open}
    for row in rows:
        if row.id not in going_on:
            overlay.remove_layers(layers.layers_folder(home, row.id))


def _drop(home: Path, root: Path, rows: list[RunRow], environ: Mapping[str, str]) -> None:
    for row in rows:
        shutil.rmtree(home / "runs" / row.id, ignore_errors=True)
    try:
        ws = discovery.open_workspace(root, home, environ=environ)
    except WorkspaceError:
        # the work tree is gone, and with it all that its snapshots could be restored to
        shutil.rmtree(home / "workspaces" / state_dir.key_of(root), ignore_errors=True)
        return
    prefixes = tuple(f"runs/{row.id}/" for row in rows)
    shadow.drop(ws, *(name for name in shadow.kept(ws) if name.startswith(prefixes)))
    shadow.compact(ws)
