"""Drop old runs: their snapshots, their folders, their documents. Never a workspace's newest.

What gates are remembered to have found goes as well: to run them makes it again.
"""

import shutil
from collections.abc import Mapping
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
    """The runs that were dropped, or would be. Raises StateError."""
    home = state_dir.locate(environ)
    before = datetime.now(UTC) - timedelta(days=days)
    with opened(home) as connection:
        rows = keeping.prunable(archive.runs(connection), keep=keep, before=before)
        if dry_run:
            return [*rows]
        for root, some in groupby(sorted(rows, key=lambda row: row.root), lambda row: row.root):
            _drop(home, Path(root), [*some], environ)
        keeping.pruned(connection, rows)
    shutil.rmtree(home / "answers", ignore_errors=True)
    return [*rows]


def _drop(home: Path, root: Path, rows: list[RunRow], environ: Mapping[str, str]) -> None:
    for row in rows:
        shutil.rmtree(home / "runs" / row.id, ignore_errors=True)
    try:
        ws = workspace.open_workspace(root, home, environ=environ)
    except WorkspaceError:
        # the work tree is gone, and with it all that its snapshots could be put back to
        shutil.rmtree(home / "workspaces" / state_dir.key_of(root), ignore_errors=True)
        return
    prefixes = tuple(f"runs/{row.id}/" for row in rows)
    workspace.drop(ws, *(name for name in workspace.kept(ws) if name.startswith(prefixes)))
    workspace.compact(ws)
