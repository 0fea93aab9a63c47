"""Looks at a work tree: what a run knows of it, and what changed between two looks.

A look is one walk over all of it. It reads stat data, and content only if stat data changed or are
not conclusive; it keeps no content. While no command runs, one walk serves all looks.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry import process
from atlas_retry.errors import WorkspaceError
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Uncommitted, Workspace, uncommitted
from atlas_retry.workspace.files import Stat, differing, git_mode, is_settled, stat_of, unsettled
from atlas_retry.workspace.git import as_staged
from atlas_retry.workspace.walk import Scan, look_over, without_git

if TYPE_CHECKING:
    from atlas_retry.workspace.snapshot.snapshots import HeldTree, Snapshot

MAX_READ_BYTES = 32 << 20
"""Bytes that one look reads of files with unknown content; the rest stays unknown, and counts as
changed when its stat data change."""
FEW_FILES, LITTLE_BYTES = 200, 1 << 20
"""Limits below which reading files is faster than asking git for their content ids."""


class Look(Struct, frozen=True, kw_only=True):
    """The files and links of a work tree at one time."""

    files: Mapping[str, Stat]
    taken_ns: int
    """Start of the look."""
    ids: Mapping[str, str]
    """Git ids of contents, as far as they are known."""
    unsettled: Collection[str] = ()
    """Files that may change afterwards without a change of their stat data."""


def moved(before: Look, after: Look) -> tuple[str, ...]:
    """The paths whose content or mode differ between two looks, in order. Pure.

    Unknown content counts as changed if its stat data changed.
    """
    suspects = differing(before.files, after.files).union(before.unsettled)
    return tuple(path for path in sorted(suspects) if _has_moved(path, before, after))


def _has_moved(path: str, before: Look, after: Look) -> bool:
    old, new = before.files.get(path), after.files.get(path)
    if old is None or new is None:
        return old is not new
    if git_mode(old[0]) != git_mode(new[0]) or old[1] != new[1]:
        return True
    was, now = before.ids.get(path), after.ids.get(path)
    return was != now if was and now else old != new


def rewritten(before: Look, after: Look) -> tuple[str, ...]:
    """The files that were written between two looks, even if they hold the same as before. Pure."""
    both = (path for path in differing(before.files, after.files) if path in before.files)
    there = (path for path in sorted(both) if path in after.files)
    return tuple(path for path in there if before.files[path][2:] != after.files[path][2:])


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
        self._look: Look | None = None

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
            self._scan = look_over(self.ws, self._scan.files if self._scan else {})
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

    def files(self) -> tuple[int, Mapping[str, Stat]]:
        """Time of the walk, and the stat data of files that git does not ignore.

        Without a usable git, of all files except dependencies and caches.
        """
        try:
            scan = self.scan()
        except WorkspaceError:
            scan = without_git(self.ws.root, self.ws.state)
        return scan.taken_ns, scan.visible()

    def look(self) -> Look:
        """The tree as it is now. Without a usable git, all files count."""
        last, (taken_ns, files) = self._look, self.files()
        if last and last.taken_ns == taken_ns:
            return last
        if last:
            asked = files.keys() & differing(last.files, files).union(last.unsettled)
            late = unsettled(files, asked, taken_ns)
            known = {path: oid for path, oid in last.ids.items() if path not in asked}
        else:
            late, known = unsettled(files, files, taken_ns), self._known(files)
            asked = {*late, *(files.keys() - known.keys())}
        ids = known | _read(self.ws.root, sorted(asked), files)
        self._look = Look(files=files, taken_ns=taken_ns, ids=ids, unsettled=late)
        return self._look

    def _known(self, files: Mapping[str, Stat]) -> dict[str, str]:
        """Content ids that a snapshot or git's index knows; none if reading all is faster."""
        if self._held:
            held, then = self._held.state.files, self._held.scan
            both = files.keys() & held.keys()
            same = (path for path in both if then.files.get(path) == files[path])
            return {path: held[path].oid for path in same if is_settled(files[path], then.taken_ns)}
        if len(files) <= FEW_FILES and sum(seen[1] for seen in files.values()) <= LITTLE_BYTES:
            return {}
        with suppress(WorkspaceError):
            return as_staged(self.ws.root, self.ws.environ)
        return {}

    def date(self, before: Look, paths: Iterable[str]) -> bool:
        """Give files a time in a later second than before; returns whether one had none."""
        there = before.files.keys() & paths
        dated = place.refresh(self.ws.root, {path: before.files[path][2] / 1e9 for path in there})
        if dated:
            self.moved()
        return bool(dated)


def _read(root: Path, paths: Iterable[str], files: Mapping[str, Stat]) -> dict[str, str]:
    """Git ids of contents, except of files that cannot be read, or change meanwhile."""
    ids: dict[str, str] = {}
    left_bytes = MAX_READ_BYTES
    for path in paths:
        seen = files[path]
        if seen[1] > left_bytes or not (entry := place.look(root, path)):
            continue
        there = place.status(root, path)
        if there and stat_of(there) == seen:
            ids[path] = entry.oid
            left_bytes -= seen[1]
    return ids
