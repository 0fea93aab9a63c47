"""Walk a work tree, and select the files that a snapshot holds; reads no content.

Git says first which files it sees.
"""

import os
import stat
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import CACHE, CACHES, TEMPORARY, Attributes, Stat, Unheld, stat_of
from atlas_retry.workspace.git import GitError, git, special_rules, split
from atlas_retry.workspace.place import folders_above

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags to open a folder whose files are read by name."""
MAX_FILE_BYTES = 1 << 30
MAX_IGNORED_FILE_BYTES = 1 << 20
MAX_IGNORED_BYTES = 64 << 20
KEPT_IN_CACHES = {
    ".cargo": ("config.toml", "config"),
    ".bundle": ("config",),
    ".terraform": ("terraform.tfstate", "environment"),
}
"""Settings and state that people keep in folders of caches, which nobody can make again."""
CACHE_MARKS = ("CACHEDIR.TAG", "pyvenv.cfg")
"""Files that mark a cache folder. Source: bford.info/cachedir and Python's `venv`."""
_TOO_MANY = f"ignored, and all ignored files together are more than {MAX_IGNORED_BYTES >> 20} MiB"
NESTED = "git's own files of a nested repository"
UNREADABLE = "cannot be read"
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

Listing = Callable[[str], Collection[str]]
"""Paths that git tracks or would add below a folder (`` or `a/b/`), relative to it;
a nested repository is `name/`, or `name` if it is a submodule."""


class Scan(Struct, kw_only=True):
    """Result of a walk."""

    files: dict[str, Stat] = field(default_factory=dict)
    """Stat data of each file and link that a snapshot should hold."""
    ignored: set[str] = field(default_factory=set)
    """Paths in `files` that git ignores."""
    folders: dict[str, Stat] = field(default_factory=dict)
    """Every visited folder except the root, without a final `/`."""
    empty: list[str] = field(default_factory=list)
    """Folders without any content, not even left-out files."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Paths (folders end in `/`) that a snapshot does not hold, and the reasons."""
    unheld: dict[str, Unheld] = field(default_factory=dict)
    """Files that are left out because of their size."""
    ignored_bytes: int = 0
    taken_ns: int = field(default_factory=time.time_ns)
    """Start of the walk."""
    owner: tuple[int, int] = (0, 0)
    """User and group of the work tree."""
    attributes: dict[str, Attributes] = field(default_factory=dict)
    """Of files with several names, and of what has another owner than the work tree."""
    leftovers: list[str] = field(default_factory=list)
    """Temporary files of a killed restore."""

    def visible(self) -> Mapping[str, Stat]:
        """The files that git does not ignore."""
        if not self.ignored:
            return self.files
        return {path: seen for path, seen in self.files.items() if path not in self.ignored}

    def is_visible(self, path: str) -> bool:
        """Whether a path is in `visible`."""
        return path in self.files and path not in self.ignored


class _Folder(Struct, frozen=True, kw_only=True):
    prefix: str
    """`` or `a/b/`."""
    ignored: bool = False
    """Whether git sees nothing in it."""
    cache: str | None = None
    """The dependency or cache folder that it is or is in."""


def scan(
    root: Path,
    listing: Listing | None,
    *,
    avoid: Path | None = None,
    enter: Callable[[str], bool] = lambda _: True,
    last: Mapping[str, Stat] = {},
) -> Scan:
    """Walk the work tree, following no link and entering no git directory.

    Without a listing nothing counts as ignored. `avoid` is an absolute folder to skip; `enter` says
    whether to visit a folder. Folders come before their content, so that files near the root are
    held first if there are too many ignored files. `last` are files of an earlier walk: the two
    share in memory what is equal.
    """
    inside = avoid is not None and avoid.is_relative_to(root)
    apart = avoid.relative_to(root).as_posix() if avoid and inside else None
    walk = _Walk(f"{root}/", listing, lambda folder: folder != apart and enter(folder), last)
    waiting = deque([_Folder(prefix="")])
    while waiting:
        waiting.extend(walk.visit(waiting.popleft()))
    return walk.scan


def without_git(root: Path, avoid: Path) -> Scan:
    """Walk everything except dependency and cache folders."""
    return scan(root, None, avoid=avoid, enter=lambda path: path.rpartition("/")[2] not in CACHES)


class _Walk:
    """One walk. What git sees in a nested repository is known on entry."""

    def __init__(
        self,
        base: str,
        listing: Listing | None,
        is_wanted: Callable[[str], bool],
        last: Mapping[str, Stat],
    ) -> None:
        self.scan = Scan()
        self._base = base
        self._listing = listing
        self._is_wanted = is_wanted
        self._last = last
        self._seen: set[str] = set()
        self._with_seen: set[str] = set()
        """The folders above what git sees."""
        self._list("")

    def _list(self, prefix: str) -> None:
        if self._listing:
            new = {prefix + path for path in self._listing(prefix)}
            self._seen |= new
            self._with_seen |= folders_above(new) | {prefix[:-1]}

    def visit(self, folder: _Folder) -> Iterator[_Folder]:
        """Record what is in a folder; yields the folders in it."""
        inside = list[str]()
        try:
            there = os.open(self._base + folder.prefix, FOLDER)
            try:
                inside += self._record(folder, there)
            finally:
                os.close(there)
        except OSError as error:
            self.scan.left_out[folder.prefix] = why(error)
        for path in inside:
            yield from self._entered(path, folder)

    def _record(self, folder: _Folder, there: int) -> list[str]:
        """Record an open folder and its files; returns the folders in it. Raises OSError.

        Stat data are read by name in the open folder, which saves the lookup of whole paths.
        """
        scan, status = self.scan, os.fstat(there)
        with os.scandir(there) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        is_cache = any(entry.name in CACHE_MARKS for entry in entries)
        if folder.ignored and (is_cache or scan.ignored_bytes >= MAX_IGNORED_BYTES):
            scan.left_out[folder.prefix] = CACHE if is_cache else _TOO_MANY
            return []
        if folder.prefix:
            scan.folders[folder.prefix[:-1]] = stat_of(status)
            _note_attributes(folder.prefix[:-1], status, 1, scan)
        else:
            scan.owner = _owner(status)
        if folder.prefix and all(entry.name == TEMPORARY for entry in entries):
            scan.empty.append(folder.prefix[:-1])
        return [*self._record_inside(folder, entries)]

    def _record_inside(self, folder: _Folder, entries: "list[os.DirEntry[str]]") -> Iterator[str]:
        """Record the files among the entries of an open folder; yields the folders."""
        scan = self.scan
        for entry in entries:
            path = folder.prefix + entry.name
            if entry.name == TEMPORARY:
                scan.leftovers.append(path)
            elif entry.name == ".git":
                scan.left_out.update({path: NESTED} if folder.prefix else {})
            elif entry.is_dir(follow_symlinks=False):
                yield path
            else:
                self._record_file(entry, path, folder)

    def _record_file(self, entry: "os.DirEntry[str]", path: str, folder: _Folder) -> None:
        scan, ignored = self.scan, self._listing is not None and path not in self._seen
        if ignored and folder.cache:
            scan.left_out[folder.cache] = CACHE
            return
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            scan.left_out[path] = why(error)
            return
        if reason := _why_not_hold(status, scan, ignored=ignored):
            scan.left_out[path] = reason
            scan.unheld[path] = (status.st_size, status.st_mtime_ns)
            return
        if ignored:
            scan.ignored_bytes += status.st_size
            scan.ignored.add(path)
        seen, was = stat_of(status), self._last.get(path)
        scan.files[sys.intern(path)] = was if was == seen else seen
        _note_attributes(path, status, status.st_nlink, scan)

    def _entered(self, path: str, above: _Folder) -> Iterator[_Folder]:
        """The folder at a path, if it is to be visited."""
        if not self._is_wanted(path):
            return
        if f"{path}/" in self._seen or path in self._seen:
            self._list(f"{path}/")
        ignored = self._listing is not None and path not in self._with_seen
        name = path.rpartition("/")[2]
        cache = above.cache or (f"{path}/" if name in CACHES else None)
        if not (cache and ignored):
            yield _Folder(prefix=f"{path}/", ignored=ignored, cache=cache)
            return
        self.scan.left_out[cache] = CACHE
        if name in KEPT_IN_CACHES:
            self._record_kept(_Folder(prefix=f"{path}/"), KEPT_IN_CACHES[name])

    def _record_kept(self, folder: _Folder, kept: Collection[str]) -> None:
        with suppress(OSError), os.scandir(self._base + folder.prefix) as found:
            for entry in found:
                if entry.name in kept:
                    self._record_file(entry, folder.prefix + entry.name, folder)


def is_ignored(reason: str) -> bool:
    """Whether this reason is of an ignored file."""
    return reason.startswith("ignored")


def why(error: OSError) -> str:
    """The reason why a file cannot be held."""
    return f"{UNREADABLE}: {error.strerror}"


def _note_attributes(path: str, status: os.stat_result, names: int, scan: Scan) -> None:
    if names > 1 or _owner(status) != scan.owner:
        scan.attributes[path] = Attributes(_owner(status), names)


def _owner(status: os.stat_result) -> tuple[int, int]:
    return status.st_uid, status.st_gid


def _why_not_hold(status: os.stat_result, scan: Scan, *, ignored: bool) -> str | None:
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        return _KINDS.get(stat.S_IFMT(status.st_mode), "not a file")
    if ignored and status.st_size > MAX_IGNORED_FILE_BYTES:
        return f"ignored, and more than {MAX_IGNORED_FILE_BYTES >> 20} MiB"
    if ignored and scan.ignored_bytes + status.st_size > MAX_IGNORED_BYTES:
        return _TOO_MANY
    if status.st_size > MAX_FILE_BYTES:
        return f"more than {MAX_FILE_BYTES >> 20} MiB"
    return None


def look_over(ws: Workspace, last: Mapping[str, Stat] = {}) -> Scan:
    """Walk the whole work tree; `last` as in `scan`. Raises WorkspaceError."""
    # for a work tree whose repository is broken: only the ignore rules of it and the user count
    spare = {
        **ws.environ,
        "GIT_DIR": str(ws.shadow),
        "GIT_WORK_TREE": str(ws.root),
        "GIT_INDEX_FILE": str(ws.home / "no-index"),
    }
    return scan(ws.root, listing(ws.root, ws.environ, spare), avoid=ws.state, last=last)


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


def remove_special_rules(root: Path) -> tuple[str, ...]:
    """Remove those of a whole tree, which hold nothing; returns their paths."""
    special = (*special_rules(root, CACHES),)
    for path in special:
        path.unlink()
    return tuple(str(path.relative_to(root)) for path in special)
