"""Finds, reads, checks and explains the configuration. The only package that knows its keys.

Checked settings are cached by the content of their sources, so that YAML is parsed only after a
change. Imports here stay light.
"""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from atlas_retry import __version__, state_dir
from atlas_retry.config.files import (
    FILE_VARIABLE,
    ConfigFile,
    ConfigSources,
    Read,
    find,
    is_configured,
    processors,
    read,
    root_of,
    user_path,
)
from atlas_retry.digests import sha256_of
from atlas_retry.errors import ConfigError, Place, StateError
from atlas_retry.model import Tree
from atlas_retry.settings import Settings

if TYPE_CHECKING:
    from atlas_retry.config.sources import EffectiveKey
    from atlas_retry.config.translation import Understood

__all__ = [
    "FILE_VARIABLE",
    "NAMED",
    "ConfigFile",
    "Read",
    "explain",
    "flattened",
    "is_configured",
    "load",
    "load_from",
    "load_proposed",
    "load_text",
    "naming",
    "read",
    "reader_of",
    "root_of",
    "schema",
    "user_path",
]


LINK = "120000"
"""Mode of a link in git."""
NAMED = "config"
"""Key of `overrides` that is none of the configuration: the path of the file to read."""


def naming(file: Path | None) -> dict[str, object]:
    """The `overrides` that name a file, relative to the working directory; None = find it."""
    return {} if file is None else {NAMED: str(file.absolute())}


def load(start: Path, *, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Settings:
    """The settings for a directory: flags over ATLAS_* over project over user over defaults.

    `overrides` are the flags, by dotted key. Raises one ConfigError with all problems and their
    places.
    """
    sources = _found(start, environ, overrides)
    file = None
    with suppress(StateError):  # one cache file for each project, replaced after a change
        name = f"config-{sha256_of(os.fsencode(sources.project.path))[:8]}.json"
        file = state_dir.locate(environ) / "cache" / name
    settings = _recalled(file, sources, overrides) if file else None
    if settings and all(sources.is_folder(gate.cwd) for gate in settings.gates):
        return settings
    understood = _understood(sources, overrides)
    if file:
        digest = _digest(sources, understood.reading.files, overrides)
        with suppress(OSError, ValueError, StateError):  # the cache is optional
            state_dir.folder(file.parent)
            entry = _Remembered(digest=digest, settings=understood.settings)
            state_dir.replace_file(file, msgspec.json.encode(entry))
    return understood.settings


def load_proposed(start: Path, proposed: str, *, environ: Mapping[str, str]) -> Settings:
    """The settings for a directory with a proposed configuration instead of a file."""
    return _understood(find(start, environ, proposed=proposed.encode()), {}).settings


def load_text(content: bytes, name: str) -> Settings:
    """The settings of a single text; `name` is its name in messages. Raises ConfigError."""
    file = ConfigFile(path=name, content=content)
    return _understood(ConfigSources(project=file, reads=read), {}).settings


def flattened(path: Path) -> str:
    """Text of a checked file that extends no other, but says the same. Raises ConfigError."""
    sources = ConfigSources(project=read(path), home=str(Path.home()), reads=read)
    reading = _understood(sources, {}).reading
    if len(reading.files) == 1:
        return sources.project.content.decode("utf-8-sig")
    return json.dumps({key: v for key, v in reading.configured.items() if key != "extends"})


def load_from(path: Path, reads: Read) -> Settings:
    """The settings of files that are read in another way, such as from a git revision.

    `path` is the absolute path that the file would have. Raises ConfigError.
    """
    return _understood(ConfigSources(project=reads(path), reads=reads), {}).settings


def reader_of(tree: Tree, root: Path, revision: str) -> Read:
    """Reads files below a root as they are in a tree; elsewhere there is only what there is now."""

    def reads(path: Path) -> ConfigFile:
        if not path.is_relative_to(root):
            return read(path)
        name = path.relative_to(root).as_posix()
        shown, content = f"{revision}:{name}", tree.read(name)
        if content is None or tree.mode(name) == LINK:
            why = "cannot be read: no such file" if content is None else "is a link"
            raise ConfigError(why, place=Place(shown))
        return ConfigFile(path=str(path), content=content, shown=shown)

    return reads


def explain(
    start: Path, *, environ: Mapping[str, str], overrides: Mapping[str, object]
) -> tuple["EffectiveKey", ...]:
    """Every key with its effective value and its origin, in order. Raises ConfigError."""
    from atlas_retry.config.reference import rows

    reading = _understood(_found(start, environ, overrides), overrides).reading
    return tuple(rows(reading.configured, reading.sources))


def schema() -> dict[str, object]:
    """JSON Schema of a configuration file, for editors, with all aliases."""
    from atlas_retry.config.reference import json_schema

    return json_schema()


def _found(
    start: Path, environ: Mapping[str, str], overrides: Mapping[str, object]
) -> ConfigSources:
    named = overrides.get(NAMED) or environ.get(FILE_VARIABLE)
    return find(start, environ, named=str(named) if named else None)


def _understood(sources: ConfigSources, overrides: Mapping[str, object]) -> "Understood":
    from atlas_retry.config.translation import understand

    return understand(sources, {key: v for key, v in overrides.items() if key != NAMED})


class _Remembered(msgspec.Struct):
    digest: str
    settings: Settings


def _digest(
    sources: ConfigSources, files: Iterable[ConfigFile], overrides: Mapping[str, object]
) -> str:
    """Digest of everything that determines the settings."""
    parts = (
        __version__,
        processors(),
        os.fsencode(str(sources.root)),
        [(os.fsencode(file.path), file.content) for file in files],
        [(name, os.fsencode(value)) for name, value in sources.variables.items()],
        sorted((key, repr(value)) for key, value in overrides.items()),
    )
    return sha256_of(msgspec.json.encode(parts))


def _recalled(
    file: Path, sources: ConfigSources, overrides: Mapping[str, object]
) -> Settings | None:
    """The cached settings; None if unreadable, or if a source has changed since."""
    try:
        entry = msgspec.json.decode(file.read_bytes(), type=_Remembered)
        known = {one.path: one for one in sources.files}
        paths = entry.settings.sources
        files = [known.get(path) or sources.reads(Path(path)) for path in paths]
    except (OSError, ValueError, ConfigError):
        return None
    is_same = entry.digest == _digest(sources, files, overrides) and known.keys() <= {*paths}
    return entry.settings if is_same else None
