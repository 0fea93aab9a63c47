"""Finds, reads, checks and explains the configuration. The only package that knows its keys.

Checked settings are cached by the content of their sources, so that YAML is parsed only after a
change. Imports here stay light.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from atlas_retry import __version__, state_dir
from atlas_retry.config.files import (
    ConfigFile,
    ConfigSources,
    find,
    is_configured,
    root_of,
    user_path,
)
from atlas_retry.digests import sha256_of
from atlas_retry.errors import StateError
from atlas_retry.settings import Settings

if TYPE_CHECKING:
    from atlas_retry.config.reference import EffectiveKey
    from atlas_retry.config.translation import Understood

__all__ = [
    "explain",
    "is_configured",
    "load",
    "load_proposed",
    "load_text",
    "root_of",
    "schema",
    "user_path",
]


def load(start: Path, *, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Settings:
    """The settings for a directory: flags over ATLAS_* over project over user over defaults.

    `overrides` are the flags, by dotted key. Raises one ConfigError with all problems and their
    places.
    """
    sources = find(start, environ)
    processors = _processors()
    file = None
    with suppress(StateError):  # one cache file for each project, replaced after a change
        name = f"config-{sha256_of(os.fsencode(sources.project.path))[:8]}.json"
        file = state_dir.locate(environ) / "cache" / name
    wanted = _digest(sources, overrides, processors)
    settings = _recalled(file, wanted) if file else None
    if settings and all(_is_folder(sources.root, gate.cwd) for gate in settings.gates):
        return settings
    settings = _understood(sources, overrides, processors).settings
    if file:
        with suppress(OSError, ValueError, StateError):  # the cache is optional
            state_dir.folder(file.parent)
            content = msgspec.json.encode(_Remembered(digest=wanted, settings=settings))
            state_dir.replace_file(file, content)
    return settings


def load_proposed(start: Path, proposed: str, *, environ: Mapping[str, str]) -> Settings:
    """The settings for a directory with a proposed configuration instead of a file."""
    sources = find(start, environ, proposed.encode())
    return _understood(sources, {}, _processors()).settings


def load_text(content: bytes, name: str) -> Settings:
    """The settings of a single file, for example from a git revision.

    `name` is its name in messages. Raises ConfigError as `load` does.
    """
    from atlas_retry.config.translation import Surroundings, understand

    around = Surroundings(processors=_processors())
    file = ConfigFile(path=name, content=content)
    return understand([file], around, variables={}, overrides={}).settings


def explain(
    start: Path, *, environ: Mapping[str, str], overrides: Mapping[str, object]
) -> tuple["EffectiveKey", ...]:
    """Every key with its effective value and its origin, in order. Raises ConfigError."""
    from atlas_retry.config.reference import rows

    sources = find(start, environ)
    reading = _understood(sources, overrides, _processors()).reading
    return tuple(rows(reading.configured, reading.sources))


def schema() -> dict[str, object]:
    """JSON Schema of a configuration file, for editors, with all aliases."""
    from atlas_retry.config.reference import json_schema

    return json_schema()


class _Remembered(msgspec.Struct):
    digest: str
    settings: Settings


def _digest(sources: ConfigSources, overrides: Mapping[str, object], processors: int) -> str:
    """Digest of everything that determines the settings."""
    parts = (
        __version__,
        processors,
        os.fsencode(sources.root),
        [(os.fsencode(file.path), file.content) for file in sources.files],
        [(name, os.fsencode(value)) for name, value in sources.variables.items()],
        sorted((key, repr(value)) for key, value in overrides.items()),
    )
    return sha256_of(msgspec.json.encode(parts))


def _recalled(file: Path, wanted: str) -> Settings | None:
    """The cached settings; None if unreadable or not of this digest."""
    try:
        entry = msgspec.json.decode(file.read_bytes(), type=_Remembered)
    except (OSError, ValueError):
        return None
    return entry.settings if entry.digest == wanted else None


def _understood(
    sources: ConfigSources, overrides: Mapping[str, object], processors: int
) -> "Understood":
    from atlas_retry.config.translation import Surroundings, understand

    around = Surroundings(
        processors=processors,
        folder=sources.folder,
        sources=tuple(file.path for file in sources.files),
        is_folder=lambda path: _is_folder(sources.root, path),
    )
    return understand(sources.files, around, variables=sources.variables, overrides=overrides)


def _is_folder(root: Path, path: str) -> bool:
    """Whether this is a folder inside the repository, links resolved."""
    real = Path(os.path.realpath(root / path))
    return real.is_dir() and real.is_relative_to(root)


def _processors() -> int:
    """Number of processors that this process may use, if known, else of all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
