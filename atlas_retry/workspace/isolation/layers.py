"""A whole run in an overlay, with layers for the work tree, the home and temporary folders.

Bubblewrap mounts them in a namespace that ends with its command; nothing is mounted outside of it.
The rest of the machine is read-only inside. The result is then copied to the user's tree; if atlas
is killed while copying, a note in the state directory lets the next holder of the workspace's lock
finish it.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import filterfalse
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.errors import StateError
from atlas_retry.process import Command
from atlas_retry.state_dir import replace_file
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.isolation import overlay
from atlas_retry.workspace.snapshot.look import Tracker
from atlas_retry.workspace.snapshot.restoring import restore
from atlas_retry.workspace.snapshot.trees import changes

_NOTE = "accept.note"
CACHES = (
    *(".cache", ".npm", ".yarn/berry", ".local/share/pnpm", ".bun/install/cache", ".deno"),
    *(".cargo/registry", ".cargo/git", ".rustup", "go/pkg", ".local/share/uv"),
    *(".m2/repository", ".gradle/caches", ".gradle/wrapper", ".ivy2/cache", ".sbt/boot"),
    *(".nuget/packages", ".pub-cache", ".bundle/cache", ".hex", ".cabal/packages", ".stack"),
)
"""Caches of package managers and compilers in the home, which can be filled again."""
AGENTS_OWN = (".claude", ".codex", ".gemini", ".config/goose", ".local/share/opencode")
"""Sessions and logins of agents, in the home."""
_NAMED = (
    *("XDG_CACHE_HOME", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "PRE_COMMIT_HOME"),
    *("GOCACHE", "GOMODCACHE", "CARGO_HOME", "GRADLE_USER_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"),
)
"""Variables that name other places for these."""
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - writes of the run there are dropped


def layers_folder(state: Path, run_id: str) -> Path:
    """Folder of the layers of a run, in the state directory."""
    return state / "runs" / run_id / "layers"


class RunLayers(Struct, frozen=True, kw_only=True):
    """The layers of one run, and the bubblewrap that mounts them."""

    bwrap: str
    folder: Path
    root: Path
    overlaid: tuple[Path, ...]
    """The work tree, its repository if that is elsewhere, home and temporary folders."""
    writable: tuple[Path, ...]
    """Folders that the run writes directly: caches, the state directory, data of agents."""

    def wrapped(self, command: Command) -> Command:
        """The command with the overlays mounted. Raises OSError."""
        argv = [self.bwrap, "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"]
        argv += ("--tmpfs", "/dev/shm", "--proc", "/proc")  # noqa: S108 - a fresh one
        over = ((path, overlay.mounting(path, self._upper(path))) for path in self.overlaid)
        mounts = [*over, *self._through()]
        for _, options in sorted(mounts, key=lambda pair: len(pair[0].parts)):
            argv += options
        argv += ("--unshare-pid", "--die-with-parent", "--chdir", str(command.cwd), "--")
        return replace(command, argv=(*argv, *command.argv))

    def probe(self, bwrap: str) -> Command:
        """The command that tries whether this bubblewrap mounts them. Raises OSError."""
        return replace(self, bwrap=bwrap).wrapped(overlay.PROBE)

    def dropped(self, since_s: float, until_s: float) -> Iterator[str]:
        """Files in home and temporary folders that were written in this time, and are dropped."""
        others = (path for path in self.overlaid if not path.is_relative_to(self.root))
        for path in filterfalse(is_repository, others):
            upper = self._upper(path)
            for file in upper.rglob("*"):
                with suppress(OSError):
                    status = file.lstat()
                    is_in_time = since_s <= status.st_ctime < until_s  # a mtime can be set
                    if is_in_time and not stat.S_ISDIR(status.st_mode):
                        yield str(path / file.relative_to(upper))

    @property
    def tree(self) -> Path:
        """Folder of what the run has written to the work tree."""
        return self.folder / "tree"

    def _upper(self, path: Path) -> Path:
        """Folder of what the run has written to one of the overlaid folders."""
        if path == self.root:
            return self.tree
        return self.folder / "outside" / str(path)[1:] / "upper"

    def wrote(self, path: str) -> bool:
        """Whether the run wrote or removed the file at this path of the work tree."""
        return overlay.is_in_layer(self.tree, path)

    def shows_through(self, paths: Iterable[str]) -> bool:
        """Whether the run writes one of these absolute paths directly."""
        return any(not {*self.writable}.isdisjoint((p, *p.parents)) for p in map(Path, paths))

    def _through(self) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """Folders and mounts that are visible through the overlays, writable or read-only."""
        for path in self.writable:
            yield path, ("--bind", str(path), str(path))
        for above in self.overlaid:
            for path in overlay.mounts_inside(above):
                yield path, ("--ro-bind", str(path), str(path))


def is_repository(folder: Path) -> bool:
    """Whether a folder is the git directory of work trees elsewhere."""
    return (folder / "HEAD").is_file()


def offline(command: Command, root: Path) -> Command:
    """The command without network, except its own loopback.

    If that is not possible, a command that says so and fails like a missing tool.
    """
    bwrap = next(overlay.binaries(root, command.env.get("PATH")), None)
    if bwrap is None:
        why = "network: none needs bubblewrap, which is not installed"
        return replace(command, argv=("/bin/sh", "-c", 'echo "$0" >&2; exit 127', why))
    argv = (bwrap, "--unshare-user", "--dev-bind", "/", "/", "--unshare-net", "--")
    return replace(command, argv=(*argv, *command.argv))


def prepare_layers(
    ws: Workspace, folder: Path, environ: Mapping[str, str], writable: Sequence[Path] = ()
) -> RunLayers | str:
    """Layers for one run in `folder`, which is created; or why there cannot be any.

    `writable` are folders that the run writes directly.
    """
    home = Path(environ.get("HOME") or "/").resolve()
    for name, path in (("the home", home), ("the state directory", ws.state)):
        if path.is_relative_to(ws.root):
            return f"{name} {path} is inside the workspace"
    layers = RunLayers(
        bwrap="",
        folder=folder,
        root=ws.root,
        overlaid=tuple(dict.fromkeys(_overlaid(ws, home, environ))),
        writable=tuple(_writable(ws, home, environ, writable)),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        bwrap, why = overlay.mountable(ws, folder, layers.probe)
    except OSError as error:
        return f"{folder} cannot be written: {error.strerror}"
    if bwrap:
        return replace(layers, bwrap=bwrap)
    overlay.remove_layers(folder)
    return why


def _overlaid(ws: Workspace, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Folders to overlay; none is inside another, except the work tree and its repository."""
    yield ws.root
    if not ws.common_dir.is_relative_to(ws.root):
        yield ws.common_dir
    wanted = [*_TEMPORARY, home, Path(environ.get("TMPDIR") or "/tmp").resolve()]  # noqa: S108
    for path in wanted:
        others = {*wanted}.intersection(path.parents)
        is_apart = path.is_dir() and not path.is_relative_to(ws.root) and path != Path("/")
        if is_apart and others <= {Path("/")} and os.access(path, os.W_OK):
            yield path


def _writable(
    ws: Workspace, home: Path, environ: Mapping[str, str], more: Sequence[Path]
) -> Iterator[Path]:
    named = (Path(environ[name]) for name in _NAMED if environ.get(name))
    known = (*(home / name for name in (*CACHES, *AGENTS_OWN)), *named)
    in_home = (path for path in known if not home.is_relative_to(path.resolve()))
    for path in dict.fromkeys(path.resolve() for path in (ws.state, *more, *in_home)):
        if path.is_dir() and not path.is_relative_to(ws.root):
            yield path


def accept(ws: Workspace, start: str, end: str, tracker: Tracker) -> tuple[str, ...]:
    """Apply the difference between two snapshots to the workspace, except ignored files.

    Files that differ from `start` were edited by someone else and stay; returns their paths. The
    index stays, too: objects named by a copy of it are not in the user's repository. The caller
    holds the workspace's lock. Raises WorkspaceError and StateError; the rest is then applied
    later.
    """
    note = ws.home / _NOTE
    try:
        replace_file(note, msgspec.json.encode((start, end)))
    except OSError as error:
        raise StateError(f"{note} cannot be written: {error}") from error
    return finish_accepting(ws, tracker)


def finish_accepting(ws: Workspace, tracker: Tracker | None = None) -> tuple[str, ...]:
    """Finish an `accept` that was begun; returns the paths that stay. Raises WorkspaceError."""
    note, tracker = ws.home / _NOTE, tracker or Tracker(ws)
    if not note.exists():
        return ()
    start, end = msgspec.json.decode(note.read_bytes(), type=tuple[str, str])
    with process.uninterruptible(f"the workspace {ws.root} is being changed"):
        paths = {change.path for change in changes(ws, start, end)}
        conflicts = restore(ws, end, paths, since=start, look=tracker.take).conflicts
    note.unlink()
    tracker.moved()
    return conflicts
