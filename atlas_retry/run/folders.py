"""Which workspaces the arguments of a command mean, and what each is called. Runs nothing."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from atlas_retry import config, workspace
from atlas_retry.errors import UsageError


def find(
    arguments: Sequence[str], cwd: Path, environ: Mapping[str, str], *, every: bool = False
) -> tuple[Path, ...]:
    """The folders that are meant; the present one for none.

    Raises UsageError for a name that is none, or that a folder has as well, and for a workspace
    that is named twice.
    """
    if every and arguments:
        raise UsageError("--all means every named workspace", remedy="name some, or say --all")
    if every:
        named = workspace.names_around(cwd, environ=environ)
        if not named:
            raise UsageError("there is no named workspace here", remedy="atlas workspace add NAME")
        return tuple(named.values())
    folders: dict[Path, Path] = {}
    for argument in arguments or ["."]:
        folder = workspace.resolve(argument, cwd, environ=environ).resolve()
        if not folder.is_dir():
            raise UsageError(f"{argument} is not a folder", remedy="atlas workspace list")
        if (root := config.root_of(folder)) in folders:
            raise UsageError(f"{root} is named twice", remedy="name each workspace once")
        folders[root] = folder
    return tuple(folders.values())


def labels(folders: Sequence[Path]) -> dict[Path, str]:
    """What each is called where all are shown: as many last parts of its path as it takes."""
    return {folder: _label(folder, folders) for folder in folders}


def _label(folder: Path, among: Sequence[Path]) -> str:
    for length in range(1, len(folder.parts)):
        tail = folder.parts[-length:]
        if sum(other.parts[-length:] == tail for other in among) == 1:
            return str(Path(*tail))
    return str(folder)
