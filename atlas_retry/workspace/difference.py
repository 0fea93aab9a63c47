"""What differs between two snapshots; looks at no work tree."""

from collections.abc import Iterable
from pathlib import Path

from atlas_retry.model import Change, ChangeStatus
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import split
from atlas_retry.workspace.place import differing
from atlas_retry.workspace.shadow import shadow_git
from atlas_retry.workspace.state import WORK, read_state
from atlas_retry.workspace.store import StoredFile

_DIFF = ("diff-tree", "-r", "--no-renames", "--full-index")
_Lines = tuple[int | None, int | None]
"""Added and removed; None for a binary file."""


def patch(ws: Workspace, before_id: str, after_id: str, paths: Iterable[str] = ()) -> bytes:
    """What happened to the files that git does not ignore, or to these, as a unified diff."""
    below = (f"--relative={WORK}", before_id, after_id)
    chosen = (f"{WORK}{path}" for path in paths)
    return shadow_git(ws, *_DIFF, "-p", "--no-color", *below, "--", *chosen)


def changes(
    ws: Workspace, before_id: str, after_id: str, *, ignored: bool = False
) -> tuple[Change, ...]:
    """What differs between two snapshots, in order of the paths.

    A file that is ignored in both counts only with `ignored`; one that became ignored, or is no
    longer, counts by its content like any other.
    """
    if before_id == after_id:
        return ()
    found = _between(ws, before_id, after_id)
    return tuple(change for change, is_seen in found if is_seen or ignored)


_Between = tuple[tuple[Change, bool], ...]
"""Changes, and whether git does not ignore the file, before or after."""
_known: dict[tuple[Path, str, str], _Between] = {}
"""What differs between two snapshots, the latest last: their ids say all of it."""
_MAX_KNOWN = 8


def _between(ws: Workspace, before_id: str, after_id: str) -> _Between:
    key = ws.shadow, before_id, after_id
    if key not in _known:
        before, after = read_state(ws, before_id), read_state(ws, after_id)
        seen = differing(before.work, after.work)
        paths = sorted(seen | differing(before.ignored, after.ignored))
        sides = ((path, before.files.get(path), after.files.get(path)) for path in paths)
        moved = [side for side in sides if _content(side[1]) != _content(side[2])]
        lines = _lines(ws, before_id, after_id) if moved else {}
        _known[key] = tuple(
            (_change(*side, lines.get(side[0], (0, 0))), side[0] in seen) for side in moved
        )
        for oldest in list(_known)[:-_MAX_KNOWN]:
            _known.pop(oldest, None)
    return _known[key]


def _content(entry: StoredFile | None) -> tuple[str, str] | None:
    return (entry.mode, entry.oid) if entry else None


def _change(path: str, old: StoredFile | None, new: StoredFile | None, lines: _Lines) -> Change:
    return Change(
        path=path,
        status=status_of(old, new) or ChangeStatus.MODE,
        added=lines[0],
        removed=lines[1],
        old_mode=old.mode if old else None,
        new_mode=new.mode if new else None,
    )


def status_of(before: StoredFile | None, after: StoredFile | None) -> ChangeStatus | None:
    """What became of a file; None: nothing."""
    if before == after:
        return None
    if before is None:
        return ChangeStatus.ADDED
    if after is None:
        return ChangeStatus.DELETED
    return ChangeStatus.MODE if before.oid == after.oid else ChangeStatus.MODIFIED


def _lines(ws: Workspace, before_id: str, after_id: str) -> dict[str, _Lines]:
    """Added and removed by path; of a file that git ignores on one side only, both together."""
    counted: dict[str, _Lines] = {}
    for item in split(shadow_git(ws, *_DIFF, "-z", "--numstat", before_id, after_id)):
        added, removed, path = item.split("\t", 2)
        name = path.partition("/")[2]
        counted[name] = _sum(counted.get(name, (0, 0)), (added, removed))
    return counted


def _sum(one: _Lines, more: tuple[str, str]) -> _Lines:
    if None in one or "-" in more:
        return (None, None)
    return (one[0] or 0) + int(more[0]), (one[1] or 0) + int(more[1])
