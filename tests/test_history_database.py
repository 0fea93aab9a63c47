"""The journal's file: made, migrated on a copy, refused, shared by many."""

import errno
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from atlas_retry.errors import StateError
from atlas_retry.history import database
from atlas_retry.history.database import connect, path_of, reading, writing
from tests.processes import ENV, python

FIRST = (("CREATE TABLE notes (text TEXT)",),)
SECOND = (
    *FIRST,
    ("ALTER TABLE notes ADD COLUMN author TEXT", "INSERT INTO notes VALUES ('b', 'B')"),
)
BROKEN = (*FIRST, ("INSERT INTO notes VALUES ('half')", "ALTER TABLE missing ADD COLUMN x TEXT"))


def notes(home: Path, migrations: tuple[tuple[str, ...], ...]) -> list[tuple[object, ...]]:
    with reading(home, migrations) as connection:
        return connection.execute("SELECT * FROM notes ORDER BY 1").fetchall()


def put(home: Path, text: str) -> None:
    with closing(connect(home, FIRST)) as connection, writing(connection) as to:
        to.execute("INSERT INTO notes VALUES (?)", (text,))


def test_the_journal_and_its_folder_are_private(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "state"
    connect(home).close()
    assert stat.S_IMODE(path_of(home).stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700


def test_an_older_journal_is_migrated_with_its_content(tmp_path: Path) -> None:
    put(tmp_path, "a")
    assert notes(tmp_path, SECOND) == [("a", None), ("b", "B")]
    assert notes(tmp_path, SECOND) == [("a", None), ("b", "B")]


def test_a_failed_migration_leaves_the_journal_unchanged(tmp_path: Path) -> None:
    put(tmp_path, "a")
    with pytest.raises(StateError, match="missing"):
        connect(tmp_path, BROKEN)
    assert notes(tmp_path, FIRST) == [("a",)]


def test_a_newer_journal_is_refused(tmp_path: Path) -> None:
    connect(tmp_path, SECOND).close()
    with pytest.raises(StateError, match="newer atlas"):
        connect(tmp_path, FIRST)


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    path_of(tmp_path).write_bytes(b"this is no database, whatever it is called" * 100)
    with pytest.raises(StateError, match="cannot be used"):
        connect(tmp_path)


def test_reading_does_not_create_a_journal(tmp_path: Path) -> None:
    with reading(tmp_path) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    assert not path_of(tmp_path).exists()


def _half(connection: sqlite3.Connection) -> None:
    with writing(connection) as to:
        to.execute("INSERT INTO notes VALUES ('half')")
        to.execute("INSERT INTO missing VALUES (1)")


def test_a_failed_transaction_writes_nothing(tmp_path: Path) -> None:
    with closing(connect(tmp_path, FIRST)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            _half(connection)
        assert connection.execute("SELECT * FROM notes").fetchall() == []


def test_a_migrated_journal_lets_readers_beside_writers_from_the_start(tmp_path: Path) -> None:
    """SQLite changes the mode only with nobody else there, and does not wait for that."""
    connect(tmp_path, FIRST).close()
    notes(tmp_path, SECOND)
    with closing(sqlite3.connect(path_of(tmp_path))) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


WRITER = """
from pathlib import Path
from contextlib import closing
from atlas_retry.history.database import connect, writing
with closing(connect(Path(sys.argv[1]))) as connection:
    for number in range(40):
        with writing(connection) as to:
            to.execute("INSERT INTO learnings VALUES (?, '', '', '{}', NULL)",
                       (f"{sys.argv[2]}-{number}",))
"""


def test_eight_processes_write_at_once_without_loss(tmp_path: Path) -> None:
    """They even make it at once."""
    writers = [
        subprocess.Popen(python(WRITER, str(tmp_path), str(number)), env=ENV) for number in range(8)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * 8
    with reading(tmp_path) as connection:
        assert connection.execute("SELECT count(*) FROM learnings").fetchone() == (320,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_full_disk_does_not_ask_for_a_new_journal() -> None:
    full = (sqlite3.OperationalError("database or disk is full"), OSError(errno.ENOSPC, "full"))
    assert [database.remedy(error) for error in full] == [database.NO_ROOM] * 2
    assert database.remedy(sqlite3.DatabaseError("not a database")) == database.REMEDY
