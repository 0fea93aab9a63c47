"""Bring into a work tree what a run made of a copy of it; whoever edited it meanwhile keeps that.

Killed in the middle, it leaves a note in the state directory, by which the next who takes the
workspace's lock brings the rest.
"""

from contextlib import suppress

import msgspec
from msgspec import Struct

from atlas_retry import process
from atlas_retry.errors import StateError
from atlas_retry.state_dir import replace_file
from atlas_retry.workspace.difference import changes
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.restoring import restore
from atlas_retry.workspace.tracker import Tracker

NOTE = "accept.note"


class _Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be there, for whoever comes after a kill."""

    start: str
    end: str


class Accepted(Struct, frozen=True, kw_only=True):
    """What became of a work tree."""

    work: str
    """Tree of the files that git does not ignore, as they are now."""
    conflicts: tuple[str, ...] = ()
    """Paths that were left alone, because somebody had edited them since."""


def accept(ws: Workspace, start: str, end: str, tracker: Tracker) -> Accepted:
    """Bring what differs between two snapshots, but for what git ignores.

    What differs from `start` is somebody's edit and stays. So does the index: the objects that a
    copy of it names are not in the user's repository. The workspace's lock is held by the
    caller. Raises WorkspaceError and StateError; what was begun is then brought to its end later.
    """
    note = ws.home / NOTE
    try:
        replace_file(note, msgspec.json.encode(_Acceptance(start=start, end=end)))
    except OSError as error:
        raise StateError(f"{note} cannot be written: {error}") from error
    conflicts = _bring(ws, start, end, tracker)
    note.unlink()
    return Accepted(work=tracker.take()[0].work, conflicts=conflicts)


def finish_accepting(ws: Workspace) -> None:
    """Bring the rest where an atlas was killed while it accepted. Raises WorkspaceError."""
    note = ws.home / NOTE
    with suppress(FileNotFoundError):
        left = msgspec.json.decode(note.read_bytes(), type=_Acceptance)
        _bring(ws, left.start, left.end, Tracker(ws))
        note.unlink()


def _bring(ws: Workspace, start: str, end: str, tracker: Tracker) -> tuple[str, ...]:
    """The paths that were left alone."""
    with process.uninterruptible(f"the workspace {ws.root} is being changed"):
        paths = {change.path for change in changes(ws, start, end)}
        if not paths:
            return ()
        return restore(ws, end, paths, since=start, look=tracker.take).conflicts
