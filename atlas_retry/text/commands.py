"""Shell lines: what one starts, as far as that shows without a shell, and words quoted for one."""

import re
import shlex
from collections.abc import Iterator
from typing import ClassVar

from atlas_retry.patterns import regex, words

_BETWEEN = regex(r"&&|\|\||[;|\n&]|\b(?:then|do|else)\b")
_AROUND = words("exec time env sudo nice if ! then do else command xargs npx bunx uvx")
_RUNNERS = regex(r"^(uv|poetry|pdm|hatch|pipenv|rye|coverage|dotenv|bundle) (run|exec)$")


class TypedIn:
    """The folder that `-C` named when this atlas was started; empty without."""

    folder: ClassVar[str] = ""


def from_there(command: str) -> str:
    """A command of atlas or git as it works in the folder in which this atlas was started."""
    program, space, words = command.partition(" ")
    if program not in ("atlas", "git") or not TypedIn.folder or words.startswith("-C "):
        return command
    return f"{program} -C {quoted(TypedIn.folder)}{space}{words}"


def quoted(word: object) -> str:
    """A path or name as a word of a command that is to be typed."""
    return shlex.quote(str(word))


def commands(line: str) -> Iterator[list[str]]:
    """The simple commands of a shell line, without wrappers."""
    for command in _BETWEEN.split(line):
        bare = command.strip().lstrip("@-+ (")
        try:
            parts = shlex.split(bare)
        except ValueError:
            parts = bare.split()
        while parts and (parts[0] in _AROUND or re.match(r"[A-Za-z_]\w*=", parts[0])):
            parts = parts[1:]
        if _RUNNERS.match(" ".join(parts[:2])):
            parts = parts[2:]
        if parts:
            yield parts
