"""The repository in the state directory that holds the snapshots; reads no work tree."""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from atlas_retry.errors import StateError, WorkspaceError
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, shadow_environment, split
from atlas_retry.workspace.store import BATCH_BYTES, Known, StoredFile

_KEPT = "refs/atlas/kept/"
LATEST = "refs/atlas/latest"
_CONFIG = ("-c", "core.compression=1", "-c", "pack.compression=1", "-c", "core.attributesFile=")
_GRACE = "1.hour.ago"
"""A snapshot that nobody keeps is safe from `compact` for this long."""


class Remembered(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The latest snapshot, for the next one to build upon; dispensable."""

    ids: tuple[str, str]
    """Its own, and that of its `work`."""
    paths: bytes
    """Of the files of the work tree, NUL after each: they may hold any other byte."""
    known: list[Known]
    """What is known of each, in the same order."""
    ignored: bytes
    """The paths of those that git ignores, as in `paths`."""
    git: dict[bytes, StoredFile]
    index: StoredFile | None
    manifest: str

    @property
    def files(self) -> dict[str, Known]:
        """What is known of each file of the work tree."""
        return dict(zip(split(self.paths), self.known, strict=True))


def shadow_git(ws: Workspace, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git in the shadow repository. Raises GitError."""
    env = shadow_environment(ws.shadow, ws.environ)
    return git(*_CONFIG, *arguments, cwd=ws.root, env=env, stdin=stdin)


@contextmanager
def exclusive(ws: Workspace) -> Iterator[None]:
    """Be the only one who writes to the shadow repository; makes it where it is missing.

    What a killed process left half done is cleared away first. Waits for its turn. Raises
    StateError when the state directory cannot be written, or is full.
    """
    busy = ws.home / "shadow.busy"
    try:
        with (ws.home / "shadow.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if busy.exists():
                _clear(ws.shadow)
            busy.touch()
            _init(ws)
            yield
            busy.unlink()
    except OSError as error:
        raise StateError(
            f"the state directory cannot be written: {error}",
            remedy="make room there, or: export ATLAS_HOME=/a/folder/you/can/write",
        ) from error


def _init(ws: Workspace) -> None:
    ready = ws.shadow / "info" / "attributes"
    if ready.exists():
        return
    shadow_git(ws, "init", "-q", "--bare", "--template=", "--object-format=sha1", str(ws.shadow))
    ready.parent.mkdir(exist_ok=True)
    ready.write_text("* -text -filter -ident -working-tree-encoding -eol\n", encoding="utf-8")


def _clear(shadow: Path) -> None:
    """Remove locks and half packs: the shadow is ours alone, so nobody else is using them."""
    for left in (*shadow.glob("*.lock"), *shadow.glob("refs/**/*.lock")):
        left.unlink(missing_ok=True)
    for left in (*shadow.glob("objects/**/tmp_*"), *shadow.glob("fast_import_crash_*")):
        left.unlink(missing_ok=True)


def remembered(ws: Workspace) -> Remembered | None:
    """What the latest snapshot left; None when it cannot be read."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.msgpack.decode((ws.shadow / "atlas-known").read_bytes(), type=Remembered)
    return None


def remembered_files(ws: Workspace) -> Mapping[str, Known]:
    """What the latest snapshot knew of each file; empty when it cannot be read."""
    last = remembered(ws)
    return last.files if last else {}


def remember(ws: Workspace, known: Remembered) -> None:
    """Leave this for the next snapshot; replaced as a whole."""
    path = ws.shadow / "atlas-known"
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.msgpack.encode(known))
    fresh.replace(path)


def keep(ws: Workspace, name: str, snapshot_id: str) -> None:
    """Hold a snapshot under a name (`runs/<run_id>/<n>`) until it is dropped."""
    ref = ws.shadow / _KEPT / name
    with exclusive(ws):
        # as git writes it (gitrepository-layout(5)), which takes a process longer than the rest
        ref.parent.mkdir(parents=True, exist_ok=True)
        lock = ref.with_name(f"{ref.name}.lock")
        lock.write_text(f"{snapshot_id}\n", encoding="utf-8")
        lock.replace(ref)


def kept(ws: Workspace) -> dict[str, str]:
    """Names and ids of the snapshots that are held."""
    if not ws.shadow.is_dir():
        return {}
    out = shadow_git(ws, "for-each-ref", "--format=%(objectname) %(refname)%00", _KEPT)
    lines = (item.strip("\n").split(" ", 1) for item in split(out))
    return {ref.removeprefix(_KEPT): oid for oid, ref in lines}


def kept_as(ws: Workspace, name: str) -> str | None:
    """The snapshot that is held under a name."""
    try:
        return (ws.shadow / _KEPT / name).read_text(encoding="utf-8").strip()
    except OSError:  # git has packed it, or there is none
        return kept(ws).get(name)


def drop(ws: Workspace, *names: str) -> None:
    """Hold these snapshots no longer; a name that is not there is no error."""
    gone = b"".join(b"delete %b%b\0\0" % (_KEPT.encode(), os.fsencode(name)) for name in names)
    with exclusive(ws):
        if (ws.shadow / "packed-refs").exists():
            shadow_git(ws, "update-ref", "-z", "--stdin", stdin=gone)
            return
        for name in names:
            (ws.shadow / _KEPT / name).unlink(missing_ok=True)


def compact(ws: Workspace) -> None:
    """Give back the space of snapshots that are no longer held."""
    with exclusive(ws):
        (ws.shadow / "atlas-known").unlink(missing_ok=True)
        shadow_git(ws, "gc", "--quiet", f"--prune={_GRACE}")


def write_big_file(ws: Workspace, path: str) -> str:
    """The id of a file's content, written without reading it into memory."""
    try:
        out = shadow_git(ws, "hash-object", "-w", "--no-filters", "--", path)
    except GitError:
        os.lstat(path)  # gone meanwhile: FileNotFoundError says it better
        raise
    return out.decode().strip()


def read_blobs(ws: Workspace, oids: Iterable[str]) -> dict[str, bytes]:
    """Contents by id. Raises WorkspaceError when one is not there."""
    return parse_batch(shadow_git(ws, "cat-file", "--batch", stdin=_lines(oids)))


def contents(ws: Workspace, oids: Sequence[str]) -> Iterator[bytes]:
    """Contents in the order asked for, with only a few in memory at a time."""
    asked = shadow_git(ws, "cat-file", "--batch-check=%(objectsize)", stdin=_lines(oids))
    waiting: list[str] = []
    total = 0
    for oid, size in zip(oids, asked.decode().splitlines(), strict=True):
        if waiting and total + int(size) > BATCH_BYTES:
            yield from _in_order(ws, waiting)
            waiting, total = [], 0
        waiting.append(oid)
        total += int(size)
    yield from _in_order(ws, waiting)


def _in_order(ws: Workspace, oids: Sequence[str]) -> Iterator[bytes]:
    found = read_blobs(ws, dict.fromkeys(oids))
    for oid in oids:
        yield found[oid]


def _lines(items: Iterable[str]) -> bytes:
    return "".join(f"{item}\n" for item in items).encode()


def parse_batch(out: bytes) -> dict[str, bytes]:
    """Source: git-cat-file(1), BATCH OUTPUT."""
    found: dict[str, bytes] = {}
    start = 0
    while start < len(out):
        end = out.index(b"\n", start)
        oid, kind, *size = out[start:end].decode().split(" ")
        if kind == "missing":
            raise WorkspaceError(f"the snapshot is damaged: {oid} is missing")
        start = end + 1 + int(size[0])
        found[oid] = out[end + 1 : start]
        start += 1
    return found
