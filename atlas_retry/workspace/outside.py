"""What gates use outside a workspace: links, PYTHONPATH, environments, modules of lock files.

Looks programs up; stat data and paths only. Starts nothing and judges nothing.
"""

import os
import shutil
import stat
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice, product
from pathlib import Path

from atlas_retry.digests import sha256_of
from atlas_retry.model import Gate
from atlas_retry.patterns import regex
from atlas_retry.reading import read_text
from atlas_retry.text.commands import commands
from atlas_retry.workspace.files import CACHES, Stat, differing, stat_of
from atlas_retry.workspace.walk import Scan

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
_PARTS = frozenset({"bin", "Scripts", "src", ".tox-info.json", ENVIRONMENT_MARK})
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
    digests = (bytes.fromhex(sha256_of(os.fsencode(folder))) for folder in folders)
    ours = {urlsafe_b64encode(digest).decode()[:8] for digest in digests}
    by_name = ((one.name.rpartition("-py")[0][-8:], one) for one in poetry.glob("*-py*"))
    yield from (str(one) for name, one in by_name if name in ours)
    yield from (str(one) for one in hatch.glob("*/*/*") if one.parent.name in ours)
    usual = (environ.get("WORKON_HOME"), home / ".virtualenvs", shares / "virtualenvs")
    notes = chain.from_iterable(Path(one).glob("*/.project") for one in usual if one)
    yield from (str(note.parent) for note in notes if _is_of(root, note))


def _is_of(root: Path, note: Path) -> bool:
    """Whether a note beside an environment names the project as one of the workspace."""
    with suppress(OSError):
        return Path(read_text(note).strip()).is_relative_to(root)
    return False


def _is_environment(folder: str) -> bool:
    """Whether a prefix is marked, or has packages that a turn could change."""
    return _is_marked(folder) or any(os.access(one, os.W_OK) for one in _places(folder))


def _is_marked(environment: str) -> bool:
    return os.path.isfile(f"{environment}/{ENVIRONMENT_MARK}")  # noqa: PTH113 - Path raises if not permitted


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


_GO_MODULE = regex(r"(?m)^(\S+) (v[^\s/]+) h1:")
"""A line of `go.sum`, except those of a `go.mod` alone. Source: https://go.dev/ref/mod#go-sum-files"""
_UPPER = regex(r"[A-Z]")


def fetched_folders(
    root: Path, environ: Mapping[str, str], folders: Iterable[Path] = ()
) -> Iterator[str]:
    """Folders of the modules that lock files in the root, one folder below, or `folders` name."""
    for lock in _locks("go.sum", root, folders):
        yield from _of_go(lock, environ)
    for lock in _locks("Cargo.lock", root, folders):
        yield from _of_cargo(lock, environ)


def _locks(name: str, root: Path, folders: Iterable[Path]) -> dict[Path, None]:
    places = (folder / name for folder in (root, *folders))
    return dict.fromkeys([*places, *root.glob(f"*/{name}")])


def go_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that `go env -w` has set; those of the environment come first.

    Source: `go help environment`, and os.UserConfigDir of Go's standard library.
    """
    base = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config"
    file = Path(environ.get("GOENV") or f"{base}/go/env")
    with suppress(OSError):
        lines = read_text(file).splitlines()
        pairs = (line.partition("=") for line in lines)
        return {name: value for name, _, value in pairs}
    return {}


def _of_go(lock: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Source: https://go.dev/ref/mod#module-cache."""
    environ = {**go_settings(environ), **environ}
    first = environ.get("GOPATH", "").partition(":")[0] or f"{environ.get('HOME', '')}/go"
    cache = environ.get("GOMODCACHE") or f"{first}/pkg/mod"
    with suppress(OSError):
        for module, version in _GO_MODULE.findall(read_text(lock)):
            yield f"{cache}/{_escaped(module)}@{_escaped(version)}"


def _escaped(path: str) -> str:
    return _UPPER.sub(lambda upper: f"!{upper[0].lower()}", path)


def _of_cargo(lock: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Source: https://doc.rust-lang.org/cargo/guide/cargo-home.html."""
    import tomllib  # start-up

    home = Path(environ.get("CARGO_HOME") or f"{environ.get('HOME', '')}/.cargo")
    registries = [*home.glob("registry/src/*")]
    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        packages = tomllib.loads(read_text(lock)).get("package")
        every = packages if isinstance(packages, list) else []
        for package in (one for one in every if isinstance(one, dict)):
            name = f"{package.get('name')}-{package.get('version')}"
            yield from (f"{registry}/{name}" for registry in registries)


def programs(
    gates: Iterable[Gate], root: Path, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Each program that gates start, by a name of its own; its path is empty if there is none."""
    for gate in gates:
        variables = dict(gate.env)
        of_gate = f" of {gate.name}" if "PATH" in variables else ""
        path = {**environ, **variables}.get("PATH", os.defpath)
        for folder, name in _started(gate, root):
            where = _found(name, folder, path)
            yield where if "/" in name else name + of_gate, where


def _found(name: str, folder: Path, path: str) -> str:
    """Absolute path of a program, as a shell in the folder finds it."""
    if "/" in name:
        return os.path.normpath(folder / name)
    places = (os.path.normpath(folder / entry) for entry in path.split(os.pathsep))
    return shutil.which(name, path=os.pathsep.join(places)) or ""


def _started(gate: Gate, root: Path) -> Iterator[tuple[Path, str]]:
    """The programs that a gate's line starts, as it names them, each in every possible folder."""
    folders = [root / gate.cwd]
    for command in commands(gate.run):
        first, second = (word.rstrip(")") for word in (*command, "")[:2])
        if first == "cd":
            # in a subshell or not, the next `cd` starts here or where the line did
            folders += [folders[-1] / second, folders[0] / second]
        else:
            yield from ((folder, first) for folder in (folders if "/" in first else folders[-1:]))


def folders(gates: Iterable[Gate], root: Path) -> set[Path]:
    """The root, and the folders in which gates start something."""
    started = chain.from_iterable(_started(gate, root) for gate in gates)
    return {root}.union(Path(os.path.normpath(folder)) for folder, _ in started)


def environs(gates: Iterable[Gate], environ: Mapping[str, str]) -> list[Mapping[str, str]]:
    """The environment of atlas, and those of gates that change it."""
    changed = dict.fromkeys(gate.env for gate in gates if gate.env)
    return [environ, *({**environ, **dict(variables)} for variables in changed)]


def projects(root: Path, scan: Scan) -> set[Path]:
    """Folders of Python projects, for which a manager may keep an environment elsewhere."""
    there = (path for path in scan.files if path.endswith("pyproject.toml"))
    return {(root / path).parent for path in there}
