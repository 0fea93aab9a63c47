"""A whole run in layers: what it writes to the work tree, the home and temporary folders.

Bubblewrap mounts them in a namespace that ends with the command it runs; outside of it nothing
is ever mounted. The rest of the machine is read-only in there. What stays of it is brought into
the user's tree; killed while it does, it leaves a note in the state directory, by which the next
who takes the workspace's lock brings the rest.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.errors import StateError
from atlas_retry.process import Command
from atlas_retry.state_dir import replace_file
from atlas_retry.workspace import overlay
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.look import Tracker
from atlas_retry.workspace.restoring import restore
from atlas_retry.workspace.state import changes

_NOTE = "accept.note"
CACHES = (
    *(".cache", ".npm", ".yarn/berry", ".local/share/pnpm", ".bun/install/cache", ".deno"),
    *(".cargo/registry", ".cargo/git", ".rustup", "go/pkg", ".local/share/uv"),
    *(".m2/repository", ".gradle/caches", ".gradle/wrapper", ".ivy2/cache", ".sbt/boot"),
    *(".nuget/packages", ".pub-cache", ".bundle/cache", ".hex", ".cabal/packages", ".stack"),
)
"""Of package managers and compilers, in the home: what is in them can be made again."""
AGENTS_OWN = (".claude", ".codex", ".gemini", ".config/goose", ".local/share/opencode")
"""Sessions and log-ins of agents, in the home."""
_NAMED = (
    *("XDG_CACHE_HOME", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "PRE_COMMIT_HOME"),
    *("GOCACHE", "GOMODCACHE", "CARGO_HOME", "GRADLE_USER_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"),
)
"""Variables that name another place for one of those."""
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - what the run writes there is dropped


def layers_folder(state: Path, run_id: str) -> Path:
    """Where the layers of a run are kept in the state directory."""
    return state / "runs" / run_id / "layers"


class RunLayers(Struct, frozen=True, kw_only=True):
    """Where one run writes instead of the places that it sees, and who mounts that."""

    bwrap: str
    folder: Path
    root: Path
    overlaid: tuple[Path, ...]
    """The work tree, its repository where that lies elsewhere, home and temporary folders."""
    writable: tuple[Path, ...]
    """What the run writes in its true place: caches, the state directory, what agents keep."""

    def wrapped(self, command: Command) -> Command:
        """The command with its own view of the machine. Raises OSError."""
        argv = [self.bwrap, "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"]
        argv += ("--tmpfs", "/dev/shm", "--proc", "/proc")  # noqa: S108 - a fresh one
        uppers = {path: self.folder / "outside" / str(path)[1:] / "upper" for path in self.overlaid}
        uppers[self.root] = self.tree
        over = ((path, overlay.mounting(path, upper)) for path, upper in uppers.items())
        mounts = [*over, *self._through()]
        for _, options in sorted(mounts, key=lambda pair: len(pair[0].parts)):
            argv += options
        argv += ("--unshare-pid", "--die-with-parent", "--chdir", str(command.cwd), "--")
        return replace(command, argv=(*argv, *command.argv))

    @property
    def tree(self) -> Path:
        """What the run has written to the work tree."""
        return self.folder / "tree"

    def wrote(self, path: str) -> bool:
        """Whether the run wrote what is at this path of the work tree, or removed it."""
        return overlay.is_in_layer(self.tree, path)

    def shows_through(self, paths: Iterable[str]) -> bool:
        """Whether the run writes one of these absolute paths in its true place."""
        return any(not {*self.writable}.isdisjoint((p, *p.parents)) for p in map(Path, paths))

    def _through(self) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """What shows through the overlays, as it is or read-only."""
        for path in self.writable:
            yield path, ("--bind", str(path), str(path))
        for above in self.overlaid:
            for path in overlay.mounts_inside(above):
                yield path, ("--ro-bind", str(path), str(path))


def offline(command: Command, root: Path) -> Command:
    """The command without any network but a loopback of its own.

    Where nobody can take it away, one that says so and fails as a missing tool does.
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
    """Layers for one run, kept in `folder`, which is made; else why there can be none.

    `writable` are folders that the run writes in their true places.
    """
    home = Path(environ.get("HOME") or "/").resolve()
    if why := _misplaced(ws, home):
        return why
    through = tuple(_writable(ws, home, environ, writable))
    why = "bubblewrap 0.11 or newer is not installed"
    for bwrap in overlay.binaries(ws.root, environ.get("PATH")):
        layers = RunLayers(
            bwrap=bwrap,
            folder=folder,
            root=ws.root,
            overlaid=tuple(_overlaid(ws, home, environ)),
            writable=through,
        )
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = layers.wrapped(Command(argv=("true",), cwd=ws.root, env={}))
        except OSError as error:
            return f"{folder} cannot be written: {error.strerror}"
        if not (why := overlay.refusal(probe, folder, environ)):
            return layers
        overlay.remove_layers(folder)
    return why


def _misplaced(ws: Workspace, home: Path) -> str:
    """What of this workspace an overlay cannot show; empty for nothing."""
    if inside := overlay.mounts_inside(ws.root):
        return f"{inside[0]} is a mount of its own"
    for name, path in (("the home", home), ("the state directory", ws.state)):
        if path.is_relative_to(ws.root):
            return f"{name} {path} is inside the workspace"
    return ""


def _overlaid(ws: Workspace, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """No folder that another one has in it already, but for the work tree and its repository."""
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
    """Bring what differs between two snapshots, but for what git ignores.

    What differs from `start` is somebody's edit and stays; returned are its paths. So does the
    index: the objects that a copy of it names are not in the user's repository. The workspace's
    lock is held by the caller. Raises WorkspaceError and StateError; what was begun is then brought
    to its end later.
    """
    note = ws.home / _NOTE
    try:
        replace_file(note, msgspec.json.encode((start, end)))
    except OSError as error:
        raise StateError(f"{note} cannot be written: {error}") from error
    return finish_accepting(ws, tracker)


def finish_accepting(ws: Workspace, tracker: Tracker | None = None) -> tuple[str, ...]:
    """Bring what was begun to be accepted; the paths that were left alone. WorkspaceError."""
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
