"""Stat data of what no snapshot holds: dependencies, caches, ignored files, permissions.

Reads no content but ignore files and links, and judges nothing.
"""

import os
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, product
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.patterns import words
from atlas_retry.workspace.files import Stat, Unheld, stat_of
from atlas_retry.workspace.outside import (
    ENVIRONMENT_MARK,
    is_part,
    linked_folders,
    stamp,
    stamp_of_shared,
)
from atlas_retry.workspace.place import moved_since, parents
from atlas_retry.workspace.walk import CACHE_MARKS, Scan, is_ignored

REMOVED = "removed"
"""Folder in the state directory for files that were moved out of caches."""
MOVED_KEPT_S = 30 * 86_400.0
"""How long files that were moved out of caches are kept."""

_ASIDE_FOLDERS = words(
    "site-packages dist-packages __pypackages__ node_modules vendor __pycache__ .pytest_cache"
    " .hypothesis .ruff_cache .mypy_cache .cache .vite"
)
_ENVIRONMENTS = words(".venv venv virtualenv")
"""Usual names of environments of Python."""
_MARKS = frozenset({ENVIRONMENT_MARK, "conda-meta"})
_CHECK_FILES = (".eslintcache", ".tsbuildinfo")
"""Caches of checkers outside cache folders."""


class FolderStat(Struct, frozen=True, kw_only=True):
    """Stat data of everything in a folder."""

    aside: dict[str, Stat | None]
    """Stat data of files in dependencies and caches."""
    ignored: dict[str, Stat | None]
    """Stat data of other files that git ignores, or that are in another repository."""
    modes: dict[str, int]
    """Permissions of the project's own folders."""
    nested: list[str]
    """`.git` of each repository inside."""
    linked: set[str]
    """Folders outside that installed dependencies link to."""
    environments: set[str]
    """The outermost folders of dependencies and caches, and environments of Python."""


def folder_stat(
    root: Path, scan: Scan | None = None, environments: Collection[str] | None = None
) -> FolderStat:
    """Stat data of everything in a folder.

    `scan` is a walk over the project's own files: only folders that it left out are walked here.
    Without it nothing counts as ignored; nor does anything in Python's `environments`, by default
    all of them.
    """
    seen = FolderStat(aside={}, ignored={}, modes={}, nested=[], linked=set(), environments=set())
    waiting = _unwalked(root, scan, seen) if scan else [_Unwalked(prefix="")]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError):
            entries = list(os.scandir(root / folder.prefix))
            folder = _entered(folder, {entry.name for entry in entries}, environments, seen)
            waiting += _look_into(root, folder, entries, seen)
    return seen


class _Unwalked(Struct, frozen=True, kw_only=True):
    prefix: str
    """`` or `a/b/`."""
    aside: str = ""
    """The outermost dependency or cache folder around it."""
    is_hidden: bool = False
    """Whether git ignores it."""
    is_environment: bool = False
    """Whether programs and packages of Python are installed directly in it."""


def _look_into(
    root: Path, folder: _Unwalked, entries: "list[os.DirEntry[str]]", seen: FolderStat
) -> Iterator[_Unwalked]:
    """Record the files of a folder; yields its subfolders."""
    for entry in [one for one in entries if one.name != ".git"]:
        path = f"{folder.prefix}{entry.name}"
        aside = _aside_of(folder, entry.name)
        if not entry.is_dir(follow_symlinks=False):
            _note_file(root, path, entry, replace(folder, aside=aside), seen)
        else:
            aside = aside or aside_folder(path)
            below = _Unwalked(prefix=f"{path}/", aside=aside, is_hidden=folder.is_hidden)
            yield below
            if not below.aside and (there := stamp(entry)):
                seen.modes[path] = stat.S_IMODE(there[0])


def _aside_of(folder: _Unwalked, name: str) -> str:
    is_installed = folder.is_environment and is_part(name)
    return folder.aside or (folder.prefix[:-1] if is_installed else "")


def _entered(
    folder: _Unwalked,
    names: Collection[str],
    environments: Collection[str] | None,
    seen: FolderStat,
) -> _Unwalked:
    """The folder with its kind by content, recorded. `environments` as for `folder_stat`."""
    if folder.aside:
        seen.environments.add(folder.aside)
    if folder.prefix and ".git" in names:
        seen.nested.append(f"{folder.prefix}.git")
        return replace(folder, is_hidden=True)
    path = folder.prefix[:-1]
    is_marked = not _MARKS.isdisjoint(names)
    if folder.aside or not (is_marked or path.rpartition("/")[2] in _ENVIRONMENTS):
        return folder
    seen.environments.add(path)
    if environments is not None and path not in environments:
        return folder
    return replace(folder, is_hidden=folder.is_hidden and not is_marked, is_environment=True)


def _note_file(
    root: Path, path: str, entry: "os.DirEntry[str]", folder: _Unwalked, seen: FolderStat
) -> None:
    if folder.aside:
        seen.linked.update(linked_folders(root, entry))
    if is_note(path):
        return
    if folder.aside or path.endswith(_CHECK_FILES):
        seen.aside[path] = stamp_of_shared(entry) if folder.aside else stamp(entry)
    elif folder.is_hidden:
        seen.ignored[path] = stamp(entry)


def _unwalked(root: Path, scan: Scan, seen: FolderStat) -> list[_Unwalked]:
    """Record what a walk found; returns the folders left to walk."""
    folders = {folder.prefix[:-1]: folder for folder in _left_out(scan)}
    own = _outside_of(folders, scan.folders.keys() - folders)
    seen.modes.update((path, stat.S_IMODE(scan.folders[path][0])) for path in own)
    checks = {path for path in scan.files if path.endswith(_CHECK_FILES)}
    for path in _outside_of(folders, checks | scan.ignored):
        (seen.aside if path.endswith(_CHECK_FILES) else seen.ignored)[path] = scan.files[path]
    big = (path for path in scan.left_out if not path.endswith("/"))
    seen.ignored.update(_statuses(root, (p for p in big if is_ignored(scan.left_out[p]))))
    entered = (path for path, folder in folders.items() if not folder.aside)
    seen.modes.update((path, stat.S_IMODE(there[0])) for path, there in _statuses(root, entered))
    return [*folders.values()]


def _outside_of(folders: Mapping[str, _Unwalked], paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if folders.keys().isdisjoint(parents(path)))


def _statuses(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, Stat]]:
    """Stat data of existing paths."""
    for path in paths:
        with suppress(OSError):
            yield path, stat_of((root / path).lstat())


def _left_out(scan: Scan) -> Iterator[_Unwalked]:
    """The topmost folders that a walk has not entered, or that have other files too."""
    closed = {path[:-1] for path in scan.left_out if path.endswith("/")}
    aside = {path for path in scan.folders if path.rpartition("/")[2] in _ASIDE_FOLDERS}
    nested = {path.removesuffix("/.git") for path in scan.left_out if path.endswith("/.git")}
    every = closed | aside | nested
    for path in every:
        if every.isdisjoint(parents(path)):
            yield _Unwalked(prefix=f"{path}/", aside=aside_folder(path), is_hidden=path in closed)


def is_note(path: str) -> bool:
    """Whether a file is only the note of an installer on what it installed, which nothing runs."""
    folder, _, name = path.rpartition("/")
    here = folder.rpartition("/")[2]
    return (here == "node_modules" and name.startswith(".")) or path.endswith("/.pnpm/lock.yaml")


def aside_folder(path: str) -> str:
    """The outermost dependency or cache folder around a path; empty if there is none."""
    names = path.split("/")
    at = next((at for at, name in enumerate(names) if name in _ASIDE_FOLDERS), None)
    return "" if at is None else "/".join(names[: at + 1])


_MADE_AGAIN = words("""
    site-packages dist-packages __pypackages__ node_modules bower_components vendor .yarn
    .pnpm-store Pods .venv venv virtualenv .tox .nox .eggs .pytest_cache .hypothesis .ruff_cache
    .mypy_cache .vite .gradle .next .nuxt .turbo .parcel-cache .svelte-kit .angular DerivedData
    """)
"""Folders in which nobody keeps what is not made again."""
_ENDINGS = (".pyc", *_CHECK_FILES)
_NOTE, _FEW = "caches", 3


def is_made_again(root: Path, path: str) -> bool:
    """Whether a file of a cache is of a tool that makes it again without loss."""
    if path.endswith(_ENDINGS) or not _MADE_AGAIN.isdisjoint(path.split("/")):
        return True
    marks = (root / folder / mark for folder, mark in product(parents(path), CACHE_MARKS))
    return any(map(Path.exists, marks))


def note_caches(root: Path, scan: Scan, folder: Path) -> None:
    """Note the stat data of files in caches that people may keep, in a folder of the run."""
    seen = folder_stat(root, scan)
    there = {path: one for path, one in (seen.ignored | seen.aside).items() if one}
    unknown = there.keys() - scan.files.keys() - scan.unheld.keys()
    kept = (path for path in unknown if not is_made_again(root, path))
    note = {os.fsencode(path): (there[path][1], there[path][2]) for path in kept}
    (folder / _NOTE).write_bytes(msgspec.msgpack.encode(note))


def moved_caches(root: Path, folder: Path) -> tuple[str, ...]:
    """Files of the note that are changed or gone; many in one folder as `folder/ (N files)`."""
    with suppress(OSError, msgspec.MsgspecError):
        then = msgspec.msgpack.decode((folder / _NOTE).read_bytes(), type=dict[bytes, Unheld])
        by_folder: dict[str, list[str]] = {}
        for path in moved_since(root, {os.fsdecode(path): seen for path, seen in then.items()}):
            by_folder.setdefault(path.partition("/")[0], []).append(path)
        many = {top: f"{top}/ ({len(paths)} files)" for top, paths in by_folder.items()}
        shown = (p if len(p) <= _FEW else [many[top]] for top, p in by_folder.items())
        return tuple(chain.from_iterable(shown))
    return ()


def take_away(root: Path, paths: Iterable[str], into: Path) -> None:
    """Remove files of caches; what nobody may be able to make again is moved to a new folder."""
    for old in into.glob("*"):
        if old.stat().st_mtime < time.time() - MOVED_KEPT_S:
            shutil.rmtree(old, ignore_errors=True)
    target = into / f"{time.time_ns()}"
    for path in paths:
        with suppress(OSError, shutil.Error):
            if is_made_again(root, path):
                (root / path).unlink()
            else:
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.move(root / path, target / path)
