"""Drop old runs: their snapshots, their folders, their documents. Never a workspace's newest.

What gates are remembered to have found goes as well: to run them makes it again.
"""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from atlas_retry import state_dir, workspace
from atlas_retry.errors import WorkspaceError
from atlas_retry.history import archive, keeping
from atlas_retry.history.database import opened
from atlas_retry.history.values import RunRow


def prune(
    environ: Mapping[str, str], *, keep: int, days: float, dry_run: bool = False
) -> list[RunRow]:
    """The runs that were dropped, or would be; with them the layers of which no run can go on.

    Raises StateError.
    """
    home = state_dir.locate(environ)
    before = datetime.now(UTC) - timedelta(days=days)
    with opened(home) as connection:
        known = archive.runs(connection)
        rows = keeping.prunable(known, keep=keep, before=before)
        if dry_run:
            return [*rows]
        _drop_layers(home, known)
        for root, some in groupby(sorted(rows, key=lambda row: row.root), lambda row: row.root):
            _drop(home, Path(root), [*some], environ)
        keeping.pruned(connection, rows)
    shutil.rmtree(home / "answers", ignore_errors=True)
    return [*rows]


def _drop_layers(home: Path, rows: Sequence[RunRow]) -> None:
    """Only the newest run of a workspace can go on; one that has just begun is in no row yet."""
    newest = {row.root: row for row in reversed(rows)}
    going_on = {row.id for row in newest.values() if row.is_open}
    for row in rows:
        if row.id not in going_on:
            workspace.remove_layers(workspace.layers_folder(home, row.id))


def _drop(home: Path, root: Path, rows: list[RunRow], environ: Mapping[str, str]) -> None:
    for row in rows:
        shutil.rmtree(home / "runs" / row.id, ignore_errors=True)
    try:
        ws = workspace.open_workspace(root, home, environ=environ)
    except WorkspaceError:
        # the work tree is gone, and with it all that its snapshots could be restored to
        shutil.rmtree(home / "workspaces" / state_dir.key_of(root), ignore_errors=True)
        return
    prefixes = tuple(f"runs/{row.id}/" for row in rows)
    workspace.drop(ws, *(name for name in workspace.kept(ws) if name.startswith(prefixes)))
    workspace.compact(ws)
