"""What is staged, and a copy of the index in which more is: for gates that judge that."""

import os
import shlex
import shutil
from collections.abc import Collection
from pathlib import Path

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import git, split


def staged_paths(ws: Workspace) -> frozenset[str]:
    """Paths whose staged content differs from the last commit; none before the first commit.

    Raises GitError.
    """
    how = ("--cached", "--name-only", "-z", "--no-renames", "HEAD")
    # 128: there is no commit yet
    listed = git("diff-index", *how, cwd=ws.root, env=ws.environ, accept=(0, 128))
    return frozenset(split(listed))


def staging(ws: Workspace, paths: Collection[str], scratch: Path) -> str:
    """A shell line after which git takes these files as staged; the user's index stays as it is.

    New objects are written to the folder `scratch`. Raises GitError, OSError.
    """
    index, objects = scratch / "index", scratch / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ws.git_dir / "index", index)
    copy = {
        "GIT_INDEX_FILE": str(index),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(ws.common_dir / "objects"),
    }
    names = b"".join(os.fsencode(path) + b"\0" for path in sorted(paths))
    asked = ("update-index", "--add", "--remove", "-z", "--stdin")
    git(*asked, cwd=ws.root, env={**ws.environ, **copy}, stdin=names)
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in copy.items())
