"""One look at a work tree: by a walk over all of it, or from the result of the last look.

If no folder and no ignore rule changed, only stat data are read, without git. In an overlay all
writes go to its upper layer, and only that is looked at: changes below the overlay are not seen.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.reading import read_file
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import MAX_NAMED, GitError, git, joined, split
from atlas_retry.workspace.place import folders_above, parents
from atlas_retry.workspace.scan import (
    CACHE,
    CACHE_MARKS,
    CACHES,
    FOLDER,
    MAX_FILE_BYTES,
    MAX_IGNORED_BYTES,
    MAX_IGNORED_FILE_BYTES,
    NESTED,
    UNREADABLE,
    Listing,
    Scan,
    Stat,
    Unheld,
    is_full,
    is_settled,
    scan,
    stat_of,
)
from atlas_retry.workspace.versions import differing


def look_over(ws: Workspace) -> Scan:
    """Walk the whole work tree."""
    rules, upper = _rules(ws), entries(ws.upper) if ws.upper else None
    taken = scan(ws.root, listing(ws.root, ws.environ, without(ws)), avoid=ws.state)
    taken.rules, taken.upper = rules, upper
    return taken


def look_again(ws: Workspace, last: Scan) -> Scan:
    """Walk the work tree again; only folders that changed are listed.

    In an overlay only the written files are looked at.
    """
    rules, seen = _rules(ws), None
    if not ws.upper:
        seen = again(ws, last, rules) if last.rules[1:] == rules[1:] else None
    elif last.rules == rules:
        seen = look_at_written(ws, last)
    return seen or _after(last, look_over(ws))


def _after(last: Scan, scan: Scan) -> Scan:
    """The scan with its files as a version of the last one's, so that they are compared once."""
    scan.files = last.files.amended(scan.files, last.files.keys() - scan.files.keys())
    return scan


def _rules(ws: Workspace) -> tuple[Stat | None, ...]:
    """Stat data of git's files that decide what is ignored, outside the work tree; index first."""
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


def again(ws: Workspace, last: Scan, rules: tuple[Stat | None, ...]) -> Scan | None:
    """Look at stat data, and into folders that changed; None if a full walk is needed.

    It always is with nested repositories.
    """
    base, taken_ns = f"{ws.root}/", time.time_ns()
    if last.leftovers or any(map(_is_odd, last.left_out.values())) or _has_moved(base, last.unheld):
        return None
    try:
        written = _written_folders(base, last)
        moved, gone = _moved_files(base, last.files)
        closed = _closed(ws, last)
    except (GitError, OSError):
        return None
    more_bytes = _more_ignored(last, moved)
    if more_bytes is None or closed is None or any(map(_steers, (*moved, *gone))):
        return None
    fresh = {p: n for p, n in last.fresh.items() if not _is_settled(last, p, taken_ns)}
    now = replace(
        last,
        files=last.files.amended(moved),
        fresh=fresh,
        rules=rules,
        closed=closed,
        left_out=dict(last.left_out),
        ignored_bytes=last.ignored_bytes + more_bytes,
        taken_ns=taken_ns,
    )
    written.update(path.rpartition("/")[0] for path in gone)
    if not written and last.rules == rules:
        return now
    with suppress(GitError, OSError):
        return _look_into(ws, last, now, written, gone)
    return None


def may_hold(ws: Workspace, scan: Scan) -> bool:
    """Whether a scan is still of the work tree if nothing was written in its folders."""
    is_whole = not ws.upper and not scan.leftovers and not any(map(_is_odd, scan.left_out.values()))
    return is_whole and scan.rules == _rules(ws)


def _is_odd(reason: str) -> bool:
    """Whether a file left out for this reason may change without a sign in known stat data."""
    return reason == NESTED or reason.startswith((UNREADABLE, "not a file"))


def _has_moved(base: str, unheld: Mapping[str, Unheld]) -> bool:
    with suppress(OSError):
        statuses = ((os.lstat(base + path), seen) for path, seen in unheld.items())
        return any((now.st_size, now.st_mtime_ns) != seen for now, seen in statuses)
    return True


def _closed(ws: Workspace, last: Scan) -> set[str] | None:
    """Left out cache folders that git ignores by a rule; None if it can see a file in another.

    Raises GitError.
    """
    left_out = {path for path, reason in last.left_out.items() if reason == CACHE} - last.closed
    unsure = [path[:-1] for path in left_out if not _ignores_itself(ws.root / path)]
    ignored = ignored_of(ws, unsure) if unsure else set[str]()
    return (
        last.closed.union(f"{path}/" for path in ignored) if len(ignored) == len(unsure) else None
    )


def _ignores_itself(folder: Path) -> bool:
    """Whether an ignore file in a folder ignores all that is in it."""
    with suppress(OSError):
        lines = read_file(folder / ".gitignore").splitlines()
        return b"*" in lines and not any(line.startswith(b"!") for line in lines)
    return False


def _is_settled(scan: Scan, prefix: str, taken_ns: int) -> bool:
    status = scan.folders[prefix[:-1]] if prefix else scan.top
    return status is not None and is_settled(status, taken_ns)


def _steers(path: str) -> bool:
    return path.endswith(".gitignore")


def _written_folders(base: str, last: Scan) -> set[str]:
    """The folders whose names may differ. Raises OSError."""
    written = {p for p, n in last.fresh.items() if _names(base + p) != n}
    written = {prefix[:-1] for prefix in written}
    if last.top != stat_of(os.lstat(base)):
        written.add("")
    for path, seen in last.folders.items():
        try:
            is_same = stat_of(os.lstat(base + path)) == seen
        except (FileNotFoundError, NotADirectoryError):
            is_same = False
        if not is_same:
            written.add(path)
    return written


def _names(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 - names only
    except OSError:
        return frozenset()


def _moved_files(base: str, files: Mapping[str, Stat]) -> tuple[dict[str, Stat], set[str]]:
    """The files whose stat data differ, with the current ones, and the files that are gone.

    Read by name in the open folder, which saves the lookup of whole paths. Raises OSError.
    """
    moved, gone = dict[str, Stat](), set[str]()
    read, folder, there = os.stat, "", os.open(base, FOLDER)
    try:
        for path, was in files.items():
            above, _, name = path.rpartition("/")
            if above != folder:
                there, folder = _opened(base + above, there), above
            try:
                seen = read(name, dir_fd=there, follow_symlinks=False) if there >= 0 else None
            except FileNotFoundError:
                seen = None
            if seen is None:
                gone.add(path)
            elif (now := stat_of(seen)) != was:
                moved[path] = now
    finally:
        if there >= 0:
            os.close(there)
    return moved, gone


def _opened(folder: str, last: int) -> int:
    """Open a folder and close the last one; negative if it is gone."""
    if last >= 0:
        os.close(last)
    try:
        return os.open(folder, FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return -1


def _more_ignored(last: Scan, moved: Mapping[str, Stat]) -> int | None:
    """Growth of the changed ignored files in bytes; None if a file may be left out now."""
    grown = 0
    for path, seen in moved.items():
        most = MAX_FILE_BYTES
        if path in last.ignored:
            grown, most = grown + seen[1] - last.files[path][1], MAX_IGNORED_FILE_BYTES
        if not stat.S_ISREG(seen[0]) or seen[1] > most:
            return None
    is_near = is_full(last) or last.ignored_bytes + grown >= MAX_IGNORED_BYTES
    return None if grown and is_near else grown


def _look_into(
    ws: Workspace, last: Scan, now: Scan, written: Collection[str], gone: Collection[str]
) -> Scan | None:
    """`now` with the files of the folders that were written to. Raises GitError."""
    from atlas_retry.workspace.staged import staged  # start-up

    tracked = staged(ws.root, ws.environ, ws.git_dir / "index").at
    new = _new(f"{ws.root}/", last, written)
    untracked = (now.files.keys() - tracked.keys() - now.ignored).difference(gone)
    asked = new.keys() - tracked.keys()
    matters = any(_may_matter_elsewhere(path, last) for path in (*written, *new))
    is_submodule = any(path in tracked for path in (*written, *filter(new.get, new)))
    if matters or is_submodule or len(asked) > MAX_NAMED:
        return None
    if last.rules != now.rules and not _is_seen_alike(ws, last, tracked, untracked, new):
        return None
    made = _untracked(ws, asked)
    if any(path.endswith("/") for path in made):
        return None
    return _walked(ws, now, written, {*tracked, *untracked, *made})


def _new(base: str, last: Scan, written: Iterable[str]) -> dict[str, bool]:
    """New files and folders, and whether each is a folder. Raises OSError."""
    folders = {".git", *last.folders, *(path[:-1] for path in last.left_out if path.endswith("/"))}
    files = last.files.keys() | last.left_out.keys() | {".git"}
    new = dict[str, bool]()
    for folder in written:
        prefix = f"{folder}/" if folder else ""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(base + prefix) as inside:
            kinds = {prefix + one.name: one.is_dir(follow_symlinks=False) for one in inside}
            new |= {
                p: is_folder
                for p, is_folder in kinds.items()
                if p not in (files, folders)[is_folder]
            }
    return new


def _is_seen_alike(
    ws: Workspace,
    last: Scan,
    tracked: Mapping[str, object],
    untracked: Collection[str],
    new: Collection[str],
) -> bool:
    """Whether git ignores the same files with the new index. Raises GitError."""
    if not last.ignored.isdisjoint(tracked) or len(untracked) > MAX_NAMED:
        return False
    # a folder of caches is only held if files of it are, or were, tracked
    if any(path.rpartition("/")[2] in CACHES for path in last.folders):
        return False
    if any(path.endswith(CACHE_MARKS) for path in last.files):
        return False
    for path in tracked.keys() - last.files.keys():
        is_new = not {path, *parents(path)}.isdisjoint(new)
        if not is_new and os.path.lexists(ws.root / path):
            return False
    return not (untracked and ignored_of(ws, untracked))


def _untracked(ws: Workspace, paths: Collection[str]) -> list[str]:
    """The files at and below these paths that git does not ignore. Raises GitError."""
    asked = ("ls-files", "-z", "--others", "--exclude-standard", "--", *paths)
    return split(git(*asked, cwd=ws.root, env=ws.environ)) if paths else []


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
        visible = _visible(ws, last, written, now)
        return _walked(ws, replace(last, upper=now, taken_ns=taken_ns), written, visible)
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
    return [*stay, *(made - ignored_of(ws, made))]


def ignored_of(ws: Workspace, paths: Collection[str]) -> set[str]:
    """The paths among these that git ignores. Raises GitError."""
    # it knows no literal pathspecs; behind `./` nothing but the path is meant
    asked = joined(f"./{path}" for path in paths)
    options = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin")
    out = git(*options, cwd=ws.root, env=ws.environ, stdin=asked, accept=(0, 1))
    return {path.removeprefix("./") for path in split(out)}


def _walked(
    ws: Workspace, last: Scan, written: Collection[str], visible: Collection[str]
) -> Scan | None:
    """The last walk updated by a walk through the folders that were written to.

    None if the size of the ignored files has changed and there are too many to hold all.
    """
    changed = {"", *written, *folders_above(written)}
    kept: set[str] = set()

    def enter(folder: str) -> bool:
        is_wanted = folder in changed or folder not in last.folders
        if not is_wanted:
            kept.add(folder)
        return is_wanted

    entered = scan(ws.root, lambda _: visible, avoid=ws.state, enter=enter)
    now = _joined(last, entered, kept)
    return None if is_full(now) and now.ignored_bytes != last.ignored_bytes else now


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
        closed=last.closed,
        upper=last.upper,
        taken_ns=last.taken_ns,
        empty=[*filter(stays, last.empty), *scan.empty],
        left_out=left_out | scan.left_out,
        unheld={path: last.unheld[path] for path in of(last.unheld)} | scan.unheld,
        ignored_bytes=scan.ignored_bytes + sum(last.files[path][1] for path in ignored),
    )
