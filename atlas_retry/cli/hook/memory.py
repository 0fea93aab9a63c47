"""Keep on disk what the hook knows of each session of Claude Code. Judges nothing.

All of it lies in the state directory, never in the workspace, in one folder a session.
"""

import hashlib
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from atlas_retry import state_dir
from atlas_retry.cli.hook.values import BlockTally, Start
from atlas_retry.errors import StateError

KEPT_S = 7 * 86_400
KEPT_TURNS = 20
"""Of a session: the state at the start of each."""
_ALLOWED = "allowed.json"
_START = "start-*.json"

T = TypeVar("T")


def load(home: Path, session_id: str) -> BlockTally:
    """The tally of a session; a new one where there is none, or a damaged one."""
    return _read(_folder(home, session_id) / "tally.json", BlockTally) or BlockTally()


def save(home: Path, session_id: str, tally: BlockTally) -> None:
    """Write the tally of a session, and drop the sessions of a week ago. Raises StateError."""
    folder = _folder(home, session_id)
    _write(folder / "tally.json", msgspec.json.encode(tally))
    for other in folder.parent.iterdir():
        with suppress(OSError):
            if other.stat().st_mtime < time.time() - KEPT_S:
                shutil.rmtree(other) if other.is_dir() else other.unlink()


def start(home: Path, session_id: str, prompt_id: str | None) -> Start | None:
    """What was there when this prompt's turn began; None where nothing was kept under it."""
    return _read(_start_file(home, session_id, prompt_id), Start)


def keep_start(home: Path, session_id: str, begun: Start, seal: bytes | None = None) -> None:
    """Keep what is there as a turn begins; the oldest of the session go. Raises StateError."""
    file = _start_file(home, session_id, begun.prompt_id)
    if seal is not None:
        _write(file.with_name(f"{begun.id}.seal"), seal)
    _write(file, msgspec.json.encode(begun))
    for pattern in (_START, "*.seal"):
        newest_first = sorted(file.parent.glob(pattern), key=_modified_s, reverse=True)
        for old in newest_first[KEPT_TURNS:]:
            old.unlink(missing_ok=True)


def seal(home: Path, session_id: str, begun: Start) -> bytes:
    """The seal that was taken with it. Raises StateError when it is gone."""
    try:
        return (_folder(home, session_id) / f"{begun.id}.seal").read_bytes()
    except OSError as error:
        raise StateError(f"what the turn began with cannot be read: {error}") from error


def allowed(home: Path, session_id: str) -> tuple[str, ...]:
    """Paths that a person has allowed in this session."""
    return _read(_folder(home, session_id) / _ALLOWED, tuple[str, ...]) or ()


def allow(home: Path, root: Path, path: str) -> int:
    """Allow a path in every session seen in a workspace; how many those are. Raises StateError."""
    folders = {file.parent for file, begun in _starts(home) if begun.root == str(root)}
    for folder in folders:
        known = _read(folder / _ALLOWED, tuple[str, ...]) or ()
        _write(folder / _ALLOWED, msgspec.json.encode([*dict.fromkeys((*known, path))]))
    return len(folders)


def turns(home: Path, root: Path) -> Mapping[str, Start]:
    """The turns that are remembered of a workspace, by id, oldest first."""
    held = [begun for _, begun in _starts(home) if begun.snapshot]
    of_root = [begun for begun in held if begun.root == str(root)]
    # several prompts may belong to one turn: the last of its ends counts
    in_order = sorted(of_root, key=lambda begun: (begun.taken_at, begun.ended_at or ""))
    return {begun.id: begun for begun in in_order}


def bring(home: Path, turn_id: str, snapshot_id: str) -> None:
    """Write down that the workspace was brought to a snapshot after the turn. StateError."""
    for file, begun in _starts(home):
        if begun.id == turn_id:
            _write(file, msgspec.json.encode(replace(begun, left=snapshot_id)))


def _starts(home: Path) -> list[tuple[Path, Start]]:
    found = ((file, _read(file, Start)) for file in (home / "hooks").glob(f"*/{_START}"))
    return [(file, begun) for file, begun in found if begun]


def _folder(home: Path, session_id: str) -> Path:
    return state_dir.folder(home, "hooks", _digest(session_id))


def _start_file(home: Path, session_id: str, prompt_id: str | None) -> Path:
    return _folder(home, session_id) / f"start-{_digest(prompt_id or '')}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]


def _read(file: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    except OSError as error:
        raise StateError(f"what the hook remembers cannot be read: {error}") from error


def _write(file: Path, content: bytes) -> None:
    try:
        state_dir.replace_file(file, content)
    except OSError as error:
        raise StateError(f"what the hook remembers cannot be kept: {error}") from error


def _modified_s(file: Path) -> float:
    with suppress(OSError):
        return file.stat().st_mtime
    return 0.0
