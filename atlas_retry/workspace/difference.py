"""What differs between two snapshots; looks at no work tree."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from atlas_retry.model import Change, ChangeStatus
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import split
from atlas_retry.workspace.shadow import shadow_git
from atlas_retry.workspace.state import IGNORED, WORK

_DIFF = ("diff-tree", "-r", "--no-renames", "--full-index")
_NOTHING = "000000"
_Lines = tuple[int | None, int | None]
"""Added and removed; None for a binary file."""


class _Side(Struct, frozen=True, kw_only=True):
    """One line of `diff-tree --raw`: what became of a path in `work` or in `ignored`."""

    old_mode: str
    new_mode: str
    old: str
    new: str


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
    sides, lines = _between(ws, before_id, after_id)
    prefixes = (WORK, IGNORED) if ignored else (WORK,)
    wanted = {path for prefix, path in sides if prefix in prefixes}
    found = (
        _change(path, [sides[key] for key in _keys(path) if key in sides], lines.get(path, (0, 0)))
        for path in sorted(wanted)
    )
    return tuple(change for change in found if change)


_Between = tuple[dict[tuple[str, str], _Side], dict[str, _Lines]]
_known: dict[tuple[Path, str, str], _Between] = {}
"""What differs between two snapshots, the latest last: their ids say all of it."""
_MAX_KNOWN = 8


def _between(ws: Workspace, before_id: str, after_id: str) -> _Between:
    key = ws.shadow, before_id, after_id
    if known := _known.get(key):
        return known
    out = shadow_git(ws, *_DIFF, "-z", "--raw", "--numstat", before_id, after_id)
    found = _known[key] = _parse(split(out))
    for oldest in list(_known)[:-_MAX_KNOWN]:
        _known.pop(oldest, None)
    return found


def _keys(path: str) -> tuple[tuple[str, str], ...]:
    return (WORK, path), (IGNORED, path)


def _parse(items: list[str]) -> _Between:
    """Both parts of the output by path: `--raw` comes first, `--numstat` after it."""
    sides: dict[tuple[str, str], _Side] = {}
    lines: dict[str, _Lines] = {}
    rest = iter(items)
    for item in rest:
        if item.startswith(":"):
            old_mode, new_mode, old, new, _ = item[1:].split(" ")
            side = _Side(old_mode=old_mode, new_mode=new_mode, old=old, new=new)
            sides[_class_of(next(rest))] = side
        else:
            added, removed, path = item.split("\t", 2)
            name = _class_of(path)[1]
            lines[name] = _sum(lines.get(name, (0, 0)), (_count(added), _count(removed)))
    return sides, lines


def _class_of(path: str) -> tuple[str, str]:
    prefix, slash, name = path.partition("/")
    return prefix + slash, name


def _count(shown: str) -> int | None:
    return None if shown == "-" else int(shown)


def _sum(one: _Lines, other: _Lines) -> _Lines:
    if None in one or None in other:
        return (None, None)
    return (one[0] or 0) + (other[0] or 0), (one[1] or 0) + (other[1] or 0)


def _change(path: str, sides: list[_Side], lines: _Lines) -> Change | None:
    """None when only git's opinion of the file changed, not the file."""
    old_mode, old = _pick([(side.old_mode, side.old) for side in sides])
    new_mode, new = _pick([(side.new_mode, side.new) for side in sides])
    if (old_mode, old) == (new_mode, new):
        return None
    if old_mode is None:
        status = ChangeStatus.ADDED
    elif new_mode is None:
        status = ChangeStatus.DELETED
    else:
        status = ChangeStatus.MODE if old == new else ChangeStatus.MODIFIED
    return Change(
        path=path,
        status=status,
        added=lines[0],
        removed=lines[1],
        old_mode=old_mode,
        new_mode=new_mode,
    )


def _pick(candidates: list[tuple[str, str]]) -> tuple[str | None, str | None]:
    """The one of `work` and `ignored` in which the file is."""
    return next(((mode, oid) for mode, oid in candidates if mode != _NOTHING), (None, None))
