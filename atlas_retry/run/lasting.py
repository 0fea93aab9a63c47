"""Refused changes that no snapshot can restore: their state when judged, and whether it is left."""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from atlas_retry.guard.judge.seals import Moved, Seal
from atlas_retry.model import LeftBehind
from atlas_retry.workspace.scan import stat_of


def lasting(taken: Seal, moved: Moved, refused: Collection[str]) -> tuple[LeftBehind, ...]:
    """Refused paths that cannot be restored, with their current state."""
    every = (LeftBehind(path=path, states=_states(files)) for path, files in _files(taken, moved))
    return tuple(left for left in every if left.path in refused)


def is_as_left(left: LeftBehind) -> bool:
    """Whether its files have not been written or removed since."""
    return left.states == _states(left.states)


def _files(taken: Seal, moved: Moved) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each path as the guard names it, with the absolute paths of its files."""
    for change in moved.outside:
        yield str(change), (str(change),)
    for path in (*moved.installed, *moved.nested):
        yield path, (str(taken.root / path),)
    for tool in moved.tools:
        both = (taken.tools[tool.name][0], tool.path)
        yield tool.path or tool.name, tuple(filter(None, both))


def _states(paths: Collection[str]) -> dict[str, str]:
    """Stat data by path, which differ once it is written; for a link, also of its target."""
    return {path: " ".join(_stats(Path(path))) for path in paths}


def _stats(path: Path) -> Iterator[str]:
    for follow in (False, True):
        with suppress(OSError):
            yield ",".join(map(str, stat_of(os.stat(path, follow_symlinks=follow))))  # noqa: PTH116
