"""Puts checked files into the work tree, all or none. Decides nothing."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.agents.anthropic.checks import CheckError, Write
from atlas_retry.workspace import place
from atlas_retry.workspace.scan import TEMPORARY
from atlas_retry.workspace.store import StoredFile

_NEW: Final = StoredFile("100644", "")


def source_of(root: Path, path: str) -> bytes | None:
    """What is at a path now; None: nothing.

    Raises CheckError for a link, a folder, and for what lies behind a link or a file.
    """
    for folder in PurePosixPath(path).parents[:-1]:
        above = root / folder
        if os.path.lexists(above) and (above.is_symlink() or not above.is_dir()):
            raise CheckError("lies behind a link or a file, not in a folder of the project")
    target = root / path
    if not os.path.lexists(target):
        return None
    if target.is_symlink() or not target.is_file():
        raise CheckError("is a link or a folder, not a file")
    return place.read(root, path)


class _Before(Struct, frozen=True, kw_only=True):
    """What was at a path."""

    path: str
    entry: StoredFile
    content: bytes | None
    missing: tuple[str, ...]
    """The folders above it that were not there, innermost first."""


def write_all(root: Path, writes: Sequence[Write]) -> tuple[str, ...]:
    """Make the files what they shall be; the paths that changed.

    Each by a rename. Raises OSError after what had been written was restored.
    """
    changed = [write for write in writes if write.content != place.read(root, write.path)]
    done: list[_Before] = []
    for write in changed:
        before = _before(root, write)
        try:
            _put(root, write, before.entry)
        except OSError:
            _clear(root, before)
            for earlier in reversed(done):
                _put(
                    root, replace(write, path=earlier.path, content=earlier.content), earlier.entry
                )
                _clear(root, earlier)
            raise
        done.append(before)
    return tuple(write.path for write in changed)


def _before(root: Path, write: Write) -> _Before:
    above = [str(folder) for folder in PurePosixPath(write.path).parents][:-1]
    return _Before(
        path=write.path,
        entry=place.look(root, write.path) or _NEW,
        content=place.read(root, write.path),
        missing=tuple(folder for folder in above if not os.path.lexists(root / folder)),
    )


def _clear(root: Path, before: _Before) -> None:
    """Take away what a write leaves beside its file: a temporary one, folders."""
    place.remove(root, str(PurePosixPath(before.path).with_name(TEMPORARY)))
    for folder in before.missing:
        place.remove_folder(root, folder)


def _put(root: Path, write: Write, entry: StoredFile) -> None:
    if write.content is None:
        place.remove(root, write.path)
        return
    place.put(root, write.path, _as_usual(root, write.path, entry), write.content)


def _as_usual(root: Path, path: str, entry: StoredFile) -> StoredFile:
    """A new file gets the permissions that the user's umask says."""
    if entry is not _NEW or os.path.lexists(root / path):
        return entry
    mask = os.umask(0)
    os.umask(mask)
    return StoredFile(entry.mode, entry.oid, 0o666 & ~mask)
