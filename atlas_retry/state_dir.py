"""The state directory, where atlas keeps its own data: one folder per user, outside workspaces."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from atlas_retry.digests import sha256_of
from atlas_retry.errors import StateError


def locate(environ: Mapping[str, str]) -> Path:
    """The state directory: `$ATLAS_HOME`, else `atlas` in the XDG state directory.

    Source: XDG Base Directory Specification 0.8, which ignores relative paths. Raises StateError if
    no home is set, or ATLAS_HOME is relative or cannot be a folder.
    """
    if chosen := environ.get("ATLAS_HOME"):
        return _folder_to_be(Path(chosen))
    base = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(base):  # noqa: PTH117 - start-up
        return Path(base) / "atlas"
    if not environ.get("HOME"):
        raise StateError(
            "no location for the state directory: neither ATLAS_HOME nor HOME is set",
            remedy="export ATLAS_HOME=/some/folder",
        )
    return Path(environ["HOME"]).absolute() / ".local" / "state" / "atlas"


def _folder_to_be(path: Path) -> Path:
    """The path, if it is absolute, and a folder or can become one. Raises StateError."""
    if not path.is_absolute():
        import shlex

        whole = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - never raises
        raise StateError(
            f"ATLAS_HOME is {path}, a relative path: it would be another folder in each directory",
            remedy=f"export ATLAS_HOME={shlex.quote(whole)}",
        )
    if not path.is_dir():
        there = next(above for above in (path, *path.parents) if above.exists())
        if not there.is_dir():
            raise StateError(
                f"ATLAS_HOME is {path}, but {there} is not a folder",
                remedy="export ATLAS_HOME=/a/folder/you/can/write",
            )
    return path


def folder(*parts: str | Path) -> Path:
    """The folder of these parts, created with mode 0700 if missing. Raises StateError."""
    path = Path(*parts)
    try:
        if not path.is_dir():
            for above in reversed(path.parents):
                if not above.exists():
                    above.mkdir(mode=0o700, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StateError(
            f"the state directory cannot be written: {error}",
            remedy="export ATLAS_HOME=/a/folder/you/can/write",
        ) from error
    return path


def replace_file(file: Path, content: bytes) -> None:
    """Write a file atomically; if that fails, the old content stays. Raises OSError."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content)
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold the lock of a folder or file; the lock of a dead process is released by the system."""
    how = os.O_RDONLY if lock.is_dir() else os.O_RDWR | os.O_CREAT
    file = os.open(lock, how | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


BEAT_S = 0.5


@contextmanager
def beating(file: Path) -> Iterator[None]:
    """Touch a file regularly: its time stamp shows when this process was last alive."""
    import threading

    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(BEAT_S):
            with suppress(OSError):
                os.utime(file)

    thread = threading.Thread(target=beat, name="pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        with suppress(OSError):
            os.utime(file)


MAX_LOG_BYTES = 2 << 30
"""Most bytes of output folders that are kept; a single command may print half of it."""


def trim(parent: Path, *, keep: int | None = None) -> None:
    """Remove the oldest folders, so that at most `keep` and MAX_LOG_BYTES are left.

    Their names are numbers or sort by time. The newest one always stays.
    """
    total = 0
    newest_first = sorted(parent.iterdir(), key=lambda p: (len(p.name), p.name), reverse=True)
    for at, old in enumerate(newest_first):
        total += _log_bytes(old)
        is_over = keep is not None and at >= keep
        if at and (is_over or total > MAX_LOG_BYTES):
            import shutil  # start-up

            shutil.rmtree(old, ignore_errors=True)


def _log_bytes(parent: Path) -> int:
    """Size of the logs in a folder; another process may be removing them."""
    total = 0
    for above, _, names in os.walk(parent):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{above}/{name}").st_size if name.endswith(".log") else 0
    return total


def key_of(root: Path) -> str:
    """A short, unique name of a work tree: its folder's name and a hash of its path."""
    place = Path(os.path.realpath(root))
    return f"{place.name}-{sha256_of(os.fsencode(place))[:16]}"


VALIDATION, TURN = "-validation", "-hook"
"""Suffixes of ids: validations that changed files and turns of an agent can be undone like runs."""


def exact_id(suffix: str) -> str:
    """An id that sorts by time, to the microsecond."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}{suffix}"


def new_run_id() -> str:
    """An id that sorts by time and can be typed: `20261122-093000-1f2e`."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.urandom(2).hex()}"
