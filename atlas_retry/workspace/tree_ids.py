"""The id of the tree that `git add -A` and a commit would make of a work tree; changes nothing."""

import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import git


def tree_id(ws: Workspace, *, but: Collection[str] = ()) -> str:
    """Of all files that git does not ignore, without the paths `but`.

    In a clean checkout it is `HEAD^{tree}`. Raises WorkspaceError.
    """
    import tempfile  # start-up

    with tempfile.TemporaryDirectory(dir=ws.home, prefix="tree-") as name:
        index = Path(name) / "index"
        with suppress(FileNotFoundError):  # it knows which files have not changed
            shutil.copy2(ws.git_dir / "index", index)
        (Path(name) / "objects").mkdir()
        env = {
            **ws.environ,
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(Path(name) / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(ws.common_dir / "objects"),
        }
        git("add", "-A", cwd=ws.root, env=env)
        if but:
            git("update-index", "--force-remove", "--", *but, cwd=ws.root, env=env)
        return git("write-tree", cwd=ws.root, env=env).decode().strip()
