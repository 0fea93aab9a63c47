"""What is outside a workspace and read from it: by links, by PYTHONPATH, by environments.

Stat data and paths only; judges nothing.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from atlas_retry.patterns import regex
from atlas_retry.workspace.scan import CACHES, Stat, stat_of

_EDITABLE = regex(r"\.pth$|\.egg-link$|^__editable__.*\.py$|^direct_url\.json$")
"""What pip, setuptools and uv write into `site-packages` for a project that is installed from its
sources. Source: PEP 610, PEP 660, the documentation of Python's `site` and of setuptools."""
_QUOTED_PATH = regex(r"""["'](?:file://)?(/[^"']+)["']""")
_IMPORT_PATH = regex(r"""\b(?:PYTHONPATH|NODE_PATH)=["']?([^\s"']+)""")
_MAX_FILES = 50_000
"""A link may lead to a whole disk; code that programs share is far below."""
_MAX_LINKS = 1_000
ENVIRONMENT_MARK = "pyvenv.cfg"
"""Lies beside the `bin` of a virtual environment. Source: PEP 405."""
_BYTECODE = frozenset({"__pycache__"})
_PASSED_OVER = CACHES | {".git", ".vite"}


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


def outer_environments(
    root: Path, environ: Mapping[str, str], programs: Iterable[str] = ()
) -> tuple[str, ...]:
    """The virtual environments outside the workspace to which PATH and VIRTUAL_ENV lead.

    `programs` are paths of executables: theirs as well, also where one is a link to a script there.
    """
    folders = [path.rstrip("/") for path in environ.get("PATH", "").split(os.pathsep)]
    for program in programs:
        path = os.path.join(root, program)  # noqa: PTH118
        folders += [os.path.dirname(each) for each in (path, os.path.realpath(path))]  # noqa: PTH120
    named = [os.path.dirname(path) for path in folders if path]  # noqa: PTH120
    active = filter(None, [environ.get("VIRTUAL_ENV", "")])
    there = dict.fromkeys(_outside(root, root, [*named, *active]))
    marks = ((folder, f"{folder}/{ENVIRONMENT_MARK}") for folder in there)
    return tuple(folder for folder, mark in marks if os.path.isfile(mark))  # noqa: PTH113 - Path raises where it may not look


def _places(environment: str) -> list[Path]:
    """Where a virtual environment holds what is installed in it."""
    folders = Path(environment).glob("lib*/python*/site-packages")
    return sorted({path.resolve() for path in folders})


def led_to(root: Path, environment: str) -> Iterator[str]:
    """The folders outside the workspace to which the packages of an environment lead.

    By what lies directly in `site-packages`: Python reads no `.pth` further down.
    """
    for folder in _places(environment):
        for entry in _listed(str(folder)):
            yield from linked_folders(root, entry)


def packages(environment: str) -> dict[str, Stat | None]:
    """The stat data of the packages of a virtual environment, by absolute path; no bytecode.

    A file that has several names moves its ctime whenever another name comes or goes, as when an
    installer links it from its store: of such a file it is left out.
    """
    by_path: dict[str, Stat | None] = {}
    for folder in _places(environment):
        by_path.update(_files(str(folder), _BYTECODE, _stamp_of_shared))
    return by_path


def _stamp_of_shared(entry: "os.DirEntry[str]") -> Stat | None:
    seen = stamp(entry)
    if seen is None or entry.stat(follow_symlinks=False).st_nlink == 1:
        return seen
    mode, size, mtime_ns, _, inode = seen
    return mode, size, mtime_ns, 0, inode


def stamps(folders: Iterable[str]) -> dict[str, Stat | None]:
    """The stat data of the files in folders, by absolute path; without dependencies and caches."""
    by_path: dict[str, Stat | None] = {}
    for folder in folders:
        by_path.update(islice(_files(folder, _PASSED_OVER, stamp), _MAX_FILES))
    return by_path


def behind(root: Path, links: Iterable[str]) -> dict[str, Stat | None]:
    """The stat data of the files outside to which links of the workspace lead, by absolute path.

    Without dependencies and caches, and no more than a look at every turn allows.
    """
    by_path: dict[str, Stat | None] = {}
    for link in islice(links, _MAX_LINKS):
        target = Path(os.path.realpath(root / link))  # a loop is no error
        if target.is_relative_to(root) or root.is_relative_to(target):
            continue
        with suppress(OSError):
            status = target.stat()
            if stat.S_ISREG(status.st_mode):
                by_path[str(target)] = stat_of(status)
        below = _files(str(target), _PASSED_OVER, stamp)
        by_path.update(islice(below, max(0, _MAX_FILES - len(by_path))))
    return by_path


def _listed(folder: str) -> "list[os.DirEntry[str]]":
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _files(
    folder: str,
    passed_over: Collection[str],
    stamped: "Callable[[os.DirEntry[str]], Stat | None]",
) -> Iterator[tuple[str, Stat | None]]:
    waiting = [folder]
    while waiting:
        for entry in _listed(waiting.pop()):
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path, stamped(entry)
            elif entry.name not in passed_over:
                waiting.append(entry.path)
