"""What was refused and no snapshot holds: as it was when the turn was judged, and whether it is."""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from atlas_retry.guard.judge.seals import Moved, Seal
from atlas_retry.model import LeftBehind
from atlas_retry.workspace.scan import stat_of


def lasting(taken: Seal, moved: Moved, refused: Collection[str]) -> tuple[LeftBehind, ...]:
    """Of the refused paths, those that cannot be restored, as they are now."""
    every = (LeftBehind(path=path, states=_states(files)) for path, files in _files(taken, moved))
    return tuple(left for left in every if left.path in refused)


def is_as_left(left: LeftBehind) -> bool:
    """Whether nobody has written or removed it since."""
    return left.states == _states(left.states)


def _files(taken: Seal, moved: Moved) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each path as the guard names it, with the absolute paths that restoring it writes."""
    for change in moved.outside:
        yield str(change), (str(change),)
    for path in (*moved.installed, *moved.nested):
        yield path, (str(taken.root / path),)
    for tool in moved.tools:
        both = (taken.tools[tool.name][0], tool.path)
        yield tool.path or tool.name, tuple(filter(None, both))


def _states(paths: Collection[str]) -> dict[str, str]:
    """What tells of each path whether it was written; of a link, also what it leads to."""
    return {path: " ".join(_stats(Path(path))) for path in paths}


def _stats(path: Path) -> Iterator[str]:
    for follow in (False, True):
        with suppress(OSError):
            yield ",".join(map(str, stat_of(os.stat(path, follow_symlinks=follow))))  # noqa: PTH116
