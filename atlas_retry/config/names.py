"""Short names for commands that were given none. Pure."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator

from atlas_retry.config.init.commands import OPTIONS

RUNNERS = (
    ("uv", "run"),
    ("poetry", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("pipenv", "run"),
    ("bundle", "exec"),
    ("npx",),
    ("bunx",),
    ("pnpm", "exec"),
    ("python", "-m"),
    ("python3", "-m"),
    ("env",),
    ("uvx",),
    ("pipx", "run"),
)
"""What only starts the tool that the name is about."""
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")


def short_name(command: str) -> str:
    """What a person calls this command: `ruff check .` is `ruff check`."""
    words = _words(command)
    while words and ASSIGNMENT.match(words[0]):
        words = words[1:]
    for runner in RUNNERS:
        called = [_program(word) for word in words[:1]] + words[1:]
        rest = words[len(runner) :]
        if tuple(called[: len(runner)]) == runner and rest:
            words = re.sub(f"^{OPTIONS}", "", f"{' '.join(rest)} ").split() or rest
    if not words:
        return command
    tool = _program(words[0])
    two_words = len(words) > 1 and SUBCOMMAND.fullmatch(words[1])
    return f"{tool} {words[1]}" if two_words else tool


def _program(word: str) -> str:
    return word.rpartition("/")[2] or word


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def distinct(names: Iterable[tuple[str, bool]]) -> Iterator[str]:
    """The names, each derived one (True) that was there before with a number behind it."""
    seen: Counter[str] = Counter()
    for name, derived in names:
        seen[name] += 1
        yield f"{name} {seen[name]}" if derived and seen[name] > 1 else name
