"""Looks at a work tree: what a run knows of it, and what changed between two looks.

While no command runs, one walk serves all looks. A look reads stat data, and content only if stat
data changed or are not conclusive; it keeps no content.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import digests, process
from atlas_retry.errors import AtlasError, WorkspaceError
from atlas_retry.workspace.discovery import Uncommitted, Workspace
from atlas_retry.workspace.git import git, split, user_environment
from atlas_retry.workspace.place import refresh
from atlas_retry.workspace.scan import (
    Scan,
    Stat,
    is_settled,
    stat_of,
    unsettled,
    without_git,
)
from atlas_retry.workspace.store import Known, git_mode
from atlas_retry.workspace.versions import Version, differing
from atlas_retry.workspace.walking import look_again, look_over, may_hold

if TYPE_CHECKING:
    from atlas_retry.workspace.remembered import RememberedTree
    from atlas_retry.workspace.snapshots import HeldTree, Snapshot, WholeLook
    from atlas_retry.workspace.staged import Index
    from atlas_retry.workspace.watch import FolderWatch

MAX_READ_BYTES = 32 << 20
"""Bytes that one look reads of files with unknown content; the rest stays unknown, and counts as
changed when its stat data change."""
FEW_FILES, LITTLE_BYTES = 200, 1 << 20
"""Limits below which reading files is faster than asking git for their content ids."""
_CHUNK_BYTES = 1 << 20


class Look(Struct, frozen=True, kw_only=True):
    """The files and links of a work tree at one time."""

    files: Mapping[str, Stat]
    taken_ns: int
    """Start of the look."""
    read: Mapping[str, str]
    """Git ids of contents, of files that were read at this look, or earlier and unchanged since."""
    unsettled: Collection[str] = ()
    """Files that may change afterwards without a change of their stat data."""


def suspects(before: Look, after: Look) -> list[str]:
    """The paths that may differ: their stat data changed, or may hide a change. Pure."""
    hiding = (path for path in before.unsettled if path in after.files)
    return sorted({*differing(before.files, after.files), *hiding})


def _unsettled(files: Mapping[str, Stat], taken_ns: int, last: Look | None) -> frozenset[str]:
    """The unsettled files; those settled at the last look and unchanged since are not."""
    asked: Collection[str] = files
    if last:
        asked = files.keys() & (differing(last.files, files) | {*last.unsettled})
    return unsettled(files, asked, taken_ns)


def moved(before: Look, after: Look, known: Mapping[str, str]) -> tuple[str, ...]:
    """The paths whose content or mode differ, in order. Pure.

    `known` are ids of earlier contents that `before` did not read. Unknown content counts as
    changed if its stat data changed.
    """
    return tuple(path for path in suspects(before, after) if _has_moved(path, before, after, known))


def rewritten(before: Look, after: Look) -> tuple[str, ...]:
    """The files that were written between two looks, even if they hold the same as before. Pure."""
    both = [path for path in differing(before.files, after.files) if path in before.files]
    there = (path for path in sorted(both) if path in after.files)
    return tuple(path for path in there if before.files[path][2:] != after.files[path][2:])


def _has_moved(path: str, before: Look, after: Look, known: Mapping[str, str]) -> bool:
    old, new = before.files.get(path), after.files.get(path)
    if old is None or new is None:
        return old is not new
    if git_mode(old[0]) != git_mode(new[0]) or old[1] != new[1]:
        return True
    was, now = before.read.get(path, known.get(path)), after.read.get(path)
    return was != now if was and now else old != new


MAX_AGE_S, MAX_WALKS = 2.0, 10
"""Changes by a person are seen after this many seconds, or the time of this many walks."""


WATCHED_FILES = 1_000
"""Fewer files are looked at in less time than it takes to watch their folders."""


class Tracker:
    """Tracks one work tree. Code that writes there without starting a process calls `moved`."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self._scan: Scan | None = None
        self._started = -1
        self._until_s = 0.0
        self._held: HeldTree | None = None
        self._held_from: Scan | None = None
        self._seen = Version[Stat]()
        self._status: tuple[Scan, Uncommitted] | None = None
        self._seen_from: Scan | None = None
        self._watch: FolderWatch | None = None

    @cached_property
    def _memory(self) -> "RememberedTree | None":
        return self._recalled()

    def _recalled(self) -> "RememberedTree | None":
        if not self.ws.shadow.exists():
            return None
        from atlas_retry.workspace.remembered import recall  # start-up

        return recall(self.ws)

    def moved(self) -> None:
        """Walk the tree again next time."""
        self._until_s = 0.0

    def dated(self, paths: Iterable[str]) -> None:
        """Look again at files whose times the caller set; it wrote nothing else."""
        files = self._scan.files if self._scan else Version[Stat]()
        now = dict[str, Stat]()
        with suppress(OSError):
            now = {path: stat_of((self.ws.root / path).lstat()) for path in paths}
        if self._scan and now and now.keys() <= files.keys():
            self._scan = replace(self._scan, files=files.amended(now))
        else:
            self.moved()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Have the kernel report writes during this context, if that saves time."""
        scan = self._scan or (self._memory and self._memory.scan)
        if not scan or len(scan.files) < WATCHED_FILES:
            yield
            return
        from atlas_retry.workspace.watch import FolderWatch  # start-up

        self._watch = FolderWatch(self.ws.root, scan.folders)
        try:
            yield
        finally:
            self._watch.end()
            self._watch = None

    def is_quiet_since(self, taken_ns: int) -> bool:
        """Whether the last walk was at that time, and the kernel has reported no write since."""
        scan, watch = self._scan, self._watch
        if not scan or not watch or scan.taken_ns != taken_ns:
            return False
        is_all_watched = watch.folders == scan.folders.keys()
        return is_all_watched and may_hold(self.ws, scan) and watch.is_quiet()

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Walk the tree again during this context and after it, because others write there."""
        self.moved()
        try:
            yield
        finally:
            self.moved()

    def scan(self) -> Scan:
        """The work tree as it is now; walked again only if it may have changed."""
        now_s = time.monotonic()
        if self._scan is None or process.started() != self._started or now_s > self._until_s:
            self._started = process.started()
            last = self._scan or (self._memory and self._memory.scan)
            self._scan = look_again(self.ws, last) if last else look_over(self.ws)
            took_s = time.monotonic() - now_s
            self._until_s = now_s + max(MAX_AGE_S, MAX_WALKS * took_s)
        return self._scan

    def snapshot(self) -> "Snapshot":
        """Like `snapshots.snapshot`, made from the last one."""
        return self._hold(self.scan()).snapshot

    def _hold(self, scan: Scan) -> "HeldTree":
        from atlas_retry.workspace.snapshots import take_from  # start-up

        if self._held is None or scan is not self._held_from:
            self._held = take_from(self.ws, scan, self._held or self._memory)
            self._held_from, self._memory = scan, None  # it is as much as the snapshot
        return self._held

    def take(self) -> "WholeLook":
        """Like `snapshots.take`, made from the last one."""
        self.moved()
        scan = self.scan()
        held = self._hold(scan)
        return held.snapshot, held.state, scan

    def index(self) -> "Index":
        """The user's index. Raises GitError."""
        from atlas_retry.workspace.staged import staged  # start-up

        return staged(self.ws.root, self.ws.environ, self.ws.git_dir / "index")

    def uncommitted(self) -> Uncommitted:
        """Files that may differ from the last commit; git is asked once for each index."""
        scan = self.scan()
        if self._status is None or self._status[0].rules != scan.rules:
            from atlas_retry.workspace.staged import compared  # start-up

            self._status = scan, compared(self.ws, scan)
        then, status = self._status
        if moved := differing(then.files, scan.files):
            status = replace(status, paths=status.paths | moved)
        self._status = scan, status
        return status

    @property
    def holds(self) -> bool:
        """Whether a snapshot was taken, so that the content of every file is known."""
        return self._held is not None

    def known(self) -> "Mapping[str, Known]":
        """Known data of files in the latest snapshot, of this process or an earlier one."""
        if self._held:
            return self._held.files
        latest = self._recalled()
        return latest.files if latest else {}

    def files(self) -> tuple[int, Mapping[str, Stat]]:
        """Time of the walk, and the stat data of files that git does not ignore.

        Without a usable git, of all files except dependencies and caches.
        """
        try:
            scan = self.scan()
        except WorkspaceError:
            scan = without_git(self.ws.root, self.ws.state)
        last, self._seen_from = self._seen_from, scan
        if not scan.ignored:
            self._seen = scan.files
        elif last is None or last.ignored != scan.ignored:
            self._seen = scan.visible()
        elif moved := differing(last.files, scan.files) - scan.ignored:
            there = {path: scan.files[path] for path in moved if path in scan.files}
            self._seen = self._seen.amended(there, moved - there.keys())
        return scan.taken_ns, self._seen


class Lookout:
    """Looks at one work tree repeatedly; each look reuses what the last one knew."""

    def __init__(self, tracker: Tracker) -> None:
        """`tracker` walks the work tree; contents in its snapshots need not be read."""
        self._ws = tracker.ws
        self._tracker = tracker
        self._last: Look | None = None
        self._glanced: tuple[int, Mapping[str, Stat]] | None = None

    def glance(self) -> Mapping[str, Stat]:
        """The stat data of all files, which the next `take` uses."""
        self._glanced = self._tracker.files()
        return self._glanced[1]

    def take(self) -> Look:
        """The tree as it is now. Without a usable git, all files count."""
        (taken_ns, files), self._glanced = self._glanced or self._tracker.files(), None
        last, late = self._last, _unsettled(files, taken_ns, self._last)
        look = Look(files=files, taken_ns=taken_ns, read={}, unsettled=late)
        unsure = () if last or self._tracker.holds else self._unsure(files)
        read = _read(self._ws.root, (*suspects(last or look, look), *unsure), files)
        kept = _still_read(last, look) if last else {}
        self._last = replace(look, read=kept | read)
        return self._last

    def watching(self) -> AbstractContextManager[None]:
        """A context in which `take_quickly` is quick."""
        return self._tracker.watching()

    def take_quickly(self) -> Look:
        """The last look, if the kernel has reported no write since; otherwise a new one.

        What the kernel does not report (see `watch`) only the next `take` sees.
        """
        if self._last and self._tracker.is_quiet_since(self._last.taken_ns):
            return self._last
        return self.take()

    def between(self, before: Look, after: Look) -> tuple[str, ...]:
        """The paths whose content or mode differ between two looks, in order."""
        if before is after:
            return ()
        unread = (path for path in suspects(before, after) if path not in before.read)
        asked = {path: before.files[path] for path in unread if path in before.files}
        known: dict[str, str] = {}
        if asked:
            with suppress(AtlasError):
                known |= _held(asked, self._tracker.known())
                known |= self._tracker.index().ids_when(asked)
        return moved(before, after, known)

    def date(self, before: Look, paths: Iterable[str]) -> bool:
        """Give files a time in a later second than before; returns whether one had none."""
        there = before.files.keys() & paths
        dated = refresh(self._ws.root, {path: before.files[path][2] / 1e9 for path in there})
        if dated:
            self._tracker.dated(dated)
        return bool(dated)

    def tracked(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of these paths that git tracks."""
        with suppress(WorkspaceError):
            return frozenset(self._tracker.index().at.keys() & {*paths})
        return frozenset()

    def _unsure(self, files: Mapping[str, Stat]) -> Iterable[str]:
        """The files whose content git's index does not know; all files if they are few."""
        if len(files) <= FEW_FILES and sum(seen[1] for seen in files.values()) <= LITTLE_BYTES:
            return files
        with suppress(WorkspaceError):
            index = self._tracker.index()
            known = index.at.keys() & files.keys()
            return files.keys() - known.difference(index.unlike(known, files))
        return files


def _read(root: Path, paths: Iterable[str], files: Mapping[str, Stat]) -> dict[str, str]:
    ids: dict[str, str] = {}
    left_bytes = MAX_READ_BYTES
    for path in paths:
        seen = files.get(path)
        if seen and seen[1] <= left_bytes and (oid := _id_at(root / path, seen)):
            ids[path] = oid
            left_bytes -= seen[1]
    return ids


def _held(asked: Mapping[str, Stat], files: Mapping[str, Known]) -> dict[str, str]:
    held: dict[str, str] = {}
    for path, seen in asked.items():
        known = files.get(path)
        if known and known.settled and known.status == seen:
            held[path] = known.oid
    return held


def _still_read(last: Look, look: Look) -> dict[str, str]:
    def is_same(path: str) -> bool:
        seen = last.files.get(path)
        return seen is not None and seen == look.files.get(path) and is_settled(seen, last.taken_ns)

    return {path: oid for path, oid in last.read.items() if is_same(path)}


def ignored(root: Path, env: Mapping[str, str]) -> list[str]:
    """Paths that git ignores; folders that are ignored as a whole end in `/`."""
    asked = ("ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard")
    is_there = (root / ".git").exists()
    return split(git(*asked, cwd=root, env=user_environment(env))) if is_there else []


def _id_at(path: Path, seen: Stat) -> str | None:
    """Git id of a file's content; None if unreadable, or changed since it was `seen`."""
    with suppress(OSError):
        oid = _id_of(path, seen)
        if stat_of(path.lstat()) == seen:
            return oid
    return None


def _id_of(path: Path, seen: Stat) -> str:
    digest = digests.started("sha1", seen[1])
    digest.update(b"blob %d\0" % seen[1])
    if stat.S_ISLNK(seen[0]):
        digest.update(os.fsencode(path.readlink()))
        return digest.hexdigest()
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
