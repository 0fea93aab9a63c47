"""Restore git's own state: HEAD, refs, configuration, hooks, the index if nobody has staged."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path

from atlas_retry.errors import WorkspaceError
from atlas_retry.reading import read_file
from atlas_retry.text.commands import quoted
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace, head_in, refs_in
from atlas_retry.workspace.files import differing
from atlas_retry.workspace.git import GitError, git, staged
from atlas_retry.workspace.gitfacts import PLAIN, git_files, ref_files
from atlas_retry.workspace.gittrace import CONFIG, STASH, SYMBOLIC, ZERO
from atlas_retry.workspace.snapshot.store import TreeState, read_blobs, read_state

_FRESH, _LOCK = "index.atlas", "index.lock"


def put_back_index(
    ws: Workspace, target: TreeState, expected: TreeState | None
) -> tuple[bool, bool]:
    """Restore the index file, unless someone has staged something since `expected`.

    Returns whether it was changed, and whether it was left alone for that reason. Raises
    WorkspaceError if another git holds its lock.
    """
    if not ws.git_dir.is_dir():
        return False, False  # the git directory is gone, and no snapshot holds it
    index, fresh, held = (ws.git_dir / name for name in ("index", _FRESH, _LOCK))
    # what a killed `_write` left: its lock is a hard link to the old or new index
    if _is_same(held, fresh) or _is_same(held, index):
        held.unlink()
    fresh.unlink(missing_ok=True)
    now = read_file(index) if index.exists() else None
    wanted = _content(ws, target)
    if now == wanted:
        return False, False
    if expected and not _are_equal(ws, now, _content(ws, expected)):
        return False, not _are_equal(ws, now, wanted)
    # missing shared parts of a split index (git-update-index(1)), which never change
    for name, file in target.git.items():
        part = ws.git_dir / name.rpartition("/")[2]
        if part.name.startswith("sharedindex.") and not part.exists():
            part.write_bytes(file.content)
    _write(ws, wanted, target.index_mtime_ns)
    return True, False


def is_staged(ws: Workspace, state: TreeState) -> bool:
    """Whether the index has the same content as then; True if the repository is gone."""
    path = ws.git_dir / "index"
    now = read_file(path) if path.exists() else None
    return not ws.git_dir.is_dir() or _are_equal(ws, now, _content(ws, state))


def _content(ws: Workspace, state: TreeState) -> bytes | None:
    return read_blobs(ws, [state.index.oid])[state.index.oid] if state.index else None


def _are_equal(ws: Workspace, one: bytes | None, other: bytes | None) -> bool:
    """Whether two indexes are equal, except for the stat data of files."""
    return one == other or _digest(ws, one) == _digest(ws, other)


def _digest(ws: Workspace, content: bytes | None) -> str | None:
    if content is None:
        return None
    copy = ws.home / "compared-index"
    copy.write_bytes(content)
    with suppress(GitError):  # a broken index is not an edit
        return staged(ws.root, ws.environ, copy).digest
    return None


def _write(ws: Workspace, content: bytes | None, mtime_ns: int) -> None:
    """Replace the index file (None: remove it) while holding git's own lock.

    The lock is a hard link to the new file, which distinguishes a lock that a kill left from the
    lock of another git, which is never touched. Raises WorkspaceError if another git is running.
    """
    index = ws.git_dir / "index"
    fresh, held = ws.git_dir / _FRESH, ws.git_dir / _LOCK
    fresh.write_bytes(content or b"")
    os.utime(fresh, ns=(mtime_ns, mtime_ns))
    try:
        os.link(fresh, held)
    except FileExistsError as error:
        fresh.unlink()
        raise WorkspaceError(
            f"another git is running in {ws.root}: {held} exists",
            remedy=f"wait for it; if there is none: rm {quoted(held)}",
        ) from error
    if content is None:
        index.unlink(missing_ok=True)
        fresh.unlink()
    else:
        fresh.replace(index)
    held.unlink()


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


_FACTS = {"own/config.worktree": CONFIG, "common/config": CONFIG, **PLAIN}


def put_back_git(ws: Workspace, snapshot_id: str, names: Collection[str]) -> tuple[str, ...]:
    """Restore git's own state from a snapshot; returns the names of what was restored.

    `names` are keys of `git_facts` to restore, since other worktrees share refs and configuration.
    Not held, so not restored: linked worktrees themselves, the folders of a rebase or `git am`,
    hooks of core.hooksPath, the inside of submodules. Reflogs only grow. Raises WorkspaceError.
    """
    if not ws.git_dir.is_dir():
        return ()  # the git directory is gone, and no snapshot holds it
    state = read_state(ws, snapshot_id)
    wanted = {_group(name) for name in names}
    done = [*_put_files(ws, state, wanted)]
    refs, there = refs_in(state.in_git), _refs_now(ws)
    moved = [name for name in {*refs, *there} & wanted if refs.get(name) != there.get(name)]
    set_refs(ws, {name: refs.get(name, ZERO) for name in moved})
    # again, because moving refs/stash wrote to its log
    done += _put_files(ws, state, wanted)
    if "index" in wanted and put_back_index(ws, state, None)[0]:
        done.append("index")
    return tuple(sorted({*done, *moved}))


def put_back_destroyed(ws: Workspace, snapshot_id: str, lost: Collection[str]) -> tuple[str, ...]:
    """Restore refs and stashes whose objects had been destroyed, unless they are there again.

    `lost` are names as in `pins.GivenBack`. All of git's state is restored if HEAD has no commit
    any more. Raises WorkspaceError.
    """
    if not lost:
        return ()
    names = {name for name in lost if name.startswith("refs/")} - _refs_now(ws).keys()
    if any(name.startswith("stash@") for name in lost) and not _has_new_stash(ws, snapshot_id):
        names |= {STASH, "stash"}
    if head_in(ws.git_dir, ws.common_dir) is None:
        names |= moved_git(ws, snapshot_id).keys()
    return put_back_git(ws, snapshot_id, names) if names else ()


def _has_new_stash(ws: Workspace, snapshot_id: str) -> bool:
    """Whether something was stashed since the snapshot."""
    held = read_state(ws, snapshot_id).git.get(f"common/logs/{STASH}")
    log = ws.common_dir / "logs" / STASH
    now, known = read_file(log) if log.exists() else b"", held.content if held else b""
    return any(line.split(b" ")[1] not in known for line in now.splitlines())


def put_back_moved(
    ws: Workspace, snapshot_id: str, run_ended_s: float = inf, left: str | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Restore what `moved_git` names, except later changes; returns what was restored, and not.

    Later means after `run_ended_s`, or after the snapshot `left`. Raises WorkspaceError.
    """
    moved = moved_git(ws, snapshot_id)
    theirs = set[str]()
    for name, files in moved.items():
        if any(place.is_later(file, run_ended_s) for file in files):
            theirs.add(name)
    if left:
        theirs |= moved.keys() & moved_git(ws, left).keys()
    done = put_back_git(ws, snapshot_id, moved.keys() - theirs) if moved else ()
    return done, tuple(sorted(theirs))


def _group(name: str) -> str:
    """The name of the file that holds a fact; a file is always restored as a whole."""
    if name.startswith("index-flags:"):
        return "index"
    return CONFIG if name.startswith(CONFIG) else name


def moved_git(ws: Workspace, snapshot_id: str) -> dict[str, tuple[Path, ...]]:
    """State of git that changed since the snapshot: names, and the existing files that hold it.

    Without the index, and only with the branch that was checked out, because other refs belong to
    other worktrees as well. The times of the files show when they changed.
    """
    state = read_state(ws, snapshot_id)
    moved: dict[str, list[Path]] = {}
    for name in sorted(differing(state.git, dict(git_files(ws.git_dir, ws.common_dir)))):
        fact, (base, path) = _fact_of(name), place_of(ws, name)
        if fact not in _NOT_OURS:
            moved.setdefault(fact, []).append(base / path)
    head = state.git.get("own/HEAD")
    branch = head.content.decode().strip().removeprefix(SYMBOLIC) if head else ""
    if refs_in(state.in_git).get(branch) != _refs_now(ws).get(branch):
        moved[branch] = [ws.common_dir / branch]
    return {name: tuple(path for path in paths if path.exists()) for name, paths in moved.items()}


_NOT_OURS = frozenset({"", "stash", "state:ORIG_HEAD", "info/refs"})


def put_back_file(ws: Workspace, state: TreeState, name: str) -> bool:
    """Have one of git's own files, `own/...` or `common/...`, as in a snapshot, or have none.

    Returns whether it was different. Raises OSError.
    """
    (base, path), held = place_of(ws, name), state.git.get(name)
    if place.look(base, path) == (held and held.entry):
        return False
    if held:
        place.put(base, path, held.entry, held.content)
    else:
        place.remove(base, path)
    return True


def _put_files(ws: Workspace, state: TreeState, wanted: Collection[str]) -> Iterator[str]:
    now = dict(git_files(ws.git_dir, ws.common_dir))
    for name in (*(now.keys() - state.git.keys()), *state.git):  # new ones may be in the way
        if _fact_of(name) in wanted and put_back_file(ws, state, name):
            yield _fact_of(name)


def _fact_of(name: str) -> str:
    """The key in `git_facts` of a held file; empty for files of refs."""
    owner, _, path = name.partition("/")
    if path.startswith(("hooks/", "info/")):
        return path
    if path.startswith(("refs/", "sharedindex.")) or path == "packed-refs":
        return ""
    return _FACTS.get(name) or (f"state:{path}" if owner == "own" else "")


def place_of(ws: Workspace, name: str) -> tuple[Path, str]:
    """Where a file of `git_files` is: a git directory, and the path in it."""
    owner, _, path = name.partition("/")
    return (ws.git_dir if owner == "own" else ws.common_dir), path


def set_refs(ws: Workspace, values: Mapping[str, str]) -> None:
    """Set refs through git, which knows how it stores them. Raises GitError.

    A value is an id, `ref: ` and the target, or `ZERO` for a ref that is deleted.
    """
    links = {name for name, value in values.items() if value.startswith(SYMBOLIC)}
    gone = {name for name, value in values.items() if value == ZERO}
    # first deletions: a ref may be in the way of another one below or above it
    removing = [f"delete {name}\0\0" for name in gone]
    moving = [f"update {name}\0{values[name]}\0\0" for name in values.keys() - links - gone]
    for orders in filter(None, map("".join, (removing, moving))):
        asked = ("update-ref", "--no-deref", "-z", "--stdin")
        git(*asked, cwd=ws.root, env=ws.environ, stdin=os.fsencode(orders))
    for name in links:
        target = values[name].removeprefix(SYMBOLIC)
        git("symbolic-ref", name, target, cwd=ws.root, env=ws.environ)


def _refs_now(ws: Workspace) -> dict[str, str]:
    return refs_in(dict(ref_files(ws.git_dir, ws.common_dir)))
