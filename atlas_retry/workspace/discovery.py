"""Find the work tree of a path, and facts about it; takes no snapshot.

A linked worktree, a submodule and `git init --separate-git-dir` have a file `.git`
(gitrepository-layout(5)). It is held while a run may destroy it: without it, or with another one,
git would find some other repository and write there.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from atlas_retry import state_dir
from atlas_retry.errors import WorkspaceError
from atlas_retry.model import WorkspaceFacts
from atlas_retry.reading import read_file
from atlas_retry.state_dir import folder, key_of
from atlas_retry.text.commands import quoted
from atlas_retry.workspace.files import GitFile
from atlas_retry.workspace.git import (
    GitError,
    check_version,
    common_dir_of,
    git,
    git_dir_of,
    split,
    user_environment,
)

STATES = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or `git am`",
    "BISECT_LOG": "a bisect",
}
"""Source: git's wt-status.c; each is a file or folder of the git directory."""


_FIELDS_BEFORE_PATH = {"1": 7, "u": 9, "?": 0}
_NO_COMMIT = "(initial)"
_NEW = "--path-format=absolute"
"""An option as new as `git.MINIMUM`: an older git prints it (Git release notes 2.31)."""


class NotARepositoryError(WorkspaceError):
    """The folder is not in a git repository."""


class Workspace(Struct, frozen=True, kw_only=True):
    """A work tree under git, and the places where atlas keeps its data on it."""

    root: Path
    """Real path of the top of the work tree."""
    git_dir: Path
    """Git directory of this work tree; for a linked worktree it is in `common_dir`/worktrees."""
    common_dir: Path
    state: Path
    """The state directory; never part of a snapshot, even if it is in the work tree."""
    home: Path
    """The folder of this work tree in the state directory."""
    environ: Mapping[str, str]
    """Environment of git in the user's repository."""
    in_progress: tuple[str, ...] = ()
    """`a merge`, `a rebase` ... that the user has not finished."""

    @property
    def shadow(self) -> Path:
        """Path of the repository that holds the snapshots."""
        return self.home / "shadow.git"

    @property
    def installed(self) -> Path:
        """Folder of the held content of installed files."""
        return self.home / "installed"


def open_workspace(path: Path, state: Path, *, environ: Mapping[str, str]) -> Workspace:
    """The work tree that `path` is in.

    Raises NotARepositoryError if there is none; another WorkspaceError in a bare repository, inside
    `.git`, if git does not trust the owner, or if git is missing or too old.
    """
    env = user_environment(environ)
    put_back_gitfile_around(path.resolve(), state.resolve())
    return _workspace(*places_of(path, env), state, env)


def unopened(root: Path, state: Path, *, environ: Mapping[str, str]) -> Workspace:
    """The work tree with its top at `root`, found from its files without running git.

    For looks only; works without git, too.
    """
    git_dir = root / ".git"
    with suppress(GitError):
        git_dir = git_dir_of(root)
    return _workspace(root, git_dir, state, user_environment(environ))


def _workspace(root: Path, git_dir: Path, state: Path, env: Mapping[str, str]) -> Workspace:
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


def places_of(path: Path, env: Mapping[str, str]) -> tuple[Path, Path]:
    """Real path of the top of the work tree that `path` is in, and its git directory.

    Raises WorkspaceError.
    """
    if not path.is_dir():
        raise WorkspaceError(f"{path} is not a folder", remedy="name a folder under git")
    asked = ("--is-bare-repository", "--is-inside-git-dir", "--show-cdup", "--absolute-git-dir")
    try:
        out = os.fsdecode(git("rev-parse", _NEW, *asked, cwd=path, env=env))
    except GitError as error:
        if "not a git repository" in error.message:
            raise NotARepositoryError(
                f"{path} is not under git, and a run must be able to restore everything",
                remedy=f"git init {quoted(path)}",
            ) from error
        check_version(env.get("PATH"))
        raise
    if not out.startswith(("true\n", "false\n")):
        check_version(env.get("PATH"))
    bare, inside, up, git_dir = [*out.removesuffix("\n").split("\n", 3), "", ""][:4]
    if bare == "true" or inside == "true":
        where = "a bare repository" if bare == "true" else "inside a git directory"
        raise WorkspaceError(
            f"{path} is {where}: there is no work tree",
            remedy=f"git -C {quoted(path)} worktree add ../work",
        )
    return (path / up).resolve(), Path(git_dir)


def refs_in(files: Mapping[str, bytes]) -> dict[str, str]:
    """Name and id of every ref; for a symbolic one, `ref: ` and its target.

    Source: gitrepository-layout(5); a ref's own file wins over `packed-refs`.
    """
    refs: dict[str, str] = {}
    for line in os.fsdecode(files.get("packed-refs", b"")).splitlines():
        if not line.startswith(("#", "^")):
            oid, _, name = line.partition(" ")
            refs[name] = oid
    loose = (name for name in files if name.startswith("refs/"))
    return refs | {name: os.fsdecode(files[name]).strip() for name in loose}


def head_in(git_dir: Path, common: Path) -> str | None:
    """The commit of HEAD; None if there is none, or only git can tell."""
    with suppress(OSError):
        head = read_file(git_dir / "HEAD")
        branch = os.fsdecode(head).strip().removeprefix("ref: ")
        names = ["packed-refs", *([branch] if branch.startswith("refs/") else [])]
        files = [name for name in names if (common / name).is_file()]
        return commit_in({"HEAD": head} | {name: read_file(common / name) for name in files})
    return None


def commit_in(files: Mapping[str, bytes]) -> str | None:
    """The commit of HEAD in git's own files by name; None if there is none."""
    head = os.fsdecode(files["HEAD"]).strip()
    if head.startswith("ref: refs/heads/"):
        head = refs_in(files).get(head.removeprefix("ref: "), "")
    return head if head.isalnum() else None


class Uncommitted(Struct, frozen=True, kw_only=True):
    """State of a work tree according to `git status`."""

    head: str | None
    """The last commit; None if there is none."""
    paths: frozenset[str]
    """Staged, changed and untracked files."""


def facts(ws: Workspace) -> WorkspaceFacts:
    """Facts on the workspace for a report. Raises GitError."""
    now = uncommitted(ws.root, ws.environ)
    return WorkspaceFacts(
        name=ws.root.name, root=str(ws.root), head=now.head, dirty=bool(now.paths)
    )


def uncommitted(root: Path, env: Mapping[str, str], only: Collection[str] = ()) -> Uncommitted:
    """Ask git for differences from the last commit, or for those of some paths. Raises GitError.

    Source: git-status(1), "Porcelain Format Version 2": the path is the last field.
    """
    how = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all")
    headers, paths = dict[str, str](), set[str]()
    for line in split(git("status", *how, "--", *only, cwd=root, env=env)):
        kind, _, rest = line.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            headers[name] = value
        else:
            paths.add(rest.split(" ", _FIELDS_BEFORE_PATH[kind])[-1])
    head = headers.get("branch.oid", _NO_COMMIT)
    return Uncommitted(head=None if head == _NO_COMMIT else head, paths=frozenset(paths))


NAME, _HELD, _REFUSED = ".git", "gitfile", "refused-git"
MAX_HELD_BYTES = 1 << 20


def git_file(path: Path, max_bytes: int | None = MAX_HELD_BYTES) -> GitFile | None:
    """One of git's own files, or a link among them; None if there is neither, or it is too big.

    Raises OSError if it cannot be read.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return GitFile(status.st_mode, os.fsencode(path.readlink()))
        if stat.S_ISREG(status.st_mode) and (max_bytes is None or status.st_size <= max_bytes):
            return GitFile(status.st_mode, read_file(path))
    return None


@contextmanager
def holding_gitfile(root: Path, home: Path) -> Iterator[None]:
    """Hold the file until the run has ended; after a kill it stays held.

    `home` is the folder of the work tree in the state directory. Raises WorkspaceError.
    """
    put_back_gitfile(root, home)
    there, held = git_file(root / NAME), home / _HELD
    if there is None:  # an ordinary folder
        yield
        return
    state_dir.replace_file(held, msgspec.msgpack.encode(there))
    try:
        yield
    finally:
        put_back_gitfile(root, home)
        held.unlink(missing_ok=True)


def put_back_gitfile(root: Path, home: Path) -> bool:
    """Restore the file if a run holds it; returns whether it was another one, or gone.

    A repository that was made in its place is moved to `home`. Raises WorkspaceError.
    """
    with suppress(FileNotFoundError):
        held = msgspec.msgpack.decode((home / _HELD).read_bytes(), type=GitFile)
        file = root / NAME
        with suppress(PermissionError):
            if git_file(file) == held:
                return False
        try:
            if file.is_dir() and not file.is_symlink():
                import shutil  # start-up

                shutil.rmtree(home / _REFUSED, ignore_errors=True)
                shutil.move(file, home / _REFUSED)
            file.unlink(missing_ok=True)
            if stat.S_ISLNK(held.mode):
                file.symlink_to(os.fsdecode(held.content))
            else:
                state_dir.replace_file(file, held.content)
                file.chmod(stat.S_IMODE(held.mode))
        except OSError as error:
            raise WorkspaceError(
                f"{file} cannot be restored: {error.strerror}",
                remedy=f"write it: {os.fsdecode(held.content).strip()}",
            ) from error
        return True
    return False


def put_back_gitfile_around(path: Path, state: Path) -> None:
    """Restore the file of the work tree around `path` if a killed run holds it."""
    for up in (path, *path.parents):
        put_back_gitfile(up, state / "workspaces" / state_dir.key_of(up))
