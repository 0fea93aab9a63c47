"""A project's files, and its manifests, which are parsed on access."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch, translate
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from atlas_retry.reading import read_start
from atlas_retry.text import documents

Table = Mapping[str, object]
MAX_DEPTH, MAX_FILES, MAX_BYTES = 4, 20_000, 1 << 20
SKIPPED = {
    ".git", ".hg", "node_modules", "vendor", "target", "dist", "build", "__pycache__",
    ".venv", "venv", ".tox", ".nox", ".gradle", ".mypy_cache", ".ruff_cache", ".pytest_cache",
}  # fmt: skip
AUTOMATION = (
    ".github/workflows/*.y*ml", ".github/actions/*", ".gitlab-ci.yml", ".circleci/config.yml",
    ".travis.yml", "azure-pipelines.yml", ".cirrus.yml", "appveyor.yml", "Jenkinsfile", "tox.ini",
    "noxfile.py", "Makefile", "GNUmakefile", "justfile", "Justfile", ".justfile", "Taskfile.y*ml",
    "tasks.py", "duties.py", "ci/*", "script/*", "scripts/*",
)  # fmt: skip
"""Files that run tools: CI, task runners, scripts."""
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which make looks for them."""
MANIFESTS = ("pyproject.toml", "package.json", "Cargo.toml", "composer.json", "Pipfile")


class Files(Protocol):
    """Read access to a project; a `model.Tree` is one."""

    def paths(self) -> Iterable[str]:
        """Paths of all files, relative to the root."""

    def read(self, path: str) -> bytes | None:
        """Content of a file; None if it does not exist."""


def table(value: object, *keys: str) -> Table:
    """The table under `keys`, empty if there is none."""
    nested = dig(value, *keys)
    return nested if isinstance(nested, dict) else {}


def dig(value: object, *keys: str) -> object:
    """The value under `keys`, None if there is none."""
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def strings(value: object) -> Iterator[str]:
    """Every string in a list, or the value itself if it is a string."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))


class ProjectFiles(Struct, frozen=True, dict=True):
    """The files in one folder of a tree. Unparsable files count as empty."""

    files: Files
    base: str = ""
    """Folder with a trailing slash, or empty for the root."""

    @cached_property
    def paths(self) -> tuple[str, ...]:
        start = len(self.base)
        return tuple(p[start:] for p in self.files.paths() if p.startswith(self.base))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.paths)

    def has(self, path: str) -> bool:
        return path in self._known

    def files_like(self, *patterns: str) -> Iterator[str]:
        """Top-level files that match a pattern, with `**/` at any depth, in order."""
        for pattern in patterns:
            deep = pattern.removeprefix("**/")
            if deep != pattern:
                yield from self.below(deep, f"*/{deep}")
            else:
                top = (path for path in self.paths if "/" not in path)
                yield from (path for path in top if fnmatch(path, pattern))

    def first(self, *patterns: str) -> str | None:
        """The first file that matches a pattern, in the order of the patterns."""
        return next(self.files_like(*patterns), None)

    def below(self, *patterns: str) -> Iterator[str]:
        """Every file whose whole path matches one of the patterns."""
        wanted = re.compile("|".join(map(translate, patterns)))
        return filter(wanted.match, self.paths)

    def at(self, folder: str) -> "ProjectFiles":
        """The project in a folder below this one."""
        return self if folder == "." else ProjectFiles(self.files, f"{self.base}{folder}/")

    def upwards(self) -> "Iterator[ProjectFiles]":
        """This folder and those above it, up to the root."""
        parts = self.base.split("/")[:-1]
        for count in range(len(parts), -1, -1):
            yield ProjectFiles(self.files, "".join(f"{part}/" for part in parts[:count]))

    def text(self, path: str) -> str:
        """Content of a file, empty if it does not exist."""
        content = self.files.read(self.base + path) if self.has(path) else None
        return (content or b"").decode(errors="replace").removeprefix("\ufeff")

    def toml(self, path: str) -> Table:
        return table(documents.parse(".toml", self.text(path).encode()))

    def json(self, path: str) -> Table:
        return table(documents.parse(path, self.text(path).encode()))

    def yaml(self, path: str) -> Table:
        """A document of YAML 1.2: `on` and `no` are words, only `true`, `false` are not."""
        import yaml

        from atlas_retry.config.document import CiLoader  # start-up

        try:
            return table(yaml.load(self.text(path), Loader=CiLoader))  # noqa: S506 - a safe one
        except (yaml.YAMLError, ValueError, RecursionError):
            return {}

    def ini(self, path: str) -> Mapping[str, Mapping[str, str]]:
        """Sections with their keys in lower case; a key without a value has an empty one."""
        parsed = table(documents.parse(path, self.text(path).encode()))
        return {
            name: {key.lower(): f"{value or ''}" for key, value in table(keys).items()}
            for name, keys in parsed.items()
        }

    @cached_property
    def pyproject(self) -> Table:
        return self.toml("pyproject.toml")

    @cached_property
    def package(self) -> Table:
        return self.json("package.json")

    def unreadable(self) -> Iterator[str]:
        """Manifests with content that cannot be parsed."""
        for path in MANIFESTS:
            parsed = self.json(path) if path.endswith("json") else self.toml(path)
            if not parsed and re.search(r"[\[{=]\s*\S", self.text(path)):
                yield path

    @cached_property
    def automation(self) -> str:
        """Text of all files that run tools, for word searches."""
        return "\n".join(self.text(path) for path in self.below(*AUTOMATION))

    def runs(self, words: str) -> bool:
        """Whether automation has these words as whole words."""
        return re.search(rf"(?<![\w-]){re.escape(words)}(?![\w-])", self.automation) is not None


class Folder(Struct, frozen=True, dict=True):
    """A project on disk, down to the depth of manifests and workflows; follows no links."""

    root: Path

    @cached_property
    def _found(self) -> tuple[str, ...]:
        return tuple(islice(self._walk(), MAX_FILES))

    def _walk(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root):
            here = Path(folder).relative_to(self.root)
            deep = len(here.parts) >= MAX_DEPTH
            folders[:] = [] if deep else sorted(set(folders) - SKIPPED)
            yield from ((here / name).as_posix() for name in sorted(names))

    def paths(self) -> tuple[str, ...]:
        return self._found

    def read(self, path: str) -> bytes | None:
        """Up to `MAX_BYTES` of a file; None if it is not regular or not readable."""
        try:
            return read_start(self.root / path, MAX_BYTES)
        except OSError:
            return None
