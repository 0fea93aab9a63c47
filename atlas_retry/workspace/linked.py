"""Files outside a workspace that it uses: through links, PYTHONPATH or environments.

Stat data and paths only; judges nothing.
"""

import os
import stat
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice, product
from pathlib import Path

from atlas_retry.digests import sha256_of
from atlas_retry.patterns import regex
from atlas_retry.reading import read_text
from atlas_retry.workspace.fetched import fetched_folders
from atlas_retry.workspace.files import CACHES, Stat, differing, stat_of

_EDITABLE = regex(r"\.pth$|\.egg-link$|^__editable__.*\.py$|^direct_url\.json$")
"""Files in `site-packages` by which pip, setuptools and uv install a project from its sources.
Source: PEP 610, PEP 660, the documentation of Python's `site` and of setuptools."""
_QUOTED_PATH = regex(r"""["'](?:file://)?(/[^"']+)["']""")
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT")
_IMPORT_PATH = regex(r"""\b(?:PYTHONPATH|NODE_PATH)=["']?([^\s"']+)""")
_MAX_FILES = 50_000
"""Limit for links that lead to a whole disk; shared code has far fewer files."""
_MAX_LINKS = 1_000
ENVIRONMENT_MARK = "pyvenv.cfg"
"""File next to the `bin` of a virtual environment. Source: PEP 405."""
_PARTS = frozenset({"bin", "Scripts", "src", ENVIRONMENT_MARK})
_BYTECODE = frozenset({"__pycache__"})
_PASSED_OVER = CACHES | {".git", ".vite"}


def stamp(entry: "os.DirEntry[str]") -> Stat | None:
    """The stat data that show a change of a file; None if unreadable."""
    try:
        return stat_of(entry.stat(follow_symlinks=False))
    except OSError:
        return None


def linked_folders(root: Path, entry: "os.DirEntry[str]") -> Iterator[str]:
    """Folders outside the workspace that a file among installed dependencies points to."""
    if entry.is_symlink():
        yield from _outside(root, root, [entry.path])
    elif _EDITABLE.search(entry.name):
        try:
            text = read_text(Path(entry.path))
        except OSError:
            return
        named = [*text.splitlines(), *_QUOTED_PATH.findall(text)]
        yield from _outside(root, Path(entry.path).parent, named)


def imported_folders(
    root: Path,
    folders: Collection[Path],
    environs: Iterable[Mapping[str, str]],
    lines: Iterable[str] = (),
) -> tuple[str, ...]:
    """Folders outside the workspace that environments or shell lines make importable.

    `folders` are those in which the lines start. Includes those of fetched modules.
    """
    values, fetched = [*chain.from_iterable(map(_IMPORT_PATH.findall, lines))], list[str]()
    for environ in environs:
        values += [environ.get(name, "") for name in ("PYTHONPATH", "NODE_PATH")]
        fetched += fetched_folders(root, environ, folders)
    parts = chain.from_iterable(value.split(os.pathsep) for value in values)
    return tuple(_outside(root, root, [*_seen_from(folders, parts), *fetched]))


def _seen_from(folders: Collection[Path], names: Iterable[str]) -> dict[str, None]:
    """The paths that names, absolute or relative, have in folders."""
    given = dict.fromkeys(filter(None, names))
    return dict.fromkeys(os.path.join(*pair) for pair in product(folders, given))  # noqa: PTH118


def _outside(root: Path, base: Path, named: Iterable[str]) -> Iterator[str]:
    for name in named:
        path = os.path.join(base, name)  # noqa: PTH118 - tens of thousands of links: no Path each
        if not os.path.isdir(path):  # noqa: PTH112
            continue
        folder = Path(path).resolve()
        if not folder.is_relative_to(root) and not root.is_relative_to(folder):
            yield str(folder)


def outer_environments(
    root: Path,
    folders: Collection[Path],
    environs: Iterable[Mapping[str, str]],
    programs: Iterable[str] = (),
) -> tuple[str, ...]:
    """Virtual environments outside the workspace that PATH and VIRTUAL_ENV name.

    `folders` are those of projects, and in which gates start. The environments of `programs`,
    absolute paths of executables, are included, also if one is a link to a script, and those that
    a manager of environments keeps for one of the folders.
    """
    paths = chain.from_iterable((path, os.path.realpath(path)) for path in programs)
    named, managed = [os.path.dirname(path) for path in paths], list[str]()  # noqa: PTH120
    active = list[str]()
    for environ in environs:
        named += [path.rstrip("/") for path in environ.get("PATH", "").split(os.pathsep)]
        active += [environ.get(name, "") for name in _ACTIVE]
        managed += _managed(root, folders, environ)
    above = (os.path.dirname(path) for path in _seen_from(folders, named))  # noqa: PTH120
    every = dict.fromkeys([*above, *_seen_from(folders, active), *managed])
    return tuple(filter(_is_environment, dict.fromkeys(_outside(root, root, every))))


def _managed(root: Path, folders: Iterable[Path], environ: Mapping[str, str]) -> Iterator[str]:
    """Environments that `poetry run`, `pipenv run`, `hatch run` or `workon` use for a project.

    Source: poetry's `EnvManager.generate_env_name`, hatch's virtual environments: both name them
    by a digest of the project's path; pipenv and virtualenvwrapper note it in `.project`.
    """
    home = Path(environ.get("HOME") or "/nonexistent")
    caches = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    shares = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
    poetry = Path(environ.get("POETRY_CACHE_DIR") or caches / "pypoetry", "virtualenvs")
    poetry = Path(environ.get("POETRY_VIRTUALENVS_PATH") or poetry)
    hatch = Path(environ.get("HATCH_DATA_DIR") or shares / "hatch", "env/virtual")
    ours = {_name_of_manager(folder) for folder in folders}
    by_name = ((one.name.rpartition("-py")[0][-8:], one) for one in poetry.glob("*-py*"))
    yield from (str(one) for name, one in by_name if name in ours)
    yield from (str(one) for one in hatch.glob("*/*/*") if one.parent.name in ours)
    usual = (environ.get("WORKON_HOME"), home / ".virtualenvs", shares / "virtualenvs")
    yield from _noted(root, [Path(one) for one in usual if one])


def _noted(root: Path, places: Iterable[Path]) -> Iterator[str]:
    """Environments beside a note that names the project as one of the workspace."""
    for note in chain.from_iterable(place.glob("*/.project") for place in places):
        with suppress(OSError):
            if Path(read_text(note).strip()).is_relative_to(root):
                yield str(note.parent)


def _name_of_manager(folder: Path) -> str:
    digest = bytes.fromhex(sha256_of(os.fsencode(folder)))
    return urlsafe_b64encode(digest).decode()[:8]


def _is_environment(folder: str) -> bool:
    return _is_marked(folder) or _can_change(folder)


def _is_marked(environment: str) -> bool:
    return os.path.isfile(f"{environment}/{ENVIRONMENT_MARK}")  # noqa: PTH113 - Path raises if not permitted


def _can_change(prefix: str) -> bool:
    """Whether a prefix without a mark has packages, and a turn could change them."""
    return any(os.access(folder, os.W_OK) for folder in _places(prefix))


def _places(environment: str) -> list[Path]:
    with suppress(OSError):
        folders = Path(environment).glob("lib*/python*/*-packages")
        return sorted({path.resolve() for path in folders})
    return []


def led_to(root: Path, environment: str) -> Iterator[str]:
    """Folders outside the workspace that the packages of an environment point to.

    Only files directly in `site-packages` count: Python reads no `.pth` file below that.
    """
    for folder in _places(environment):
        for entry in listed(str(folder)):
            yield from linked_folders(root, entry)


def is_part(name: str) -> bool:
    """Whether something with this name in an environment of Python is installed there."""
    return name in _PARTS or name.startswith("lib")


def packages(environment: str) -> dict[str, Stat | None]:
    """Stat data of what is installed in an environment, by absolute path; without bytecode.

    Of one without a mark, such as `/usr`, only packages count, because it holds all of a system.

    The ctime of a file with several hard links is left out, because it changes whenever a link is
    made or removed, for example by an installer with a store.
    """
    by_path: dict[str, Stat | None] = {}
    is_marked = _is_marked(environment)
    every = listed(environment) if is_marked else []
    parts = [entry for entry in every if is_part(entry.name)]
    folders = [entry.path for entry in parts if entry.is_dir(follow_symlinks=False)]
    by_path.update((e.path, stamp_of_shared(e)) for e in parts if e.path not in folders)
    for folder in folders if is_marked else map(str, _places(environment)):
        by_path.update(_files(folder, _BYTECODE, stamp_of_shared))
    return by_path


def stamp_of_shared(entry: "os.DirEntry[str]") -> Stat | None:
    """Stat data by which a change of a file shows; without its ctime if it has several names."""
    seen = stamp(entry)
    if seen is None or entry.stat(follow_symlinks=False).st_nlink == 1:
        return seen
    mode, size, mtime_ns, _, inode = seen
    return mode, size, mtime_ns, 0, inode


def moved_files(old: Mapping[str, Stat | None], new: Mapping[str, Stat | None]) -> list[str]:
    """Paths with other stat data, unless a file has only lost its other names."""
    paths = sorted(differing(old, new))
    return [path for path in paths if not _is_relinked(old.get(path), new.get(path))]


def _is_relinked(was: Stat | None, now: Stat | None) -> bool:
    if was is None or now is None or was[3]:
        return False
    return (was[:3], was[4]) == (now[:3], now[4])


def stamps(folders: Iterable[str]) -> dict[str, Stat | None]:
    """Stat data of the files in folders, by absolute path; without dependencies and caches."""
    by_path: dict[str, Stat | None] = {}
    for folder in folders:
        by_path.update(islice(_files(folder, _PASSED_OVER, stamp), _MAX_FILES))
    return by_path


def behind(root: Path, links: Iterable[str]) -> dict[str, Stat | None]:
    """Stat data of the files outside that links of the workspace point to, by absolute path.

    Without dependencies and caches, and limited in number, because every turn looks at them.
    """
    by_path: dict[str, Stat | None] = {}
    for link in islice(links, _MAX_LINKS):
        target = Path(os.path.realpath(root / link))  # a loop is not an error
        if target.is_relative_to(root) or root.is_relative_to(target):
            continue
        with suppress(OSError):
            status = target.stat()
            if stat.S_ISREG(status.st_mode):
                by_path[str(target)] = stat_of(status)
        below = _files(str(target), _PASSED_OVER, stamp)
        by_path.update(islice(below, max(0, _MAX_FILES - len(by_path))))
    return by_path


def listed(folder: str) -> "list[os.DirEntry[str]]":
    """The entries of a folder; none if it cannot be read."""
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
        for entry in listed(waiting.pop()):
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path, stamped(entry)
            elif entry.name not in passed_over:
                waiting.append(entry.path)
