"""Which lines of the work tree are new, compared with a commit. No snapshot, no filter is run."""

import os
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path

from atlas_retry.errors import WorkspaceError
from atlas_retry.workspace.git import commit_id, git, split, user_environment
from atlas_retry.workspace.trees import revision_tree, source_tree

MAX_FILES = 200
MAX_BYTES = 200_000


def changed_lines(
    root: Path, base: str | None, *, environ: Mapping[str, str]
) -> dict[str, tuple[range, ...]]:
    """1-based lines by path that are not as `base` has them.

    Without a base: that are not committed, and where everything is, those of the last commit.
    Empty where git cannot tell, or where more than `MAX_FILES` files differ.
    """
    if not os.path.lexists(root / ".git"):
        return {}
    revisions = (base,) if base else ("HEAD", "HEAD^")
    try:
        return next(filter(None, (_since(root, one, environ) for one in revisions)), {})
    except WorkspaceError:
        return {}


def _since(root: Path, revision: str, environ: Mapping[str, str]) -> dict[str, tuple[range, ...]]:
    env = user_environment(environ)
    commit = commit_id(root, env, revision)
    differing = git("diff-index", "--name-only", "-z", "--no-renames", commit, cwd=root, env=env)
    added = git("ls-files", "--others", "--exclude-standard", "-z", cwd=root, env=env)
    paths = {*split(differing), *split(added)}
    if not paths or len(paths) > MAX_FILES:
        return {}
    before = revision_tree(root, commit, paths, environ=environ)
    after = source_tree(root, environ=environ)
    found = {path: tuple(_new(before.read(path), after.read(path))) for path in sorted(paths)}
    return {path: lines for path, lines in found.items() if lines}


def _new(before: bytes | None, after: bytes | None) -> Iterator[range]:
    """What was added or replaced; of what was taken out, the lines around the gap."""
    if after is None or max(len(before or b""), len(after)) > MAX_BYTES:
        return
    sides = (before or b"").splitlines(), after.splitlines()
    for kind, _, _, start, end in SequenceMatcher(None, *sides).get_opcodes():
        if kind != "equal":
            yield range(start + 1, end + 1) if end > start else range(start, start + 2)
