"""Finds unstaged work that a command has put aside, as pre-commit does while it checks.

Such a command puts it back when it ends, but not if it is killed.
"""

import os
from collections.abc import Iterable

from msgspec import Struct

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import git, split
from atlas_retry.workspace.walking import untracked


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
    return (before.edited - now.edited) | frozenset(_missing(ws, before.untracked))


def _missing(ws: Workspace, paths: Iterable[str]) -> Iterable[str]:
    return (path for path in paths if not os.path.lexists(ws.root / path))
