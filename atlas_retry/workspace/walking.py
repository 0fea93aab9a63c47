"""One look at a work tree: by a walk over all of it, or from the result of the last look.

If no folder and no ignore rule changed, only stat data are read, without git. In an overlay all
writes go to its upper layer, and only that is looked at: changes below the overlay are not seen.
"""

import os
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, split
from atlas_retry.workspace.place import folders_above, parents
from atlas_retry.workspace.scan import (
    CACHES,
    FOLDER,
    MAX_FILE_BYTES,
    NESTED,
    UNREADABLE,
    Listing,
    Scan,
    Stat,
    is_full,
    scan,
    stat_of,
)
from atlas_retry.workspace.versions import Version, differing


def look_over(ws: Workspace) -> Scan:
    """Walk the whole work tree."""
    rules, upper = _rules(ws), entries(ws.upper) if ws.upper else None
    taken = scan(ws.root, listing(ws.root, ws.environ, without(ws)), avoid=ws.state)
    taken.rules, taken.upper = rules, upper
    return taken


def look_again(ws: Workspace, last: Scan) -> Scan:
    """Walk the work tree again; without git if no folder and no ignore rule changed.

    In an overlay only the written files are looked at.
    """
    seen = None
    if last.rules == _rules(ws):
        seen = look_at_written(ws, last) if ws.upper else again(ws.root, last)
    return seen or _after(last, look_over(ws))


def _after(last: Scan, scan: Scan) -> Scan:
    """The scan with its files as a version of the last one's, so that they are compared once."""
    scan.files = last.files.amended(scan.files, last.files.keys() - scan.files.keys())
    return scan


def _rules(ws: Workspace) -> tuple[Stat | None, ...]:
    """Stat data of git's files that decide what is ignored, outside the work tree."""
    of_both = (ws.common_dir / "info/exclude", ws.common_dir / "config")
    of_own = (ws.git_dir / "index", ws.git_dir / "config.worktree")
    return tuple(stat_of(p.stat()) if p.exists() else None for p in (*of_own, *of_both))


def listing(root: Path, env: Mapping[str, str], spare: Mapping[str, str] | None = None) -> Listing:
    """Function that lists what git sees in the work tree at `root`.

    If the repository is unreadable, the environment `spare` is used. An unreadable nested
    repository counts as ignored.
    """

    def below(folder: str) -> Collection[str]:
        asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        try:
            return split(git(*asked, cwd=root / folder, env=env))
        except GitError:
            if folder:
                return ()
            if spare is None:
                raise
            return split(git(*asked, cwd=root, env=spare))

    return below


def without(ws: Workspace) -> dict[str, str]:
    """Environment of git for the work tree without its repository, which may be broken.

    Nothing is tracked then, so only the ignore rules of the work tree and the user count.
    """
    return {
        **ws.environ,
        "GIT_DIR": str(ws.shadow),
        "GIT_WORK_TREE": str(ws.root),
        "GIT_INDEX_FILE": str(ws.home / "no-index"),
    }


def again(root: Path, last: Scan) -> Scan | None:
    """Look at stat data only, without git; None if a folder or an ignore rule changed.

    This takes a fifth of the time. It is not possible with nested repositories.
    """
    base, taken_ns = f"{root}/", time.time_ns()
    folders = {"": last.top, **{f"{path}/": seen for path, seen in last.folders.items()}}
    names_differ = any(_names(base + path) != names for path, names in last.fresh.items())
    if names_differ or last.leftovers or any(map(_is_odd, last.left_out.values())):
        return None
    try:
        if any(stat_of(os.lstat(base + path)) != seen for path, seen in folders.items()):
            return None
        for path, unheld in last.unheld.items():
            status = os.lstat(base + path)
            if (status.st_size, status.st_mtime_ns) != unheld:
                return None
        files = _moved_files(base, last)
    except OSError:
        return None
    if files is None:
        return None
    return replace(last, files=files, left_out=dict(last.left_out), taken_ns=taken_ns)


def _is_odd(reason: str) -> bool:
    """Whether a file left out for this reason may change without a sign in known stat data."""
    return reason == NESTED or reason.startswith((UNREADABLE, "not a file"))


def _names(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 - names only
    except OSError:
        return frozenset()


def _moved_files(base: str, last: Scan) -> Version[Stat] | None:
    """The files with their current stat data; None if a walk is needed."""
    moved = dict[str, Stat]()
    for path, was, status in _statuses(base, last.files):
        if status != was:
            is_plain = stat.S_ISREG(status[0]) and status[1] <= MAX_FILE_BYTES
            if path in last.ignored or not is_plain or path.endswith(".gitignore"):
                return None
            moved[path] = status
    return last.files.amended(moved)


def _statuses(base: str, files: Mapping[str, Stat]) -> Iterator[tuple[str, Stat, Stat]]:
    """Each path with its given and its current stat data. Raises OSError.

    Read by name in the open folder, which saves the lookup of whole paths.
    """
    read, folder, there = os.stat, "", os.open(base, FOLDER)
    try:
        for path, was in files.items():
            above, _, name = path.rpartition("/")
            if above != folder:
                os.close(there)
                there = -1
                there, folder = os.open(base + above, FOLDER), above
            yield path, was, stat_of(read(name, dir_fd=there, follow_symlinks=False))
    finally:
        if there >= 0:
            os.close(there)


def entries(upper: Path) -> Mapping[str, Stat] | None:
    """All entries of an upper layer, folders and whiteouts too; None if unreadable."""
    stats: dict[str, Stat] = {}
    waiting = [""]
    try:
        while waiting:
            prefix = waiting.pop()
            for entry in os.scandir(f"{upper}/{prefix}"):
                path = prefix + entry.name
                stats[path] = stat_of(entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                    waiting.append(f"{path}/")
    except OSError:
        return None
    stats.pop(".git", None)
    return stats


def look_at_written(ws: Workspace, last: Scan) -> Scan | None:
    """The work tree now, from the last walk and the written files; None if a walk is needed."""
    taken_ns, was, now = time.time_ns(), last.upper, entries(ws.upper) if ws.upper else None
    if now is None or was is None or last.leftovers:
        return None
    written = differing(was, now)
    if not written:
        return replace(last, left_out=dict(last.left_out), taken_ns=taken_ns)
    if any(_may_matter_elsewhere(path, last) for path in written):
        return None
    with suppress(GitError):
        joined = _joined(last, *_walk(ws, last, written, _visible(ws, last, written, now)))
        is_counted_anew = is_full(joined) and joined.ignored_bytes != last.ignored_bytes
        return None if is_counted_anew else replace(joined, upper=now, taken_ns=taken_ns)
    return None


_OF_GIT = frozenset({".git", ".gitignore"})


def _may_matter_elsewhere(path: str, last: Scan) -> bool:
    """Whether a change there may affect what git sees or snapshots hold elsewhere."""
    names, folders = path.split("/"), {path, *parents(path)}
    is_nested = any(f"{folder}/.git" in last.left_out for folder in folders)
    is_half_held = any(
        folder.rpartition("/")[2] in CACHES for folder in folders & last.folders.keys()
    )
    return is_nested or is_half_held or not _OF_GIT.isdisjoint(names)


def _visible(
    ws: Workspace, last: Scan, written: Collection[str], now: Mapping[str, Stat]
) -> list[str]:
    """The files that git does not ignore. Raises GitError."""
    kinds = ((path, stat.S_IFMT(now[path][0])) for path in written if path in now)
    files = {path for path, kind in kinds if kind not in (stat.S_IFDIR, stat.S_IFCHR)}
    gone = {path for path in written if path not in files}
    made = files - last.files.keys()
    stay = (path for path in last.visible() if path not in gone)
    return [*stay, *(made - _ignored(ws, made))]


def _ignored(ws: Workspace, paths: Collection[str]) -> set[str]:
    """The paths among these that git ignores. Raises GitError."""
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    options = ("check-ignore", "-z", "--stdin")
    return {*split(git(*options, cwd=ws.root, env=ws.environ, stdin=asked, accept=(0, 1)))}


def _walk(
    ws: Workspace, last: Scan, written: Collection[str], visible: Collection[str]
) -> tuple[Scan, set[str]]:
    """A walk through the folders that were written to, and the folders that it skipped."""
    changed = {"", *written, *folders_above(written)}
    kept: set[str] = set()

    def enter(folder: str) -> bool:
        is_wanted = folder in changed or folder not in last.folders
        if not is_wanted:
            kept.add(folder)
        return is_wanted

    return scan(ws.root, lambda _: visible, avoid=ws.state, enter=enter), kept


def _joined(last: Scan, scan: Scan, kept: Collection[str]) -> Scan:
    """The scan joined with the last one's content of skipped folders."""

    @cache
    def stays(folder: str) -> bool:
        return folder in kept or (folder != "" and stays(folder.rpartition("/")[0]))

    def of(paths: Collection[str]) -> Iterator[str]:
        return (path for path in paths if stays(path.rstrip("/").rpartition("/")[0]))

    files = {*of(last.files)}
    ignored = last.ignored & files
    left_out = {p: why for p, why in last.left_out.items() if stays(p.rstrip("/"))}
    return replace(
        scan,
        files=last.files.amended(scan.files, last.files.keys() - files - scan.files.keys()),
        ignored=ignored | scan.ignored,
        folders={p: seen for p, seen in last.folders.items() if stays(p)} | scan.folders,
        fresh={p: names for p, names in last.fresh.items() if stays(p[:-1])} | scan.fresh,
        rules=last.rules,
        empty=[*filter(stays, last.empty), *scan.empty],
        left_out=left_out | scan.left_out,
        unheld={path: last.unheld[path] for path in of(last.unheld)} | scan.unheld,
        ignored_bytes=scan.ignored_bytes + sum(last.files[path][1] for path in ignored),
    )
