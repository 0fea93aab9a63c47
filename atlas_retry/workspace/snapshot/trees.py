"""Reads a snapshot, a revision or a plain folder, all as `model.Tree`; how two snapshots differ."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path

from atlas_retry.model import Change, ChangeStatus, Contents, Tree
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import Stat, StoredFile, differing, git_mode
from atlas_retry.workspace.git import (
    MAX_NAMED,
    GitError,
    commit_id,
    git,
    lined,
    split,
    user_environment,
)
from atlas_retry.workspace.place import parents
from atlas_retry.workspace.snapshot.store import (
    IGNORED,
    WORK,
    file_of,
    list_tree,
    parse_batch,
    read_state,
    shadow_git,
    stored_as,
)
from atlas_retry.workspace.walk import Scan, listing, scan

SUBMODULE = "160000"
MAX_SOURCE_BYTES = 16 << 20


def contents(tree: Tree, paths: Iterable[str]) -> Contents:
    """Mode and content of each of these paths; None if there is no such file."""
    files = ((path, tree.mode(path), tree.read(path)) for path in paths)
    return {
        path: None if mode is None or content is None else (mode, content)
        for path, mode, content in files
    }


class ObjectTree:
    """A tree of git objects. Contents are cached once read."""

    def __init__(self, entries: Mapping[str, StoredFile], batch: Callable[[bytes], bytes]) -> None:
        self._entries = entries
        self._batch = batch
        self._contents: dict[str, bytes] = {}

    def paths(self) -> Iterable[str]:
        return sorted(self._entries)

    def mode(self, path: str) -> str | None:
        entry = self._entries.get(path)
        return entry.mode if entry else None

    def entry(self, path: str) -> tuple[str, str] | None:
        """Mode and content id of a path."""
        return content_of(self._entries.get(path))

    def contents(self, paths: Iterable[str]) -> Contents:
        """Mode and content of each of these paths; None if there is no such file."""
        paths = sorted(paths)
        self.preload(paths)
        return contents(self, paths)

    def read(self, path: str) -> bytes | None:
        """As in `model.Tree`; for a submodule, the id of its commit."""
        entry = self._entries.get(path)
        if entry is None:
            return None
        if entry.mode == SUBMODULE:
            return entry.oid.encode()
        self.preload([path])
        return self._contents[entry.oid]

    def preload(self, paths: Collection[str]) -> None:
        """Read many files with a single process."""
        entries = (self._entries[path] for path in paths if path in self._entries)
        oids = {entry.oid for entry in entries if entry.mode != SUBMODULE}
        if wanted := sorted(oids - self._contents.keys()):
            asked = lined(wanted)
            self._contents.update(parse_batch(self._batch(asked)))


class DirectoryTree:
    """Files and links of a folder, listed and read on demand.

    An ignored file can be read although it is not listed; one larger than `max_bytes` cannot.
    """

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        max_bytes: int | None = None,
        scan: Scan | None = None,
    ) -> None:
        """`scan` is an earlier walk of the folder."""
        self._root = root
        self._environ = environ
        self._max_bytes = max_bytes
        self._scan = scan

    def paths(self) -> Iterable[str]:
        return sorted(self._files)

    def mode(self, path: str) -> str | None:
        status = self._files.get(path)
        return git_mode(status[0]) if status else None

    def read(self, path: str) -> bytes | None:
        return place.read(self._root, path, self._max_bytes)

    @cached_property
    def _files(self) -> Mapping[str, Stat]:
        return (self._scan or walk(self._root, self._environ)).visible()


def walk(root: Path, environ: Mapping[str, str]) -> Scan:
    """Files of a folder: as git lists them if it has a `.git`, else all except git's own files."""
    env = user_environment(environ)
    return scan(root, listing(root, env) if (root / ".git").exists() else None)


def tree(ws: Workspace, snapshot_id: str, *, ignored: bool = False) -> ObjectTree:
    """The tree of a snapshot; ignored files only with `ignored`."""
    state = read_state(ws, snapshot_id)
    return _object_tree(ws, state.files if ignored else state.work)


def _object_tree(ws: Workspace, entries: Mapping[str, StoredFile]) -> ObjectTree:
    return ObjectTree(entries, lambda asked: shadow_git(ws, "cat-file", "--batch", stdin=asked))


def mixed(ws: Workspace, snapshot_id: str, other_id: str, paths: Collection[str]) -> ObjectTree:
    """A snapshot with what git ignores, but for some paths, which are as in another one."""
    one, other = (read_state(ws, snapshot).files for snapshot in (snapshot_id, other_id))
    if not paths:
        return _object_tree(ws, one)
    kept = {path: entry for path, entry in one.items() if path not in paths}
    theirs = {path: other[path] for path in paths if path in other}
    return _object_tree(ws, kept | theirs)


def as_in(base: ObjectTree, now: ObjectTree) -> Contents:
    """The changes that turn the files of `now` into those of `base`, without submodules."""
    moved = [path for path in {*base.paths(), *now.paths()} if base.entry(path) != now.entry(path)]
    linked = {path for path in base.paths() if base.mode(path) == SUBMODULE}
    return base.contents(path for path in moved if linked.isdisjoint((path, *parents(path))))


def revision_tree(
    root: Path, revision: str, paths: Collection[str] = (), *, environ: Mapping[str, str]
) -> ObjectTree:
    """The tree of a commit in the user's repository; only these paths if they are few.

    Raises UsageError if there is no such commit.
    """
    env = user_environment(environ)
    few = paths if len(paths) <= MAX_NAMED else ()
    asked = ("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", f"{revision}^{{commit}}")
    try:
        out = git(*asked, *few, cwd=root, env=env)
    except GitError:
        commit_id(root, env, revision)  # says it if there is none
        raise
    return ObjectTree(
        dict(list_tree(out)),
        lambda asked: git("cat-file", "--batch", cwd=root, env=env, stdin=asked),
    )


def source_tree(
    root: Path, *, environ: Mapping[str, str] | None = None, scan: Scan | None = None
) -> DirectoryTree:
    """A folder for reading sources; files that are too large for that are not read."""
    environ = os.environ if environ is None else environ
    return DirectoryTree(root, environ, MAX_SOURCE_BYTES, scan)


_DIFF = ("diff-tree", "-r", "--no-renames", "--full-index")
_Lines = tuple[int | None, int | None]
"""Numbers of added and removed lines; None for a binary file."""


def patch(
    ws: Workspace, before_id: str, after_id: str, paths: Iterable[str] = (), *, whole: bool = False
) -> bytes:
    """Unified diff of the files that git does not ignore, or of `paths`.

    With `whole` it contains binary files, so that it can be applied.
    """
    form = ("--binary",) if whole else ()
    below = (*form, f"--relative={WORK}", before_id, after_id)
    chosen = {
        WORK + stored_as(path, is_link=is_link) for path, is_link in product(paths, (False, True))
    }
    return shadow_git(ws, *_DIFF, "-p", "--no-color", *below, "--", *sorted(chosen))


def changes(
    ws: Workspace, before_id: str, after_id: str, *, ignored: bool = False
) -> tuple[Change, ...]:
    """Differences between two snapshots, in order of the paths.

    Files that are ignored in both count only with `ignored`; those that became ignored, or are not
    any more, count by their content like any other.
    """
    before, after = read_state(ws, before_id), read_state(ws, after_id)
    seen = differing(before.work, after.work)
    paths = seen | differing(before.ignored, after.ignored)
    was, now = before.files, after.files
    moved = [
        path for path in sorted(paths) if content_of(was.get(path)) != content_of(now.get(path))
    ]
    chosen = moved if ignored else [path for path in moved if path in seen]
    lines = _lines(ws, before_id, after_id) if chosen else {}
    found = list[Change]()
    for path in chosen:
        old, new, (added, removed) = was.get(path), now.get(path), lines.get(path, (0, 0))
        found.append(
            Change(
                path=path,
                status=status_of(old, new) or ChangeStatus.MODE,
                added=added,
                removed=removed,
                old_mode=old.mode if old else None,
                new_mode=new.mode if new else None,
            )
        )
    return tuple(found)


def moved(ws: Workspace, before: str, after: str, *, ignored: bool = False) -> tuple[str, ...]:
    """The paths that differ between two snapshots."""
    return tuple(change.path for change in changes(ws, before, after, ignored=ignored))


def content_of(entry: StoredFile | None) -> tuple[str, str] | None:
    """Mode and content id; None if there is no file."""
    return (entry.mode, entry.oid) if entry else None


def status_of(before: StoredFile | None, after: StoredFile | None) -> ChangeStatus | None:
    """The change of a file; None if unchanged."""
    if before == after:
        return None
    if before is None:
        return ChangeStatus.ADDED
    if after is None:
        return ChangeStatus.DELETED
    return ChangeStatus.MODE if before.oid == after.oid else ChangeStatus.MODIFIED


def _lines(ws: Workspace, before_id: str, after_id: str) -> dict[str, _Lines]:
    """Added and removed lines by path; summed for a file that is ignored on one side only."""
    counted: dict[str, _Lines] = {}
    how = ("-z", "--numstat", before_id, after_id, "--", WORK, IGNORED)
    for item in split(shadow_git(ws, *_DIFF, *how)):
        added, removed, path = item.split("\t", 2)
        name = file_of(path.partition("/")[2])
        before, after = counted.get(name, (0, 0))
        if before is None or after is None or added == "-":
            counted[name] = (None, None)
        else:
            counted[name] = (before + int(added), after + int(removed))
    return counted
