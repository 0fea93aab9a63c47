"""Read access to a snapshot, a revision or a plain folder, all as `model.Tree`."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import Stat, StoredFile, git_mode
from atlas_retry.workspace.git import MAX_NAMED, GitError, commit_id, git, lined, user_environment
from atlas_retry.workspace.place import Contents, parents
from atlas_retry.workspace.snapshot.shadow import parse_batch, shadow_git
from atlas_retry.workspace.snapshot.state import list_tree, read_state
from atlas_retry.workspace.walk import Scan, listing, scan

_SUBMODULE = "160000"
MAX_SOURCE_BYTES = 16 << 20


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
        entry = self._entries.get(path)
        return (entry.mode, entry.oid) if entry else None

    def contents(self, paths: Iterable[str]) -> Contents:
        """Mode and content of each of these paths; None if there is no such file."""
        paths = sorted(paths)
        self.preload(paths)
        files = ((path, self.mode(path), self.read(path)) for path in paths)
        return {
            path: None if mode is None or content is None else (mode, content)
            for path, mode, content in files
        }

    def read(self, path: str) -> bytes | None:
        """As in `model.Tree`; for a submodule, the id of its commit."""
        entry = self._entries.get(path)
        if entry is None:
            return None
        if entry.mode == _SUBMODULE:
            return entry.oid.encode()
        self.preload([path])
        return self._contents[entry.oid]

    def preload(self, paths: Collection[str]) -> None:
        """Read many files with a single process."""
        entries = (self._entries[path] for path in paths if path in self._entries)
        oids = {entry.oid for entry in entries if entry.mode != _SUBMODULE}
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
    linked = {path for path in base.paths() if base.mode(path) == _SUBMODULE}
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
