"""What is staged and what is not: a copy of the index for gates, and unstaged work put aside.

A command such as pre-commit puts unstaged work back when it ends, but not if it is killed.
"""

import os
import shlex
import shutil
from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import git, split, untracked


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


class Unstaged(Struct, frozen=True, kw_only=True):
    """What only the work tree holds, and the top entry of the stash."""

    edited: frozenset[str]
    """Tracked files that differ from the index."""
    untracked: frozenset[str]
    stash: str
    """Its id; empty if there is none."""

    @property
    def paths(self) -> frozenset[str]:
        return self.edited | self.untracked


def unstaged(ws: Workspace) -> Unstaged:
    """The unstaged work as it is now. Raises GitError."""
    edited = git("diff-files", "--name-only", "-z", cwd=ws.root, env=ws.environ)
    asked = ("rev-parse", "--verify", "--quiet", "refs/stash")
    stash = git(*asked, cwd=ws.root, env=ws.environ, accept=(0, 1))
    return Unstaged(
        edited=frozenset(split(edited)),
        untracked=frozenset(untracked(ws.root, ws.environ)),
        stash=os.fsdecode(stash).strip(),
    )


def put_aside(ws: Workspace, before: Unstaged, now: Unstaged) -> frozenset[str]:
    """Files whose unstaged work is gone: as they are staged, or missing if they were untracked."""
    missing = (path for path in before.untracked if not os.path.lexists(ws.root / path))
    return (before.edited - now.edited).union(missing)
