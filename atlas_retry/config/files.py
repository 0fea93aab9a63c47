"""Finds the files and variables of a configuration, without parsing them."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from atlas_retry.errors import ConfigError, Place
from atlas_retry.settings import CONFIGURATION_FILES

MAX_BYTES = 1 << 20
PREFIX = "ATLAS_"
NOT_KEYS = ("ATLAS_FLEET_", "ATLAS_HOME", "ATLAS_INSIDE_AGENT", "ATLAS_MARK_")
"""Prefixes of variables that are not keys: places, and marks on child processes."""


class ConfigFile(Struct, frozen=True, kw_only=True):
    """One file of the configuration."""

    path: str
    """Absolute path."""
    content: bytes


class ConfigSources(Struct, frozen=True, kw_only=True):
    """The sources of a configuration, and where its commands run."""

    project: ConfigFile
    user: ConfigFile | None
    root: Path
    """Root of the repository; without one, the starting folder."""
    folder: str
    """Folder that the project's file applies to, POSIX, relative to the root; `.` = all."""
    variables: Mapping[str, str]
    """`ATLAS_*` variables that are keys."""

    @property
    def files(self) -> tuple[ConfigFile, ...]:
        """The files, highest precedence first."""
        return (self.project, self.user) if self.user else (self.project,)


def find(start: Path, environ: Mapping[str, str], proposed: bytes | None = None) -> ConfigSources:
    """Find the project's file, from `start` up to the repository's root, and the user's.

    `proposed` replaces a missing project file. Raises ConfigError if there is neither, and if a
    file is not a regular file, not readable, over 1 MiB, or a link out of the repository.
    """
    start = Path(os.path.realpath(start))
    root = root_of(start)
    candidates = tuple(_candidates(start, root))
    path = next((path for path in candidates if os.path.lexists(path)), None)
    if path is None and proposed is None:
        raise _nothing_found(candidates, root)
    if path:
        _stay_inside(path, root)
    user = user_path(environ)
    folder = root
    if path:  # `.atlas/config.yaml` applies to the folder above `.atlas`
        folder = path.parent.parent if path.parent.name == ".atlas" else path.parent
    return ConfigSources(
        project=_read(path) if path else ConfigFile(path="(proposed)", content=proposed or b""),
        user=_read(user) if user and os.path.lexists(user) else None,
        root=root,
        folder=folder.relative_to(root).as_posix(),
        variables=_variables(environ),
    )


def root_of(start: Path) -> Path:
    """Root of the work tree around a folder; without git, the folder itself."""
    start = Path(os.path.realpath(start))
    return next((up for up in (start, *start.parents) if os.path.lexists(up / ".git")), start)


def is_configured(start: Path) -> bool:
    """Whether a folder has a project configuration, valid or not."""
    start = Path(os.path.realpath(start))
    return any(os.path.lexists(path) for path in _candidates(start, root_of(start)))


def _candidates(start: Path, root: Path) -> Iterator[Path]:
    for folder in (start, *start.parents):
        yield from (folder / name for name in CONFIGURATION_FILES)
        if folder == root:
            return


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    ours = sorted(name for name in environ if name.startswith(PREFIX))
    return {name: environ[name] for name in ours if not name.startswith(NOT_KEYS)}


def user_path(environ: Mapping[str, str]) -> Path | None:
    """Path of the user's file. XDG Base Directory 0.8: a relative XDG_CONFIG_HOME is ignored."""
    base = environ.get("XDG_CONFIG_HOME", "")
    if base.startswith("/"):
        return Path(base, "atlas", "config.yaml")
    home = environ.get("HOME")
    return Path(home, ".config", "atlas", "config.yaml") if home else None


def _nothing_found(searched: tuple[Path, ...], root: Path) -> ConfigError:
    from atlas_retry.config.init import paste

    listed = "\n".join(f"    {path}" for path in searched)
    return ConfigError(
        f"no configuration. Searched:\n{listed}",
        place=Place(str(searched[0].parent.parent)),
        remedy=f"atlas init, or write {CONFIGURATION_FILES[0]}:\n{paste(root)}",
    )


def _stay_inside(path: Path, root: Path) -> None:
    """Refuse links out of the repository: another file would choose the commands to run."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        message = "a broken link" if path.is_symlink() else str(error)
        raise ConfigError(message, place=Place(str(path))) from error
    if not target.is_relative_to(root.resolve()):
        message = f"a link out of the repository, to {target}"
        raise ConfigError(message, place=Place(str(path)), remedy="copy the file into it")


def _read(path: Path) -> ConfigFile:
    place = Place(str(path))
    try:
        # O_NONBLOCK: opening a FIFO would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", place=place) from error
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        names = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
        type_name = names.get(stat.S_IFMT(facts.st_mode), "a device")
        raise ConfigError(f"not a regular file but {type_name}", place=place)
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError(f"over 1 MiB ({facts.st_size} bytes)", place=place)
    return ConfigFile(path=str(path), content=content)
