"""One look at a work tree: a walk over all of it, after git has said which files it sees."""

from collections.abc import Collection, Mapping
from pathlib import Path

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, joined, split, user_environment
from atlas_retry.workspace.scan import Listing, Scan, scan


def look_over(ws: Workspace) -> Scan:
    """Walk the whole work tree. Raises WorkspaceError."""
    return scan(ws.root, listing(ws.root, ws.environ, _without(ws)), avoid=ws.state)


def listing(root: Path, env: Mapping[str, str], spare: Mapping[str, str] | None = None) -> Listing:
    """Function that lists what git sees in the work tree at `root`.

    If the repository is unreadable, the environment `spare` is used. An unreadable nested
    repository counts as ignored.
    """

    def below(folder: str) -> Collection[str]:
        asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        try:
            return split(git(*asked, cwd=root / folder, env=env))
        except GitError:
            if folder:
                return ()
            if spare is None:
                raise
            return split(git(*asked, cwd=root, env=spare))

    return below


def _without(ws: Workspace) -> dict[str, str]:
    """Environment of git for the work tree without its repository, which may be broken.

    Nothing is tracked then, so only the ignore rules of the work tree and the user count.
    """
    return {
        **ws.environ,
        "GIT_DIR": str(ws.shadow),
        "GIT_WORK_TREE": str(ws.root),
        "GIT_INDEX_FILE": str(ws.home / "no-index"),
    }


def untracked(root: Path, env: Mapping[str, str]) -> list[str]:
    """Files that git neither tracks nor ignores, relative to `root`. Raises GitError."""
    asked = ("ls-files", "-z", "--others", "--exclude-standard")
    return split(git(*asked, cwd=root, env=env))


def ignored(root: Path, env: Mapping[str, str]) -> list[str]:
    """Paths that git ignores; folders that are ignored as a whole end in `/`."""
    asked = ("ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard")
    is_there = (root / ".git").exists()
    return split(git(*asked, cwd=root, env=user_environment(env))) if is_there else []


def ignored_of(ws: Workspace, paths: Collection[str]) -> set[str]:
    """The paths among these that git ignores. Raises GitError."""
    # it knows no literal pathspecs; behind `./` nothing but the path is meant
    asked = joined(f"./{path}" for path in paths)
    options = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin")
    out = git(*options, cwd=ws.root, env=ws.environ, stdin=asked, accept=(0, 1))
    return {path.removeprefix("./") for path in split(out)}
