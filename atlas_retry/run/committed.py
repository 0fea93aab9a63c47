"""Run the gates on what a fresh clone would have: HEAD and index, without ignored files.

A temporary worktree holds it.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.errors import WorkspaceError
from atlas_retry.events import Emit, Notice
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.results import skipped
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Gate, Kind, Level, Status, Validation
from atlas_retry.reading import read_text
from atlas_retry.run.open import OpenWorkspace, plan
from atlas_retry.state_dir import alone, folder, key_of
from atlas_retry.text.units import counted, first_few
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import git, split, untracked

SETUP = "setup"
SETUP_TIMEOUT_S = 1800.0


def validate_as_committed(
    opened: OpenWorkspace, chosen: Sequence[Gate], how: Plan, emit: Emit
) -> Validation:
    """Run `validation.setup`, then the gates, in a temporary worktree.

    Raises WorkspaceError without a repository or a commit, Interrupted.
    """
    with as_committed(opened.git) as made:
        left_out = ["what git ignores"]
        if made.untracked:
            names = first_few(made.untracked)
            left_out.append(f"{counted(len(made.untracked), 'untracked file')} ({names})")
        if made.unstaged:
            left_out.append(f"unstaged changes ({first_few(made.unstaged)})")
        text = f"on HEAD and the index, as a fresh clone; left out: {', '.join(left_out)}"
        emit(Notice(text=text))
        environ = environment(opened.environ, opened.root, made.root)
        there = OpenWorkspace(
            root=made.root, settings=opened.settings, state=opened.state, environ=environ
        )
        planned = plan(there, how.logs)
        how = replace(how, root=made.root, environ=environ, watched=planned.watched)
        if setup := opened.settings.setup:
            gate = Gate(
                name=SETUP, kind=Kind.CUSTOM, run=setup, timeout_s=SETUP_TIMEOUT_S, writes=True
            )
            alone = replace(how, check=False, flake_reruns=0, watched=None)
            ran = run_gates([gate], alone, emit)
            if not ran.success:
                return _not_set_up(ran, chosen)
        validation = run_gates(chosen, how, emit)
    if not validation.success and not setup:
        text = "a fresh clone has nothing installed; a command that does it: validation.setup"
        emit(Notice(level=Level.WARNING, text=text))
    return validation


def _not_set_up(ran: Validation, chosen: Sequence[Gate]) -> Validation:
    """The validation in which setup is broken, and no gate has run."""
    (result,) = ran.results
    broken = replace(
        result,
        status=Status.BROKEN,
        success=False,
        error=f"validation.setup failed: {result.error or result.status}",
        triage="environment",
    )
    rest = (skipped(gate, "setup failed") for gate in chosen)
    return replace(ran, results=(broken, *rest))


_LISTS = {"PATH", "PYTHONPATH", "NODE_PATH", "VIRTUAL_ENV"}
"""Variables with paths, some of which may lead into the workspace."""


class Checkout(Struct, frozen=True, kw_only=True):
    """The worktree, and what it leaves out of the workspace, without what git ignores."""

    root: Path
    unstaged: tuple[str, ...]
    untracked: tuple[str, ...]


@contextmanager
def as_committed(ws: Workspace) -> Iterator[Checkout]:
    """A worktree of HEAD with the files of the index, removed at the end.

    The user's filters run, submodules are empty. Raises WorkspaceError without a commit, and in the
    middle of a merge.
    """
    above = folder(ws.state, "as-committed", key_of(ws.root))
    with alone(above):
        root = above / ws.root.name
        _remove(root)  # a killed atlas has left it
        try:
            yield _made(ws, root)
        finally:
            with process.uninterruptible(f"{root} is being removed"):
                _remove(root)


def _made(ws: Workspace, root: Path) -> Checkout:
    env = ws.environ
    staged = git("ls-files", "--stage", "-z", cwd=ws.root, env=env)
    if any(entry.split("\t")[0].endswith((" 1", " 2", " 3")) for entry in split(staged)):
        raise WorkspaceError("git is in the middle of a merge", remedy="git status")
    # --force: the folder of an earlier one may be gone
    add = ("worktree", "add", "--quiet", "--force", "--detach", "--no-checkout", str(root), "HEAD")
    git(*add, cwd=ws.root, env=env)
    git("update-index", "-z", "--index-info", cwd=root, env=env, stdin=staged)
    git("checkout-index", "--all", "--force", "--quiet", cwd=root, env=env, checks_out=True)
    return Checkout(
        root=root,
        unstaged=tuple(split(git("diff-files", "--name-only", "-z", cwd=ws.root, env=env))),
        untracked=tuple(untracked(ws.root, ws.environ)),
    )


def _remove(root: Path) -> None:
    """Remove a worktree and git's record of it; no other record is pruned."""
    with suppress(OSError):
        before, _, record = read_text(root / ".git").strip().partition("gitdir: ")
        if record and not before and Path(record).parent.name == "worktrees":
            shutil.rmtree(record, ignore_errors=True)
    shutil.rmtree(root, ignore_errors=True)


def environment(environ: Mapping[str, str], root: Path, there: Path) -> dict[str, str]:
    """The environment with paths in the workspace replaced by those in the worktree.

    Otherwise an activated environment would run what this machine has.
    """
    moved = {**environ, "PWD": str(there)}
    for name in environ.keys() & _LISTS:
        parts = []
        for path in environ[name].split(os.pathsep):
            is_inside = path == str(root) or path.startswith(f"{root}{os.sep}")
            parts.append(str(there / Path(path).relative_to(root)) if is_inside else path)
        moved[name] = os.pathsep.join(parts)
    return moved
