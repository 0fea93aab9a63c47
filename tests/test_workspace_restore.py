import shutil
from pathlib import Path

import pytest

from atlas_retry.workspace import Workspace, restore, snapshot
from tests.repositories import SHAPES, Shape, entries, git, git_bytes, opened, write


def index_time(ws: Workspace) -> int | None:
    index = ws.git_dir / "index"
    return index.stat().st_mtime_ns if index.exists() else None


def mess_up(root: Path) -> None:
    """Change, add, remove, turn into another type and move everything an agent could."""
    files = sorted(path for path, (kind, _) in entries(root).items() if kind != "folder")
    files = [path for path in files if not path.endswith(".git")]
    for number, path in enumerate(files):
        file = root / path
        match number % 5:
            case 0:
                file.unlink()
            case 1:
                file.unlink()
                write(file, "now/a/folder.txt", "f\n")
            case 2 if not file.is_symlink():
                file.chmod(0o711)
            case 3:
                file.unlink()
                file.symlink_to("/etc/passwd")
            case _:
                file.unlink()
                write(root, path, b"other content\r\n")
    folders = [f for f in sorted(root.iterdir()) if f.is_dir() and not f.is_symlink()]
    for folder in [f for f in folders if f.name != ".git" and not (f / ".git").exists()][:1]:
        shutil.rmtree(folder)
        folder.symlink_to("/etc")
    write(root, "added/by/agent.txt", "added\n")
    write(root, "added/.gitignore", "*.txt\n")
    write(root, b"added-\xff\n", "odd\n")
    (root / "added/link").symlink_to("/")
    (root / "added/hollow").mkdir()
    git(root, "add", "--sparse", "-A", "--", "added")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_whatever_became_of_it_the_work_tree_comes_back(shape: Shape, tmp_path: Path) -> None:
    root = shape.make(tmp_path)
    ws = opened(root)
    before, git_before, touched = entries(root), git_bytes(ws.common_dir), index_time(ws)

    held = snapshot(ws)
    assert entries(root) == before
    assert (git_bytes(ws.common_dir), index_time(ws)) == (git_before, touched)

    mess_up(root)
    restored = restore(ws, held.id)

    assert entries(root) == before
    assert (git_bytes(ws.common_dir), index_time(ws)) == (git_before, touched)
    assert not restored.conflicts
    assert snapshot(ws).work == held.work
    assert not (tmp_path / "executed").exists()
