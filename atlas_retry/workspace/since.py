"""The diff of the work tree against a commit, untracked files included. Runs no filter."""

from collections.abc import Mapping
from pathlib import Path

from atlas_retry.patterns import regex
from atlas_retry.workspace.git import EMPTY_TREE, GitError, git, user_environment
from atlas_retry.workspace.walking import untracked

MAX_UNTRACKED = 200
_TOUCHED = regex(rb"^diff --git [^\n]*\n(?=diff --git |\Z)", 8)
"""The section of a file that was only touched; 8 is re.MULTILINE."""


def diff_since(root: Path, environ: Mapping[str, str], commit: str | None) -> str:
    """The unified diff of all files that git does not ignore; None: against HEAD.

    Raises WorkspaceError.
    """
    env = user_environment(environ)
    base = commit or _head(root, env)
    tracked = git("diff-index", "-p", "--no-color", "--no-renames", base, "--", cwd=root, env=env)
    parts = [_TOUCHED.sub(b"", tracked)]
    for path in untracked(root, env)[:MAX_UNTRACKED]:
        new = ("diff", "--no-color", "--no-index", "--", "/dev/null", path)
        parts.append(git(*new, cwd=root, env=env, accept=(0, 1)))
    return b"".join(parts).decode(errors="replace")


def _head(root: Path, env: Mapping[str, str]) -> str:
    try:
        return git("rev-parse", "--verify", "--quiet", "HEAD", cwd=root, env=env).decode().strip()
    except GitError:
        return EMPTY_TREE
