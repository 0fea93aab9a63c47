"""The packages of a workspace by name, and its files by how their path ends.

Runners of monorepos print the name of a package, and paths relative to it.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from atlas_retry.patterns import regex
from atlas_retry.reading import read_start

MANIFESTS: Mapping[str, re.Pattern[bytes] | None] = {
    "package.json": None,
    "Cargo.toml": regex(rb"(?m)^name\s*=\s*\"([^\"]+)\""),
    "go.mod": regex(rb"(?m)^module\s+(\S+)"),
    "pyproject.toml": regex(rb"(?m)^name\s*=\s*\"([^\"]+)\""),
    "pom.xml": regex(
        rb"(?s)^(?:(?!<parent>).)*?(?:<parent>.*?</parent>.*?)?<artifactId>([^<]+)</artifactId>"
    ),
    "project.json": None,
    "moon.yml": regex(rb"(?m)^id:\s*['\"]?([^'\"\s]+)"),
}
"""Files that name the package in their folder; None: JSON with `name`."""
MAX_MANIFESTS = 2_000
MAX_MANIFEST_BYTES = 1 << 20


class Layout:
    """What a workspace holds. Reads the tree when it is first asked."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.files = cache(self._files)
        self.packages: Callable[[], Mapping[str, str]] = cache(self._packages)
        self._by_name = cache(self._names)

    def endings(self, path: str) -> Sequence[str]:
        """The files of the workspace that are the path, or end with it."""
        alike = self._by_name().get(path.rpartition("/")[2], ())
        return [file for file in alike if f"/{file}".endswith(f"/{path}")]

    def _files(self) -> tuple[str, ...]:
        from atlas_retry.workspace.snapshot.trees import source_tree  # start-up

        return tuple(source_tree(self._root).paths())

    def _names(self) -> Mapping[str, Sequence[str]]:
        names: dict[str, list[str]] = defaultdict(list)
        for file in self.files():
            names[file.rpartition("/")[2]].append(file)
        return names

    def _packages(self) -> Mapping[str, str]:
        """Folders by name; a folder with a manifest has at least the name of its path."""
        found = [file for file in self.files() if file.rpartition("/")[2] in MANIFESTS]
        names: dict[str, str] = {}
        for file in found[:MAX_MANIFESTS]:
            folder = file.rpartition("/")[0] or "."
            names.setdefault(folder, folder)
            if name := self._name(file):
                names.setdefault(name, folder)
        return names

    def _name(self, file: str) -> str | None:
        pattern = MANIFESTS[file.rpartition("/")[2]]
        try:
            content = read_start(self._root / file, MAX_MANIFEST_BYTES)
            if pattern is None:
                name = json.loads(content).get("name")
                return name if isinstance(name, str) else None
        except (OSError, ValueError, AttributeError, RecursionError):
            return None
        match = pattern.search(content)
        return match[1].decode("utf-8", "replace") if match else None
