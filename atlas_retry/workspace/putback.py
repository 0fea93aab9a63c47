"""Restore what git holds beside the work tree: HEAD, refs, configuration, hooks, the index."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import git
from atlas_retry.workspace.gitfacts import refs_of
from atlas_retry.workspace.gitfiles import git_files
from atlas_retry.workspace.index import put_back_index
from atlas_retry.workspace.shadow import read_blobs
from atlas_retry.workspace.snapshots import take
from atlas_retry.workspace.state import TreeState, read_state

_CONFIG = "config:"
_FACTS = {
    "own/HEAD": "HEAD",
    "own/config.worktree": _CONFIG,
    "common/config": _CONFIG,
    "common/logs/refs/stash": "stash",
    "common/objects/info/alternates": "alternates",
    "common/shallow": "shallow",
}
_SYMBOLIC = "ref: "


def put_back_git(
    ws: Workspace, snapshot_id: str, names: Collection[str] | None = None
) -> tuple[str, ...]:
    """Make git's own state what it was when the snapshot was taken; names of what was restored.

    `names` are keys of `git_facts` and limit it, for other worktrees of the repository share its
    refs and configuration. Not held, so not restored: linked worktrees themselves, the folders of
    a rebase or `git am`, hooks of core.hooksPath, the insides of submodules. Reflogs only grow.
    Raises WorkspaceError.
    """
    if not ws.git_dir.is_dir():
        return ()  # gone, with everything that no snapshot holds
    take(ws)  # holds what is there before it goes
    state = read_state(ws, snapshot_id)
    wanted = _Wanted(names)
    done = [*_put_files(ws, state, wanted), *_put_refs(ws, state, wanted)]
    # once more: moving refs/stash wrote to its log
    done += _put_files(ws, state, wanted)
    if wanted.index and put_back_index(ws, state, None).changed:
        done.append("index")
    return tuple(sorted(set(done)))


def moved_git(ws: Workspace, snapshot_id: str) -> dict[str, tuple[Path, ...]]:
    """What `put_back_git` would restore for this work tree: names, and the files that hold it.

    Without the index, and of the refs only the branch that was checked out: the others belong to
    other worktrees as well. The files' times tell who moved it; what is gone has none.
    """
    state = read_state(ws, snapshot_id)
    found: dict[str, list[Path]] = {}
    for name in sorted({*state.git, *(name for name, _ in git_files(ws))}):
        base, path = _place_of(ws, name)
        fact = _fact_of(name)
        if fact not in _NOT_OURS and place.look(base, path) != state.git.get(name):
            found.setdefault(fact, []).append(base / path)
    branch = _branch(ws, state)
    if branch and _held_refs(ws, state).get(branch) != dict(refs_of(ws.root, ws.environ)).get(
        branch
    ):
        found[branch] = [ws.common_dir / branch]
    return {name: tuple(path for path in paths if path.exists()) for name, paths in found.items()}


_NOT_OURS = frozenset({"", "stash", "state:ORIG_HEAD"})


def _branch(ws: Workspace, state: TreeState) -> str | None:
    """The branch that was checked out."""
    head = state.git.get("own/HEAD")
    text = read_blobs(ws, [head.oid])[head.oid].decode().strip() if head else ""
    return text.removeprefix(_SYMBOLIC) if text.startswith(_SYMBOLIC) else None


class _Wanted:
    """Which facts are asked for."""

    def __init__(self, names: Collection[str] | None) -> None:
        self._names = None if names is None else {self._group(name) for name in names}

    @staticmethod
    def _group(name: str) -> str:
        """The file is restored as a whole, so one key of the configuration stands for all."""
        if name.startswith("index-flags:"):
            return "index"
        return _CONFIG if name.startswith(_CONFIG) else name

    def __contains__(self, name: str) -> bool:
        return self._names is None or name in self._names

    @property
    def index(self) -> bool:
        return "index" in self


def _put_files(ws: Workspace, state: TreeState, wanted: _Wanted) -> Iterator[str]:
    held = {name: entry for name, entry in state.git.items() if _fact_of(name) in wanted}
    there = {name for name, _ in git_files(ws) if _fact_of(name) in wanted}
    for name in there - held.keys():
        place.remove(*_place_of(ws, name))
        yield _fact_of(name)
    for name, entry in held.items():
        base, path = _place_of(ws, name)
        if place.look(base, path) != entry:
            place.put(base, path, entry, read_blobs(ws, [entry.oid])[entry.oid])
            yield _fact_of(name)


def _fact_of(name: str) -> str:
    """The key in `git_facts` that a held file belongs to; a refs file has none of its own."""
    owner, _, path = name.partition("/")
    if path.startswith(("hooks/", "info/")):
        return path
    if path.startswith(("refs/", "sharedindex.")) or path == "packed-refs":
        return ""
    return _FACTS.get(name) or (f"state:{path}" if owner == "own" else "")


def _place_of(ws: Workspace, name: str) -> tuple[Path, str]:
    owner, _, path = name.partition("/")
    return (ws.git_dir if owner == "own" else ws.common_dir), path


def _put_refs(ws: Workspace, state: TreeState, wanted: _Wanted) -> Iterator[str]:
    """Through git, which knows how it stores them."""
    held = {name: value for name, value in _held_refs(ws, state).items() if name in wanted}
    there = {name: value for name, value in refs_of(ws.root, ws.environ) if name in wanted}
    gone = there.keys() - held.keys()
    moved = {name: value for name, value in held.items() if there.get(name) != value}
    plain = {name: oid for name, oid in moved.items() if not oid.startswith(_SYMBOLIC)}
    # apart: a name may have to go before another below or above it can be
    _update(ws, [f"delete {name}\0\0" for name in gone])
    _update(ws, [f"update {name}\0{oid}\0\0" for name, oid in plain.items()])
    for name in moved.keys() - plain.keys():
        target = moved[name].removeprefix(_SYMBOLIC)
        git("symbolic-ref", name, target, cwd=ws.root, env=ws.environ)
    yield from (*gone, *moved)


def _update(ws: Workspace, orders: Collection[str]) -> None:
    if orders:
        asked = ("update-ref", "--no-deref", "-z", "--stdin")
        git(*asked, cwd=ws.root, env=ws.environ, stdin=os.fsencode("".join(orders)))


def _held_refs(ws: Workspace, state: TreeState) -> dict[str, str]:
    """Source: gitrepository-layout(5); a ref's own file wins over `packed-refs`."""
    files = {_place_of(ws, name)[1]: entry.oid for name, entry in state.git.items()}
    names = [path for path in files if path.startswith("refs/")]
    texts = read_blobs(ws, {files[name] for name in (*names, "packed-refs") if name in files})
    found: dict[str, str] = {}
    for line in texts.get(files.get("packed-refs", ""), b"").decode().splitlines():
        if not line.startswith(("#", "^")):
            oid, _, name = line.partition(" ")
            found[name] = oid
    found.update({name: texts[files[name]].decode().strip() for name in names})
    return found
