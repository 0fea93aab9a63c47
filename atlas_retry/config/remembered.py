"""Checked settings, kept by the content of all that they came from. Checks nothing itself.

YAML and the checks are so needed only after a change; one byte more, and all is read anew.
"""

import hashlib
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from atlas_retry import __version__, state_dir
from atlas_retry.config.files import ConfigSources
from atlas_retry.errors import StateError
from atlas_retry.settings import Settings


class _Entry(msgspec.Struct):
    digest: str
    settings: Settings


def digest(sources: ConfigSources, overrides: Mapping[str, object], processors: int) -> str:
    """Of everything that decides what the settings are."""
    parts = (
        __version__,
        processors,
        os.fsencode(sources.root),
        [(os.fsencode(file.path), file.content) for file in sources.files],
        [(name, os.fsencode(value)) for name, value in sources.variables.items()],
        sorted((key, repr(value)) for key, value in overrides.items()),
    )
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def slot(folder: Path, sources: ConfigSources) -> Path:
    """The one file for this project: a new state of it replaces the old one."""
    return folder / f"config-{zlib.crc32(os.fsencode(sources.project.path)):08x}.json"


def recall(file: Path, wanted: str) -> Settings | None:
    """What is kept there under this digest; None when it cannot be read, whatever the reason."""
    try:
        entry = msgspec.json.decode(file.read_bytes(), type=_Entry)
    except (OSError, ValueError):
        return None
    return entry.settings if entry.digest == wanted else None


def remember(file: Path, wanted: str, settings: Settings) -> None:
    """Keep them, atomically. Where that cannot be, the next run reads everything anew."""
    with suppress(OSError, ValueError, StateError):
        state_dir.folder(file.parent)
        content = msgspec.json.encode(_Entry(digest=wanted, settings=settings))
        state_dir.replace_file(file, content)
