"""Write the hooks into an agent's settings of a project, beside whatever is there."""

import json
import shlex
import shutil
import stat
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

from atlas_retry.cli.hook.hosts import CLAUDE, START, STOP, Host
from atlas_retry.errors import ConfigError, Place, WorkspaceError

HOOK_TIMEOUT_S = 600
START_TIMEOUT_S = 60

Json = dict[str, object]
T = TypeVar("T", Json, list[object])


def install(root: Path, environ: Mapping[str, str], host: Host = CLAUDE) -> tuple[Path, bool]:
    """Add the hooks to the settings of the project at `root`; the file, and whether it changed.

    Raises ConfigError where the file is not what the agent reads, WorkspaceError where it cannot
    be written.
    """
    return _written((root / host.file).resolve(), planned(root, environ, host))


def uninstall(root: Path, host: Host = CLAUDE) -> tuple[Path, bool]:
    """Take the hooks out of the settings again; the rest, and errors, as `install`."""
    file = (root / host.file).resolve()
    return _written(file, removed(_text(file), source=str(file), host=host))


def _written(file: Path, after: str) -> tuple[Path, bool]:
    if after == _text(file):
        return file, False
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, after)
    except OSError as error:
        raise WorkspaceError(f"{file} cannot be written: {error.strerror}") from error
    return file, True


def planned(root: Path, environ: Mapping[str, str], host: Host = CLAUDE) -> str:
    """What `install` would make of the settings. Raises ConfigError, WorkspaceError."""
    file = (root / host.file).resolve()
    return merged(_text(file), program(environ), source=str(file), host=host)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise WorkspaceError(f"{file} cannot be read: {error}") from error


def program(environ: Mapping[str, str]) -> str:
    """How the hooks call atlas: by its name where it is on PATH, so that a team can share it."""
    on_path = shutil.which("atlas", path=environ.get("PATH"))
    return "atlas" if on_path else f"{shlex.quote(sys.executable)} -m atlas_retry"


def merged(text: str, call: str, *, source: str, host: Host = CLAUDE) -> str:
    """Settings with the hooks in them, everything else as it was. Settings that have them stay so.

    `call` is how atlas is called. An entry whose program is gone is written anew, with the timeout
    it had; of two for one event the first stays. Raises ConfigError where the settings are not
    valid, or their `hooks` are not as the agent has them.
    """
    settings = _parsed(text, source)
    before = json.dumps(settings)
    for key, value in host.top.items():
        settings.setdefault(key, value)
    hooks = _at(settings, "hooks", dict, source, host)
    for event, command in host.events.items():
        _merge_event(_at(hooks, event, list, source, host), call, command, host)
    return text if json.dumps(settings) == before else _dumped(settings, text)


def _merge_event(groups: list[object], call: str, command: str, host: Host) -> None:
    """Leave one entry of ours that can run, a new one where there is none."""
    ours = [entry for entry in chain.from_iterable(map(_entries, groups)) if _is_ours(entry)]
    keep = next(filter(_can_run, ours), None)
    _drop(groups, but=keep)
    if keep is None:
        timeout = ours[0].get("timeout") if ours else None
        entry = _entry(call, command, timeout, host)
        groups.append(entry if host.is_flat else {"hooks": [entry]})


def removed(text: str, *, source: str, host: Host = CLAUDE) -> str:
    """Settings without the hooks, and without the lists that only they were in. ConfigError."""
    settings = _parsed(text, source)
    before = json.dumps(settings)
    hooks = _at(settings, "hooks", dict, source, host)
    for event in host.events:
        groups = _at(hooks, event, list, source, host)
        _drop(groups, but=None)
        if not groups:
            del hooks[event]
    if not hooks:
        del settings["hooks"]
        if settings == host.top:
            settings.clear()
    return text if json.dumps(settings) == before else _dumped(settings, text)


def _entry(call: str, command: str, timeout: object, host: Host) -> Json:
    """The entry of one event; `timeout` is that of the entry it replaces, in seconds."""
    if command == START:
        # At a prompt exit code 2 swallows the prompt: an atlas without this command gives it.
        joint = "||" if host.after_start == "true" else ";"
        line = f"{call} {command} {joint} {host.after_start}"
        return {"type": "command", "command": line, "timeout": START_TIMEOUT_S}
    seconds = timeout if isinstance(timeout, int) else HOOK_TIMEOUT_S
    line = f"{call} {command} --timeout {seconds}"
    return {"type": "command", "command": line, "timeout": seconds, **host.of_stop}


def _dumped(settings: Json, like: str) -> str:
    return json.dumps(settings, indent=_indent(like), ensure_ascii=False) + "\n"


def _parsed(text: str, source: str) -> Json:
    if not text.strip():
        return {}
    try:
        found = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        lines = text.splitlines() or [""]
        place = Place(source, error.lineno, error.colno, lines[min(error.lineno, len(lines)) - 1])
        raise ConfigError(f"not valid JSON: {error.msg}", place=place, remedy="fix it") from error
    except ValueError as error:
        raise ConfigError(str(error), place=Place(source), remedy="fix it") from error
    if not isinstance(found, dict):
        raise ConfigError("the settings are not an object", place=Place(source), remedy="fix it")
    return found


def _unique(pairs: list[tuple[str, object]]) -> Json:
    """An object; of a key that is there twice one would be lost in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def _at(within: Json, key: str, kind: type[T], source: str, host: Host) -> T:
    found = within.setdefault(key, kind())
    if not isinstance(found, kind):
        raise ConfigError(
            f"{key!r} is not {'a list' if kind is list else 'an object'}",
            place=Place(source),
            remedy=f"correct it, as {host.reference} has it",
        )
    return found


def _drop(groups: list[object], but: Json | None) -> None:
    """Take our entries out, and the groups that are empty without them."""

    def stays(entry: Json) -> bool:
        return entry is but or not _is_ours(entry)

    for group in [*groups]:
        entries = _entries(group)
        kept = [*filter(stays, entries)]
        emptied = entries and not kept
        entries[:] = kept
        if emptied:
            groups.remove(group)


def _entries(group: object) -> list[Json]:
    """What is in a group; an entry that is in none is one of its own."""
    if isinstance(group, dict) and "command" in group:
        return [group]
    entries = group.get("hooks") if isinstance(group, dict) else None
    return entries if isinstance(entries, list) else []


def _is_ours(entry: object) -> bool:
    line = str(entry.get("command", "")) if isinstance(entry, dict) else ""
    return "atlas" in line and any(command in line for command in (START, STOP))


def _can_run(entry: Json) -> bool:
    """Whether its program may be there: by name it may be on another machine's PATH."""
    try:
        first = shlex.split(str(entry.get("command", "")))[0]
    except (ValueError, IndexError):
        return False
    return "/" not in first or Path(first).exists()


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
