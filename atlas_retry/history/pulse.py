"""A sign of life on disk, so that after a sudden death its time is known. Says nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from atlas_retry import state_dir

NAME = "pulse"


@contextmanager
def beating(folder: Path) -> Iterator[None]:
    """Touch `pulse` in a run's folder all the while: its time stamp tells when it was alive."""
    with suppress(OSError):
        (folder / NAME).touch()
    with state_dir.beating(folder / NAME):
        yield


def last_beat_s(folder: Path) -> float | None:
    """When the run was last alive, in seconds since the epoch; None when nothing tells."""
    with suppress(OSError):
        return (folder / NAME).stat().st_mtime
    return None
