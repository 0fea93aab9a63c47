"""The workspaces that a command means, their labels, and which still wait. Runs nothing."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from atlas_retry import config
from atlas_retry.errors import StateError, UsageError
from atlas_retry.history.values import Order
from atlas_retry.state_dir import alone, folder, replace_file
from atlas_retry.text.json_text import read, text_of
from atlas_retry.workspace import worktrees


def find(
    arguments: Sequence[str], cwd: Path, environ: Mapping[str, str], *, every: bool = False
) -> tuple[Path, ...]:
    """The folders that the arguments name; without arguments, the current one.

    Raises UsageError for a name that is unknown or also a folder's, and for a workspace that is
    named twice.
    """
    if every and arguments:
        raise UsageError("--all means every named workspace", remedy="give names, or use --all")
    if every:
        named = worktrees.names_around(cwd, environ=environ)
        if not named:
            raise UsageError("no named workspaces here", remedy="atlas workspace add NAME")
        return tuple(named.values())
    folders: dict[Path, Path] = {}
    for argument in arguments or ["."]:
        folder = worktrees.resolve(argument, cwd, environ=environ).resolve()
        if not folder.is_dir():
            raise UsageError(f"{argument} is not a folder", remedy="atlas workspace list")
        if (root := config.root_of(folder)) in folders:
            raise UsageError(f"{root} is named twice", remedy="name each workspace once")
        folders[root] = folder
    return tuple(folders.values())


def labels(folders: Sequence[Path]) -> dict[Path, str]:
    """A unique label for each folder: as few last parts of its path as possible."""
    found = {path: str(path) for path in folders}
    for path in folders:
        for length in range(1, len(path.parts)):
            tail = path.parts[-length:]
            if sum(other.parts[-length:] == tail for other in folders) == 1:
                found[path] = str(Path(*tail))
                break
    return found


NAME = "unfinished.json"


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace of a batch that has not been started."""

    root: str
    """Absolute path of the folder, as it was given."""
    order: Order


def left_to_do(home: Path) -> tuple[Waiting, ...]:
    """The waiting workspaces, in the order they were asked for; empty if the list is damaged."""
    try:
        return read((home / NAME).read_text(), tuple[Waiting, ...])
    except (FileNotFoundError, ValueError):
        return ()
    except OSError as error:
        raise StateError(f"the list of waiting workspaces cannot be read: {error}") from error


def note(home: Path, started: Collection[Path], left: Sequence[Waiting] = ()) -> None:
    """Remove what was started from the list, and add what was not. Raises StateError."""
    if not left and not (home / NAME).exists():
        return
    with alone(folder(home) / f"{NAME}.lock"):
        before = left_to_do(home)
        again = {*map(str, started), *(one.root for one in left)}
        after = (*(one for one in before if one.root not in again), *left)
        if after != before:
            try:
                replace_file(home / NAME, text_of(after).encode())
            except OSError as error:
                text = f"the list of waiting workspaces cannot be written: {error}"
                raise StateError(text) from error
