"""The shadow repository in the state directory, in which git keeps the snapshots.

Only atlas uses it. Git's own commands make and read all of it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from atlas_retry.errors import StateError, WorkspaceError
from atlas_retry.state_dir import alone
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, lined, shadow_environment

_KEPT = "refs/atlas/kept/"
_RAW = "* -text -filter -ident -eol -working-tree-encoding\n"
"""Attributes that come before those of the work tree, so that content is held byte for byte."""
_CONFIG = (
    *("-c", "core.compression=1"),
    *("-c", "core.logAllRefUpdates=false"),
    *("-c", "core.attributesFile="),
    # of the work tree, whatever the file system of the state directory can do
    *("-c", "core.fileMode=true"),
    *("-c", "core.symlinks=true"),
    *("-c", "core.ignoreCase=false"),
    *("-c", "core.precomposeUnicode=false"),
)
INDEXES = ("work", "ignored")
"""Git's indexes of the two sides of a snapshot: what it does not ignore, and what it does."""
_LEFTOVERS = ("*.lock", "refs/**/*.lock", "objects/**/tmp_*")
"""What a killed git leaves."""
_BATCH_BYTES = 4 << 20
_GRACE = "1.hour.ago"
"""Age up to which `compact` spares snapshots without a name."""
_NO_ROOM = ("No space left", "Disk quota exceeded", "Permission denied", "Read-only file system")
_NOT_WRITABLE = ("insufficient permission", "cannot mkdir", "unable to write", "unable to create")


def shadow_git(ws: Workspace, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git in the shadow repository, without the work tree. Raises GitError."""
    env = shadow_environment(ws.shadow, ws.environ)
    return git(*_CONFIG, *arguments, cwd=ws.home, env=env, stdin=stdin)


def index_git(ws: Workspace, index: str, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git on the work tree, with one of the `INDEXES`. Raises GitError."""
    env = shadow_environment(ws.shadow, ws.environ)
    env |= {"GIT_INDEX_FILE": str(ws.shadow / index), "GIT_WORK_TREE": str(ws.root)}
    return git(*_CONFIG, *arguments, cwd=ws.root, env=env, stdin=stdin)


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
            _init(ws)
            yield
            busy.unlink()
    except OSError as error:
        if not ws.home.is_dir():
            raise StateError(
                f"{ws.home} was deleted while atlas used it", remedy="run the command again"
            ) from error
        raise _not_writable(str(error)) from error
    except GitError as error:
        if any(text in error.message for text in (*_NO_ROOM, *_NOT_WRITABLE)):
            raise _not_writable(error.message) from error
        raise


def _not_writable(why: str) -> StateError:
    return StateError(
        f"the state directory cannot be written: {why}",
        remedy="make room there, or: export ATLAS_HOME=/a/folder/you/can/write",
    )


def _init(ws: Workspace) -> None:
    attributes = ws.shadow / "info/attributes"
    if not attributes.exists() or not (ws.shadow / "objects").is_dir():
        git("init", "-q", "--bare", "--template=", str(ws.shadow), cwd=ws.home, env=ws.environ)
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text(_RAW, encoding="utf-8")


def _clear(shadow: Path) -> None:
    """Remove locks and incomplete files, which no other process can be using."""
    for pattern in _LEFTOVERS:
        for left in shadow.glob(pattern):
            left.unlink(missing_ok=True)


def forget(ws: Workspace) -> None:
    """Have the next snapshot read all files again."""
    for index in INDEXES:
        (ws.shadow / index).unlink(missing_ok=True)


def kept(ws: Workspace) -> dict[str, str]:
    """Ids of the kept snapshots, by name."""
    if not (ws.shadow / "HEAD").exists():
        return {}
    lines = shadow_git(ws, "for-each-ref", "--format=%(objectname) %(refname)", _KEPT)
    refs = (line.partition(" ") for line in os.fsdecode(lines).splitlines())
    return {ref.removeprefix(_KEPT): oid for oid, _, ref in refs}


def keep(ws: Workspace, name: str, snapshot_id: str) -> None:
    """Keep a snapshot under a name (`runs/<run_id>/<n>`) until it is dropped."""
    with exclusive(ws):
        shadow_git(ws, "update-ref", f"{_KEPT}{name}", snapshot_id)


def drop(ws: Workspace, *names: str) -> None:
    """Stop keeping these snapshots; unknown names are not an error."""
    orders = "".join(f"delete {_KEPT}{name}\0\0" for name in names)
    with exclusive(ws):
        shadow_git(ws, "update-ref", "-z", "--stdin", stdin=os.fsencode(orders))


def compact(ws: Workspace) -> None:
    """Free the space of snapshots that are no longer kept."""
    with exclusive(ws):
        forget(ws)
        shadow_git(ws, "gc", "--quiet", f"--prune={_GRACE}")


def read_blobs(ws: Workspace, oids: Iterable[str]) -> dict[str, bytes]:
    """Contents by id. Raises WorkspaceError if one is missing."""
    asked = lined(oids)
    return parse_batch(shadow_git(ws, "cat-file", "--batch", stdin=asked)) if asked else {}


def contents(ws: Workspace, oids: Sequence[str]) -> Iterator[bytes]:
    """Yield contents in the given order, with only a few in memory at a time."""
    asked = dict.fromkeys(oids)
    how = ("cat-file", "--batch-check=%(objectsize)")
    sizes = shadow_git(ws, *how, stdin=lined(asked)).split() if asked else []
    size_of = dict(zip(asked, map(int, sizes), strict=True))
    waiting: list[str] = []
    total = 0
    for oid in oids:
        if waiting and total + size_of[oid] > _BATCH_BYTES:
            yield from _in_order(ws, waiting)
            waiting, total = [], 0
        waiting.append(oid)
        total += size_of[oid]
    yield from _in_order(ws, waiting)


def _in_order(ws: Workspace, oids: Sequence[str]) -> Iterator[bytes]:
    blobs = read_blobs(ws, dict.fromkeys(oids))
    for oid in oids:
        yield blobs[oid]


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
