"""`atlas hook install` and `uninstall`: add and remove the hooks in an agent's settings."""

import json
import os
import shlex
import shutil
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from atlas_retry import config, state_dir
from atlas_retry.cli import options
from atlas_retry.cli.app import examples, hook_app
from atlas_retry.cli.hook.hosts import HOSTS, PUSH, START, STOP, Host
from atlas_retry.cli.output import print_commands
from atlas_retry.errors import ConfigError, Place, WorkspaceError
from atlas_retry.reading import read_file

HOOK_TIMEOUT_S = 600
START_TIMEOUT_S = 60
CALLS = (START, PUSH, STOP)

Json = dict[str, object]


@hook_app.command(epilog=examples("atlas hook install --for codex"))
def install(
    path: options.Folder = Path(),
    *,
    host: options.Host = "claude",
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the settings without writing them.")
    ] = False,
) -> None:
    """Add the hooks to the agent's settings of the project."""
    file = _file(path, HOSTS[host])
    before = _text(file)
    # by name if it is on PATH, so that a team can share the settings
    program = "atlas" if shutil.which("atlas") else f"{shlex.quote(sys.executable)} -m atlas_retry"
    after = merged(before, program, HOSTS[host], source=str(file))
    if print_only:
        print(after, end="")
        return
    print(f"{'the hooks were already in' if after == before else 'the hooks are in'} {file}")
    _write(file, after)
    if not config.is_configured(path.resolve(), os.environ):
        print(
            "warning: there is no configuration yet, so the hooks have no gates to run",
            file=sys.stderr,
        )
        print_commands("next", "atlas init")


@hook_app.command(epilog=examples("atlas hook uninstall"))
def uninstall(path: options.Folder = Path(), *, host: options.Host = "claude") -> None:
    """Remove the hooks from the agent's settings of the project."""
    file = _file(path, HOSTS[host])
    before = _text(file)
    after = removed(before, HOSTS[host], source=str(file))
    print(f"{'no hooks of atlas were in' if after == before else 'removed the hooks from'} {file}")
    _write(file, after)


def _file(path: Path, host: Host) -> Path:
    return (config.root_of(path.resolve()) / host.file).resolve()


def _text(file: Path) -> str:
    try:
        return read_file(file).decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise WorkspaceError(f"{file} cannot be read: {error}") from error


def _write(file: Path, text: str) -> None:
    if text == _text(file):
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else None
        state_dir.replace_file(file, text.encode())
        if mode is not None:
            file.chmod(mode)
    except OSError as error:
        raise WorkspaceError(f"{file} cannot be written: {error.strerror}") from error


def merged(text: str, call: str, host: Host, *, source: str) -> str:
    """The settings with the hooks added and everything else unchanged.

    `call` is the shell command for atlas. Raises ConfigError if the settings, or the `hooks` in
    them, are not valid.
    """
    settings, hooks = _parsed(text, host, source)
    missing = _missing(hooks, host)
    if not missing:
        return text
    for event in missing:
        command = host.events[event]
        entry = _entry(call, command, host)
        only: Json = {"matcher": host.shell_tool} if command == PUSH else {}
        group = {**only, **entry} if host.is_flat else {**only, "hooks": [entry]}
        hooks.setdefault(event, []).append(group)
    return _dumped({**settings, **{k: v for k, v in host.top.items() if k not in settings}})


def removed(text: str, host: Host, *, source: str) -> str:
    """The settings without the hooks and the lists that become empty. Raises ConfigError."""
    settings, hooks = _parsed(text, host, source)
    if len(_missing(hooks, host)) == len(host.events):
        return text
    for event in host.events:
        left = [*filter(None, map(_without_ours, hooks.get(event, [])))]
        if left:
            hooks[event] = left
        else:
            hooks.pop(event, None)
    if not hooks:
        del settings["hooks"]
        if settings == host.top:
            settings.clear()
    return _dumped(settings)


def _missing(hooks: Mapping[str, list[Json]], host: Host) -> list[str]:
    """Events without an entry of atlas."""
    return [
        event
        for event in host.events
        if all(_without_ours(group) == group for group in hooks.get(event, []))
    ]


def _entry(call: str, command: str, host: Host) -> Json:
    limit_s = START_TIMEOUT_S if command == START else HOOK_TIMEOUT_S
    words = [call, command]
    if host.name != "claude":
        words += ["--for", host.name]
    if command != START:
        words += ["--timeout", str(limit_s)]
    words += [word for word in (host.after.get(command),) if word]
    entry = {"type": "command", "command": " ".join(words), "timeout": limit_s * host.per_s}
    return {**entry, **host.of_entry.get(command, {})}


def _without_ours(group: Json) -> Json | None:
    """A group of entries, or a single entry, without those of atlas; None if nothing is left."""
    if "command" in group:
        return None if _is_ours(group) else group
    entries = group.get("hooks")
    if not isinstance(entries, list):
        return group
    kept = [entry for entry in entries if not _is_ours(entry)]
    return {**group, "hooks": kept} if kept or not entries else None


def _is_ours(entry: object) -> bool:
    line = str(entry.get("command", "")) if isinstance(entry, dict) else ""
    return "atlas" in line and any(command in line for command in CALLS)


def _parsed(text: str, host: Host, source: str) -> tuple[Json, dict[str, list[Json]]]:
    """The settings, and the hooks in them."""
    try:
        settings = msgspec.convert(json.loads(text) if text.strip() else {}, Json)
        hooks = msgspec.convert(settings.get("hooks", {}), dict[str, list[Json]])
    except json.JSONDecodeError as error:
        lines = text.splitlines()
        place = Place(source, error.lineno, error.colno, lines[min(error.lineno, len(lines)) - 1])
        raise ConfigError(f"not valid JSON: {error.msg}", place=place, remedy="fix it") from error
    except msgspec.ValidationError as error:
        remedy = f"correct it, as {host.reference} has it"
        raise ConfigError(f"{error}", place=Place(source), remedy=remedy) from error
    settings["hooks"] = hooks
    return settings, hooks


def _dumped(settings: Json) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
