"""Run commands in the workspace with some files changed, and leave it as it was.

If bubblewrap can mount an overlay over the workspace's path, they run in that, else in place,
between two snapshots. Installed dependencies, ignored files and absolute paths exist either way. If
atlas is killed while files are changed in place, a note in the state directory lets the next holder
of the workspace's lock restore them.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from math import inf
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import process, state_dir
from atlas_retry.errors import StateError, WorkspaceError
from atlas_retry.model import ChangeStatus, Contents
from atlas_retry.patterns import words
from atlas_retry.workspace import gitfacts, gitmoves, gittrace, locking, place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import StoredFile
from atlas_retry.workspace.git import ignored, ignored_of
from atlas_retry.workspace.gitunder import committed_since
from atlas_retry.workspace.isolation import overlay
from atlas_retry.workspace.isolation.layers import finish_accepting
from atlas_retry.workspace.isolation.overlay import Layers, gone_with
from atlas_retry.workspace.snapshot.restoring import AFTERMATH_S, restore_but_edited
from atlas_retry.workspace.snapshot.snapshots import snapshot, take
from atlas_retry.workspace.snapshot.store import drop, keep
from atlas_retry.workspace.snapshot.trees import changes

ASKED = "it was asked for"
"""The reason if the caller wants it in place."""
_NOTE, _TRACE = "aside.note", "aside-git"
_MOVED, _BESIDE = "aside-files", ".before-atlas"
_START, _LEFT = "aside/start", "aside/left"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What to restore after a kill. Paths are bytes, because they may not be UTF-8."""

    snapshot: str
    mark: str
    """Marker of the started processes, as in `process.mark`."""
    unheld: dict[bytes, bool] = {}
    """Changed paths that the snapshot does not hold, and whether there was a file: it is moved to
    `_MOVED`, under its number here."""


class InPlace(Struct, frozen=True, kw_only=True):
    """The workspace itself, with changes in it."""

    ws: Workspace
    before: str
    """Snapshot without the changes."""
    wanted: Contents
    reason: str
    """Why no overlay is used, in one sentence."""

    def wrap(self, command: process.Command) -> process.Command:
        """As in `overlay.Layers`; what its git does is traced."""
        traced = {**command.env, **gittrace.variables(self.ws.home / _TRACE)}
        return replace(command, env=traced)

    def overwritten(self) -> tuple[str, ...]:
        """As in `overlay.Layers`, except files that no snapshot holds."""
        moved = changes(self.ws, self.before, snapshot(self.ws).id, ignored=True)
        were_there = (c.path for c in moved if c.status is not ChangeStatus.ADDED)
        ours = {*self.wanted, *place.folders_above(self.wanted)}
        return tuple(path for path in were_there if path not in ours)

    def file(self, path: str) -> Path | None:
        """The file to read for a path of the workspace, or None."""
        return self.ws.root / path if place.status(self.ws.root, path) else None


@contextmanager
def changed_in_place(ws: Workspace, wanted: Contents, reason: str) -> Iterator[InPlace]:
    """Apply the wanted changes; the workspace is restored when the context ends.

    A snapshot keeps what was written meanwhile. Raises WorkspaceError and StateError.
    """
    put_back_aside(ws)
    if (ws.home / _NOTE).exists():
        raise WorkspaceError(
            f"another atlas has temporarily changed {ws.root}", remedy="wait until it has ended"
        )
    before = take(ws)
    paths = sorted(wanted.keys() - before.state.files.keys())
    unheld = {os.fsencode(path): bool(place.status(ws.root, path)) for path in paths}
    note = Note(snapshot=before.snapshot.id, mark=process.mark(), unheld=unheld)
    keep(ws, _START, note.snapshot)
    trace = ws.home / _TRACE
    shutil.rmtree(trace, ignore_errors=True)
    trace.mkdir(mode=0o700)
    facts = gitfacts.git_facts(ws.root, environ=ws.environ)
    gitmoves.note_before(ws, trace, facts, note.snapshot)
    with process.orderly(), _noted(ws, note):
        try:
            with process.uninterruptible(f"the workspace {ws.root} is being changed"):
                _apply(ws, wanted, note)
            yield InPlace(ws=ws, before=note.snapshot, wanted=wanted, reason=reason)
        finally:
            with process.uninterruptible(f"the workspace {ws.root} is being restored"):
                _restore(ws, note)
                (ws.home / _NOTE).unlink()


def _apply(ws: Workspace, wanted: Contents, note: Note) -> None:
    gone = gone_with(ws.root, wanted)
    with place.refusing(f"{ws.root} cannot be changed"):
        for path, moved in _unheld(ws, note):
            if note.unheld[os.fsencode(path)]:
                moved.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(ws.root / path, moved)
        for path in sorted(gone, key=len, reverse=True):
            place.remove(ws.root, path)
            place.remove_folder(ws.root, path)
        for path, change in wanted.items():
            if change:
                place.put(ws.root, path, StoredFile(change[0], ""), change[1])


def _restore(ws: Workspace, note: Note, run_ended_s: float = inf) -> None:
    """Restore everything except later edits; a snapshot keeps what goes."""
    with place.refusing(f"{ws.root} cannot be changed"):
        for path, moved in _unheld(ws, note):
            _move_back(ws, path, moved, run_ended_s, was_there=note.unheld[os.fsencode(path)])
    # what a person does in git meanwhile is no command's
    trace = ws.home / _TRACE
    if turn := gitmoves.turned(ws, trace):
        gitmoves.undo(ws, turn, trace)
    committed = committed_since(ws, note.snapshot)
    done = restore_but_edited(ws, note.snapshot, run_ended_s, committed)
    if done.changed:
        keep(ws, _LEFT, done.before)
    drop(ws, _START)


def _unheld(ws: Workspace, note: Note) -> Iterator[tuple[str, Path]]:
    """Paths that no snapshot holds, and where their files are while others are in their place."""
    for number, path in enumerate(note.unheld):
        yield os.fsdecode(path), ws.home / _MOVED / f"{number}"


def _move_back(
    ws: Workspace, path: str, moved: Path, run_ended_s: float, *, was_there: bool
) -> None:
    """Move a file back that was moved; beside its place if someone wrote there since."""
    file, is_moved = ws.root / path, os.path.lexists(moved)
    is_taken = place.is_later(file, run_ended_s) or (file.is_dir() and not file.is_symlink())
    if is_taken:
        if is_moved:
            shutil.move(moved, f"{file}{_BESIDE}")
        return
    replaced = place.status(ws.root, path)
    if is_moved or not was_there:
        place.remove(ws.root, path)
    if is_moved:
        if folder := path.rpartition("/")[0]:
            place.make_folder(ws.root, folder)
        shutil.move(moved, file)
        place.date_after(ws.root, path, replaced)


def put_back_aside(ws: Workspace) -> None:
    """Restore what a killed atlas had changed temporarily.

    Later edits by others stay. Does nothing if there is no note, or its owner is alive. Raises
    WorkspaceError.
    """
    path = ws.home / _NOTE
    if not path.exists():
        return
    with suppress(FileNotFoundError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        note = msgspec.msgpack.decode(file.read(), type=Note)
        run_ended_s = path.stat().st_mtime + AFTERMATH_S
        process.end_marked(note.mark)
        with process.uninterruptible(f"the workspace {ws.root} is being restored"):
            _restore(ws, note, run_ended_s)
            path.unlink()


@contextmanager
def lock(ws: Workspace) -> Iterator[None]:
    """Be the only run in this work tree, as `locking.held`.

    First restores what a killed run had changed temporarily, and finishes what it had begun to
    accept. Raises WorkspaceError.
    """
    with locking.held(ws):
        put_back_aside(ws)
        finish_accepting(ws)
        yield


@contextmanager
def _noted(ws: Workspace, note: Note) -> Iterator[None]:
    """Keep the note, locked while we are alive; its mtime shows when we were last alive."""
    path = ws.home / _NOTE
    fresh = path.with_suffix(".new")
    with ExitStack() as stack:
        try:
            file = stack.enter_context(fresh.open("wb"))
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(msgspec.msgpack.encode(note))
            file.flush()
            fresh.replace(path)
        except OSError as error:
            raise StateError(f"{path} cannot be written: {error}") from error
        stack.enter_context(state_dir.beating(path))
        yield


Beside = Layers | InPlace


@contextmanager
def beside(
    ws: Workspace, changes: Contents, lines: Iterable[str] = (), *, in_place: bool = False
) -> Iterator[Beside]:
    """The workspace with the changes in it, until the context ends.

    In an overlay each command has its own upper layer over the same changes: they may run in
    parallel, and none sees what another wrote. In place all share the workspace and see each
    other's writes; what they write to dependency and cache folders, and to ignored files that no
    snapshot holds, stays. The caller ensures that nothing else runs there. `lines` are the shell
    lines to run: with one that passes the path to a daemon, all run in place. Raises ValueError for
    a path that is not in the work tree, WorkspaceError and StateError if the workspace cannot be
    held or restored.
    """
    for path in changes:
        place.require_inside(path)
    why = ASKED if in_place else outsiders(lines)
    layers = why or overlay.prepare(ws, changes)
    if isinstance(layers, str):
        with changed_in_place(ws, changes, layers) as there:
            yield there
        return
    try:
        yield layers
    finally:
        overlay.remove_layers(layers.folder)


@contextmanager
def in_turn(ws: Workspace, lines: Iterable[str]) -> Iterator[Beside]:
    """The workspace for commands that run one after the other, each with what earlier ones wrote.

    Only folders that git ignores keep what is written, as builds and caches are slow to make again.
    In place, `beside` restores what a snapshot holds. Raises as `beside` does.
    """
    with beside(ws, {}, lines) as there:
        if isinstance(there, InPlace):
            yield there
            return
        folders = (path for path in ignored(ws.root, ws.environ) if path.endswith("/"))
        shared = replace(there, is_shared=True, through=tuple(ws.root / path for path in folders))
        yield shared
        made = [f"{path.as_posix()}/" for path in shared.new_folders()]
        with suppress(OSError):  # a build that is not kept is made again
            for path in ignored_of(ws.root, ws.environ, made):
                shared.keep(Path(path))


OUTSIDERS = words("""
    docker docker-compose podman podman-compose buildah nerdctl devcontainer act earthly dagger
    skaffold tilt kubectl vagrant ssh watchman bazel bazelisk buck2 pants turbo nx gradle
    gradlew mvnd sbt sbtn bloop scala-cli dmypy eslint_d prettierd sudo doas su pkexec
    """)
"""Programs that pass the path to a process outside the overlay, or need privileges it drops."""


def outsiders(lines: Iterable[str]) -> str:
    """A reason that names the OUTSIDERS in the shell lines; empty if there are none."""
    words = chain.from_iterable(re.findall(r"[\w./+-]+", line) for line in lines)
    named = sorted({word.rpartition("/")[2] for word in words} & OUTSIDERS)
    return f"{', '.join(named)} works outside an overlay" if named else ""
