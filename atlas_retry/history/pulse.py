"""A sign of life on disk, so that after a sudden death its time is known. Says nothing else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

BEAT_S = 0.5
NAME = "pulse"


@contextmanager
def beating(folder: Path) -> Iterator[None]:
    """Touch `pulse` in a run's folder all the while: its time stamp tells when it was alive."""
    stop = threading.Event()

    def beat() -> None:
        is_last = False
        while not is_last:
            is_last = stop.wait(BEAT_S)
            touch()

    def touch() -> None:
        with suppress(OSError):
            (folder / NAME).touch()

    touch()
    thread = threading.Thread(target=beat, name="pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def last_beat_s(folder: Path) -> float | None:
    """When the run was last alive, in seconds since the epoch; None when nothing tells."""
    with suppress(OSError):
        return (folder / NAME).stat().st_mtime
    return None
