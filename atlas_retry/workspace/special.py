"""Finds ignore files that are no files: git would open them, and wait for ever at a FIFO."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from atlas_retry.workspace.scan import CACHES

RULES = (".gitignore", ".gitattributes", ".gitmodules")
"""The files of a work tree that steer git."""


def special_in(folder: Path, names: Collection[str]) -> Iterable[Path]:
    """Those of a folder that has these names."""
    for name in {*RULES}.intersection(names):
        path = folder / name
        if path.exists() and not path.is_file() and not path.is_dir():
            yield path


def special_rules(root: Path, skipped: Collection[str] = CACHES) -> tuple[Path, ...]:
    """Those of a whole tree, except in folders with these names and in git's own."""
    found: list[Path] = []
    for folder, folders, files in os.walk(root):
        folders[:] = {*folders}.difference(skipped, (".git",))
        found += special_in(Path(folder), files)
    return tuple(found)


def remove_special_rules(root: Path) -> tuple[str, ...]:
    """Remove those of a whole tree, which hold nothing; returns their paths."""
    special = special_rules(root)
    for path in special:
        path.unlink()
    return tuple(str(path.relative_to(root)) for path in special)
