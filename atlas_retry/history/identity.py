"""Recognise a work tree that was moved, by its git directory, else by its first commit."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git

_NAME = "identity.json"
_LASTING = ("description", "commondir")
"""Source: gitrepository-layout(5)."""


class Identity(Struct, frozen=True, kw_only=True):
    """Properties of a work tree that survive a move."""

    root: str
    git_dir: str
    inode: str
    """Device, inode and age of the git directory, which only `mv` in one file system keeps."""
    first_commit: str | None
    """Id that is the same in every clone and copy; None if there is no commit."""

    @property
    def is_there(self) -> bool:
        """Whether the work tree is still at its path, and not at the target of a link there."""
        git_dir = Path(os.path.realpath(self.git_dir))
        return str(git_dir) == self.git_dir and _inode(git_dir) == self.inode


def sign(ws: Workspace) -> None:
    """Record the identity of the work tree, to recognise it after a move.

    Finding the first commit makes git walk the whole history, so it is done once per path.
    """
    file = ws.home / _NAME
    with suppress(OSError, msgspec.MsgspecError):
        known = _read(file)
        if known.first_commit and known == _identity(ws, known.first_commit):
            return
    file.write_bytes(msgspec.json.encode(_identity(ws, _first_commit(ws))))


def moved_here(ws: Workspace) -> tuple[tuple[Identity, bool], ...]:
    """Missing work trees that may be this one, and whether that is certain; certain ones first."""
    own = _identity(ws, _first_commit(ws))
    if not own.first_commit:
        return ()
    candidates: list[tuple[Identity, bool]] = []
    for file in _files(ws):
        with suppress(OSError, msgspec.MsgspecError):
            other = _read(file)
            if other.first_commit == own.first_commit and not other.is_there:
                candidates.append((other, other.inode == own.inode))
    return tuple(sorted(candidates, key=lambda pair: not pair[1]))


def take_over(ws: Workspace, other: Identity) -> Path:
    """Move the snapshots of a work tree that was moved to this one.

    Returns their old folder; while it exists, `moved_here` still finds it.
    """
    old = next(file.parent for file in _files(ws) if _read(file) == other)
    for entry in old.iterdir():
        if entry.name != _NAME:
            there = ws.home / entry.name
            shutil.rmtree(there) if there.is_dir() else there.unlink(missing_ok=True)
            entry.rename(there)
    return old


def _identity(ws: Workspace, first_commit: str | None) -> Identity:
    return Identity(
        root=os.fsencode(ws.root).decode("utf-8", "backslashreplace"),
        git_dir=os.fsencode(ws.git_dir).decode("utf-8", "backslashreplace"),
        inode=_inode(ws.git_dir) or "",
        first_commit=first_commit,
    )


def _inode(git_dir: Path) -> str | None:
    """Device and inode, with the ctime of files that git never changes, as inodes are reused."""
    try:
        facts = git_dir.stat()
        made = [
            (git_dir / name).stat().st_ctime_ns for name in _LASTING if (git_dir / name).exists()
        ]
    except OSError:
        return None
    return ":".join(map(str, (facts.st_dev, facts.st_ino, *made)))


def _first_commit(ws: Workspace) -> str | None:
    asked = ("rev-list", "--first-parent", "--max-parents=0", "HEAD")
    try:
        return git(*asked, cwd=ws.root, env=ws.environ).decode().split()[-1]
    except (GitError, IndexError):
        return None


def _files(ws: Workspace) -> Iterator[Path]:
    yield from (file for file in ws.home.parent.glob(f"*/{_NAME}") if file.parent != ws.home)


def _read(file: Path) -> Identity:
    return msgspec.json.decode(file.read_bytes(), type=Identity)
