"""The shadow repository in the state directory, which holds snapshots: names, packs, contents.

Only atlas uses it. To keep its files few, it is created and listed by hand according to
gitrepository-layout(5), with its objects in few packs.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.errors import StateError, WorkspaceError
from atlas_retry.state_dir import alone, replace_file
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, shadow_environment
from atlas_retry.workspace.remembered import forget
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
"""A pack this many times bigger than all smaller ones together is left as it is."""
_BATCH_BYTES = 4 << 20
_BIG_BYTES = _BATCH_BYTES
"""Git reads files of this size itself, so that they need not fit into memory."""
_LEFTOVERS = (
    "*.lock",
    "refs/**/*.lock",
    "objects/**/tmp_*",
    "objects/pack/*.keep",
    "fast_import_crash_*",
)
"""What a killed git leaves; fast-import fails if the `.keep` of the pack it makes exists."""
_TRIES = 3
_GRACE = "1.hour.ago"
"""Age up to which `compact` spares snapshots without a name."""


def shadow_git(ws: Workspace, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git in the shadow repository, without the work tree's attributes. Raises GitError."""
    env = shadow_environment(ws.shadow, ws.environ)
    return git(*_CONFIG, *arguments, cwd=ws.home, env=env, stdin=stdin)


@contextmanager
def exclusive(ws: Workspace) -> Iterator[None]:
    """Hold the only right to write to the shadow repository; creates it if missing.

    Waits for its turn, and first removes leftovers of a killed process. Raises StateError if the
    state directory cannot be written, or is full.
    """
    busy = ws.home / "shadow.busy"
    try:
        with alone(ws.home):
            if busy.exists():
                _clear(ws.shadow)
            busy.touch()
            _init(ws.shadow)
            yield
            busy.unlink()
    except OSError as error:
        if not ws.home.is_dir():
            raise StateError(
                f"{ws.home} was deleted while atlas used it", remedy="run the command again"
            ) from error
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
    """Remove locks and incomplete packs, which no other process can be using."""
    for pattern in _LEFTOVERS:
        for left in shadow.glob(pattern):
            left.unlink(missing_ok=True)
    for pack in shadow.glob("objects/pack/*.pack"):
        if not pack.with_suffix(".idx").exists():
            pack.unlink()


def merge_packs(ws: Workspace) -> None:
    """Merge small packs into one, if there are many; git before 2.32 keeps them.

    The biggest is never copied, others only together with packs of a similar total size.
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
    """Ids of the kept snapshots, by name."""
    try:
        lines = os.fsdecode((ws.shadow / _REFS).read_bytes()).splitlines()
    except FileNotFoundError:
        return {}
    refs = (line.partition(" ") for line in lines)
    return {ref.removeprefix(_KEPT): oid for oid, _, ref in refs if ref.startswith(_KEPT)}


def keep(ws: Workspace, name: str, snapshot_id: str) -> None:
    """Keep a snapshot under a name (`runs/<run_id>/<n>`) until it is dropped."""
    with exclusive(ws):
        _hold(ws, {**kept(ws), name: snapshot_id})


def drop(ws: Workspace, *names: str) -> None:
    """Stop keeping these snapshots; unknown names are not an error."""
    with exclusive(ws):
        _hold(ws, {name: oid for name, oid in kept(ws).items() if name not in names})


def _hold(ws: Workspace, held: dict[str, str]) -> None:
    lines = (f"{oid} {_KEPT}{name}\n" for name, oid in sorted(held.items()))
    replace_file(ws.shadow / _REFS, os.fsencode("".join(lines)))


def compact(ws: Workspace) -> None:
    """Free the space of snapshots that are no longer kept."""
    with exclusive(ws):
        forget(ws)
        shadow_git(ws, "gc", "--quiet", f"--prune={_GRACE}")


class Blobs:
    """Writes blobs into the shadow repository in batches."""

    def __init__(self, ws: Workspace, known: Iterable[str]) -> None:
        """`known` are ids of blobs that exist; git itself drops others that exist."""
        self.ws = ws
        self.known = set(known)
        self._stream = BytesIO()

    def add(self, content: bytes) -> str:
        """Queue a blob, which is written by the next `flush`; returns its id."""
        oid = blob_id(content)
        RECENT.add(oid, content)
        if oid not in self.known:
            self._stream.writelines((b"blob\ndata %d\n" % len(content), content, b"\n"))
            if self._stream.tell() > _BATCH_BYTES:
                self.flush()
        return oid

    def flush(self, rest: Iterable[bytes] = ()) -> bytes:
        """Send queued blobs and `rest` as one stream (git-fast-import(1)); returns git's answer."""
        self._stream.writelines(rest)
        stream, self._stream = self._stream.getvalue(), BytesIO()
        options = ("fast-import", "--quiet", "--force", "--depth=0")
        return shadow_git(self.ws, *options, stdin=stream) if stream else b""


def hold(path: str, blobs: Blobs) -> Known | str | None:
    """Store the file at `path` (absolute) in the shadow repository.

    Returns the reason if that is not possible, or None if the file is gone. Its stat data are
    trusted only if the content cannot have changed since it was read, even with coarse clocks.
    """
    try:
        return _read_at_rest(path, blobs)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return why(error)


def _read_at_rest(path: str, blobs: Blobs) -> Known | str:
    """Read a file, again while it is being written; the last content may be incomplete."""
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
        # non-blocking, as it may have become a FIFO
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb", buffering=0) as file:
            oid = blobs.add(file.read())
    return Known(seen, oid, settled=is_settled(seen, now))


def _write_big_file(ws: Workspace, path: str) -> str:
    """The id of a file's content, written without reading it into memory."""
    try:
        out = shadow_git(ws, "hash-object", "-w", "--no-filters", "--", path)
    except GitError:
        os.lstat(path)  # raises FileNotFoundError if it is gone
        raise
    return out.decode().strip()


def read_blobs(ws: Workspace, oids: Iterable[str]) -> dict[str, bytes]:
    """Contents by id. Raises WorkspaceError if one is missing."""
    recent = RECENT.among(asked := [*oids])
    others = [oid for oid in asked if oid not in recent]
    how = ("cat-file", "--batch")
    return recent | (parse_batch(shadow_git(ws, *how, stdin=_lines(others))) if others else {})


def contents(ws: Workspace, oids: Sequence[str]) -> Iterator[bytes]:
    """Yield contents in the given order, with only a few in memory at a time."""
    others = [*({*oids} - RECENT.among(oids).keys())]
    how = ("cat-file", "--batch-check=%(objectsize)")
    sizes = shadow_git(ws, *how, stdin=_lines(others)).split() if others else []
    size_of = dict(zip(others, map(int, sizes), strict=True))
    waiting: list[str] = []
    total = 0
    for oid in oids:
        size = size_of.get(oid, 0)
        if waiting and total + size > _BATCH_BYTES:
            yield from _in_order(ws, waiting)
            waiting, total = [], 0
        waiting.append(oid)
        total += size
    yield from _in_order(ws, waiting)


def _in_order(ws: Workspace, oids: Sequence[str]) -> Iterator[bytes]:
    blobs = read_blobs(ws, dict.fromkeys(oids))
    for oid in oids:
        yield blobs[oid]


def _lines(items: Iterable[str]) -> bytes:
    return "".join(f"{item}\n" for item in items).encode()


def parse_batch(out: bytes) -> dict[str, bytes]:
    """Contents by id, from the output of `cat-file --batch`. Source: git-cat-file(1)."""
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
