"""Refused changes that no snapshot can restore: their state when judged, and whether it is left.

Atlas's own configuration at home is restored all the same: it would decide for all workspaces.
"""

import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from atlas_retry import config, state_dir
from atlas_retry.guard.judge.seals import Moved, Seal
from atlas_retry.model import LeftBehind
from atlas_retry.reading import read_file
from atlas_retry.workspace.files import stat_of


def lasting(taken: Seal, moved: Moved, refused: Collection[str]) -> tuple[LeftBehind, ...]:
    """Refused paths that cannot be restored, with their current state."""
    files: dict[str, tuple[str, ...]] = {str(one): (str(one),) for one in moved.outside}
    files |= {path: (str(taken.root / path),) for path in (*moved.installed, *moved.nested)}
    for tool in moved.tools:
        both = (taken.tools[tool.name][0], tool.path)
        files[tool.path or tool.name] = tuple(filter(None, both))
    stay = (path for path in files if path in refused)
    return tuple(LeftBehind(path=path, states=_states(files[path])) for path in stay)


class SettingsAtHome(Struct, frozen=True, kw_only=True):
    """Atlas's own configuration at home before a turn."""

    path: Path
    link: str | None
    """Target, if it is a link."""
    file: Path
    """The file itself, behind all links."""
    content: bytes | None
    """None if there is no file."""


def settings_at_home(environ: Mapping[str, str]) -> SettingsAtHome | None:
    """The user's own configuration as it is now; None if it cannot be read."""
    path = config.user_path(environ)
    return _settings(path) if path else None


def _settings(path: Path) -> SettingsAtHome | None:
    with suppress(OSError):
        content = read_file(path) if path.exists() else None
        return SettingsAtHome(path=path, link=_link(path), file=path.resolve(), content=content)
    return None


def _link(path: Path) -> str | None:
    return str(path.readlink()) if path.is_symlink() else None


def put_back_settings(before: SettingsAtHome, copy: Path) -> bool:
    """Restore the settings, after what is there was copied; returns whether they are as before.

    What cannot be copied or written is left as it is.
    """
    path = before.path
    with suppress(OSError):
        if path.exists():
            shutil.copyfile(path, copy)
        if before.link != _link(path):
            path.unlink(missing_ok=True)
            if before.link is not None:
                path.symlink_to(before.link)
        if before.content is None:
            before.file.unlink(missing_ok=True)
        else:
            before.file.parent.mkdir(parents=True, exist_ok=True)
            mode = before.file.stat().st_mode if before.file.exists() else 0o600
            state_dir.replace_file(before.file, before.content)
            before.file.chmod(mode & 0o7777)
    return _settings(path) == before


def is_as_left(left: LeftBehind) -> bool:
    """Whether its files have not been written or removed since."""
    return left.states == _states(left.states)


def _states(paths: Collection[str]) -> dict[str, str]:
    """Stat data by path, which differ once it is written; for a link, also of its target."""
    states = {}
    for path in paths:
        stats = []
        for follow in (False, True):
            with suppress(OSError):
                seen = os.stat(path, follow_symlinks=follow)  # noqa: PTH116
                stats.append(",".join(map(str, stat_of(seen))))
        states[path] = " ".join(stats)
    return states
