"""What a command wrote to its overlay, read from the layers. Compares contents, not times."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from atlas_retry.model import ChangeStatus
from atlas_retry.workspace import place
from atlas_retry.workspace.overlay import Layers
from atlas_retry.workspace.place import parents
from atlas_retry.workspace.store import StoredFile

_OPAQUE = "user.overlay.opaque"


def written(layers: Layers, number: int) -> dict[str, ChangeStatus]:
    """The files and links that the command of this number added, modified and deleted."""
    upper = layers.upper(number)
    found: dict[str, ChangeStatus] = {}
    for path in sorted(set(_touched(layers, upper, ""))):
        before, after = _entry_before(layers, path), place.look(upper, path)
        if status := status_of(before, after):
            found[path] = status
    return found


def status_of(before: StoredFile | None, after: StoredFile | None) -> ChangeStatus | None:
    """What became of a file; None: nothing."""
    if before == after:
        return None
    if before is None:
        return ChangeStatus.ADDED
    if after is None:
        return ChangeStatus.DELETED
    return ChangeStatus.MODE if before.oid == after.oid else ChangeStatus.MODIFIED


def _touched(layers: Layers, upper: Path, folder: str) -> Iterator[str]:
    """Every file that is in the upper layer, or is hidden by something in it."""
    with os.scandir(upper / folder) as entries:
        inside = [entry for entry in entries if entry.name != ".git"]
    for entry in inside:
        path = f"{folder}/{entry.name}".lstrip("/")
        if not entry.is_dir(follow_symlinks=False):
            yield path
            yield from _files_before(layers, path)
            continue
        Path(entry).chmod(0o700)  # a command may have closed it
        yield path  # it may have been a file
        if _is_opaque(Path(entry)):
            yield from _files_before(layers, path)
        yield from _touched(layers, upper, path)


def _is_opaque(folder: Path) -> bool:
    """Source: kernel documentation of overlayfs; bwrap mounts with `userxattr`."""
    with suppress(OSError):
        return os.getxattr(folder, _OPAQUE, follow_symlinks=False) == b"y"
    return False


def found_before(layers: Layers, path: str) -> Path | None:
    """Where a file or link lies that a command sees at `path`; None where it sees none."""
    for above in (*reversed([*parents(path)]), path):
        try:
            mode = (layers.changes / above).lstat().st_mode
        except FileNotFoundError:
            return layers.root if place.status(layers.root, path) else None
        if not stat.S_ISDIR(mode):
            is_it = above == path and not stat.S_ISCHR(mode)
            return layers.changes if is_it else None
    return None


def found_now(layers: Layers, numbers: Sequence[int], path: str) -> Path | None:
    """The file or link that the last of these commands left at `path`; None: there is none."""
    for number in reversed(numbers):
        if path in written(layers, number):
            upper = layers.upper(number)
            return upper / path if place.look(upper, path) else None
    top = found_before(layers, path)
    return top / path if top else None


def _entry_before(layers: Layers, path: str) -> StoredFile | None:
    top = found_before(layers, path)
    return place.look(top, path) if top else None


def _files_before(layers: Layers, folder: str) -> Iterator[str]:
    """All that a command sees below a folder."""
    for top in (layers.root, layers.changes):
        for above, _, names in os.walk(top / folder):
            paths = (str(Path(above, name).relative_to(top)) for name in names)
            yield from (path for path in paths if found_before(layers, path))
