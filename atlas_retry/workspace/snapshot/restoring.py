"""Restore a work tree from a snapshot, without touching edits that others made meanwhile.

It can be killed at any moment and run again: everything is held before it is removed, and every
step is one rename or one removal.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.errors import WorkspaceError
from atlas_retry.model import Contents
from atlas_retry.text.units import counted
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace, head_in
from atlas_retry.workspace.files import USUAL_FOLDER, Attributes, StoredFile
from atlas_retry.workspace.place import folders_above, parents
from atlas_retry.workspace.snapshot.git_state import is_staged, put_back_index
from atlas_retry.workspace.snapshot.snapshots import HeldTree, take
from atlas_retry.workspace.snapshot.store import TreeState, contents, read_state
from atlas_retry.workspace.snapshot.trees import changes
from atlas_retry.workspace.walk import Scan, is_ignored

INDEX = ".git/index"
"""Name of the index among paths."""
AFTERMATH_S = 4.0
"""Time in which processes of a killed atlas may still write, until the watchdog has ended them."""
_RULES = ".gitignore"
_ROUNDS = 8


class Restored(Struct, frozen=True, kw_only=True):
    """Result of a restore."""

    changed: tuple[str, ...] = ()
    """Paths that were restored or removed; `.git/index` for the index."""
    conflicts: tuple[str, ...] = ()
    """Paths that were left alone, because someone had edited them since."""
    lost: tuple[str, ...] = ()
    """Paths that no snapshot holds and that are gone or changed: `.git` of nested repositories,
    files that are too big."""
    before: str = ""
    """Snapshot of the state before the restore; lost unless it is kept."""
    now: str = ""
    """Snapshot that was restored."""
    git: tuple[str, ...] = ()
    """Names of git's own state that was restored, as in `git_facts`."""
    git_conflicts: tuple[str, ...] = ()
    """Like `conflicts`, of git's own state."""
    unheld: tuple[str, ...] = ()
    """Ignored paths like `lost`, which were probably built again."""
    ended: tuple[str, ...] = ()
    """Processes that were still running, and were ended."""
    differs: tuple[str, ...] = ()
    """Paths that still differ from that snapshot."""


class _Restore(Struct, kw_only=True):
    """One restore: what is wanted, and how far it is."""

    ws: Workspace
    target: TreeState
    expected: TreeState | None = None
    paths: frozenset[str] | None = None
    edited: frozenset[str] = frozenset()
    """Files that someone edited or removed since `expected`."""
    above_edited: frozenset[str] = frozenset()
    changed: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)
    dressed: set[str] = field(default_factory=set)
    """Paths whose owner or extended attributes were set."""

    def is_selected(self, path: str) -> bool:
        """Whether a path is among `paths`."""
        return self.paths is None or not self.paths.isdisjoint((path, *parents(path)))

    def covers(self, path: str) -> bool:
        """Whether to restore a path: it is meant, and not edited since."""
        is_free = path not in self.edited and path not in self.above_edited
        return is_free and self.is_selected(path) and self.edited.isdisjoint(parents(path))

    def wrong(self, now: TreeState) -> Iterator[tuple[str, StoredFile]]:
        """Files that are not as wanted."""
        files, root = now.files, self.ws.root
        for path, entry in self.target.files.items():
            is_other = files.get(path) != entry and self.covers(path)
            if is_other and _current(root, path, now) != entry:
                yield path, entry

    def added(self, now: TreeState) -> Iterator[str]:
        """Added files, without those that existed but were not held.

        Files in a folder that is left out now as well as then are new if they are visible.
        """
        hidden = {*self.target.left_out} - {path for path in now.left_out if path.endswith("/")}
        wanted = self.target.files
        for path in now.files:
            is_added = path not in wanted and self.covers(path)
            if is_added and hidden.isdisjoint((path, *(f"{folder}/" for folder in parents(path)))):
                yield path

    def conflicts(self, now: TreeState) -> Iterator[str]:
        """Paths that someone edited and that would have been restored to something else."""
        target, expected = self.target.files, self.expected.files if self.expected else {}
        for path in {*target, *expected} if self.expected else ():
            moves = target.get(path) != expected.get(path)
            is_left = moves and self.is_selected(path) and not self.covers(path)
            if is_left and _current(self.ws.root, path, now) != target.get(path):
                yield path

    def work(self, seen: HeldTree, look: Callable[[], HeldTree]) -> None:
        """Restore until nothing differs; restored ignore rules change which files count."""
        for _ in range(_ROUNDS):
            differing = self._round(seen)
            if not differing:
                return
            seen = look()
        raise WorkspaceError(
            f"{self.ws.root} could not be restored: something keeps changing "
            f"{sorted(differing)[:3]}",
            remedy="end what is writing there and try again",
        )

    def _round(self, seen: HeldTree) -> set[str]:
        """Restore what differs, except what failed before; returns the paths."""
        now, stuck, done = seen.state, self.problems, len(self.changed)
        wrong = {path: entry for path, entry in self.wrong(now) if path not in stuck}
        extra = [path for path in self.added(now) if path not in stuck]
        rules = {path for path in (*wrong, *extra) if path.rpartition("/")[2] == _RULES}
        # while ignore files are wrong, nothing else is removed
        self._remove(rules.intersection(extra) if rules else extra)
        self._put(wrong, seen)
        self._folders(seen.scan)
        for path in seen.scan.leftovers:
            place.remove(self.ws.root, path)
        differing = {*wrong, *extra, *self._set_attributes(seen)}
        if differing and len(self.changed) > done:
            stuck.clear()  # there may be room now for what failed before
        return differing

    def _put(self, wrong: Mapping[str, StoredFile], seen: HeldTree) -> None:
        held = contents(self.ws, [entry.oid for entry in wrong.values()])
        for (path, entry), content in zip(wrong.items(), held, strict=True):
            with self._collecting_errors(path):
                if path in seen.scan.folders:
                    self._empty_out(path, seen)
                place.put(self.ws.root, path, entry, content)

    def _empty_out(self, folder: str, seen: HeldTree) -> None:
        """Remove the held content of a folder that is in a file's way."""
        self._remove(path for path in seen.state.files if path.startswith(f"{folder}/"))
        below = (path for path in seen.scan.folders if path.startswith(f"{folder}/"))
        for path in sorted(below, reverse=True):
            place.remove_folder(self.ws.root, path)

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with self._collecting_errors(path):
                place.remove(self.ws.root, path)

    def _folders(self, scan: Scan) -> None:
        """Remove empty folders that should not exist, and create those that should.

        New ones get their permissions; those of existing folders stay as they are.
        """
        wanted = _folders_of(self.target)
        ours = _folders_of(self.expected) if self.expected else {*scan.folders}
        emptied = folders_above(self.changed)
        for path in sorted((scan.folders.keys() & ours) - wanted, reverse=True):
            if self.is_selected(path) or path in emptied:
                place.remove_folder(self.ws.root, path)
        for path in self.target.empty:
            if path not in scan.folders and self.covers(path):
                with self._collecting_errors(path):
                    place.make_folder(self.ws.root, path)
        # permissions last and from within, because they may forbid to write there
        made = folders_above(self.changed) | (self.changed & {*self.target.empty})
        for path in sorted((made & wanted) - scan.folders.keys(), reverse=True):
            mode = self.target.modes.get(path, USUAL_FOLDER)
            place.set_folder_mode(self.ws.root, path, mode)

    def _set_attributes(self, seen: HeldTree) -> Iterator[str]:
        """Set owners and extended attributes of files that are there; yields the paths."""
        now, usual, expected = seen.state, Attributes(seen.scan.owner), self.expected
        for path in attributes_differing(self.target, now, usual):
            was = expected.attributes.get(path) if expected else None
            is_edited = expected is not None and now.attributes.get(path) != was
            if path in self.changed or (self.covers(path) and not is_edited):
                with suppress(OSError):  # of another user; what differs in the end is named
                    wanted = self.target.attributes.get(path, usual)
                    place.set_attributes(self.ws.root, path, wanted)
                    if path not in self.dressed:
                        yield path
                    self.dressed.add(path)

    @contextmanager
    def _collecting_errors(self, path: str) -> Iterator[None]:
        """Record why a path cannot be restored, and continue with the rest."""
        try:
            yield
        except OSError as error:
            self.problems[path] = error.strerror or str(error)
        else:
            self.changed.add(path)


def restore(
    ws: Workspace,
    snapshot_id: str,
    paths: Collection[str] | None = None,
    *,
    since: str | None = None,
    look: Callable[[], HeldTree] | None = None,
) -> Restored:
    """Restore content, modes and links of a snapshot, and remove what was added.

    `paths` (files, or folders with their content) limits it. The index is restored only without
    `paths`, and if HEAD is the same: else it would undo what was committed since. What the snapshot
    could not hold stays. `since` is a snapshot of the state expected now: what differs from it was
    edited by someone else and stays; that is a conflict if the two snapshots differ there, too.
    `look` takes snapshots of the current state, like `Tracker.take`. Raises WorkspaceError.
    """
    look = look or partial(take, ws)
    before = now = look()
    expected = read_state(ws, since) if since else None
    edited = frozenset(_differing(ws.root, now.state, expected) if expected else ())
    goal = _Restore(
        ws=ws,
        target=read_state(ws, snapshot_id),
        expected=expected,
        paths=None if paths is None else frozenset(path.rstrip("/") for path in paths),
        edited=edited,
        above_edited=frozenset(folders_above(edited)),
    )
    conflicts = {*goal.conflicts(now.state)}
    goal.work(now, look)
    # last, because another git may hold its lock
    if paths is None and is_head(ws, goal.target):
        is_changed, is_conflict = put_back_index(ws, goal.target, goal.expected)
        if is_changed:
            goal.changed.add(INDEX)
            goal.work(look(), look)  # what is tracked is not ignored
        conflicts.update([INDEX] if is_conflict else [])
    if goal.problems:
        first = [f"{path!r}: {reason}" for path, reason in goal.problems.items()][:3]
        raise WorkspaceError(
            f"{counted(len(goal.problems), 'path')} could not be restored: {'; '.join(first)}",
            remedy="make room for them (permissions, disk space, what is in the way) and try again",
        )
    gits = filter(goal.is_selected, (p for p in goal.target.left_out if p.endswith("/.git")))
    return Restored(
        changed=tuple(sorted(goal.changed)),
        conflicts=tuple(sorted(conflicts)),
        lost=tuple(path for path in gits if not (ws.root / path).exists()),
        before=before.snapshot.id,
    )


def is_head(ws: Workspace, held: TreeState) -> bool:
    """Whether the last commit is that of a snapshot, or that is not known."""
    return "own/HEAD" not in held.git or held.head == head_in(ws.git_dir, ws.common_dir)


class Begun(Struct, frozen=True, kw_only=True):
    """The state in which the first try of a restore began."""

    snapshot: str
    edited: frozenset[str]
    """Files that someone had edited before."""


def restore_but_edited(
    ws: Workspace,
    snapshot_id: str,
    run_ended_s: float,
    but: frozenset[str] = frozenset(),
    begun: Begun | None = None,
) -> Restored:
    """Restore everything except `but` and edits after `run_ended_s`, in seconds since the epoch.

    What an earlier try could not restore is no edit, though its times changed with the obstacle.
    """
    if run_ended_s == inf and not but:
        return restore(ws, snapshot_id)
    now = take(ws).snapshot.id
    paths = {change.path for change in changes(ws, snapshot_id, now, ignored=True)}
    theirs = edited_after(ws, paths - but, run_ended_s)
    if begun:
        moved = {change.path for change in changes(ws, begun.snapshot, now, ignored=True)}
        theirs &= begun.edited | moved
    if not (theirs or but) and not place.is_later(ws.git_dir / "index", run_ended_s):
        return restore(ws, snapshot_id)
    done = restore(ws, snapshot_id, paths - theirs - but)
    return replace(done, conflicts=tuple(sorted(theirs)))


def edited_after(ws: Workspace, paths: Iterable[str], run_ended_s: float) -> set[str]:
    """Files among these that were changed after `run_ended_s`, or became folders."""
    paths, edited = {*paths}, set[str]()
    for path in paths:
        there = place.status(ws.root, path)
        if there and there.st_ctime > run_ended_s:
            edited.add(path)
    return edited | (paths & folders_above(edited))


def unheld(ws: Workspace, snapshot_id: str, *, ignored: bool = False) -> tuple[str, ...]:
    """Files (ignored ones, or the others) that the snapshot could not hold and that changed.

    With the reason why they are not held, for a person.
    """
    target = read_state(ws, snapshot_id)
    chosen = {path: why for path, why in target.left_out.items() if is_ignored(why) == ignored}
    asked = {path: seen for path, seen in target.unheld.items() if path in chosen}
    return tuple(f"{path} ({chosen[path]})" for path in place.moved_since(ws.root, asked))


def differing(ws: Workspace, snapshot_id: str) -> tuple[str, ...]:
    """Paths that differ from the snapshot, new nested repositories included; changes nothing."""
    held = take(ws)
    now, usual = held.state, Attributes(held.scan.owner)
    goal = _Restore(ws=ws, target=read_state(ws, snapshot_id))
    paths = {*(path for path, _ in goal.wrong(now)), *goal.added(now)}
    new = now.left_out.keys() - goal.target.left_out.keys()
    paths |= {path for path in new if path.endswith("/.git")}
    index = () if is_staged(ws, goal.target) else (INDEX,)
    others = {
        f"{path} (owner, attributes)" for path in attributes_differing(goal.target, now, usual)
    }
    for path, was in goal.target.attributes.items():
        # a restored file is a new one, without its other names
        if path in now.files and was.names > now.attributes.get(path, usual).names:
            others.add(f"{path} (hard link)")
    return (*sorted(paths), *sorted(others), *index)


def _differing(root: Path, now: TreeState, other: TreeState) -> Iterator[str]:
    """Paths that differ from `other`, or are missing now."""
    files, wanted = now.files, other.files
    yield from (path for path in files if path not in wanted)
    for path, entry in wanted.items():
        if files.get(path) != entry and _current(root, path, now) != entry:
            yield path


def _current(root: Path, path: str, now: TreeState) -> StoredFile | None:
    """The file at `path`, even if snapshots would leave it out."""
    return now.files.get(path) or place.look(root, path)


def attributes_differing(target: TreeState, now: TreeState, usual: Attributes) -> Iterator[str]:
    """Files and folders that have another owner, or other extended attributes."""
    for path in sorted({*target.attributes, *now.attributes}):
        was, there = (state.attributes.get(path, usual) for state in (target, now))
        if (was.owner, was.extended) != (there.owner, there.extended):
            yield path


def empty_folders(ws: Workspace, before: str, after: str) -> set[str]:
    """Empty folders of the snapshot `after` that were no folders in `before`."""
    return {*read_state(ws, after).empty} - _folders_of(read_state(ws, before))


def _folders_of(state: TreeState) -> set[str]:
    return folders_above((*state.files, *state.empty)) | {*state.empty}


def write(ws: Workspace, files: Contents, start: str) -> None:
    """Write these files, and remove those that are None, if they are no folders with content.

    A file that the snapshot `start` may have left out is never removed. Raises WorkspaceError for
    the first path that cannot be written.
    """
    state = read_state(ws, start)
    for path, file in files.items():
        try:
            if file is None and state.may_lack(path):
                continue
            if file is None:
                place.remove(ws.root, path)
                place.remove_folder(ws.root, path)
            else:
                place.put(ws.root, path, StoredFile(file[0], ""), file[1])
        except OSError as error:
            raise WorkspaceError(f"{ws.root / path} cannot be written: {error.strerror}") from error
