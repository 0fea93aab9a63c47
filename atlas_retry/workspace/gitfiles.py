"""Git's own small files, as a snapshot holds them: what HEAD, refs and configuration were."""

from collections.abc import Iterator
from pathlib import Path

from atlas_retry.workspace.discovery import Workspace

_OWN = (
    *("HEAD", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD"),
    *("REVERT_HEAD", "BISECT_LOG", "config.worktree"),
)
_COMMON = ("config", "packed-refs", "shallow", "logs/refs/stash", "objects/info/alternates")
_MAX_BYTES = 1 << 20


def git_files(ws: Workspace) -> Iterator[tuple[str, Path]]:
    """`own/...` for this work tree's, `common/...` for the repository's files, with their paths.

    Source: gitrepository-layout(5).
    """
    for name in _OWN:
        yield from _file("own", ws.git_dir, name)
    for shared in sorted(ws.git_dir.glob("sharedindex.*")):
        yield from _file("own", ws.git_dir, shared.name)
    for name in _COMMON:
        yield from _file("common", ws.common_dir, name)
    for folder in ("refs", "hooks", "info"):
        yield from _folder("common", ws.common_dir, folder)
    if ws.git_dir != ws.common_dir:
        for folder in ("refs", "info"):
            yield from _folder("own", ws.git_dir, folder)


def _folder(label: str, base: Path, name: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((base / name).rglob("*")):
        if path.suffix not in {".sample", ".lock"}:
            yield from _file(label, base, path.relative_to(base).as_posix())


def _file(label: str, base: Path, name: str) -> Iterator[tuple[str, Path]]:
    path = base / name
    if path.is_symlink() or (path.is_file() and path.stat().st_size <= _MAX_BYTES):
        yield f"{label}/{name}", path
