"""What batches have left undone, kept on disk until somebody goes on with it. Starts nothing."""

import fcntl
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from atlas_retry.errors import StateError
from atlas_retry.history import Order
from atlas_retry.state_dir import folder, replace_file
from atlas_retry.text.json_text import read, text_of

NAME = "unfinished.json"


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace that a batch was asked for and has not started."""

    root: str
    """Absolute path of the folder, as it was asked for."""
    order: Order


def left_to_do(home: Path) -> tuple[Waiting, ...]:
    """What is left to do, in the order it was asked for. A damaged list is an empty one."""
    try:
        return read((home / NAME).read_text(), tuple[Waiting, ...])
    except (FileNotFoundError, ValueError):
        return ()
    except OSError as error:
        raise StateError(f"what is left to do cannot be read: {error}") from error


def note(home: Path, started: Collection[Path], left: Sequence[Waiting] = ()) -> None:
    """Cross off what was started and add what was not. Raises StateError."""
    with _alone(home):
        before = left_to_do(home)
        again = {*map(str, started), *(one.root for one in left)}
        after = (*(one for one in before if one.root not in again), *left)
        if after != before:
            _write(home, after)


def _write(home: Path, after: Sequence[Waiting]) -> None:
    try:
        replace_file(home / NAME, text_of(after).encode())
    except OSError as error:
        raise StateError(f"what is left to do cannot be kept: {error}") from error


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    lock = os.open(folder(home) / f"{NAME}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
