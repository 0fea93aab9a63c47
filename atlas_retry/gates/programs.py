"""What stands behind a shell line: its programs, and what is installed. Runs nothing."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

_SHELL = frozenset(
    {
        *("true", "false", "cd", "test", "[", "echo", "printf", "exit", "export", "set", ":"),
        *("unset", "read", "return", "shift", "trap", "umask", "wait", "pwd", "kill", "ulimit"),
        *("done", "fi", "esac", "}"),
    }
)
"""What /bin/sh does itself."""
_BEFORE_ANOTHER = frozenset(
    {
        *("if", "then", "else", "elif", "while", "until", "do", "!", "{", "time"),
        *("exec", "command", "env", "nohup", "nice"),
    }
)
"""What another program follows."""
_INSTALLED = (".venv", "venv", "node_modules", "node_modules/.package-lock.json", "vendor")
"""Where a project keeps its dependencies."""

Stamp = tuple[str, int, int, int]
"""Real path, size, mtime in ns, inode."""


def programs(
    line: str, root: Path, cwd: Path, environ: Mapping[str, str]
) -> tuple[Stamp, ...] | None:
    """Stat data of the programs of a line, of the folders they are in, and of dependencies.

    A folder shows what is installed into it and removed. None where a program is not found.
    """
    names = [*dict.fromkeys(_commands(line))]
    folders = [Path(cwd, part) for part in environ.get("PATH", "/usr/bin:/bin").split(":")]
    found = [_program(name, cwd, folders) for name in names if name not in _SHELL]
    if not names or None in found:
        return None
    places = [*folders]
    for top in dict.fromkeys((root, cwd)):
        places += [top / name for name in _INSTALLED]
    inner = chain.from_iterable(map(_packages, places))
    return (*filter(None, found), *filter(None, map(_stamp, (*places, *inner))))


def _commands(line: str) -> Iterator[str]:
    """First words of the simple commands of a line; an empty one where it cannot be read."""
    import shlex

    is_first = True
    try:
        words = list(shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=True))
    except ValueError:
        words = [""]
    for word in words:
        if word and set(word) <= set("&|;()"):
            is_first = True
        elif is_first and "=" not in word and word not in _BEFORE_ANOTHER:
            is_first = False
            yield word


def _program(name: str, cwd: Path, folders: list[Path]) -> Stamp | None:
    if "/" in name:
        return _stamp(cwd / name)
    for folder in folders:
        if name and os.access(folder / name, os.X_OK) and (folder / name).is_file():
            return _stamp(folder / name)
    return None


def _packages(place: Path) -> Iterator[Path]:
    """Where Python keeps what is installed beside a `bin` folder, or in a virtual environment."""
    base = place.parent if place.name == "bin" else place
    with suppress(OSError), os.scandir(base / "lib") as entries:
        for entry in entries:
            if entry.name.startswith("python3"):
                yield Path(entry.path, "site-packages")
                yield Path(entry.path, "dist-packages")


def _stamp(path: Path) -> Stamp | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return os.path.realpath(path), seen.st_size, seen.st_mtime_ns, seen.st_ino
