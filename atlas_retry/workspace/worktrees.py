"""Named workspaces: git worktrees next to the repository; runs nothing in them."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from msgspec import Struct

from atlas_retry.errors import UsageError, WorkspaceError, near
from atlas_retry.patterns import regex
from atlas_retry.reading import read_file, read_text
from atlas_retry.state_dir import alone, folder, key_of
from atlas_retry.workspace.discovery import (
    NotARepositoryError,
    Workspace,
    open_workspace,
    places_of,
)
from atlas_retry.workspace.git import (
    GitError,
    commit_id,
    common_dir_of,
    git,
    user_environment,
)
from atlas_retry.workspace.locking import holder

_NAME = regex(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_BRANCH = "refs/heads/"


class Worktree(Struct, frozen=True, kw_only=True):
    """A named workspace of a repository."""

    name: str
    root: Path
    branch: str | None
    """None if its HEAD is detached."""
    is_there: bool
    """False if its folder was removed by hand; `git worktree prune` forgets it."""


def add_worktree(ws: Workspace, name: str, from_revision: str | None = None) -> Path:
    """Create a named workspace on a branch `atlas/NAME`, and return its root.

    The branch starts at `from_revision`, else at HEAD; without a revision an existing branch is
    used. One at a time for each repository. Raises UsageError for an invalid name, WorkspaceError
    with git's message.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a workspace",
            remedy="use letters, digits, - and _; anything with a dot or a slash is a path",
        )
    root = _home_of(ws.common_dir) / name
    branch = f"atlas/{name}"
    with _one_at_a_time(ws):
        asked = ("for-each-ref", "--format=1", _BRANCH + branch)
        is_there = from_revision is None and git(*asked, cwd=ws.root, env=ws.environ)
        what = branch if is_there else commit_id(ws.root, ws.environ, from_revision or "HEAD")
        new = () if is_there else ("-b", branch)
        asked = ("worktree", "add", "--quiet", *new, "--", str(root), what)
        git(*asked, cwd=ws.root, env=ws.environ, checks_out=True)
    return root


def _home_of(common_dir: Path) -> Path:
    """Folder of workspaces, next to the main work tree so that tools there do not find them."""
    main = common_dir.parent if common_dir.name == ".git" else common_dir
    return main.with_name(f"{main.name}.worktrees")


def _one_at_a_time(ws: Workspace) -> AbstractContextManager[None]:
    return alone(folder(ws.state, "repositories", key_of(ws.common_dir)) / "worktrees.lock")


def list_worktrees(common_dir: Path) -> tuple[Worktree, ...]:
    """The named workspaces of a repository, by name.

    Source: gitrepository-layout(5), `worktrees/<id>/gitdir`.
    """
    named: list[Worktree] = []
    for own in (common_dir / "worktrees").glob("*"):
        with suppress(FileNotFoundError):
            root = Path(os.fsdecode(read_file(own / "gitdir").rstrip(b"\n"))).parent
            head = read_text(own / "HEAD").strip()
            before, _, branch = head.partition(_BRANCH)
            if root.parent == _home_of(common_dir):
                on = branch if before == "ref: " else None
                named.append(Worktree(name=root.name, root=root, branch=on, is_there=root.is_dir()))
    return tuple(sorted(named, key=lambda worktree: worktree.name))


def remove_worktree(ws: Workspace, name: str, *, force: bool = False) -> None:
    """Remove a named workspace, and its branch if another one holds all its commits.

    Raises WorkspaceError while a run is in it, and without `force` if it has uncommitted changes or
    commits that no other branch holds; UsageError if there is none of that name.
    """
    named = {worktree.name: worktree for worktree in list_worktrees(ws.common_dir)}
    if name not in named:
        raise _unknown(name, tuple(named))
    one = named[name]
    with _one_at_a_time(ws):
        if one.is_there and (
            other := holder(open_workspace(one.root, ws.state, environ=ws.environ))
        ):
            raise WorkspaceError(
                f"a run is in {name}: process {other.pid}, since {other.started_at}",
                remedy=f"wait for it, or: kill {other.pid}",
            )
        tip = _tip(ws, one)
        holding = ("for-each-ref", "--contains", f"{tip}", "--format=%(refname)")
        names = os.fsdecode(git(*holding, cwd=ws.common_dir, env=ws.environ)).split() if tip else ()
        is_held = tip is None or any(name != f"{_BRANCH}{one.branch}" for name in names)
        if not (is_held or force):
            raise WorkspaceError(
                f"{name} has commits that no other branch or tag holds",
                remedy=f"git merge {one.branch or tip}\n"
                f"or, to lose them: atlas workspace remove {name} --force",
            )
        _remove(ws, name, one.root, force=force)
        if tip and is_held and one.branch == f"atlas/{name}":
            git("update-ref", "-d", _BRANCH + one.branch, tip, cwd=ws.common_dir, env=ws.environ)
        with suppress(OSError):
            one.root.parent.rmdir()


def _tip(ws: Workspace, one: Worktree) -> str | None:
    at, revision = (one.root, "HEAD") if one.is_there else (ws.common_dir, one.branch)
    try:
        return commit_id(at, ws.environ, revision) if revision else None
    except (GitError, UsageError):
        return None


def _remove(ws: Workspace, name: str, root: Path, *, force: bool) -> None:
    # --force twice also removes a locked worktree
    asked = ("worktree", "remove", *(("--force", "--force") if force else ()), "--", str(root))
    try:
        git(*asked, cwd=ws.common_dir, env=ws.environ)
    except GitError as error:
        remedy = None if force else f"atlas workspace remove {name} --force"
        raise WorkspaceError(error.message, remedy=remedy) from error


def resolve(argument: str, cwd: Path, *, environ: Mapping[str, str]) -> Path:
    """The folder that an argument on the command line means.

    With a separator or a dot it is a path; else a named workspace of the repository that `cwd` is
    in, else a folder. Raises UsageError if it is both, or neither.
    """
    there = cwd / argument
    if "/" in argument or "." in argument:
        return there
    named = names_around(cwd, environ=environ)
    if argument in named and there.is_dir():
        raise UsageError(
            f"{argument!r} is a workspace and a folder",
            remedy=f"type ./{argument} for the folder, {named[argument]} for the workspace",
        )
    if argument in named:
        return named[argument]
    if there.is_dir():
        return there
    raise _unknown(argument, tuple(named))


def names_around(cwd: Path, *, environ: Mapping[str, str]) -> dict[str, Path]:
    """Roots of the named workspaces in the repository of `cwd`, by name."""
    env = user_environment(environ)
    try:
        common_dir = common_dir_of(places_of(cwd, env)[1])
    except NotARepositoryError:
        return {}
    return {
        worktree.name: worktree.root for worktree in list_worktrees(common_dir) if worktree.is_there
    }


def _unknown(name: str, known: tuple[str, ...]) -> UsageError:
    meant = near(name, known) or (f": there are {', '.join(known)}" if known else "")
    message = f"there is no workspace or folder {name!r}{meant}"
    return UsageError(message, remedy="atlas workspace list")
