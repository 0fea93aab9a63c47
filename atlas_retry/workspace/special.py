"""Finds what is no file where git expects one: it would be opened, and waited for at a FIFO."""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

from atlas_retry.reading import read_start
from atlas_retry.workspace.files import CACHES

RULES = (".gitignore", ".gitattributes", ".gitmodules")
"""The files of a work tree that steer git."""
_OF_USER = (".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes")
_MAX_GITFILE_BYTES = 4096


def special_in(folder: Path, names: Collection[str] = RULES) -> Iterator[Path]:
    """Ignore files of a folder that are no files, among these names."""
    for name in {*RULES}.intersection(names):
        path = folder / name
        if path.exists() and not path.is_file() and not path.is_dir():
            yield path


def special_rules(root: Path, skipped: Collection[str] = CACHES) -> Iterator[Path]:
    """Those of a whole tree, except in folders with these names and in git's own."""
    for folder, folders, files in os.walk(root):
        folders[:] = {*folders}.difference(skipped, (".git",))
        yield from special_in(Path(folder), files)


def remove_special_rules(root: Path) -> tuple[str, ...]:
    """Remove those of a whole tree, which hold nothing; returns their paths."""
    special = (*special_rules(root),)
    for path in special:
        path.unlink()
    return tuple(str(path.relative_to(root)) for path in special)


def waited_for(cwd: Path, environ: Mapping[str, str]) -> Path | None:
    """What a git that was started here may be waiting for; None if there is nothing of the kind."""
    git_dir = Path(environ["GIT_DIR"]) if "GIT_DIR" in environ else _git_dir(cwd)
    of_git = map(_fifos, (git_dir, _common(git_dir))) if git_dir else ()
    of_user = (Path(environ.get("HOME", "/")) / name for name in _OF_USER)
    own = filter(_is_fifo, of_user)
    return next(chain(own, *of_git, special_rules(cwd, ())), None)


def _git_dir(cwd: Path) -> Path | None:
    for folder in (cwd, *cwd.parents):
        place = folder / ".git"
        if place.is_dir():
            return place
        if place.exists():
            return folder / _pointed(place, "gitdir: ")
    return None


def _common(git_dir: Path) -> Path:
    return git_dir / _pointed(git_dir / "commondir", "")


def _pointed(file: Path, prefix: str) -> str:
    with suppress(OSError):
        return os.fsdecode(read_start(file, _MAX_GITFILE_BYTES)).removeprefix(prefix).strip()
    return ""


def _fifos(git_dir: Path) -> Iterator[Path]:
    """The FIFOs of a git directory, objects left out."""
    for folder, folders, files in os.walk(git_dir):
        if Path(folder).name == "objects":
            folders[:] = ("info",)
        yield from filter(_is_fifo, (Path(folder) / name for name in files))


def _is_fifo(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISFIFO(path.stat().st_mode)
    return False
