"""Finds the files and variables of a configuration, without parsing them."""

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path

from msgspec import Struct

from atlas_retry.errors import ConfigError, Place
from atlas_retry.reading import read_file
from atlas_retry.settings import CONFIGURATION_FILES
from atlas_retry.text.commands import quoted

MAX_BYTES = 1 << 20
PREFIX = "ATLAS_"
FILE_VARIABLE = "ATLAS_CONFIG"
"""Names the file to read, as `--config` does; for hooks and jobs, which take no flags."""
NOT_KEYS = (FILE_VARIABLE, "ATLAS_FLEET_", "ATLAS_HOME", "ATLAS_INSIDE_AGENT", "ATLAS_MARK_")
"""Prefixes of variables that are not keys: places, and marks on child processes."""


class ConfigFile(Struct, frozen=True, kw_only=True):
    """One file of the configuration."""

    path: str
    """Absolute path."""
    content: bytes
    shown: str = ""
    """Name in messages instead of the path, for a file that is not read from there."""

    @property
    def name(self) -> str:
        return self.shown or self.path


Read = Callable[[Path], ConfigFile]
"""Returns a file. Raises ConfigError."""


class ConfigSources(Struct, frozen=True, kw_only=True):
    """The sources of a configuration, and where its commands run."""

    project: ConfigFile
    user: ConfigFile | None = None
    root: Path | None = None
    """Root of the repository, without git the starting folder; None = no folder is looked at."""
    folder: str = "."
    """Folder that the project's file applies to, POSIX, relative to the root; `.` = all."""
    home: str = "~"
    """Meaning of a leading `~` in `extends`."""
    variables: Mapping[str, str] = {}
    """`ATLAS_*` variables that are keys."""
    reads: Read

    @property
    def files(self) -> tuple[ConfigFile, ...]:
        """The files, highest precedence first, without those that they extend."""
        return (self.project, self.user) if self.user else (self.project,)

    def extended(self, file: ConfigFile, name: str) -> ConfigFile:
        """The file that another one extends by this name. Raises ConfigError."""
        name = self.home + name[1:] if name.startswith("~/") else name
        return self.reads(Path(os.path.normpath(Path(file.path).parent / name)))

    def is_folder(self, path: str) -> bool:
        """Whether this is a folder inside the repository, links resolved."""
        if self.root is None:
            return True
        real = Path(os.path.realpath(self.root / path))
        return real.is_dir() and real.is_relative_to(self.root)


def find(
    start: Path,
    environ: Mapping[str, str],
    *,
    named: str | None = None,
    proposed: bytes | None = None,
) -> ConfigSources:
    """Find the project's file, from `start` up to the repository's root, and the user's.

    `named` is the path of another file instead, `proposed` replaces a missing one. Raises
    ConfigError if there is none, and if a file is not a regular file, not readable, over 1 MiB, or
    a link out of the repository.
    """
    start = Path(os.path.realpath(start))
    root = root_of(start)
    path = Path(os.path.normpath(start / named)) if named else _found(start, root)
    if path is None and proposed is None:
        raise _nothing_found(start, root)
    reads = partial(_read_inside, root=root)
    project = ConfigFile(path="(proposed)", content=proposed or b"")
    if path:
        project = read(path) if named else reads(path)
    user = user_path(environ)
    if user and os.path.lexists(other := user.with_suffix(".yml")):
        raise ConfigError(
            "is not read", place=Place(str(other)), remedy=f"mv {quoted(other)} {quoted(user)}"
        )
    ours = sorted(name for name in environ if name.startswith(PREFIX))
    return ConfigSources(
        project=project,
        user=read(user) if user and os.path.lexists(user) else None,
        root=root,
        folder=_folder_of(path, root) if path else ".",
        home=environ.get("HOME", "~"),
        variables={name: environ[name] for name in ours if not name.startswith(NOT_KEYS)},
        reads=reads,
    )


def _read_inside(path: Path, *, root: Path) -> ConfigFile:
    """Read a file; refuse a link out of the repository: another file would choose the commands."""
    if path.is_relative_to(root):
        if path.is_symlink() and not path.exists():
            raise ConfigError("a broken link", place=Place(str(path)))
        target = Path(os.path.realpath(path))
        if not target.is_relative_to(root):
            message = f"a link out of the repository, to {target}"
            raise ConfigError(message, place=Place(str(path)), remedy="copy the file into it")
    return read(path)


def _found(start: Path, root: Path) -> Path | None:
    """The nearest file. Raises ConfigError if there are two of one name."""
    for path in _candidates(start, root):
        there = [each for each in (path, path.with_suffix(".yml")) if os.path.lexists(each)]
        if len(there) > 1:
            message = f"{there[1]} is there as well: only one of them can decide"
            raise ConfigError(message, place=Place(str(path)), remedy="delete one of the two")
        if there:
            return there[0]
    return None


def _folder_of(path: Path, root: Path) -> str:
    """Folder that a file applies to: the root, unless the file is where it would be found."""
    for name in CONFIGURATION_FILES:
        above = path.parents[name.count("/")]
        if path == above / name and above.is_relative_to(root):
            return above.relative_to(root).as_posix()
    return "."


def root_of(start: Path) -> Path:
    """Root of the work tree around a folder; without git, the folder itself."""
    start = Path(os.path.realpath(start))
    return next((up for up in (start, *start.parents) if os.path.lexists(up / ".git")), start)


def is_configured(start: Path, environ: Mapping[str, str]) -> bool:
    """Whether a folder has a project configuration, valid or not."""
    if environ.get(FILE_VARIABLE):
        return True
    start = Path(os.path.realpath(start))
    both = ((path, path.with_suffix(".yml")) for path in _candidates(start, root_of(start)))
    return any(map(os.path.lexists, chain.from_iterable(both)))


def _candidates(start: Path, root: Path) -> Iterator[Path]:
    """Paths with the suffix .yaml; .yml is as good."""
    names = [name for name in CONFIGURATION_FILES if name.endswith(".yaml")]
    for folder in (start, *start.parents):
        yield from (folder / name for name in names)
        if folder == root:
            return


def user_path(environ: Mapping[str, str]) -> Path | None:
    """Path of the user's file. XDG Base Directory 0.8: a relative XDG_CONFIG_HOME is ignored."""
    base = environ.get("XDG_CONFIG_HOME", "")
    if base.startswith("/"):
        return Path(base, "atlas", "config.yaml")
    home = environ.get("HOME")
    return Path(home, ".config", "atlas", "config.yaml") if home else None


def _nothing_found(start: Path, root: Path) -> ConfigError:
    from atlas_retry.config.init import paste

    listed = "\n".join(f"    {path}" for path in _candidates(start, root))
    return ConfigError(
        f"no configuration. Searched, with .yml as well:\n{listed}",
        place=Place(str(start)),
        remedy=f"atlas init\nor write {CONFIGURATION_FILES[0]}:\n{paste(root)}",
    )


def read(path: Path) -> ConfigFile:
    """The content of a file. Raises ConfigError if it is no regular file or over 1 MiB."""
    place = Place(str(path))
    try:
        return ConfigFile(path=str(path), content=read_file(path, MAX_BYTES))
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        if error.errno == errno.EINVAL:
            why = f"{error.strerror}"
        elif error.errno == errno.EFBIG:
            why = f"over 1 MiB ({path.stat().st_size} bytes)"
        raise ConfigError(why, place=place) from error


def processors() -> int:
    """Number of processors that this process may use, if known, else of all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
