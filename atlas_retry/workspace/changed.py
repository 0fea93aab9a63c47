"""What a change is about: where it began, its paths, its diff and its new lines.

Takes no snapshot and runs no filter.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.patterns import regex
from atlas_retry.workspace.discovery import uncommitted
from atlas_retry.workspace.git import (
    EMPTY_TREE,
    GitError,
    commit_id,
    git,
    split,
    untracked,
    user_environment,
)
from atlas_retry.workspace.snapshot.trees import revision_tree, source_tree

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


def paths_since(root: Path, env: Mapping[str, str], commit: str) -> frozenset[str]:
    """What may differ from a commit, untracked files included; writes no index. GitError."""
    moved = git("diff-index", "--name-only", "-z", "--no-renames", commit, "--", cwd=root, env=env)
    return frozenset((*split(moved), *untracked(root, env)))


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


MAX_UNTRACKED = 200
_TOUCHED = regex(rb"^diff --git [^\n]*\n(?=diff --git |\Z)", 8)
"""The section of a file that was only touched; 8 is re.MULTILINE."""


def diff_since(root: Path, environ: Mapping[str, str], commit: str | None) -> str:
    """The unified diff of all files that git does not ignore; None: against HEAD.

    Raises WorkspaceError.
    """
    env = user_environment(environ)
    asked = ("rev-parse", "--verify", "--quiet", "HEAD")
    head = git(*asked, cwd=root, env=env, accept=(0, 1, 128)).decode().strip()
    base = commit or head or EMPTY_TREE
    tracked = git("diff-index", "-p", "--no-color", "--no-renames", base, "--", cwd=root, env=env)
    parts = [_TOUCHED.sub(b"", tracked)]
    for path in untracked(root, env)[:MAX_UNTRACKED]:
        new = ("diff", "--no-color", "--no-index", "--", "/dev/null", path)
        parts.append(git(*new, cwd=root, env=env, accept=(0, 1)))
    return b"".join(parts).decode(errors="replace")


MAX_FILES = 200
MAX_BYTES = 200_000


def changed_lines(
    root: Path,
    base: str | None,
    *,
    environ: Mapping[str, str],
    changed: Collection[str] | None = None,
) -> dict[str, tuple[range, ...]]:
    """1-based ranges of lines, by path, that differ from `base`.

    Without a base, uncommitted lines; if there are none, those of the last commit. Empty if git
    cannot tell, or if more than `MAX_FILES` files differ. `changed` are the files that may differ
    from the last commit, if known.
    """
    if not os.path.lexists(root / ".git"):
        return {}
    revisions = (base,) if base else ("HEAD", "HEAD^")
    try:
        if changed is None:
            changed = uncommitted(root, user_environment(environ)).paths
        return next(filter(None, (_since(root, one, environ, changed) for one in revisions)), {})
    except (UsageError, WorkspaceError):
        return {}


def _since(
    root: Path, revision: str, environ: Mapping[str, str], changed: Collection[str]
) -> dict[str, tuple[range, ...]]:
    paths = {*changed}
    if revision != "HEAD":
        asked = ("diff-tree", "-r", "--name-only", "-z", "--no-renames")
        commits = ("--end-of-options", revision, "HEAD", "--")
        paths.update(split(git(*asked, *commits, cwd=root, env=user_environment(environ))))
    if not paths or len(paths) > MAX_FILES:
        return {}
    before = revision_tree(root, revision, paths, environ=environ)
    after = source_tree(root, environ=environ)
    by_path = {path: tuple(_new(before.read(path), after.read(path))) for path in sorted(paths)}
    return {path: lines for path, lines in by_path.items() if lines}


def _new(before: bytes | None, after: bytes | None) -> Iterator[range]:
    """Added and replaced lines; for removed ones, the lines around the gap."""
    if after is None or max(len(before or b""), len(after)) > MAX_BYTES:
        return
    from difflib import SequenceMatcher  # start-up

    sides = (before or b"").splitlines(), after.splitlines()
    for kind, _, _, start, end in SequenceMatcher(None, *sides).get_opcodes():
        if kind != "equal":
            yield range(start + 1, end + 1) if end > start else range(start, start + 2)
