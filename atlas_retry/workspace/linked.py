"""Code outside a workspace that its programs import: links, editable installs, PYTHONPATH.

Stat data and paths only; judges nothing.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from atlas_retry.workspace.scan import CACHES, Stat, stat_of

_EDITABLE = re.compile(r"\.pth$|\.egg-link$|^__editable__.*\.py$|^direct_url\.json$")
"""What pip, setuptools and uv write into `site-packages` for a project that is installed from its
sources. Source: PEP 610, PEP 660, the documentation of Python's `site` and of setuptools."""
_QUOTED_PATH = re.compile(r"""["'](?:file://)?(/[^"']+)["']""")
_IMPORT_PATH = re.compile(r"""\b(?:PYTHONPATH|NODE_PATH)=["']?([^\s"']+)""")
_MAX_FILES = 50_000
"""A link may lead to a whole disk; code that programs share is far below."""


def stamp(entry: "os.DirEntry[str]") -> Stat | None:
    """The stat data by which a change of a file shows; None where it cannot be read."""
    try:
        return stat_of(entry.stat(follow_symlinks=False))
    except OSError:
        return None


def linked_folders(root: Path, entry: "os.DirEntry[str]") -> Iterator[str]:
    """The folders outside the workspace to which a file among installed dependencies leads."""
    if entry.is_symlink():
        yield from _outside(root, root, [entry.path])
    elif _EDITABLE.search(entry.name):
        try:
            text = Path(entry.path).read_text("utf-8", "replace")
        except OSError:
            return
        named = [*text.splitlines(), *_QUOTED_PATH.findall(text)]
        yield from _outside(root, Path(entry.path).parent, named)


def imported_folders(
    root: Path, environ: Mapping[str, str], lines: Iterable[str]
) -> tuple[str, ...]:
    """The folders outside the workspace that the environment or a shell line lets be imported."""
    values = [environ.get(name, "") for name in ("PYTHONPATH", "NODE_PATH")]
    for line in lines:
        values += _IMPORT_PATH.findall(line)
    named = chain.from_iterable(value.split(os.pathsep) for value in values)
    return tuple(_outside(root, root, filter(None, named)))


def _outside(root: Path, base: Path, named: Iterable[str]) -> Iterator[str]:
    for name in named:
        path = os.path.join(base, name)  # noqa: PTH118 - tens of thousands of links: no Path each
        if not os.path.isdir(path):  # noqa: PTH112
            continue
        folder = Path(path).resolve()
        if not folder.is_relative_to(root) and not root.is_relative_to(folder):
            yield str(folder)


def stamps(folders: Iterable[str]) -> dict[str, Stat | None]:
    """The stat data of the files in folders, by absolute path; without dependencies and caches."""
    by_path: dict[str, Stat | None] = {}
    for folder in folders:
        by_path.update(islice(_files(folder), _MAX_FILES))
    return by_path


def _files(folder: str) -> Iterator[tuple[str, Stat | None]]:
    waiting = [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path, stamp(entry)
            elif entry.name not in CACHES and entry.name != ".git":
                waiting.append(entry.path)
