"""Remember on disk how often each session has been sent back. Judges nothing."""

import hashlib
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from atlas_retry import state
from atlas_retry.errors import StateError
from atlas_retry.hook.turn import Tally

KEPT_S = 7 * 86_400


def load(home: Path, session_id: str) -> Tally:
    """The tally of a session; a new one where there is none, or a damaged one."""
    try:
        return msgspec.json.decode(_file(home, session_id).read_bytes(), type=Tally)
    except (FileNotFoundError, msgspec.MsgspecError):
        return Tally()
    except OSError as error:
        raise StateError(f"the hook's tally cannot be read: {error}") from error


def save(home: Path, session_id: str, tally: Tally) -> None:
    """Write the tally of a session, and drop those of a week ago. Raises StateError."""
    file = _file(home, session_id)
    try:
        fresh = file.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(tally))
        fresh.replace(file)
    except OSError as error:
        raise StateError(f"the hook's tally cannot be kept: {error}") from error
    for other in file.parent.iterdir():
        with suppress(OSError):
            if other.stat().st_mtime < time.time() - KEPT_S:
                other.unlink()


def _file(home: Path, session_id: str) -> Path:
    name = hashlib.sha256(session_id.encode(errors="replace")).hexdigest()[:32]
    return state.folder(home, "hooks") / f"{name}.json"
