"""The work tree that gates run in: what is held of it and put back, and unstaged work put aside.

A command such as pre-commit puts unstaged work back when it ends, but not if it is killed.
"""

import os
from collections.abc import Callable, Collection

from msgspec import Struct

from atlas_retry import process
from atlas_retry.gates.memory import Memory
from atlas_retry.text.units import first_few
from atlas_retry.workspace.discovery import NotARepositoryError, Workspace
from atlas_retry.workspace.git import GitError, git, split, untracked
from atlas_retry.workspace.snapshot.look import Tracker


class Watched(Struct, frozen=True, kw_only=True):
    """How a validation detects changed files, and restores them if there is git."""

    tracker: Callable[[], Tracker]
    """Looks at the work tree; made on first use."""
    git: Callable[[], Workspace] | None = None
    memory: Memory | None = None
    """Earlier results of gates."""

    def hold(self) -> str | None:
        """Take a snapshot of all files; returns its id, or None without git."""
        return self.tracker().snapshot().id if self.git else None

    def put_back(self, held: str, paths: Collection[str] | None = None) -> None:
        """Restore these files of a snapshot, by default all that differ, ignored ones included."""
        from atlas_retry.workspace.snapshot import restoring, trees

        if self.git is None:
            return
        if paths is None:
            now = self.tracker().snapshot().id
            paths = trees.moved(self.git(), held, now, ignored=True)
        if paths:
            restoring.restore(self.git(), held, paths, look=self.tracker().take)
            self.tracker().moved()

    def keep_unstaged(self) -> Callable[[], str]:
        """Hold the unstaged work; returns a function that restores it.

        That restores what a stopped gate had put aside, and says so in a sentence, which is empty
        if nothing was.
        """
        if self.git is None:
            return str
        try:
            ws = self.git()
            if not self.tracker().uncommitted().paths or not (was := _unstaged(ws)).paths:
                return str
            held = self.tracker().snapshot().id
        except (GitError, NotARepositoryError):  # a broken repository: gates run all the same
            return str

        def restore_put_aside() -> str:
            # the second signal of an impatient person has killed what would have restored it
            with process.uninterruptible("unstaged work that a gate had put aside is restored"):
                now = _unstaged(ws)
                if gone := _put_aside(ws, was, now):
                    self.put_back(held, gone)
            put_aside = f"had put unstaged work aside; restored: {first_few(sorted(gone))}"
            stays = "left a stash of work that is in the tree: git stash drop"
            is_new = now.stash and now.stash != was.stash
            said = [*([put_aside] if gone else ()), *([stays] if is_new else ())]
            return f"a stopped gate {', and '.join(said)}" if said else ""

        return restore_put_aside


class _Unstaged(Struct, frozen=True, kw_only=True):
    """What only the work tree holds, and the top entry of the stash."""

    edited: frozenset[str]
    """Tracked files that differ from the index."""
    untracked: frozenset[str]
    stash: str
    """Its id; empty if there is none."""

    @property
    def paths(self) -> frozenset[str]:
        return self.edited | self.untracked


def _unstaged(ws: Workspace) -> _Unstaged:
    """The unstaged work as it is now. Raises GitError."""
    edited = git("diff-files", "--name-only", "-z", cwd=ws.root, env=ws.environ)
    asked = ("rev-parse", "--verify", "--quiet", "refs/stash")
    stash = git(*asked, cwd=ws.root, env=ws.environ, accept=(0, 1))
    return _Unstaged(
        edited=frozenset(split(edited)),
        untracked=frozenset(untracked(ws.root, ws.environ)),
        stash=os.fsdecode(stash).strip(),
    )


def _put_aside(ws: Workspace, before: _Unstaged, now: _Unstaged) -> frozenset[str]:
    """Files whose unstaged work is gone: as they are staged, or missing if they were untracked."""
    missing = (path for path in before.untracked if not os.path.lexists(ws.root / path))
    return (before.edited - now.edited).union(missing)
