"""What a run does to the work tree: snapshots, restoring, writing, what it lost."""

import os
import shlex
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import chain, filterfalse
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.errors import WorkspaceError
from atlas_retry.events import seconds_of
from atlas_retry.guard.judge import seals
from atlas_retry.guard.places import is_build_output
from atlas_retry.history.rescue import START
from atlas_retry.model import AgentReply, Change, Contents, Lost, Validation
from atlas_retry.run.checked_out import as_checked_out
from atlas_retry.run.effects.open_run import Part
from atlas_retry.run.uncommitted import deleted_ignored, generated, lost_work, recorded
from atlas_retry.run.undecided import undecided
from atlas_retry.text.json_text import encodable
from atlas_retry.text.units import first_few
from atlas_retry.workspace import discovery, gitunder, place
from atlas_retry.workspace.snapshot import restoring, store, trees
from atlas_retry.workspace.snapshot.snapshots import Snapshot
from atlas_retry.workspace.snapshot.unheld import folder_stat, moved_caches

LONG_AGO_S = 315_619_200
"""2 January 1980: archives such as zip hold no earlier time."""


class TreeEffects(Part, frozen=True):
    """The work tree of a run."""

    def snapshot(self, name: str) -> Snapshot:
        """Take a snapshot and keep it under a name within the run."""
        discovery.put_back_gitfile(self.opened.root, self.opened.git.home)
        taken = self.opened.tracker.snapshot()
        store.keep(self.opened.git, f"runs/{self.of.run.run_id}/{name}", taken.id)
        return taken

    def kept(self, name: str) -> str | None:
        """The id of the snapshot that was taken under this name; None if there is none."""
        return store.kept(self.opened.git).get(f"runs/{self.of.run.run_id}/{name}")

    def changes(self, before: str, after: str) -> tuple[Change, ...]:
        return trees.changes(self.opened.git, before, after)

    def moved(self, before: str, after: str) -> frozenset[str]:
        """The paths that differ between two snapshots."""
        return frozenset(change.path for change in self.changes(before, after))

    def restore(self, target: str, expected: str, paths: Collection[str] | None) -> None:
        """Restore a snapshot, or some paths of it.

        What differs from `expected` was edited by the user meanwhile: it is reported, and not
        overwritten, nor is what others have committed since. A whole restore removes the caches
        that were made since the seal.
        Raises WorkspaceError if git's folder is gone.
        """
        git = self.opened.git
        with process.uninterruptible(f"{self.opened.root} is being restored"):
            if paths is None and self.last_turn.sealed:
                seals.clean(self.last_turn.sealed, checks=True)
            look = self.opened.tracker.take
            chosen = paths
            if paths is None and (stays := self._committed_since(target)):
                now = self.opened.tracker.snapshot().id
                chosen = {*trees.moved(git, now, target, ignored=True)} - stays
            done = restoring.restore(git, target, chosen, since=expected, look=look)
            self.opened.tracker.moved()
        if not git.git_dir.is_dir():
            text = "is gone, with the commits that no snapshot holds; the files are restored"
            raise WorkspaceError(f"{git.git_dir} {text}", remedy="copy it from a clone")
        if done.conflicts:
            names = ", ".join(done.conflicts)
            text = f"changed by someone else during the run; atlas keeps that change: {names}"
            self.warn(text)
        left = restoring.unheld(git, target), moved_caches(git.root, self.of.folder)
        if paths is None and any(left):
            text = f"not restored, because no snapshot holds it: {', '.join(chain(*left))}"
            self.warn(text)

    def _committed_since(self, target: str) -> frozenset[str]:
        """Files that others committed since a snapshot, without what decides: that is judged."""
        committed = gitunder.committed_since(self.opened.git, target)
        if not committed:
            return committed
        now = self.opened.tracker.snapshot().id
        return committed.difference(self.deciding(target, now, committed))

    def read(self, snapshot: str, paths: Collection[str]) -> Contents:
        """Contents of these files in a snapshot."""
        return trees.tree(self.opened.git, snapshot, ignored=True).contents(paths)

    def write(self, files: Contents) -> None:
        """Write these files; those whose old content no snapshot could hold stay as they are."""
        start = self.kept(START)
        if start is None:
            gone = f"the start of the run in {self.opened.git.shadow}"
            again = "run the command again"
            raise WorkspaceError(f"{gone} was deleted while atlas used it", remedy=again)
        restoring.write(self.opened.git, files, start)
        self.opened.tracker.moved()

    def outdate(self, paths: Iterable[str]) -> None:
        """Give files a very old time, so that a build makes them again."""
        for path in paths:
            with suppress(OSError):
                os.utime(self.opened.root / path, (LONG_AGO_S, LONG_AGO_S), follow_symlinks=False)
        self.opened.tracker.moved()

    def outdate_builds(self) -> None:
        """Have what builds have made since the start of the run made again."""
        began_s = time.time() - (time.monotonic() - self.of.started_s)
        ignored = folder_stat(self.opened.root, self.opened.tracker.scan()).ignored
        for path in filter(is_build_output, ignored):
            stamp = ignored[path]
            if stamp and stamp[3] / 1e9 >= began_s:
                self.outdate([path])

    def refresh(self, changes: Iterable[Change]) -> None:
        """Let no cache of a gate take a file that a turn changed for an unchanged one."""
        paths = [change.path for change in changes]
        sealed = self.last_turn.sealed
        since_s = dict.fromkeys(paths, sealed.taken_ns / 1e9 if sealed else 0.0)
        for path in self.last_turn.files.keys() & since_s.keys():
            # one that was restored before the turn may be dated in the future
            since_s[path] = max(since_s[path], self.last_turn.files[path][2] / 1e9)
        if place.refresh(self.opened.root, since_s):
            self.opened.tracker.moved()

    def by_others(self, paths: frozenset[str], reply: AgentReply) -> frozenset[str]:
        """The paths that someone other than the agent wrote during a turn.

        Known only in an overlay, or if the reply names everything that the turn can have edited.
        """
        if self.of.channel:
            return frozenset(filterfalse(self.of.channel.layers.wrote, paths))
        return paths - set(reply.touched) if reply.touched_all else frozenset()

    def lost(self, start: str, left: str, theirs: Collection[str]) -> tuple[Lost, ...]:
        """Lost work that only uncommitted files of the first snapshot held.

        `theirs` are paths that the user changed.
        """
        pick = f"atlas pick {self.of.run.run_id} start --path"
        if deleted := deleted_ignored(self.opened.git, start, left):
            text = f"deleted in the run, and ignored by git: {first_few(deleted)}"
            self.warn(f"{text}; to get a file back: {pick} FILE")
        return tuple(
            replace(
                one,
                command=f"{pick} {shlex.quote(encodable(one.path))}"
                + (" --merge" if one.names and place.is_there(self.opened.root, one.path) else ""),
            )
            for one in lost_work(self.opened.git, start, left, self.opened.environ, theirs)
        )

    def deciding(self, before: str, after: str, paths: Collection[str]) -> tuple[str, ...]:
        """Those of the paths whose change the guard would refuse or hold."""
        if self.opened.settings.guard.mode != "block":
            return ()
        span = before, after
        return undecided(self.opened.git, span, paths, self.opened.settings)

    def as_patch(self, before: str, after: str, paths: Collection[str], number: int) -> Path:
        """Write the changes of these paths into the attempt's folder, for `git apply`."""
        file = self.of.attempt_folder(number) / "attempt.patch"
        file.write_bytes(trees.patch(self.opened.git, before, after, paths, whole=True))
        return file

    def unseen(
        self, start: str, left: str, end: str, paths: Collection[str], green: Validation
    ) -> Contents:
        """What the run wrote that git does not hold, with its content in the first snapshot.

        These are the `paths` that turns wrote, ignored files written between the snapshots and
        before the validation `green`, and if several gates ran, ignored code that an earlier
        validation wrote too: in the snapshot `left`, right before `green`. Without files that a
        build makes again, or whose content is unchanged. A folder counts with its ignored files,
        unless it holds other files too. Other changed files are as a checkout would hold them,
        if that is different.
        """
        git, began_s = self.opened.git, seconds_of(green.started_at)
        held, earlier = store.read_state(git, end), recorded(git, start, end, began_s)
        again = generated(git, start, left) if len(green.results) > 1 else frozenset()
        wrote = {*paths, *earlier, *again & held.ignored.keys()} - place.folders_above(held.work)
        wrote |= {path for path in held.ignored if not wrote.isdisjoint(place.parents(path))}
        was, now = self.read(start, wrote), self.read(end, wrote)
        ignored = {
            path: None if was[path] == now[path] or is_build_output(path) else was[path]
            for path in sorted(wrote)
        }
        changed = self.moved(start, end)
        visible = as_checked_out(git, self.read(start, changed), self.read(end, changed))
        return {**visible, **ignored}


class BesideTree(Part, frozen=True):
    """A part of the effects that needs the work tree as well."""

    @property
    def tree(self) -> TreeEffects:
        return TreeEffects(of=self.of)
