"""Which files of the workspace a tool means by its paths. Reads no file."""

import posixpath
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics.failures import inside
from atlas_retry.diagnostics.values import Holds, no_file, no_files
from atlas_retry.model import Diagnostic, Region
from atlas_retry.patterns import regex

_UPWARDS = regex(r"^(?:\.\./)+")
_DRIVE = regex(r"[A-Za-z]:(?=[\\/])")
MAX_DROPPED = 12
"""Folders of another machine in front of the project's path."""
_WORDS = regex(r"[\w@./-]+")
MAX_WORDS = 8
"""Words of a line that may name the folder of what is printed below it."""
MAX_ABOVE = 2_000
"""Lines above a problem in which that line is looked for."""


def nothing_named(_: Collection[str]) -> str | None:
    """Where no line is known."""
    return None


class FolderNames:
    """The folders that short lines name: a loop over them prints `=== api`, or `cd api && x`."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._by_end: dict[str, list[tuple[int, str]]] = defaultdict(list)
        """Line numbers and words, by the last part of the word."""
        for number, line in enumerate(lines):
            words = [f"/{word.strip('/')}" for word in _WORDS.findall(line)]
            for word in words if len(words) <= MAX_WORDS else ():
                self._by_end[word.rpartition("/")[2]].append((number, word))

    def nearest(self, folders: Iterable[str], begin: int, end: int) -> str | None:
        """The folder that the last of these lines names, without another one of the folders."""
        named: dict[int, set[str]] = defaultdict(set)
        for folder in folders:
            known = self._by_end.get(folder.rpartition("/")[2], [])
            for number, word in known[bisect(known, (begin,)) : bisect(known, (end,))]:
                if folder.endswith(word) or word.endswith(folder):
                    named[number].add(folder)
        alone = (number for number, each in named.items() if len(each) == 1)
        return named[last].pop() if (last := max(alone, default=None)) is not None else None


class ToolPaths(Struct, frozen=True, kw_only=True):
    """How a tool that ran in `cwd` names files."""

    root: str | None = None
    """Absolute path of the workspace."""
    cwd: str = "."
    """Relative to the root."""
    holds: Holds = no_file
    endings: Callable[[str], Sequence[str]] = no_files
    """Files of the workspace whose path ends so."""
    named_above: Callable[[Collection[str]], str | None] = nothing_named
    """The one of these folders, as `/services/api`, that the nearest line above names."""

    def relative(self, path: str) -> str:
        """The path relative to the root; a path outside it stays absolute."""
        plain = path.removeprefix("file://")
        if not plain.startswith("/"):
            joined = posixpath.normpath(posixpath.join(self.cwd, plain))
            return plain if joined.startswith("../") else joined
        base = f"{self.root.rstrip('/')}/" if self.root else None
        is_below = base and plain.startswith(base)
        return posixpath.normpath(plain[len(base) :]) if base and is_below else plain

    def found(self, path: str) -> str:
        """The path relative to the root, also if the tool ran elsewhere, or on another machine."""
        if _DRIVE.match(path) or ("\\" in path and "/" not in path):
            path = _DRIVE.sub("", path.replace("\\", "/"))
        plain = self.relative(path)
        if self.holds(plain):
            return plain
        known = next(filter(self.holds, self._elsewhere(path, plain)), None)
        is_loose = not path.startswith(("/", "file://")) and not plain.startswith("../")
        if known or not is_loose:
            return known or plain
        return self._ending(posixpath.normpath(plain)) or plain

    def _ending(self, path: str) -> str | None:
        """The file of the workspace that ends so; of several, that whose folder a line names."""
        files = self.endings(path)
        if len(files) == 1:
            return files[0]
        folders = {f"/{file.removesuffix(path).rstrip('/')}": file for file in files}
        named = self.named_above(folders) if files else None
        return folders[named] if named else None

    def _elsewhere(self, path: str, plain: str) -> list[str]:
        """Where the file of a path may be that is not where it says.

        pytest below `changedir` of tox names tests by `../`, and the workspace has them; Cargo
        names files by their path in its workspace, whichever member it runs in; a log of CI has
        the folders of the runner, in the spelling of Windows perhaps.
        """
        if plain.startswith("/"):
            parts = plain.lstrip("/").split("/")
            most = min(len(parts) - 1, MAX_DROPPED)
            return ["/".join(parts[start:]) for start in range(1, most)]
        if plain.startswith("../"):
            return [_UPWARDS.sub("", posixpath.normpath(plain))]
        if path.startswith(("/", "file://")):
            return []
        above = PurePosixPath(self.cwd).parents
        return [posixpath.normpath(posixpath.join(folder, path)) for folder in above]

    def placed(self, d: Diagnostic) -> Diagnostic:
        """The diagnostic with paths relative to the root, and without frames outside it."""
        frames = tuple(
            replace(frame, path=path)
            for frame in d.frames
            if self._belongs(path := self.found(frame.path))
        )
        place, region = d.path and self.found(d.path), d.region
        if place and frames and not self._belongs(place):
            place, region = frames[-1].path, Region(start_line=frames[-1].line)
        test_id = d.test_id
        if test_id and test_id.startswith(("/", "../")):
            test_id = self._of_test(test_id)
        return replace(d, path=place, region=region, frames=frames, test_id=test_id)

    def _of_test(self, test_id: str) -> str:
        """The id with its path relative to the root, or to the folder that the command enters."""
        path, colons, name = test_id.partition("::")
        if path.startswith("/"):
            return self.relative(test_id)
        found = self.found(path)
        is_moved = self.relative(path) != found
        return f"{posixpath.relpath(found, self.cwd)}{colons}{name}" if is_moved else test_id

    def _belongs(self, path: str) -> bool:
        return inside(path) and not (self.root and path.startswith(("/", "../")))
