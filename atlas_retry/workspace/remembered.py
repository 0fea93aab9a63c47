"""The latest snapshot on disk, for the next process to build on; a cache."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.state_dir import replace_file
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, joined, split
from atlas_retry.workspace.gitfacts import settings
from atlas_retry.workspace.scan import Scan, Stat, Unheld, stat_of
from atlas_retry.workspace.store import Known, StoredFile
from atlas_retry.workspace.versions import Version

_NAME = "atlas-known"
Excludes = tuple[bytes, Stat | None]
"""Path and stat data of the user's own ignore file, which applies to every repository."""


class RememberedWalk(Struct, frozen=True, array_like=True, gc=False):
    """A scan without its files. Paths are bytes, each followed by NUL."""

    folders: bytes
    stats: list[Stat]
    """Stat data of the folders, in the same order."""
    top: Stat | None
    fresh: list[tuple[bytes, bytes]]
    rules: tuple[Stat | None, ...]
    excludes: Excludes
    empty: bytes
    left_out: list[tuple[bytes, str]]
    unheld: list[tuple[bytes, Unheld]]
    ignored_bytes: int
    taken_ns: int


class Remembered(Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """Content of the file."""

    ids: tuple[str, str]
    """Ids of the snapshot and of its `work`."""
    paths: bytes
    """Paths of the files, each followed by NUL, because they may hold any other byte."""
    known: list[Known]
    """Known data of each file, in the same order."""
    ignored: bytes
    """Paths of ignored files, in the format of `paths`."""
    git: dict[bytes, StoredFile]
    index: Known | None
    manifest: str
    walk: RememberedWalk | None
    """The walk that the snapshot was made from; None if a file of it is not held."""


class RememberedTree:
    """The remembered snapshot as a base for the next one."""

    def __init__(self, ws: Workspace, read: Remembered) -> None:
        paths = [*map(sys.intern, split(read.paths))]
        self.files = Version(zip(paths, read.known, strict=True))
        """Known data of each file."""
        self.ignored = frozenset(split(read.ignored))
        self.git = {os.fsdecode(name): entry for name, entry in read.git.items()}
        self.excludes = excludes_of(ws)
        self.scan = self._scan(read.walk) if read.walk else None
        """The walk; None if git may ignore other files now."""
        self.read = replace(read, paths=b"", known=[], ignored=b"", walk=None)
        """The rest of the content."""

    def _scan(self, walk: RememberedWalk) -> Scan | None:
        if walk.excludes != self.excludes:
            return None
        return Scan(
            files=Version((path, known.status) for path, known in self.files.items()),
            ignored={*self.ignored},
            folders=dict(zip(split(walk.folders), walk.stats, strict=True)),
            top=walk.top,
            fresh={os.fsdecode(p): frozenset(split(names)) for p, names in walk.fresh},
            rules=walk.rules,
            empty=split(walk.empty),
            left_out={os.fsdecode(path): why for path, why in walk.left_out},
            unheld={os.fsdecode(path): seen for path, seen in walk.unheld},
            ignored_bytes=walk.ignored_bytes,
            taken_ns=walk.taken_ns,
        )


def recall(ws: Workspace) -> RememberedTree | None:
    """Read the remembered snapshot; None if unreadable."""
    with suppress(OSError, ValueError, msgspec.MsgspecError):
        # the bytes are freed before the paths are split: they are many
        read = msgspec.msgpack.decode((ws.shadow / _NAME).read_bytes(), type=Remembered)
        return RememberedTree(ws, read)
    return None


def forget(ws: Workspace) -> None:
    """Remove the remembered snapshot."""
    (ws.shadow / _NAME).unlink(missing_ok=True)


def remember(ws: Workspace, held: Remembered) -> None:
    """Write the remembered snapshot."""
    replace_file(ws.shadow / _NAME, msgspec.msgpack.encode(held))


def walk_of(
    scan: Scan, held: Mapping[str, Known], excludes: Excludes | None
) -> RememberedWalk | None:
    """A walk in the form that is remembered; None if a file of it is not held."""
    is_whole = scan.upper is None and held.keys() == scan.files.keys()
    if not is_whole or not excludes:
        return None
    if excludes[1] and max(excludes[1][2:4]) >= scan.taken_ns:
        return None
    return RememberedWalk(
        folders=joined(scan.folders),
        stats=[*scan.folders.values()],
        top=scan.top,
        fresh=[(os.fsencode(p), joined(names)) for p, names in scan.fresh.items()],
        rules=scan.rules,
        excludes=excludes,
        empty=joined(scan.empty),
        left_out=[(os.fsencode(path), why) for path, why in scan.left_out.items()],
        unheld=[(os.fsencode(path), seen) for path, seen in scan.unheld.items()],
        ignored_bytes=scan.ignored_bytes,
        taken_ns=scan.taken_ns,
    )


def excludes_of(ws: Workspace) -> Excludes | None:
    """The user's own ignore file; None if git fails. Source: gitignore(5)."""
    path, asked = b"", ("config", "-z", "--type=path", "--get", "core.excludesFile")
    try:
        if "core.excludesfile" in settings(ws.root, ws.environ):
            path = git(*asked, cwd=ws.root, env=ws.environ, accept=(0, 1)).removesuffix(b"\0")
    except GitError:
        return None
    if not path:
        home = ws.environ.get("XDG_CONFIG_HOME") or f"{ws.environ.get('HOME', '')}/.config"
        path = os.fsencode(f"{home}/git/ignore")
    with suppress(OSError):
        return path, stat_of((ws.root / os.fsdecode(path)).stat())
    return path, None
