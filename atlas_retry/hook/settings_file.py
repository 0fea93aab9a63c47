"""Write the Stop hook into a project's `.claude/settings.json`, beside whatever is there."""

import json
import shlex
import shutil
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

from atlas_retry.errors import ConfigError, Place, WorkspaceError

SETTINGS = Path(".claude") / "settings.json"
HOOK_TIMEOUT_S = 600
_OURS = "hook stop"

Json = dict[str, object]
T = TypeVar("T", Json, list[object])


def install(root: Path, environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Add the hook to the settings of the project at `root`; the file, and whether it changed.

    Raises ConfigError where the file is not what Claude Code reads, WorkspaceError where it cannot
    be written.
    """
    file = (root / SETTINGS).resolve()
    before, after = _text(file), planned(root, environ)
    if after == before:
        return file, False
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, after)
    except OSError as error:
        raise WorkspaceError(f"{file} cannot be written: {error.strerror}") from error
    return file, True


def planned(root: Path, environ: Mapping[str, str]) -> str:
    """What `install` would make of the settings. Raises ConfigError, WorkspaceError."""
    file = (root / SETTINGS).resolve()
    return merged(_text(file), command(environ), source=str(file))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise WorkspaceError(f"{file} cannot be read: {error}") from error


def command(environ: Mapping[str, str]) -> str:
    """The shell line of the hook: by its name where it is on PATH, so that a team can share it."""
    found = shutil.which("atlas", path=environ.get("PATH"))
    program = "atlas" if found else f"{shlex.quote(sys.executable)} -m atlas_retry"
    return f"{program} {_OURS} --timeout {HOOK_TIMEOUT_S}"


def merged(text: str, line: str, *, source: str) -> str:
    """Settings with the hook in them, everything else as it was. Settings that have it stay so.

    Raises ConfigError where they are not valid, or their `hooks` are not as Claude Code has them.
    """
    settings = _parsed(text, source)
    hooks = _at(settings, "hooks", dict, source)
    groups = _at(hooks, "Stop", list, source)
    if any(_is_ours(group) for group in groups):
        return text
    entry = {"type": "command", "command": line, "timeout": HOOK_TIMEOUT_S}
    groups.append({"hooks": [entry]})
    return json.dumps(settings, indent=_indent(text), ensure_ascii=False) + "\n"


def _parsed(text: str, source: str) -> Json:
    if not text.strip():
        return {}
    try:
        found = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        lines = text.splitlines() or [""]
        place = Place(source, error.lineno, error.colno, lines[min(error.lineno, len(lines)) - 1])
        raise ConfigError(f"not valid JSON: {error.msg}", place=place, remedy="mend it") from error
    except ValueError as error:
        raise ConfigError(str(error), place=Place(source), remedy="mend it") from error
    if not isinstance(found, dict):
        raise ConfigError("the settings are not an object", place=Place(source), remedy="mend it")
    return found


def _unique(pairs: list[tuple[str, object]]) -> Json:
    """An object; of a key that is there twice one would be lost in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def _at(within: Json, key: str, kind: type[T], source: str) -> T:
    found = within.setdefault(key, kind())
    if not isinstance(found, kind):
        raise ConfigError(
            f"{key!r} is not {'a list' if kind is list else 'an object'}",
            place=Place(source),
            remedy="mend it, as code.claude.com/docs/en/hooks has it",
        )
    return found


def _is_ours(group: object) -> bool:
    entries = group.get("hooks") if isinstance(group, dict) else None
    return any(
        isinstance(entry, dict) and _names_us(str(entry.get("command", "")))
        for entry in (entries if isinstance(entries, list) else ())
    )


def _names_us(line: str) -> bool:
    return "atlas" in line and _OURS in line


def _indent(text: str) -> int | str:
    """As the file has it."""
    second = next((line for line in text.splitlines() if line[:1].isspace()), "  ")
    lead = second[: len(second) - len(second.lstrip())]
    return "\t" if lead.startswith("\t") else len(lead) or 2


def _replace(file: Path, text: str) -> None:
    """Whole or not at all, with the mode it had."""
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o644
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=file.parent, prefix=".settings-", delete=False
    ) as fresh:
        fresh.write(text)
    Path(fresh.name).chmod(mode)
    Path(fresh.name).replace(file)
