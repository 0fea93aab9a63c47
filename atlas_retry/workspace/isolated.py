"""Run commands on the workspace with some files changed, and leave it as it was.

Where bubblewrap can mount an overlay over the workspace's own path they run beside it, else in
place between two snapshots. Installed dependencies, ignored files and absolute paths are there
either way.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain, count
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.model import ChangeStatus
from atlas_retry.process import Command, Completed, run
from atlas_retry.workspace import overlay, place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.in_place import InPlace, changed_in_place
from atlas_retry.workspace.overlay import Layers, Wanted
from atlas_retry.workspace.written import found_now, written


class Way(StrEnum):
    """How commands were run without touching the workspace."""

    OVERLAY = "overlay"
    IN_PLACE = "in place"


class Beside(Protocol):
    """The workspace with changes in it, for commands to run in."""

    @property
    def way(self) -> Way: ...

    @property
    def reason(self) -> str:
        """Why it is in place, in one sentence; empty for an overlay."""

    def wrap(self, command: Command) -> Command:
        """What to run instead of the command, once, so that it sees the changes."""

    def written(self) -> dict[str, ChangeStatus]:
        """What the commands that have ended wrote, by path; compared by content and mode."""

    def file(self, path: str) -> Path | None:
        """Where to read what is at `path` after the last command that wrote to it."""


class Aside(Struct, frozen=True, kw_only=True):
    """One command that ran aside."""

    completed: Completed
    written: dict[str, ChangeStatus]
    way: Way
    reason: str = ""
    """As in `Beside`."""


def aside(ws: Workspace, command: Command, changes: Wanted, *, in_place: bool = False) -> Aside:
    """Run one command with the changes in the workspace; see what it wrote, and drop that.

    Raises Interrupted, and as `beside`.
    """
    lines = [shlex.join(command.argv)]
    with beside(ws, changes, lines, in_place=in_place) as there:
        completed = run(there.wrap(command))
        return Aside(
            completed=completed,
            written=there.written(),
            way=there.way,
            reason=there.reason,
        )


@contextmanager
def beside(
    ws: Workspace, changes: Wanted, lines: Iterable[str] = (), *, in_place: bool = False
) -> Iterator[Beside]:
    """The workspace with the changes in it, until the context ends.

    In an overlay each command has an upper layer of its own over the same changes: they may run
    side by side, and none sees what another wrote. A mount serves one command; time limits, output
    and ends are as ever. In place all share the workspace and see each other's writes; what they
    write to dependency and cache folders, and to ignored files that no snapshot holds, stays and
    is not in `written`. The caller sees to it that nobody else runs there. `lines` are the shell
    lines that will be run: one that hands the path to a daemon is run in place.
    Raises ValueError for a path that is no file's of the work tree, WorkspaceError and StateError
    where it cannot be held or restored.
    """
    for path in changes:
        place.require_inside(path)
    if in_place:
        with changed_in_place(ws, changes) as there:
            yield _Here(there=there, reason="it was asked for")
        return
    with overlaid(ws, changes, lines) as layers:
        if isinstance(layers, str):
            with changed_in_place(ws, changes) as there:
                yield _Here(there=there, reason=layers)
        else:
            yield layers


@contextmanager
def overlaid(ws: Workspace, changes: Wanted, lines: Iterable[str] = ()) -> Iterator[Beside | str]:
    """As `beside`, but in overlays only: else why there can be none."""
    layers = outsiders(lines) or overlay.prepare(ws, changes)
    if isinstance(layers, str):
        yield layers
        return
    try:
        yield _Over(layers=layers, numbers=count(1), used=[])
    finally:
        overlay.discard(layers)


class _Over(Struct, frozen=True, kw_only=True):
    """Every command in an overlay of its own."""

    layers: Layers
    numbers: "count[int]"
    used: list[int]
    way: Way = Way.OVERLAY
    reason: str = ""

    def wrap(self, command: Command) -> Command:
        number = next(self.numbers)
        self.used.append(number)
        try:
            return self.layers.wrapped(command, number)
        except OSError as error:
            return _failing(command, f"no overlay: {error.filename}: {error.strerror}")

    def written(self) -> dict[str, ChangeStatus]:
        found: dict[str, ChangeStatus] = {}
        for number in self.used:
            found |= written(self.layers, number)
        return found

    def file(self, path: str) -> Path | None:
        return found_now(self.layers, self.used, path)


def _failing(command: Command, why: str) -> Command:
    """What has no room to run has failed, like what finds none while it runs."""
    return replace(command, argv=("/bin/sh", "-c", 'echo "$0" >&2; exit 1', why))


class _Here(Struct, frozen=True, kw_only=True):
    """The workspace itself."""

    there: InPlace
    reason: str
    way: Way = Way.IN_PLACE

    def wrap(self, command: Command) -> Command:
        return command

    def written(self) -> dict[str, ChangeStatus]:
        return self.there.written()

    def file(self, path: str) -> Path | None:
        return self.there.file(path)


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
