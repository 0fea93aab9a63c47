"""Open the journal's database: made, migrated or refused; knows the tables by version only."""

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
Migrations = Sequence[Sequence[str]]


def path_of(home: Path) -> Path:
    """Where the journal of a state directory is."""
    return home / NAME


def connect(home: Path, migrations: Migrations = MIGRATIONS) -> sqlite3.Connection:
    """The journal of a state directory, to be written; made or migrated where it has to be.

    Raises StateError when it is damaged, cannot be written, or is of a newer atlas.
    """
    file = path_of(state_dir.folder(home))
    try:
        _bring_up(file, migrations)
        connection = _open(file)
        try:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")
            with writing(connection):
                """Only to see that it can be written, before anything is done that should be."""
        except sqlite3.Error:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise StateError(f"the journal {file} cannot be used: {error}", remedy=REMEDY) from error
    return connection


@contextmanager
def opened(home: Path) -> Iterator[sqlite3.Connection]:
    """The journal as `connect` gives it, closed afterwards."""
    with closing(connect(home)) as connection:
        yield connection


@contextmanager
def reading(home: Path, migrations: Migrations = MIGRATIONS) -> Iterator[sqlite3.Connection]:
    """The journal, to look something up; an empty one where there is none yet.

    Raises StateError when it is damaged or of a newer atlas.
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
        raise StateError(f"the journal {file} cannot be read: {error}", remedy=REMEDY) from error


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction; nothing of it is there when something in it fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def dicts(cursor: sqlite3.Cursor) -> Iterator[dict[str, object]]:
    """Each row by the names of its columns."""
    names = [column[0] for column in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)


def _open(file: Path) -> sqlite3.Connection:
    # Events come from whichever thread runs the workspace; the journal serialises them itself.
    return sqlite3.connect(file, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def _version(file: Path) -> int | None:
    """None where there is no journal yet."""
    if not file.exists():
        return None
    with closing(_open(file)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _bring_up(file: Path, migrations: Migrations) -> None:
    """Make the journal, or migrate a copy of it that takes its place once it is whole."""
    if _version(file) == len(migrations):
        return
    with state_dir.alone(file.with_suffix(".lock")):
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
            # A log that stayed behind would be taken for one of the file that replaces it
            # (https://sqlite.org/howtocorrupt.html, 1.4): it is folded in, and is gone afterwards.
            # Somebody else's open connection makes it fail.
            with closing(_open(file)) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("VACUUM INTO ?", (str(fresh),))
        with closing(_open(fresh)) as connection:
            _migrate(connection, migrations)
        fresh.chmod(0o600)
        fresh.replace(file)


def _migrate(connection: sqlite3.Connection, migrations: Migrations) -> None:
    done = int(connection.execute("PRAGMA user_version").fetchone()[0])
    for number, statements in enumerate(migrations[done:], start=done + 1):
        with writing(connection):
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
