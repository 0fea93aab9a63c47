"""Single files of a work tree are made what they are said to be."""

import pytest

from atlas_retry.errors import WorkspaceError
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.snapshot import restoring, snapshots


def test_files_links_and_modes_are_written_and_unwanted_ones_removed(ws: Workspace) -> None:
    for name in ("old.py", "gone.py"):
        (ws.root / name).write_text("old")
    restoring.write(
        ws,
        {
            "old.py": ("100755", b"new"),
            "deep/link": ("120000", b"../old.py"),
            "gone.py": None,
            "never.py": None,
        },
        snapshots.snapshot(ws).id,
    )
    assert (ws.root / "old.py").read_bytes() == b"new"
    assert (ws.root / "old.py").stat().st_mode & 0o777 == 0o755
    assert (ws.root / "deep" / "link").readlink().as_posix() == "../old.py"
    assert not (ws.root / "gone.py").exists()


def test_a_non_empty_folder_is_not_overwritten(ws: Workspace) -> None:
    (ws.root / "a" / "b").mkdir(parents=True)
    with pytest.raises(WorkspaceError, match="a cannot be written"):
        restoring.write(ws, {"a": ("100644", b"")}, snapshots.snapshot(ws).id)
