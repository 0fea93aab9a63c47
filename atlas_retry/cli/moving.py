"""The runs of a workspace that was moved: taken along, after a question where it is in doubt."""

import os
import shutil
import sys
from pathlib import Path

import typer

from atlas_retry.reports.screen.lines import printable


def follow(root: Path) -> None:
    """Where nothing is recorded of a workspace, see whether it was somewhere else before.

    Raises StateError, WorkspaceError.
    """
    from atlas_retry import history, state_dir, workspace
    from atlas_retry.history import archive, keeping
    from atlas_retry.workspace import identity

    home = state_dir.locate(os.environ)
    with history.reading(home) as connection:
        if not (root / ".git").exists() or archive.runs(connection, str(root), limit=1):
            return
    ws = workspace.open_workspace(root, home, environ=os.environ)
    for other, is_certain in identity.moved_here(ws):
        if is_certain or _is_agreed(other.root):
            with workspace.lock(ws), history.opened(home) as connection:
                old = identity.take_over(ws, other)
                keeping.moved(connection, other.root, str(ws.root), str(ws.common_dir))
                shutil.rmtree(old)
            where = printable(other.root)
            print(f"this workspace was {where} before; its runs are here now", file=sys.stderr)
            return


def _is_agreed(root: str) -> bool:
    """Two clones have one first commit as well, so somebody has to say which this is."""
    question = f"the runs of {printable(root)}, which is gone: are they of this workspace"
    if sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI"):
        return typer.confirm(f"{question}?", err=True)
    print(f"{question}? On a terminal atlas asks.", file=sys.stderr)
    return False
