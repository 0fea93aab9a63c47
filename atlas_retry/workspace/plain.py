"""What changes in a folder that is under no git. Holds no contents, so puts nothing back."""

import hashlib
from contextlib import suppress
from pathlib import Path

from atlas_retry.workspace.scan import CACHES
from atlas_retry.workspace.trees import directory_tree


class PlainFolder:
    """Looks at a folder by the content of its files, dependency and cache folders left out."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._looks: list[dict[str, str]] = []

    def take(self) -> str:
        """The number of a new look."""
        tree = directory_tree(self._root)
        paths = [path for path in tree.paths() if CACHES.isdisjoint(path.split("/"))]
        self._looks.append(
            {path: f"{tree.mode(path)} {_content(self._root / path)}" for path in paths}
        )
        return str(len(self._looks) - 1)

    def between(self, before: str, after: str) -> tuple[str, ...]:
        """The paths that differ between two looks."""
        old, new = self._looks[int(before)], self._looks[int(after)]
        return tuple(sorted({path for path, _ in old.items() ^ new.items()}))


def _content(path: Path) -> str:
    """What tells the content of a file or a link; one that cannot be read has none."""
    with suppress(OSError):
        if path.is_symlink():
            return str(path.readlink())
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()
    return ""
