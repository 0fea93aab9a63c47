"""A machine's notes on its runs, so that their cost is reported even if a worker is lost."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from atlas_retry import state_dir
from atlas_retry.fleet.books import Beat
from atlas_retry.history import archive, database

FOLDER = "fleet"
"""Folder in the state directory."""
WAIT_S = 0.5


class _Try(Struct, frozen=True, kw_only=True):
    batch: str
    number: int


def machine_id(home: Path) -> str:
    """The id of this machine; it is kept in the state directory, like the journal."""
    file = state_dir.folder(home, FOLDER) / "machine"
    if not file.exists():
        state_dir.replace_file(file, os.urandom(8).hex().encode())
    return file.read_text(encoding="ascii")


def beat_of(home: Path, machine: str, run: str, number: int) -> Beat:
    """Progress of a run according to this machine's journal."""
    with database.reading(home) as connection:
        rows = archive.of_batch(connection, run)
        cost_usd, _ = archive.batch_usd(connection, run, but="")
    attempt = max((row.attempts for row in rows), default=0)
    return Beat(run=run, machine=machine, number=number, attempt=attempt, cost_usd=cost_usd)


@contextmanager
def under_way(
    home: Path, batch: str, run: str, number: int, wait: Callable[[], None]
) -> Iterator[None]:
    """Note that this machine tries a run, and exclude other workers on it from that run.

    While another worker has the run, `wait` is called repeatedly.
    """
    folder = state_dir.folder(home, FOLDER, "tries")
    while (file := _taken(folder / f"{run}.json", make=True)) is None:
        wait()
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, msgspec.json.encode(_Try(batch=batch, number=number)), 0)
        yield
    finally:
        os.close(file)


def to_report(home: Path, machine: str) -> dict[str, list[Beat]]:
    """Costs of the noted runs that are not running any more, by batch."""
    by_batch: dict[str, list[Beat]] = {}
    for path in sorted(state_dir.folder(home, FOLDER, "tries").glob("*.json")):
        file = _taken(path, make=False)
        if file is not None:
            note = msgspec.json.decode(os.pread(file, 4096, 0), type=_Try)
            os.close(file)
            by_batch.setdefault(note.batch, []).append(
                beat_of(home, machine, path.stem, note.number)
            )
    return by_batch


def forget(home: Path, beats: list[Beat]) -> None:
    """Delete the notes of reported runs, except those that were started again since."""
    for beat in beats:
        path = state_dir.folder(home, FOLDER, "tries") / f"{beat.run}.json"
        file = _taken(path, make=False)
        if file is None:
            continue
        if msgspec.json.decode(os.pread(file, 4096, 0), type=_Try).number == beat.number:
            path.unlink()
        os.close(file)


def _taken(path: Path, *, make: bool) -> int | None:
    """The locked file, released when we end; None if another has it, or there is none."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_ino == path.stat().st_ino:  # else it was deleted meanwhile
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(file)
    return None
