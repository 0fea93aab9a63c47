"""Holds the `.git` of a work tree whose git directory is elsewhere, while a run may destroy it.

Without it, or with another one, git would find some other repository and write there. A linked
worktree, a submodule and `git init --separate-git-dir` have such a file (gitrepository-layout(5)).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from atlas_retry import state_dir
from atlas_retry.errors import WorkspaceError
from atlas_retry.reading import read_start

NAME, _HELD, _REFUSED = ".git", "gitfile", "refused-git"
_MAX_BYTES = 1 << 16


class HeldGitfile(msgspec.Struct, frozen=True, kw_only=True):
    """The file as it was when the run began or continued."""

    content: bytes
    """Of the file, or the target of a link."""
    is_link: bool = False


@contextmanager
def holding(root: Path, home: Path) -> Iterator[None]:
    """Hold the file until the run has ended; after a kill it stays held.

    `home` is the folder of the work tree in the state directory. Raises WorkspaceError.
    """
    put_back(root, home)
    there, held = _read(root / NAME), home / _HELD
    if there is None:  # an ordinary folder
        yield
        return
    state_dir.replace_file(held, msgspec.msgpack.encode(there))
    try:
        yield
    finally:
        put_back(root, home)
        held.unlink(missing_ok=True)


def put_back(root: Path, home: Path) -> bool:
    """Restore the file if a run holds it; returns whether it was another one, or gone.

    A repository that was made in its place is moved to `home`. Raises WorkspaceError.
    """
    with suppress(FileNotFoundError):
        held = msgspec.msgpack.decode((home / _HELD).read_bytes(), type=HeldGitfile)
        if _read(root / NAME) == held:
            return False
        try:
            _write(root / NAME, held, home / _REFUSED)
        except OSError as error:
            raise WorkspaceError(
                f"{root / NAME} cannot be restored: {error.strerror}",
                remedy=f"write it: {os.fsdecode(held.content).strip()}",
            ) from error
        return True
    return False


def _read(path: Path) -> HeldGitfile | None:
    """The file or link; None if there is none, or something else."""
    with suppress(OSError):
        if path.is_symlink():
            return HeldGitfile(content=os.fsencode(path.readlink()), is_link=True)
        return HeldGitfile(content=read_start(path, _MAX_BYTES))
    return None


def _write(path: Path, held: HeldGitfile, aside: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        import shutil  # start-up

        shutil.rmtree(aside, ignore_errors=True)
        shutil.move(path, aside)
    path.unlink(missing_ok=True)
    if held.is_link:
        path.symlink_to(os.fsdecode(held.content))
    else:
        state_dir.replace_file(path, held.content)


def put_back_around(path: Path, state: Path) -> None:
    """Restore the file of the work tree around `path` if a killed run holds it."""
    for up in (path, *path.parents):
        put_back(up, state / "workspaces" / state_dir.key_of(up))
