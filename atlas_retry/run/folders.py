"""Which workspaces the arguments of a command mean, and what each is called. Runs nothing."""

from collections import Counter
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
        found = workspace.names_around(cwd, environ=environ)
        if not found:
            raise UsageError("there is no named workspace here", remedy="atlas workspace add NAME")
        return tuple(found.values())
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
    told = dict.fromkeys(folders, 1)
    while True:
        named = {folder: str(Path(*folder.parts[-count:])) for folder, count in told.items()}
        alike = [path for path in _named_alike(named) if told[path] < len(path.parts)]
        if not alike:
            return named
        for folder in alike:
            told[folder] += 1


def _named_alike(named: Mapping[Path, str]) -> list[Path]:
    counts = Counter(named.values())
    return [folder for folder, name in named.items() if counts[name] > 1]
