"""Where a change began and which paths it is about, for git. Reads no content."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from atlas_retry.errors import UsageError
from atlas_retry.workspace.git import GitError, commit_id, git, split, user_environment
from atlas_retry.workspace.walking import untracked

MAIN_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
"""Where a branch is taken to have begun, the first one that there is."""
_NAMES = ("--name-only", "-z", "--no-renames", "--relative")


class Changed(Struct, frozen=True, kw_only=True):
    """The paths of a change, deleted ones and the old names of renamed ones too."""

    paths: frozenset[str]
    how: str
    """Since when, or staged, in words."""
    partly: tuple[str, ...] = ()
    """Staged files that differ from what is staged."""


def since(root: Path, env: Mapping[str, str], revision: str) -> Changed:
    """What differs from where HEAD left a revision, untracked files included.

    An empty revision is the main branch. Raises UsageError if there is none, or no such commit.
    """
    if revision:
        named, there = revision, commit_id(root, env, revision)
    else:
        named, there = _main_branch(root, env)
    found = git("merge-base", "HEAD", there, cwd=root, env=env, accept=(0, 1)).decode().split()
    if not found:
        raise UsageError(
            f"HEAD and {named} have no commit in common here",
            remedy="in a shallow clone: git fetch --unshallow",
        )
    differing = git("diff", *_NAMES, found[0], "--", cwd=root, env=env)
    paths = frozenset((*split(differing), *untracked(root, env)))
    return Changed(paths=paths, how=f"since {named} ({found[0][:8]})")


def staged(root: Path, env: Mapping[str, str]) -> Changed:
    """What is staged for the next commit. Raises GitError."""
    paths = frozenset(split(git("diff", "--cached", *_NAMES, "--", cwd=root, env=env)))
    unstaged = split(git("diff", *_NAMES, "--", cwd=root, env=env))
    partly = tuple(sorted(paths.intersection(unstaged)))
    return Changed(paths=paths, how="staged", partly=partly)


def merge_base(root: Path, environ: Mapping[str, str], baseline: str | None) -> str | None:
    """The newest commit that HEAD shares with the main branch, or with `baseline`; None if unknown.

    Never with the branch that is checked out: a commit on it settles nothing.
    """
    env = user_environment(environ)
    try:
        asked = git("symbolic-ref", "-q", "--short", "HEAD", cwd=root, env=env, accept=(0, 1))
        here = {"HEAD", "@", asked.decode().strip()}
        for name in [baseline] if baseline else MAIN_BRANCHES:
            if name in here:
                continue
            ask = ("merge-base", "--end-of-options", "HEAD", name)
            if shared := git(*ask, cwd=root, env=env, accept=(0, 1, 128)).decode().strip():
                return shared
    except GitError:
        return None  # without git, or without a commit
    return None


def _main_branch(root: Path, env: Mapping[str, str]) -> tuple[str, str]:
    """The first of these that there is, and its commit."""
    for name in MAIN_BRANCHES:
        with suppress(UsageError):
            return name, commit_id(root, env, name)
    raise UsageError(
        f"no main branch is known here: none of {', '.join(MAIN_BRANCHES)}",
        remedy="name the revision to compare with: atlas validate --changed REV",
    )
