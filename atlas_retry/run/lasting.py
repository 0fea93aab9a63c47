"""Refused changes that no snapshot can restore: their state when judged, and whether it is left.

Atlas's own configuration at home is restored all the same: it would decide for all workspaces.
"""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from atlas_retry import config, state_dir
from atlas_retry.guard.judge.seals import Moved, Seal
from atlas_retry.model import LeftBehind
from atlas_retry.workspace.scan import stat_of


def lasting(taken: Seal, moved: Moved, refused: Collection[str]) -> tuple[LeftBehind, ...]:
    """Refused paths that cannot be restored, with their current state."""
    every = (LeftBehind(path=path, states=_states(files)) for path, files in _files(taken, moved))
    return tuple(left for left in every if left.path in refused)


def settings_at_home(environ: Mapping[str, str]) -> dict[Path, bytes | None]:
    """Content of the user's own configuration, by path; None if there is no file."""
    path = config.user_path(environ)
    with suppress(OSError):
        return {path: path.read_bytes() if path.exists() else None} if path else {}
    return {}


def put_back_settings(
    before: Mapping[Path, bytes | None], refused: Collection[str], folder: Path
) -> Iterator[tuple[str, Path]]:
    """Restore refused settings; yields each path and the copy of what was there, in `folder`.

    Those that cannot be copied or written are left as they are.
    """
    for path, content in before.items():
        copy = folder / f"refused-{path.name}"
        with suppress(OSError):
            if str(path) not in refused:
                continue
            if path.exists():
                shutil.copyfile(path, copy)
            if content is None:
                path.unlink(missing_ok=True)
            else:
                _write(path, content)
            yield str(path), copy


def _write(path: Path, content: bytes) -> None:
    """Replace the content of a file, or of the file that it links to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    there = path.resolve()
    mode = there.stat().st_mode if there.exists() else 0o600
    state_dir.replace_file(there, content)
    there.chmod(mode & 0o7777)


def is_as_left(left: LeftBehind) -> bool:
    """Whether its files have not been written or removed since."""
    return left.states == _states(left.states)


def _files(taken: Seal, moved: Moved) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each path as the guard names it, with the absolute paths of its files."""
    for change in moved.outside:
        yield str(change), (str(change),)
    for path in (*moved.installed, *moved.nested):
        yield path, (str(taken.root / path),)
    for tool in moved.tools:
        both = (taken.tools[tool.name][0], tool.path)
        yield tool.path or tool.name, tuple(filter(None, both))


def _states(paths: Collection[str]) -> dict[str, str]:
    """Stat data by path, which differ once it is written; for a link, also of its target."""
    return {path: " ".join(_stats(Path(path))) for path in paths}


def _stats(path: Path) -> Iterator[str]:
    for follow in (False, True):
        with suppress(OSError):
            yield ",".join(map(str, stat_of(os.stat(path, follow_symlinks=follow))))  # noqa: PTH116
