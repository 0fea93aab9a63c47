"""Looks at a work tree: what a run knows of it, and what changed between two looks.

A look is one walk over all of it. It reads stat data, and content only if stat data changed or are
not conclusive; it keeps no content. While no command runs, one walk serves all looks.
"""

import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.errors import WorkspaceError
from atlas_retry.workspace.discovery import Uncommitted, Workspace, uncommitted
from atlas_retry.workspace.place import refresh
from atlas_retry.workspace.scan import (
    Scan,
    Stat,
    differing,
    is_settled,
    stat_of,
    unsettled,
    without_git,
)
from atlas_retry.workspace.staged import as_staged, tracked
from atlas_retry.workspace.store import git_mode
from atlas_retry.workspace.walking import look_over

if TYPE_CHECKING:
    from atlas_retry.workspace.snapshot.snapshots import HeldTree, Snapshot

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


class Tracker:
    """Tracks one work tree. Code that writes there without starting a process calls `moved`."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self._scan: Scan | None = None
        self._started = -1
        self._until_s = 0.0
        self._held: HeldTree | None = None

    def moved(self) -> None:
        """Walk the tree again next time."""
        self._until_s = 0.0

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
            self._scan = look_over(self.ws)
            took_s = time.monotonic() - now_s
            self._until_s = now_s + max(MAX_AGE_S, MAX_WALKS * took_s)
        return self._scan

    def snapshot(self) -> "Snapshot":
        """Like `snapshots.snapshot`, of the work tree as it was at the last walk."""
        return self._hold(self.scan()).snapshot

    def take(self) -> "HeldTree":
        """Like `snapshots.take`, by a new walk."""
        self.moved()
        return self._hold(self.scan())

    def _hold(self, scan: Scan) -> "HeldTree":
        from atlas_retry.workspace.snapshot.snapshots import take  # start-up

        if self._held is None or scan is not self._held.scan:
            self._held = take(self.ws, scan)
            self._scan = self._held.scan
        return self._held

    def uncommitted(self) -> Uncommitted:
        """Files that differ from the last commit, as git says. Raises GitError."""
        return uncommitted(self.ws.root, self.ws.environ)

    @property
    def held(self) -> "HeldTree | None":
        """The last snapshot, if one was taken: the content of every file is known by it."""
        return self._held

    def files(self) -> tuple[int, Mapping[str, Stat]]:
        """Time of the walk, and the stat data of files that git does not ignore.

        Without a usable git, of all files except dependencies and caches.
        """
        try:
            scan = self.scan()
        except WorkspaceError:
            scan = without_git(self.ws.root, self.ws.state)
        return scan.taken_ns, scan.visible()


class Lookout:
    """Looks at one work tree repeatedly; each look reuses what the last one knew."""

    def __init__(self, tracker: Tracker) -> None:
        """`tracker` walks the work tree; contents in its snapshots need not be read."""
        self._ws = tracker.ws
        self._tracker = tracker
        self._last: Look | None = None
        self._first: Look | None = None
        self._staged: Mapping[str, str] = {}
        """Content ids of the files that were as staged at the first look."""
        self._held: HeldTree | None = None
        """Knows the contents at the first look, also once the tracker holds later ones."""

    def glance(self) -> Mapping[str, Stat]:
        """The stat data of all files; the next `take` needs no other walk."""
        return self._tracker.files()[1]

    def take(self) -> Look:
        """The tree as it is now. Without a usable git, all files count."""
        taken_ns, files = self._tracker.files()
        last, late = self._last, _unsettled(files, taken_ns, self._last)
        look = Look(files=files, taken_ns=taken_ns, read={}, unsettled=late)
        self._held = self._held if last else self._tracker.held
        unsure = () if last or self._held else self._unsure(files)
        read = _read(self._ws.root, (*suspects(last or look, look), *unsure), files)
        kept = _still_read(last, look) if last else {}
        self._last = replace(look, read=kept | read)
        self._first = self._first or self._last
        return self._last

    def between(self, before: Look, after: Look) -> tuple[str, ...]:
        """The paths whose content or mode differ between two looks, in order."""
        if before is after:
            return ()
        unread = (path for path in suspects(before, after) if path not in before.read)
        asked = {path: before.files[path] for path in unread if path in before.files}
        first = self._first.files if self._first else {}
        as_first = (path for path, seen in asked.items() if first.get(path) == seen)
        known = {path: self._staged[path] for path in as_first if path in self._staged}
        for held in filter(None, (self._held, self._tracker.held)):
            known |= _ids_when(asked, held)
        return moved(before, after, known)

    def date(self, before: Look, paths: Iterable[str]) -> bool:
        """Give files a time in a later second than before; returns whether one had none."""
        there = before.files.keys() & paths
        dated = refresh(self._ws.root, {path: before.files[path][2] / 1e9 for path in there})
        if dated:
            self._tracker.moved()
        return bool(dated)

    def tracked(self, paths: Collection[str]) -> frozenset[str]:
        """Those of these paths that git tracks."""
        with suppress(WorkspaceError):
            return tracked(self._ws.root, self._ws.environ, paths)
        return frozenset()

    def _unsure(self, files: Mapping[str, Stat]) -> Iterable[str]:
        """The files whose content git's index does not know; all files if they are few."""
        if len(files) <= FEW_FILES and sum(seen[1] for seen in files.values()) <= LITTLE_BYTES:
            return files
        with suppress(WorkspaceError):
            self._staged = as_staged(self._ws.root, self._ws.environ)
        return files.keys() - self._staged.keys()


def _ids_when(wanted: Mapping[str, Stat], held: "HeldTree") -> dict[str, str]:
    """Content ids of files with these stat data, as far as a snapshot knows them."""
    then, files = held.scan, held.state.files
    same = (path for path, seen in wanted.items() if then.files.get(path) == seen)
    sure = (path for path in same if is_settled(wanted[path], then.taken_ns))
    return {path: files[path].oid for path in sure if path in files}


def _read(root: Path, paths: Iterable[str], files: Mapping[str, Stat]) -> dict[str, str]:
    ids: dict[str, str] = {}
    left_bytes = MAX_READ_BYTES
    for path in paths:
        seen = files.get(path)
        if seen and seen[1] <= left_bytes and (oid := _id_at(root / path, seen)):
            ids[path] = oid
            left_bytes -= seen[1]
    return ids


def _still_read(last: Look, look: Look) -> dict[str, str]:
    def is_same(path: str) -> bool:
        seen = last.files.get(path)
        return seen is not None and seen == look.files.get(path) and is_settled(seen, last.taken_ns)

    return {path: oid for path, oid in last.read.items() if is_same(path)}


def _id_at(path: Path, seen: Stat) -> str | None:
    """Git id of a file's content; None if unreadable, or changed since it was `seen`."""
    with suppress(OSError):
        oid = _id_of(path, seen)
        if stat_of(path.lstat()) == seen:
            return oid
    return None


def _id_of(path: Path, seen: Stat) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % seen[1])
    if stat.S_ISLNK(seen[0]):
        digest.update(os.fsencode(path.readlink()))
        return digest.hexdigest()
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
