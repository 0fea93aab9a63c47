"""Reads what a shell line starts, as far as that shows without a shell."""

import re
import shlex
from collections.abc import Iterator

from atlas_retry.patterns import regex, words

_BETWEEN = regex(r"&&|\|\||[;|\n&]|\b(?:then|do|else)\b")
_AROUND = words("exec time env sudo nice if ! then do else command xargs npx bunx uvx")
_RUNNERS = regex(r"^(uv|poetry|pdm|hatch|pipenv|rye|coverage|dotenv|bundle) (run|exec)$")


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
