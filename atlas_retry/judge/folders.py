"""Folders as trees for the guard: what git sees, and the few ignored files that get executed."""

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from atlas_retry.guard import OutsideChange
from atlas_retry.model import Tree
from atlas_retry.workspace import directory_tree

_EXECUTED = re.compile(
    r"(^|/)(node_modules/\.bin/[^/]+|\.?venv/bin/[^/]+|site-packages/[^/]+\.pth|__pycache__/[^/]+\.pyc"
    r"|(site|user)customize\.py|conftest\.py|\.env(\.\w+)?|\.envrc)$"
)
_PASSED_OVER = frozenset({".git", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"})
_DEPENDENCIES = frozenset({"node_modules", "site-packages"})
_DAY_S = 86_400


class Folder:
    """A folder as `model.Tree`: files that git does not ignore, and ignored ones that tools run.

    `also` names files to be looked for whatever git says: one that was tracked in the base and is
    ignored now is still there.
    """

    def __init__(self, root: Path, also: Iterable[str] = ()) -> None:
        self._root = root
        self._seen = directory_tree(root)
        known = set(self._seen.paths())
        wanted = {*executed(root), *(path for path in also if path not in known)}
        extra = ((path, _mode(root / path)) for path in wanted - known)
        self._extra = {path: mode for path, mode in extra if mode}

    def paths(self) -> Iterable[str]:
        return sorted({*self._seen.paths(), *self._extra})

    def read(self, path: str) -> bytes | None:
        return _content(self._root / path) if path in self._extra else self._seen.read(path)

    def mode(self, path: str) -> str | None:
        return self._extra.get(path) or self._seen.mode(path)


class Overlay:
    """A tree with a few more files, held in memory."""

    def __init__(self, base: Tree, more: Mapping[str, tuple[str, bytes]]) -> None:
        self._base = base
        self._more = more

    def paths(self) -> Iterable[str]:
        return sorted({*self._base.paths(), *self._more})

    def read(self, path: str) -> bytes | None:
        held = self._more.get(path)
        return held[1] if held else self._base.read(path)

    def mode(self, path: str) -> str | None:
        held = self._more.get(path)
        return held[0] if held else self._base.mode(path)


def executed(root: Path) -> Iterator[str]:
    """Files of caches and dependency folders that run by themselves or in a tool's place."""
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        inside = here.name in _DEPENDENCIES
        folders[:] = [
            name for name in folders if name not in _PASSED_OVER and (not inside or name == ".bin")
        ]
        for name in files:
            path = (here / name).relative_to(root).as_posix()
            if _EXECUTED.search(path):
                yield path


def held(root: Path) -> dict[str, tuple[str, bytes]]:
    """Mode and, shortened to what tells a change, content of the executed files of a folder."""
    found = {}
    for path in executed(root):
        mode, content = _mode(root / path), _content(root / path)
        if mode and content is not None:
            found[path] = (mode, content[:32] + hashlib.sha256(content).digest())
    return found


def _mode(path: Path) -> str | None:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None
    if stat.S_ISLNK(mode):
        return "120000"
    if not stat.S_ISREG(mode):
        return None
    return "100755" if mode & 0o100 else "100644"


def _content(path: Path) -> bytes | None:
    try:
        return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError:
        return None


def differences(before: Path, after: Path) -> Iterator[OutsideChange]:
    """Files that differ between two states of a place outside the workspace."""
    old, new = _digests(before), _digests(after)
    for path in sorted({*old, *new}):
        if old.get(path) != new.get(path):
            yield OutsideChange(place=str(after), path=path)


def _digests(root: Path) -> dict[str, str]:
    found = {}
    if not root.is_dir():
        return {root.name: _print(root)} if root.exists() else {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*files, *links):
            path = Path(folder) / name
            found[path.relative_to(root).as_posix()] = _print(path)
    return found


def _print(path: Path) -> str:
    content = _content(path)
    digest = "unreadable" if content is None else hashlib.sha256(content).hexdigest()
    return f"{_mode(path)} {digest}"


def from_the_future(before: Path, after: Path) -> tuple[str, ...]:
    """Files whose modification time lies more than a day ahead, and did not before."""
    limit_s = time.time() + _DAY_S
    paths = directory_tree(after).paths()
    return tuple(
        path for path in paths if _modified_s(after / path) > limit_s >= _modified_s(before / path)
    )


def _modified_s(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def left_running(root: Path, since_s: float) -> tuple[str, ...]:
    """Detached processes that stand in a folder and began after a time (Linux; else none).

    Only session leaders without a terminal: what a person works with has one, or a parent that has.
    """
    return tuple(_left_running(root.resolve(), since_s))


def _left_running(root: Path, since_s: float) -> Iterator[str]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            cwd = (entry / "cwd").readlink()
            said = (entry / "stat").read_text("utf-8", "replace")
            began_s = entry.stat().st_mtime
        except OSError:
            continue
        name, _, fields = said.partition("(")[2].rpartition(")")
        numbers = fields.split()
        leads, has_terminal = numbers[3] == entry.name, numbers[4] != "0"
        inside = cwd == root or root in cwd.parents
        if inside and leads and not has_terminal and began_s >= since_s and _is_stranger(entry):
            yield f"{name} (process {entry.name})"


def _is_stranger(entry: Path) -> bool:
    return int(entry.name) not in (os.getpid(), os.getppid(), os.getsid(0))
