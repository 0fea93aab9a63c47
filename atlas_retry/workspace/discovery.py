"""Which work tree a path belongs to, and what may be said of it; takes no snapshot."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct

from atlas_retry.errors import WorkspaceError
from atlas_retry.model import WorkspaceFacts
from atlas_retry.state_dir import folder, key_of
from atlas_retry.workspace.git import GitError, check_version, git, split, user_environment

STATES = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or `git am`",
    "BISECT_LOG": "a bisect",
}
"""Source: git's wt-status.c; each is a file or folder of the git directory."""


class NotARepositoryError(WorkspaceError):
    """The folder is under no git at all."""


class Workspace(Struct, frozen=True, kw_only=True):
    """A work tree under git, and where atlas keeps what it remembers of it."""

    root: Path
    """Real path of the top of the work tree."""
    git_dir: Path
    """Of this work tree; that of a linked one lies in `common_dir`/worktrees."""
    common_dir: Path
    state: Path
    """The state directory; never part of a snapshot, even when it lies in the work tree."""
    home: Path
    """The folder in the state directory that is this work tree's."""
    environ: Mapping[str, str]
    """For git in the user's repository."""
    in_progress: tuple[str, ...] = ()
    """`a merge`, `a rebase` ... that the user has not finished."""

    @property
    def shadow(self) -> Path:
        """The repository that holds the snapshots."""
        return self.home / "shadow.git"


def open_workspace(
    path: Path, state: Path, *, environ: Mapping[str, str] | None = None
) -> Workspace:
    """The work tree that `path` is in.

    Raises NotARepositoryError where there is none, another WorkspaceError in a bare repository,
    inside `.git`, where git does not trust the owner, or without a git that is new enough.
    """
    caller = os.environ if environ is None else environ
    check_version(caller.get("PATH"))
    env = user_environment(caller)
    root, git_dir = places_of(path, env)
    return Workspace(
        root=root,
        git_dir=git_dir,
        common_dir=common_dir_of(git_dir),
        state=state.resolve(),
        home=folder(state, "workspaces", key_of(root)),
        environ=env,
        in_progress=tuple(
            {name: None for file, name in STATES.items() if (git_dir / file).exists()}
        ),
    )


def root_of(path: Path, env: Mapping[str, str]) -> Path:
    """Real path of the top of the work tree that `path` is in. Raises WorkspaceError."""
    return places_of(path, env)[0]


def places_of(path: Path, env: Mapping[str, str]) -> tuple[Path, Path]:
    """The same, and the git directory of that work tree."""
    if not path.is_dir():
        raise WorkspaceError(f"{path} is not a folder", remedy="name a folder under git")
    asked = ("--is-bare-repository", "--is-inside-git-dir", "--show-cdup", "--absolute-git-dir")
    try:
        out = os.fsdecode(git("rev-parse", *asked, cwd=path, env=env))
    except GitError as error:
        if "not a git repository" in error.message:
            raise NotARepositoryError(
                f"{path} is not under git, and a run has to be able to put everything back",
                remedy=f"git init {path}",
            ) from error
        raise
    bare, inside, up, git_dir = [*out.removesuffix("\n").split("\n", 3), "", ""][:4]
    if bare == "true" or inside == "true":
        where = "a bare repository" if bare == "true" else "inside a git directory"
        raise WorkspaceError(f"{path} is {where}: there is no work tree", remedy="git worktree add")
    return (path / up).resolve(), Path(git_dir)


def git_dir_of(root: Path, env: Mapping[str, str]) -> Path:
    """The git directory of the work tree at `root`. Raises GitError."""
    out = git("rev-parse", "--absolute-git-dir", cwd=root, env=env)
    return Path(os.fsdecode(out.removesuffix(b"\n")))


def common_dir_of(git_dir: Path) -> Path:
    """What linked worktrees share. Source: gitrepository-layout(5), `commondir`."""
    told = git_dir / "commondir"
    if not told.is_file():
        return git_dir
    return (git_dir / os.fsdecode(told.read_bytes().rstrip(b"\n"))).resolve()


def facts(ws: Workspace, changed: Collection[str] | None = None) -> WorkspaceFacts:
    """What a report says of the workspace; `changed` is what is `uncommitted`, if that is known."""
    try:
        out = git("rev-parse", "--verify", "--quiet", "HEAD", cwd=ws.root, env=ws.environ)
        head = os.fsdecode(out).strip()
    except GitError:
        head = None  # no commit yet
    if changed is None:
        changed = uncommitted(ws.root, ws.environ)
    return WorkspaceFacts(name=ws.root.name, root=str(ws.root), head=head, dirty=bool(changed))


def uncommitted(root: Path, env: Mapping[str, str]) -> frozenset[str]:
    """The paths that `git status` names: staged, changed, or unknown to git. Raises GitError."""
    how = ("--porcelain", "-z", "--no-renames", "--untracked-files=all")
    return frozenset(line[3:] for line in split(git("status", *how, cwd=root, env=env)))
