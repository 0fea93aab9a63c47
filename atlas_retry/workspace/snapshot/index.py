"""Restores the user's index file as git itself would, unless somebody has staged something."""

import os
from contextlib import suppress
from pathlib import Path

from atlas_retry.errors import WorkspaceError
from atlas_retry.reading import read_file
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError
from atlas_retry.workspace.snapshot.shadow import read_blobs
from atlas_retry.workspace.snapshot.state import TreeState
from atlas_retry.workspace.staged import staged

_FRESH, _LOCK = "index.atlas", "index.lock"


def put_back_index(
    ws: Workspace, target: TreeState, expected: TreeState | None
) -> tuple[bool, bool]:
    """Restore the index file, unless someone has staged something since `expected`.

    Returns whether it was changed, and whether it was left alone for that reason. Raises
    WorkspaceError if another git holds its lock.
    """
    path = ws.git_dir / "index"
    if not ws.git_dir.is_dir():
        return False, False  # the git directory is gone, and no snapshot holds it
    _clear_leftovers(ws)
    now = read_file(path) if path.exists() else None
    wanted = _content(ws, target)
    if now == wanted:
        return False, False
    if expected and not _are_equal(ws, now, _content(ws, expected)):
        return False, not _are_equal(ws, now, wanted)
    _restore_shared(ws, target)
    _write(ws, wanted, target.index_mtime_ns)
    return True, False


def is_staged(ws: Workspace, state: TreeState) -> bool:
    """Whether the index has the same content as then; True if the repository is gone."""
    path = ws.git_dir / "index"
    now = read_file(path) if path.exists() else None
    return not ws.git_dir.is_dir() or _are_equal(ws, now, _content(ws, state))


def _restore_shared(ws: Workspace, target: TreeState) -> None:
    """Restore missing shared parts of a split index (git-update-index(1)), which never change."""
    for name, file in target.git.items():
        path = ws.git_dir / name.rpartition("/")[2]
        if path.name.startswith("sharedindex.") and not path.exists():
            path.write_bytes(file.content)


def _content(ws: Workspace, state: TreeState) -> bytes | None:
    return read_blobs(ws, [state.index.oid])[state.index.oid] if state.index else None


def _are_equal(ws: Workspace, one: bytes | None, other: bytes | None) -> bool:
    """Whether two indexes are equal, except for the stat data of files."""
    return one == other or _digest(ws, one) == _digest(ws, other)


def _digest(ws: Workspace, content: bytes | None) -> str | None:
    if content is None:
        return None
    copy = ws.home / "compared-index"
    copy.write_bytes(content)
    with suppress(GitError):  # a broken index is not an edit
        return staged(ws.root, ws.environ, copy).digest
    return None


def _clear_leftovers(ws: Workspace) -> None:
    """Remove what a killed `_write` left: its lock is a hard link to the old or new index."""
    index, fresh, held = (ws.git_dir / name for name in ("index", _FRESH, _LOCK))
    if _is_same(held, fresh) or _is_same(held, index):
        held.unlink()
    fresh.unlink(missing_ok=True)


def _write(ws: Workspace, content: bytes | None, mtime_ns: int) -> None:
    """Replace the index file (None: remove it) while holding git's own lock.

    The lock is a hard link to the new file, which distinguishes a lock that a kill left from the
    lock of another git, which is never touched. Raises WorkspaceError if another git is running.
    """
    index = ws.git_dir / "index"
    fresh, held = ws.git_dir / _FRESH, ws.git_dir / _LOCK
    fresh.write_bytes(content or b"")
    os.utime(fresh, ns=(mtime_ns, mtime_ns))
    try:
        os.link(fresh, held)
    except FileExistsError as error:
        fresh.unlink()
        raise WorkspaceError(
            f"another git is running in {ws.root}: {held} exists",
            remedy=f"wait for it; if there is none: rm {held}",
        ) from error
    if content is None:
        index.unlink(missing_ok=True)
        fresh.unlink()
    else:
        fresh.replace(index)
    held.unlink()


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)
