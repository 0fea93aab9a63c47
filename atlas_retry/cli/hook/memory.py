"""Keep the hook's records of each session of Claude Code on disk.

They are in the state directory, one folder for each session.
"""

import hashlib
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from atlas_retry import state_dir
from atlas_retry.cli.hook.turns import BlockTally, HookSession, Start
from atlas_retry.errors import StateError
from atlas_retry.reports.documents import TurnResult

KEPT_S = 7 * 86_400
KEPT_TURNS = 20
"""Turns of a session whose start is kept."""
_ALLOWED = "allowed.json"
_RESULT = "result.json"
_SESSION = "session.json"
_STARTS = f"*{state_dir.TURN}.json"

T = TypeVar("T")


def load(home: Path, session_id: str) -> BlockTally:
    """The tally of a session; a new one if it is missing or damaged."""
    return _read(_folder(home, session_id) / "tally.json", BlockTally) or BlockTally()


def save(home: Path, session_id: str, tally: BlockTally) -> None:
    """Write the tally of a session, and drop sessions older than a week. Raises StateError."""
    folder = _folder(home, session_id)
    _write(folder / "tally.json", msgspec.json.encode(tally))
    for other in folder.parent.iterdir():
        with suppress(OSError):
            if other.stat().st_mtime < time.time() - KEPT_S:
                shutil.rmtree(other) if other.is_dir() else other.unlink()


def start(home: Path, session_id: str) -> Start | None:
    """The start of the last turn of a session; None if none is kept."""
    known = [begun for _, begun in _starts(_folder(home, session_id))]
    return max(known, key=lambda begun: begun.taken_at, default=None)


def keep_start(home: Path, session_id: str, begun: Start, seal: bytes | None = None) -> None:
    """Keep the start of a turn, and drop the oldest of the session. Raises StateError."""
    folder = _folder(home, session_id)
    if seal is not None:
        _write(folder / f"{begun.id}.seal", seal)
    _write(folder / f"{begun.id}.json", msgspec.json.encode(begun))
    for pattern in (_STARTS, "*.seal"):
        for old in sorted(folder.glob(pattern))[:-KEPT_TURNS]:
            old.unlink(missing_ok=True)


def seal(home: Path, session_id: str, begun: Start) -> bytes:
    """The seal taken at the start of a turn. Raises StateError if it is missing."""
    try:
        return (_folder(home, session_id) / f"{begun.id}.seal").read_bytes()
    except OSError as error:
        raise StateError(f"the state at the start of the turn cannot be read: {error}") from error


def keep_session(home: Path, session_id: str, session: HookSession) -> None:
    """Keep where a session works. Raises StateError."""
    _write(_folder(home, session_id) / _SESSION, msgspec.json.encode(session))


def other_transcripts(home: Path, root: Path, session_id: str) -> tuple[str, ...]:
    """Transcripts of the other sessions in a workspace. Raises StateError."""
    own = _folder(home, session_id) / _SESSION
    files = (file for file in (home / "hooks").glob(f"*/{_SESSION}") if file != own)
    known = filter(None, (_read(file, HookSession) for file in files))
    here = [each.transcript for each in known if each.root == str(root)]
    return tuple(filter(None, here))


def allowed(home: Path, session_id: str) -> tuple[str, ...]:
    """Paths that a person has allowed in this session."""
    return _read(_folder(home, session_id) / _ALLOWED, tuple[str, ...]) or ()


def allow(home: Path, root: Path, path: str) -> int:
    """Allow a path in every session seen in a workspace; their number. Raises StateError."""
    starts = _starts(home / "hooks", f"*/{_STARTS}")
    folders = {file.parent for file, begun in starts if begun.root == str(root)}
    for folder in folders:
        known = _read(folder / _ALLOWED, tuple[str, ...]) or ()
        _write(folder / _ALLOWED, msgspec.json.encode([*dict.fromkeys((*known, path))]))
    return len(folders)


def keep_result(home: Path, result: TurnResult) -> None:
    """Keep the result of a session's last turn. Raises StateError."""
    file = _folder(home, result.session_id) / _RESULT
    _write(file, msgspec.json.encode(result))


def result(home: Path, root: Path) -> TurnResult | None:
    """The result of the last turn in a workspace; None if none is kept. Raises StateError."""
    known = (_read(file, TurnResult) for file in (home / "hooks").glob(f"*/{_RESULT}"))
    here = [each for each in filter(None, known) if each.root == str(root)]
    return max(here, key=lambda each: each.ended_at, default=None)


def _starts(folder: Path, pattern: str = _STARTS) -> list[tuple[Path, Start]]:
    known = ((file, _read(file, Start)) for file in folder.glob(pattern))
    return [(file, begun) for file, begun in known if begun]


def _folder(home: Path, session_id: str) -> Path:
    digest = hashlib.sha256(session_id.encode(errors="replace")).hexdigest()[:32]
    return state_dir.folder(home, "hooks", digest)


def _read(file: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    except OSError as error:
        raise StateError(f"the records of the hook cannot be read: {error}") from error


def _write(file: Path, content: bytes) -> None:
    try:
        state_dir.replace_file(file, content)
    except OSError as error:
        raise StateError(f"the records of the hook cannot be written: {error}") from error
