"""Lines of the work tree that are new since a commit. Takes no snapshot and runs no filter."""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.workspace.discovery import uncommitted
from atlas_retry.workspace.git import git, split, user_environment
from atlas_retry.workspace.snapshot.trees import revision_tree, source_tree

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
