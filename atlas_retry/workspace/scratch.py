"""A copy of a state of the workspace in a scratch folder, for gates to run in. Runs nothing."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from atlas_retry.model import Tree

DEPENDENCIES = ("node_modules", ".venv", "venv", "target", "vendor")
"""Folders that git ignores and gates need; they are linked, not copied."""
FILES = frozenset({"100644", "100755"})
LINK = "120000"


@contextmanager
def laid_out(paths: Iterable[str], tree_of: Callable[[str], Tree], root: Path) -> Iterator[Path]:
    """A folder with these paths, each as the tree holds it that `tree_of` names for it.

    What the workspace at `root` has installed is linked into it. It goes when the context ends.
    """
    with tempfile.TemporaryDirectory(prefix="atlas-scratch-") as folder:
        scratch = Path(folder).resolve() / "work"
        scratch.mkdir()
        for path in sorted(set(paths)):
            _write(path, tree_of(path), scratch)
        for name in DEPENDENCIES:
            if (root / name).is_dir() and not (scratch / name).exists():
                (scratch / name).symlink_to(root / name)
        yield scratch


def _write(path: str, tree: Tree, scratch: Path) -> None:
    content, mode = tree.read(path), tree.mode(path)
    target = scratch / path
    if content is None or mode not in {*FILES, LINK}:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if mode == LINK:
        _link(target, os.fsdecode(content), scratch)
        return
    target.write_bytes(content)
    if mode == "100755":
        target.chmod(target.stat().st_mode | stat.S_IXUSR)


def _link(target: Path, to: str, scratch: Path) -> None:
    """Only links that stay inside: the others could be written through."""
    if (target.parent / to).resolve().is_relative_to(scratch):
        target.symlink_to(to)
