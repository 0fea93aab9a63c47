"""Opens the journal's database: creates, migrates or refuses it by its version."""

import errno
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from atlas_retry import state_dir
from atlas_retry.errors import StateError
from atlas_retry.history.schema import MIGRATIONS

NAME = "atlas.db"
BUSY_S = 30.0
REMEDY = "move it away to start a new one, or export ATLAS_HOME=/another/folder"
"""The remedy if the journal cannot be used."""
NO_ROOM = "make room on the disk, or export ATLAS_HOME=/another/folder"
Migrations = Sequence[Sequence[str]]


def remedy(error: Exception) -> str:
    """The remedy for an error; on a full disk the journal itself is sound."""
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return NO_ROOM if is_full or "disk is full" in str(error) else REMEDY


def path_of(home: Path) -> Path:
    """Path of the journal in a state directory."""
    return home / NAME


def connect(home: Path, migrations: Migrations = MIGRATIONS) -> sqlite3.Connection:
    """The journal of a state directory for writing, created or migrated if needed.

    Raises StateError if it is damaged, not writable, or of a newer atlas.
    """
    file = path_of(state_dir.folder(home))
    try:
        _bring_up(file, migrations)
        connection = _open(file)
        try:
            for pragma in ("synchronous = FULL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")
            with writing(connection):
                """Check that the journal is writable."""
        except sqlite3.Error:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise StateError(
            f"the journal {file} cannot be used: {error}", remedy=remedy(error)
        ) from error
    return connection


@contextmanager
def opened(home: Path) -> Iterator[sqlite3.Connection]:
    """The journal for writing, closed afterwards."""
    with closing(connect(home)) as connection:
        yield connection


@contextmanager
def reading(home: Path, migrations: Migrations = MIGRATIONS) -> Iterator[sqlite3.Connection]:
    """The journal for reading; an empty one if it does not exist.

    Raises StateError if it is damaged or of a newer atlas.
    """
    file = path_of(home)
    try:
        if file.exists():
            _bring_up(file, migrations)
            connection = _open(file)
        else:
            connection = sqlite3.connect(":memory:", isolation_level=None)
            _migrate(connection, migrations)
        with closing(connection):
            yield connection
    except (sqlite3.Error, OSError) as error:
        raise StateError(
            f"the journal {file} cannot be read: {error}", remedy=remedy(error)
        ) from error


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction, rolled back on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def dicts(cursor: sqlite3.Cursor) -> Iterator[dict[str, object]]:
    """Each row as a mapping from column names."""
    names = [column[0] for column in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)


def _open(file: Path) -> sqlite3.Connection:
    # Events come from several threads; the journal serialises them.
    return sqlite3.connect(file, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def _version(file: Path) -> int | None:
    """Version of the journal; None if it does not exist."""
    if not file.exists():
        return None
    with closing(_open(file)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _bring_up(file: Path, migrations: Migrations) -> None:
    """Create the journal, or migrate a copy and replace the journal with it."""
    if _version(file) == len(migrations):
        return
    with state_dir.alone(file.parent):
        version = _version(file)
        if version == len(migrations):
            return
        if version is not None and version > len(migrations):
            raise StateError(
                f"the journal {file} was written by a newer atlas (its version is {version}, this "
                f"atlas knows {len(migrations)})",
                remedy="use the newer atlas, or export ATLAS_HOME=/another/folder",
            )
        fresh = file.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        if version is not None:
            # A leftover log would be applied to the new file
            # (https://sqlite.org/howtocorrupt.html, 1.4), so it is merged and deleted.
            # That fails if another process has the journal open.
            with closing(_open(file)) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("VACUUM INTO ?", (str(fresh),))
        with closing(_open(fresh)) as connection:
            _migrate(connection, migrations)
            # Kept in the file. SQLite does not wait for other connections to set it.
            connection.execute("PRAGMA journal_mode = WAL")
        fresh.chmod(0o600)
        fresh.replace(file)


def _migrate(connection: sqlite3.Connection, migrations: Migrations) -> None:
    done = int(connection.execute("PRAGMA user_version").fetchone()[0])
    for number, statements in enumerate(migrations[done:], start=done + 1):
        with writing(connection):
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
