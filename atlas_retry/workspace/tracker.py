"""One work tree through a run: its last walk and its last snapshot, kept in memory.

Between two moments at which nothing has run, one walk does for both.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.errors import WorkspaceError
from atlas_retry.workspace.discovery import Uncommitted, Workspace, uncommitted
from atlas_retry.workspace.place import differing
from atlas_retry.workspace.scan import Scan, Stat, without_git
from atlas_retry.workspace.walking import look_again, look_over

if TYPE_CHECKING:
    from atlas_retry.workspace.snapshots import HeldTree, Snapshot, WholeLook
    from atlas_retry.workspace.store import Known

MAX_AGE_S, MAX_WALKS = 2.0, 10
"""What a person changes is seen after this time, or as long as so many walks take."""


class Tracker:
    """Of one work tree. Who writes there without starting a process says so by `moved`."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self._scan: Scan | None = None
        self._started = -1
        self._until_s = 0.0
        self._held: HeldTree | None = None
        self._held_from: Scan | None = None
        self._seen: Mapping[str, Stat] = {}
        self._status: tuple[Scan, Uncommitted] | None = None
        self._seen_from: dict[str, Stat] | None = None

    def moved(self) -> None:
        """Look again the next time."""
        self._until_s = 0.0

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """While somebody writes: look again during it and after."""
        self.moved()
        try:
            yield
        finally:
            self.moved()

    def scan(self) -> Scan:
        """The work tree as it is now, as far as anybody can have changed it."""
        now_s = time.monotonic()
        if self._scan is None or process.started() != self._started or now_s > self._until_s:
            self._started = process.started()
            self._scan = look_again(self.ws, self._scan) if self._scan else look_over(self.ws)
            took_s = time.monotonic() - now_s
            self._until_s = now_s + max(MAX_AGE_S, MAX_WALKS * took_s)
        return self._scan

    def snapshot(self) -> "Snapshot":
        """As `snapshots.snapshot`, made from the last one."""
        return self._hold(self.scan()).snapshot

    def _hold(self, found: Scan) -> "HeldTree":
        from atlas_retry.workspace.snapshots import take_from  # start-up

        if self._held is None or found is not self._held_from:
            self._held = take_from(self.ws, found, self._held)
            self._held_from = found
        return self._held

    def take(self) -> "WholeLook":
        """As `snapshots.take`, made from the last one."""
        self.moved()
        found = self.scan()
        held = self._hold(found)
        return held.snapshot, held.state, found

    def uncommitted(self) -> Uncommitted:
        """What may not be as in the last commit; git is asked once for each index."""
        found = self.scan()
        if self._status is None or self._status[0].rules != found.rules:
            self._status = found, uncommitted(self.ws.root, self.ws.environ)
        then, status = self._status
        moved = differing(then.files, found.files)
        return replace(status, paths=status.paths | moved) if moved else status

    @property
    def holds(self) -> bool:
        """Whether a snapshot was taken: it knows the content of every file."""
        return self._held is not None

    def known(self) -> "Mapping[str, Known]":
        """What the latest snapshot knew of each file, this process's or that of one before."""
        from atlas_retry.workspace.snapshots import remembered_files  # start-up

        return self._held.files if self._held else remembered_files(self.ws)

    def files(self) -> tuple[int, Mapping[str, Stat]]:
        """When the work tree was walked, and the stat data of what git does not ignore.

        Of everything but dependencies and caches, where there is no git that can read it.
        """
        try:
            found = self.scan()
        except WorkspaceError:
            found = without_git(self.ws.root, self.ws.state)
        if found.files is not self._seen_from:
            self._seen = found.visible()
            self._seen_from = found.files
        return found.taken_ns, self._seen
