"""Run commands on the workspace with some files changed, and leave it as it was.

Where bubblewrap can mount an overlay over the workspace's own path they run beside it, else in
place between two snapshots. Installed dependencies, ignored files and absolute paths are there
either way.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.process import Command
from atlas_retry.workspace import overlay, place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.in_place import InPlace, changed_in_place
from atlas_retry.workspace.overlay import Layers, Wanted, is_in_layer
from atlas_retry.workspace.walking import entries


class Over(Struct, frozen=True, kw_only=True):
    """The workspace with changes in it, every command in an overlay of its own."""

    layers: Layers
    numbers: "count[int]"
    used: list[int]
    reason: str = ""

    def wrap(self, command: Command) -> Command:
        """What to run instead of the command, once, so that it sees the changes."""
        number = next(self.numbers)
        self.used.append(number)
        try:
            return self.layers.wrapped(command, number)
        except OSError as error:  # no room to run is a failure, as it is for one that runs
            why = f"no overlay: {error.filename}: {error.strerror}"
            return replace(command, argv=("/bin/sh", "-c", 'echo "$0" >&2; exit 1', why))

    def overwritten(self) -> tuple[str, ...]:
        """The files that the commands which have ended changed or deleted, but for the changes."""
        found: set[str] = set()
        for upper in map(self.layers.upper, self.used):
            root, written = self.layers.root, entries(upper) or {}
            touched = chain(written, *(_hidden(root, upper, path) for path in written))
            before = ((path, place.look(root, path)) for path in touched)
            found |= {path for path, was in before if was and was != place.look(upper, path)}
        return tuple(p for p in sorted(found) if not is_in_layer(self.layers.changes, p))

    def file(self, path: str) -> Path | None:
        """Where to read what is at `path` after the last command that wrote to it."""
        written = (*map(self.layers.upper, reversed(self.used)), self.layers.changes)
        tops = (layer for layer in written if is_in_layer(layer, path))
        top = next(tops, self.layers.root)
        return top / path if place.look(top, path) else None


def _hidden(root: Path, upper: Path, folder: str) -> Iterator[str]:
    """The files of a folder that a layer hides as a whole."""
    if is_in_layer(upper, f"{folder}/any"):
        for above, _, names in os.walk(root / folder):
            yield from (str(Path(above, name).relative_to(root)) for name in names)


Beside = Over | InPlace


@contextmanager
def beside(
    ws: Workspace, changes: Wanted, lines: Iterable[str] = (), *, in_place: bool = False
) -> Iterator[Beside]:
    """The workspace with the changes in it, until the context ends.

    In an overlay each command has an upper layer of its own over the same changes: they may run
    side by side, and none sees what another wrote. A mount serves one command; time limits, output
    and ends are as ever. In place all share the workspace and see each other's writes; what they
    write to dependency and cache folders, and to ignored files that no snapshot holds, stays.
    The caller sees to it that nobody else runs there. `lines` are the shell
    lines that will be run: one that hands the path to a daemon is run in place.
    Raises ValueError for a path that is no file's of the work tree, WorkspaceError and StateError
    where it cannot be held or restored.
    """
    for path in changes:
        place.require_inside(path)
    if in_place:
        with changed_in_place(ws, changes, "it was asked for") as there:
            yield there
        return
    with overlaid(ws, changes, lines) as layers:
        if isinstance(layers, str):
            with changed_in_place(ws, changes, layers) as there:
                yield there
        else:
            yield layers


@contextmanager
def overlaid(ws: Workspace, changes: Wanted, lines: Iterable[str] = ()) -> Iterator[Over | str]:
    """As `beside`, but in overlays only: else why there can be none."""
    layers = outsiders(lines) or overlay.prepare(ws, changes)
    if isinstance(layers, str):
        yield layers
        return
    try:
        yield Over(layers=layers, numbers=count(1), used=[])
    finally:
        overlay.remove_layers(layers.folder)


OUTSIDERS = frozenset(
    {
        *(
            "docker",
            "docker-compose",
            "podman",
            "podman-compose",
            "buildah",
            "nerdctl",
            "devcontainer",
        ),
        *("act", "earthly", "dagger", "skaffold", "tilt", "kubectl", "vagrant", "ssh"),
        *("watchman", "bazel", "bazelisk", "buck2", "pants", "turbo", "nx"),
        *("gradle", "gradlew", "mvnd", "sbt", "sbtn", "bloop", "scala-cli"),
        *("dmypy", "eslint_d", "prettierd"),
        *("sudo", "doas", "su", "pkexec"),
    }
)
"""Programs that hand the path to a process outside the overlay, or need privileges it drops."""


def outsiders(lines: Iterable[str]) -> str:
    """Which of OUTSIDERS the shell lines name, as a reason; empty where they name none."""
    words = chain.from_iterable(re.findall(r"[\w./+-]+", line) for line in lines)
    named = sorted({word.rpartition("/")[2] for word in words} & OUTSIDERS)
    return f"{', '.join(named)} works outside an overlay" if named else ""
