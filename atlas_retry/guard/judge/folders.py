"""Comparison of folders, and search for texts in them."""

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from atlas_retry.digests import sha256_of
from atlas_retry.guard.case import OutsideChange
from atlas_retry.model import Tree
from atlas_retry.reading import read_file
from atlas_retry.workspace.files import Stat, differing, is_settled, stat_of

_MAX_SEARCHED_BYTES = 1 << 20
_MAX_DIGESTED_BYTES = 64 << 20


def searching(
    root: Path, before: Tree, changed: Collection[str]
) -> Callable[[Collection[str]], dict[str, frozenset[str]]]:
    """A function that searches texts in the files of the tree before the change.

    Unchanged files are read from the folder itself, changed ones from the tree.
    """
    moved = frozenset(changed)

    def mentions(texts: Collection[str]) -> dict[str, frozenset[str]]:
        needles = {text: text.encode("utf-8", "surrogateescape") for text in texts if text}
        if not needles:
            return {}
        contents = (
            (path, before.read(path) if path in moved else _searched(root / path))
            for path in before.paths()
        )
        return _holding(needles, contents)

    return mentions


def _holding(
    needles: Mapping[str, bytes], contents: Iterable[tuple[str, bytes | None]]
) -> dict[str, frozenset[str]]:
    """Paths whose content has a needle, by the needle's text."""
    any_of_them = re.compile(b"|".join(map(re.escape, needles.values())))
    paths: dict[str, set[str]] = {text: set() for text in needles}
    for path, content in contents:
        if content is None or not any_of_them.search(content):
            continue
        for text, needle in needles.items():
            paths[text].update([path] if needle in content else ())
    return {text: frozenset(holding) for text, holding in paths.items()}


def _searched(path: Path) -> bytes | None:
    with suppress(OSError):
        if not path.is_symlink() and path.stat().st_size <= _MAX_SEARCHED_BYTES:
            return read_file(path)
    return None


def differences(before: Path, after: Path) -> Iterator[OutsideChange]:
    """Files that differ between two states of a place outside the workspace."""
    for path in sorted(differing(_digests(before), _digests(after))):
        yield OutsideChange(place=str(after), path=path)


def _digests(root: Path) -> dict[str, str]:
    digests = {}
    if not root.is_dir():
        return {root.name: digest(root)} if root.exists() else {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*files, *links):
            path = Path(folder) / name
            digests[path.relative_to(root).as_posix()] = digest(path)
    return digests


def digest(path: Path) -> str:
    """Digest of a path's target, mode and content, or of the error; only for comparison."""
    link = ""
    try:
        link = str(path.readlink()) if path.is_symlink() else ""
        status = path.stat()
        if status.st_size > _MAX_DIGESTED_BYTES:
            return f"{link} {status.st_size} {status.st_mtime_ns}"
        seen = stat_of(status)
        # a change after this time gets another timestamp, so the content need not be read again
        of_content = _sha256 if is_settled(seen, time.time_ns()) else _sha256.__wrapped__
        return f"{link} {status.st_mode:o} {of_content(path, seen)}"
    except OSError as error:
        return f"{link} unreadable: {error.strerror}"


@lru_cache(maxsize=4096)
def _sha256(path: Path, _: Stat) -> str:
    return sha256_of(read_file(path))
