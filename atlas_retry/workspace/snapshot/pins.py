"""Holds the objects of the user's repository, which git or a turn may destroy, and gives them back.

A snapshot has the names of commits, stashes and staged files, but not their content. On one file
system this costs nothing: the files of objects, which never change, get a second name here.
"""

import errno
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from atlas_retry.digests import sha256_of
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace, refs_in
from atlas_retry.workspace.git import GitError, git, git_dir_of, lined
from atlas_retry.workspace.gitfacts import ref_files
from atlas_retry.workspace.place import make_folder
from atlas_retry.workspace.snapshot.git_state import put_back_file, put_back_index
from atlas_retry.workspace.snapshot.store import TreeState, read_blobs, read_state
from atlas_retry.workspace.walk import NESTED

MAX_COPIED_BYTES = 200 << 20
KEPT_S = 30 * 86_400.0
"""Objects that the repository has dropped longer ago are let go, as git's own reflog does."""
_IDS = ("HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
_GITFILE = "info/gitfile"
_NOT_OBJECTS = ("info", "tmp_")


def pin(ws: Workspace, snapshot_id: str) -> tuple[str, ...]:
    """Hold the objects of the repository and of those inside, as they are now.

    Returns for each that cannot be held why, in a sentence.
    """
    state = read_state(ws, snapshot_id)
    nested = (ws.root / path for path, why in state.left_out.items() if why == NESTED)
    # the file `.git` of a submodule leads to its repository
    repositories = (ws.common_dir, *(one for one in nested if _git_dir(one).is_dir()))
    return tuple(filter(None, (_pinned(ws, one) for one in repositories)))


def sweep(ws: Workspace, before_s: float) -> None:
    """Let go of objects that the repositories dropped before the oldest run that is left began."""
    for store in (ws.home / "pins").glob("*"):
        _sweep(store, before_s)


def _git_dir(place: Path) -> Path:
    """The git directory itself, to which the file `.git` of a submodule leads."""
    with suppress(GitError):
        return git_dir_of(place.parent) if place.name == ".git" else place
    return place


def _store(ws: Workspace, place: Path) -> Path:
    """The folder for a repository; its name stays when the work tree is moved."""
    if place == ws.common_dir:
        return ws.home / "pins/own"
    return ws.home / "pins" / sha256_of(os.fsencode(place.relative_to(ws.root)))[:16]


def _pinned(ws: Workspace, place: Path) -> str:
    store, git_dir = _store(ws, place), _git_dir(place)
    objects = git_dir / "objects"
    if not os.access(git_dir, os.W_OK):
        return f"{git_dir} cannot be written: what a turn changes in it cannot be restored"
    try:
        store.mkdir(parents=True, exist_ok=True)
        _sweep(store, time.time() - KEPT_S)
        for name in _files(objects):
            target = store / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError, FileNotFoundError):
                target.hardlink_to(objects / name)
        if place != ws.common_dir:
            _copy_state(place, git_dir, store)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return _packed(ws, git_dir, store)
        return f"{git_dir} cannot be held: {error.strerror}"
    return ""


def _files(objects: Path) -> Iterator[str]:
    """Files of loose objects and of packs, relative to the folder of objects."""
    for above, folders, names in os.walk(objects):
        folders[:] = [name for name in folders if name != "info"]
        inside = Path(above).relative_to(objects)
        yield from (str(inside / name) for name in names if not name.startswith(_NOT_OBJECTS))


def _sweep(store: Path, before_s: float) -> None:
    """Remove what the repository dropped before a time, but no copies from other file systems."""
    for name in _files(store):
        file = store / name
        status = file.stat()
        is_dropped = status.st_nlink == 1 and status.st_ctime < before_s
        if is_dropped and not file.with_suffix(".keep").exists():
            file.unlink()


def _copy_state(place: Path, git_dir: Path, store: Path) -> None:
    """Copy what else a repository inside has: it is small, and no snapshot holds it."""
    gitfile = store / _GITFILE
    gitfile.unlink(missing_ok=True)
    if place != git_dir:
        gitfile.parent.mkdir(exist_ok=True)
        shutil.copyfile(place, gitfile)
    shutil.rmtree(store / "info/git", ignore_errors=True)
    shutil.copytree(
        git_dir,
        store / "info/git",
        symlinks=True,
        ignore=shutil.ignore_patterns("objects", "modules", "*.sock", "*.lock"),
    )


def _packed(ws: Workspace, git_dir: Path, store: Path) -> str:
    """Copy the objects that no earlier copy holds, from another file system."""
    if _size(store) > 2 * MAX_COPIED_BYTES:  # copies of many runs: begin again
        shutil.rmtree(store / "pack", ignore_errors=True)
    size = _size(git_dir / "objects")
    if size > MAX_COPIED_BYTES:
        return (
            f"{git_dir} is on another file system than {ws.home} and has more than "
            f"{MAX_COPIED_BYTES >> 20} MB of objects: commits that a turn destroys are lost"
        )
    env = {
        **ws.environ,
        "GIT_DIR": str(git_dir),
        "GIT_OBJECT_DIRECTORY": str(store),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(git_dir / "objects"),
    }
    reached = ("--revs", "--all", "--reflog", "--indexed-objects", "--missing=allow-promisor")
    how = ("-q", "--non-empty", "--honor-pack-keep", "--delta-base-offset")
    (store / "pack").mkdir(exist_ok=True)
    try:
        git("pack-objects", *how, *reached, str(store / "pack" / "pack"), cwd=store, env=env)
    except GitError as error:
        return f"{git_dir} cannot be held: {error.message}"
    for pack in (store / "pack").glob("*.pack"):
        pack.with_suffix(".keep").touch()
    return ""


def _size(objects: Path) -> int:
    return sum((objects / name).stat().st_size for name in _files(objects))


class GivenBack(Struct, frozen=True, kw_only=True):
    """What of git's state in a snapshot had lost its objects: refs, `stash@{0}`, `index`."""

    again: tuple[str, ...] = ()
    """It has them again."""
    lost: tuple[str, ...] = ()
    """Nothing holds them."""
    inside: tuple[str, ...] = ()
    """Paths of repositories inside that were removed, and are made again."""


def put_back(ws: Workspace, snapshot_id: str) -> GivenBack:
    """Give back objects that the repository lost since a snapshot, and repositories inside.

    Raises WorkspaceError.
    """
    state = read_state(ws, snapshot_id)
    nested = (path for path, why in state.left_out.items() if why == NESTED)
    inside = tuple(path for path in nested if _rebuild_inside(ws, ws.root / path))
    gone = _lost(ws, state)
    if not gone:
        return GivenBack(inside=inside)
    with place.refusing(f"{ws.common_dir} cannot be restored"):
        _give_back(_store(ws, ws.common_dir), ws.common_dir / "objects")
    lost = _lost(ws, state)
    again = tuple(name for name in gone if name not in lost)
    return GivenBack(again=again, lost=lost, inside=inside)


def rebuild(ws: Workspace, snapshot_id: str) -> bool:
    """Make the repository again whose folder was removed; returns whether it was, and is back.

    Its logs are not held. A repository that is not in the work tree is left as it is. Raises
    WorkspaceError.
    """
    store, git_dir = _store(ws, ws.common_dir), ws.root / ".git"
    if os.path.lexists(git_dir) or ws.git_dir != git_dir or not store.is_dir():
        return False
    state = read_state(ws, snapshot_id)
    with place.refusing(f"{ws.common_dir} cannot be restored"):
        (git_dir / "refs").mkdir(parents=True)
        _give_back(store, git_dir / "objects")
        for name in state.git:
            put_back_file(ws, state, name)
        put_back_index(ws, state, None)
    return True


def _rebuild_inside(ws: Workspace, place: Path) -> bool:
    """Make a repository inside again if it was removed and is held; returns whether it was.

    One that is there gets back the objects that its branches had.
    """
    store = _store(ws, place)
    if not (store / "info/git").is_dir():
        return False
    make_folder(ws.root, place.parent.relative_to(ws.root).as_posix())
    is_gone = not os.path.lexists(place)
    if is_gone and (store / _GITFILE).exists():
        shutil.copyfile(store / _GITFILE, place)
    git_dir = _git_dir(place)
    if not git_dir.exists():
        shutil.copytree(store / "info/git", git_dir, symlinks=True)
        is_gone = True
    held = store / "info/git"  # with the refs that it had
    ids = filter(str.isalnum, refs_in(dict(ref_files(held, held))).values())
    if is_gone or not _is_whole(ids, git_dir, {**ws.environ, "GIT_DIR": str(git_dir)}):
        _give_back(store, git_dir / "objects")
        return True
    return False


def _give_back(store: Path, objects: Path) -> None:
    for name in _files(store):
        target = objects / name
        if target.suffix != ".keep" and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.hardlink_to(store / name)
            except OSError:
                shutil.copy2(store / name, target)


def _lost(ws: Workspace, state: TreeState) -> tuple[str, ...]:
    """What of git's state in a snapshot names objects that the repository does not have."""
    asked, index = _tips(state), None
    if state.index:
        index = ws.home / "pinned-index"
        index.write_bytes(read_blobs(ws, [state.index.oid])[state.index.oid])
    if _has(ws, asked.values(), index):
        return ()
    lost = [name for name, oid in asked.items() if not _has(ws, [oid], None)]
    return (*lost, *(["index"] if not _has(ws, [], index) else []))


def _tips(state: TreeState) -> dict[str, str]:
    """Ids that refs, HEAD, unfinished operations and stashes name."""
    files = state.in_git
    named = {name: os.fsdecode(files[name]).strip() for name in _IDS if name in files}
    named |= refs_in(files)
    entries = os.fsdecode(files.get("logs/refs/stash", b"")).splitlines()
    named |= {f"stash@{{{at}}}": line.split(" ")[1] for at, line in enumerate(entries[::-1])}
    return {name: oid for name, oid in named.items() if oid.isalnum()}


def _has(ws: Workspace, ids: Iterable[str], index: Path | None) -> bool:
    """Whether the repository has all that these ids and this index reach."""
    env = {**ws.environ, "GIT_INDEX_FILE": str(index)} if index else ws.environ
    indexed = ("--indexed-objects",) if index else ()
    # what refs reach now is whole, or git would not work
    return _is_whole(ids, ws.root, env, *indexed, "--not", "--all")


def _is_whole(ids: Iterable[str], cwd: Path, env: Mapping[str, str], *more: str) -> bool:
    """Whether git has every object that these ids, and `more` of its options, reach."""
    # since git 2.45 `--missing=allow-promisor` passes over ids that are missing themselves
    asked = ("rev-list", "--objects", "--quiet", "--exclude-promisor-objects", "--stdin")
    try:
        git(*asked, *more, cwd=cwd, env=env, stdin=lined(ids))
    except GitError:
        return False
    return True
