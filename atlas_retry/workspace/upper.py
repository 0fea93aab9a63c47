"""A look at a work tree under an overlay, by what the overlay's upper layer holds.

Whatever is written comes to lie there, and the rest is as the last look found it: git is asked
about new files and nobody about the others. What somebody changes below the overlay is not seen.
"""

import os
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache

from msgspec.structs import replace

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, split
from atlas_retry.workspace.overlay import entries
from atlas_retry.workspace.place import differing, folders_above, parents
from atlas_retry.workspace.scan import CACHES, Scan, Stat, is_full, scan


def look_at_written(ws: Workspace, last: Scan) -> Scan | None:
    """The work tree now, by the last walk over it; None where that takes a walk over all of it."""
    taken_ns, was, now = time.time_ns(), last.upper, entries(ws.upper) if ws.upper else None
    if now is None or was is None or last.leftovers:
        return None
    written = differing(was, now)
    if not written:
        return replace(last, left_out=dict(last.left_out), taken_ns=taken_ns)
    if any(_is_odd(path, last) for path in written):
        return None
    with suppress(GitError):
        found = _joined(last, *_walk(ws, last, written, _visible(ws, last, written, now)))
        is_counted_anew = is_full(found) and found.ignored_bytes != last.ignored_bytes
        return None if is_counted_anew else replace(found, upper=now, taken_ns=taken_ns)
    return None


_OF_GIT = frozenset({".git", ".gitignore"})


def _is_odd(path: str, last: Scan) -> bool:
    """Whether a change there may change what git sees, or a snapshot holds, elsewhere."""
    names, folders = path.split("/"), {path, *parents(path)}
    is_nested = any(f"{folder}/.git" in last.left_out for folder in folders)
    is_half_held = any(_name(folder) in CACHES for folder in folders & last.folders.keys())
    return is_nested or is_half_held or not _OF_GIT.isdisjoint(names)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _visible(
    ws: Workspace, last: Scan, written: Collection[str], now: Mapping[str, Stat]
) -> list[str]:
    """The files that git does not ignore. Raises GitError."""
    there = (path for path in written if path in now)
    files = {path for path in there if _is_file(now[path])}
    gone = {path for path in written if path not in files}
    made = files - last.files.keys()
    stay = (path for path in last.visible() if path not in gone)
    return [*stay, *(made - _ignored(ws, made))]


def _is_file(seen: Stat) -> bool:
    """No folder, and no whiteout, which says that what lies below is gone."""
    return not stat.S_ISDIR(seen[0]) and not stat.S_ISCHR(seen[0])


def _ignored(ws: Workspace, paths: Collection[str]) -> set[str]:
    """Those of these paths that git ignores. Raises GitError."""
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    options = ("check-ignore", "-z", "--stdin")
    return {*split(git(*options, cwd=ws.root, env=ws.environ, stdin=asked, accept=(0, 1)))}


def _walk(
    ws: Workspace, last: Scan, written: Collection[str], visible: Collection[str]
) -> tuple[Scan, set[str]]:
    """A walk through the folders that were written to, and those that it had no need to enter."""
    changed = {"", *written, *folders_above(written)}
    kept: set[str] = set()

    def enter(folder: str) -> bool:
        is_wanted = folder in changed or folder not in last.folders
        if not is_wanted:
            kept.add(folder)
        return is_wanted

    return scan(ws.root, lambda _: visible, avoid=ws.state, enter=enter), kept


def _joined(last: Scan, found: Scan, kept: Collection[str]) -> Scan:
    """What was found, and of the last walk what lies in the folders that were not entered."""

    @cache
    def stays(folder: str) -> bool:
        return folder in kept or (folder != "" and stays(folder.rpartition("/")[0]))

    def of(paths: Collection[str]) -> Iterator[str]:
        return (path for path in paths if stays(path.rstrip("/").rpartition("/")[0]))

    files = {path: last.files[path] for path in of(last.files)}
    ignored = {path for path in last.ignored if path in files}
    left_out = {p: why for p, why in last.left_out.items() if stays(p.rstrip("/"))}
    return replace(
        found,
        files=files | found.files,
        ignored=ignored | found.ignored,
        folders={p: seen for p, seen in last.folders.items() if stays(p)} | found.folders,
        fresh={p: names for p, names in last.fresh.items() if stays(p[:-1])} | found.fresh,
        rules=last.rules,
        empty=[*filter(stays, last.empty), *found.empty],
        left_out=left_out | found.left_out,
        unheld={path: last.unheld[path] for path in of(last.unheld)} | found.unheld,
        ignored_bytes=found.ignored_bytes + sum(files[path][1] for path in ignored),
    )
