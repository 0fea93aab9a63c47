"""The repository in the state directory that holds the snapshots: names, packs, contents of files.

It is ours alone, and of few files: made and listed by hand as gitrepository-layout(5) says, its
objects in few packs.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.errors import StateError, WorkspaceError
from atlas_retry.state_dir import alone, replace_file
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, shadow_environment
from atlas_retry.workspace.scan import is_settled, stat_of, why
from atlas_retry.workspace.store import RECENT, Known, blob_id

_KEPT = "refs/atlas/kept/"
_REFS = "packed-refs"
_CONFIG = (
    *("-c", "core.compression=1"),
    *("-c", "pack.compression=1"),
    *("-c", "pack.writeReverseIndex=false"),
    *("-c", "fastimport.unpackLimit=1"),
    *("-c", "core.logAllRefUpdates=false"),
    *("-c", "gc.writeCommitGraph=false"),
    *("-c", "repack.updateServerInfo=false"),
    *("-c", "core.attributesFile="),
)
_MAX_PACKS = 4
_MUCH_BIGGER = 4
"""Than all smaller ones together: such a pack is left as it is."""
_BIG_BYTES = 8 << 20
"""From here on git reads the file itself, so that it need not fit into memory."""
_BATCH_BYTES = 16 << 20
_TRIES = 3
_GRACE = "1.hour.ago"
"""A snapshot that nobody keeps is safe from `compact` for this long."""


def shadow_git(ws: Workspace, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git in the shadow repository, away from attributes in the work tree. Raises GitError."""
    env = shadow_environment(ws.shadow, ws.environ)
    return git(*_CONFIG, *arguments, cwd=ws.home, env=env, stdin=stdin)


@contextmanager
def exclusive(ws: Workspace) -> Iterator[None]:
    """Be the only one who writes to the shadow repository; makes it where it is missing.

    What a killed process left half done is cleared away first. Waits for its turn. Raises
    StateError when the state directory cannot be written, or is full.
    """
    busy = ws.home / "shadow.busy"
    try:
        with alone(ws.home / "shadow.lock"):
            if busy.exists():
                _clear(ws.shadow)
            busy.touch()
            _init(ws.shadow)
            yield
            busy.unlink()
    except OSError as error:
        raise StateError(
            f"the state directory cannot be written: {error}",
            remedy="make room there, or: export ATLAS_HOME=/a/folder/you/can/write",
        ) from error


def _init(shadow: Path) -> None:
    head = shadow / "HEAD"
    if not head.exists():
        for name in ("objects", "refs"):
            (shadow / name).mkdir(parents=True, exist_ok=True)
        head.write_text("ref: refs/heads/none\n", encoding="utf-8")


def _clear(shadow: Path) -> None:
    """Remove locks and half packs: the shadow is ours alone, so nobody else is using them."""
    for pattern in ("*.lock", "refs/**/*.lock", "objects/**/tmp_*", "fast_import_crash_*"):
        for left in shadow.glob(pattern):
            left.unlink(missing_ok=True)
    for pack in shadow.glob("objects/pack/*.pack"):
        if not pack.with_suffix(".idx").exists():
            pack.unlink()


def merge_packs(ws: Workspace) -> None:
    """Make one of all small packs, where there are many; older gits have many files.

    The biggest is never copied, others only once there is something like it to add to them.
    """
    folder = ws.shadow / "objects" / "pack"
    sizes = {idx: idx.with_suffix(".pack").stat().st_size for idx in folder.glob("*.idx")}
    *small, _ = sorted(sizes, key=sizes.__getitem__) or [folder]
    while small and sizes[small[-1]] > _MUCH_BIGGER * sum(map(sizes.__getitem__, small[:-1])):
        small.pop()
    if len(small) < _MAX_PACKS:
        return
    names = "".join(f"{idx.stem}.pack\n" for idx in small).encode()
    asked = ("pack-objects", "-q", "--window=0", "--stdin-packs", str(folder / "pack"))
    with suppress(GitError):  # --stdin-packs came with git 2.32
        made = shadow_git(ws, *asked, stdin=names).decode().strip()
        for idx in small:
            if idx.stem != f"pack-{made}":
                idx.unlink()
                idx.with_suffix(".pack").unlink()


def kept(ws: Workspace) -> dict[str, str]:
    """Names and ids of the snapshots that are held."""
    try:
        lines = os.fsdecode((ws.shadow / _REFS).read_bytes()).splitlines()
    except FileNotFoundError:
        return {}
    refs = (line.split(" ", 1) for line in lines if line[0] not in "#^")
    return {ref.removeprefix(_KEPT): oid for oid, ref in refs}


def keep(ws: Workspace, name: str, snapshot_id: str) -> None:
    """Hold a snapshot under a name (`runs/<run_id>/<n>`) until it is dropped."""
    with exclusive(ws):
        _hold(ws, {**kept(ws), name: snapshot_id})


def drop(ws: Workspace, *names: str) -> None:
    """Hold these snapshots no longer; a name that is not there is no error."""
    with exclusive(ws):
        _hold(ws, {name: oid for name, oid in kept(ws).items() if name not in names})


def _hold(ws: Workspace, held: dict[str, str]) -> None:
    lines = (f"{oid} {_KEPT}{name}\n" for name, oid in sorted(held.items()))
    replace_file(ws.shadow / _REFS, os.fsencode("".join(lines)))


def compact(ws: Workspace) -> None:
    """Give back the space of snapshots that are no longer held."""
    with exclusive(ws):
        (ws.shadow / "atlas-known").unlink(missing_ok=True)
        shadow_git(ws, "gc", "--quiet", f"--prune={_GRACE}")


class Blobs:
    """Blobs on their way into the shadow repository, a few at a time."""

    def __init__(self, ws: Workspace, known: Iterable[str]) -> None:
        self.ws = ws
        self.known = set(known)
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, content: bytes) -> str:
        """The id of the blob, which will be there after the next `flush`."""
        oid = blob_id(content)
        if oid not in self.known:
            self.known.add(oid)
            RECENT.add(oid, content)
            self._parts.append(b"blob\ndata %d\n%b\n" % (len(content), content))
            self._size += len(content)
            if self._size > _BATCH_BYTES:
                self.flush()
        return oid

    def flush(self, rest: bytes = b"") -> bytes:
        """Send what waits, and `rest` of the same stream (git-fast-import(1)); what git answers."""
        stream = b"".join([*self._parts, rest])
        self._parts, self._size = [], 0
        options = ("fast-import", "--quiet", "--force", "--depth=0")
        return shadow_git(self.ws, *options, stdin=stream) if stream else b""


def hold(path: str, blobs: Blobs) -> Known | str | None:
    """Bring the file at `path` (absolute) into the shadow repository.

    Why that cannot be; None: it is gone. What its status says is trusted only when nothing can
    have changed since the content was read, whatever the clocks do.
    """
    try:
        return _read_at_rest(path, blobs)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return why(error)


def _read_at_rest(path: str, blobs: Blobs) -> Known | str:
    """Read again while it is being written; what is read last may be half of it."""
    read = _read(path, blobs)
    for _ in range(_TRIES):
        if isinstance(read, str) or read.status == stat_of(os.lstat(path)):
            return read
        read = _read(path, blobs)
    return read if isinstance(read, str) else replace(read, settled=False)


def _read(path: str, blobs: Blobs) -> Known | str:
    now = time.time_ns()
    status = os.lstat(path)
    seen = stat_of(status)
    if stat.S_ISLNK(status.st_mode):
        oid = blobs.add(os.fsencode(Path(path).readlink()))
    elif not stat.S_ISREG(status.st_mode):
        return "not a file"
    elif status.st_size >= _BIG_BYTES:
        oid = _write_big_file(blobs.ws, path)
    else:
        # it may have become a FIFO meanwhile
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as file:
            oid = blobs.add(file.read())
    return Known(seen, oid, settled=is_settled(seen, now))


def _write_big_file(ws: Workspace, path: str) -> str:
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
        if waiting and total + int(size) > _BATCH_BYTES:
            yield from _in_order(ws, waiting)
            waiting, total = [], 0
        waiting.append(oid)
        total += int(size)
    yield from _in_order(ws, waiting)


def _in_order(ws: Workspace, oids: Sequence[str]) -> Iterator[bytes]:
    blobs = read_blobs(ws, dict.fromkeys(oids))
    for oid in oids:
        yield blobs[oid]


def _lines(items: Iterable[str]) -> bytes:
    return "".join(f"{item}\n" for item in items).encode()


def parse_batch(out: bytes) -> dict[str, bytes]:
    """Source: git-cat-file(1), BATCH OUTPUT."""
    blobs: dict[str, bytes] = {}
    start = 0
    while start < len(out):
        end = out.index(b"\n", start)
        oid, kind, *size = out[start:end].decode().split(" ")
        if kind == "missing":
            raise WorkspaceError(f"the snapshot is damaged: {oid} is missing")
        start = end + 1 + int(size[0])
        blobs[oid] = out[end + 1 : start]
        start += 1
    return blobs
