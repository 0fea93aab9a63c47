"""Which tool a gate's command runs, for reports that are kept per tool; it knows no tool itself."""

import re
import shlex
from itertools import dropwhile

# Words that start another program, and how many words of their own they take.
LAUNCHERS = {
    "uv": ("run",),
    "poetry": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "pipenv": ("run",),
    "rye": ("run",),
    "pixi": ("run",),
    "npx": (),
    "bunx": (),
    "uvx": (),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "run"),
    "npm": ("exec",),
    "bundle": ("exec",),
    "env": (),
    "time": (),
    "nice": (),
}
ALIASES = {
    "go test": "go-test",
    "go fmt": "gofmt",
    "cargo test": "cargo-test",
    "cargo fmt": "rustfmt",
    "cargo clippy": "rustc",
    "cargo check": "rustc",
    "cargo build": "rustc",
    "ruff format": "ruff-format",
    "node --test": "node-test",
    "mvn": "maven",
    "mvnw": "maven",
}
"""A program whose problems carry another name."""
_PYTHON = re.compile(r"python[\d.]*")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)


def tool_of(command: str) -> str | None:
    """The name of what does the work: `ruff` of `CI=1 uv run --frozen ruff check .`.

    It is the name that the tool's diagnostics have, as far as the command shows it: what a script
    such as `npm run lint` starts is not seen. None where the line has no word at all.
    """
    words = _words(command)
    while words:
        name = words[0].rpartition("/")[2]
        rest = words[1:]
        own = LAUNCHERS.get(name)
        if _PYTHON.fullmatch(name) and "-m" in rest[:-1]:
            return rest[rest.index("-m") + 1]
        if own is None or not rest or not _starts(own, rest[0]):
            return ALIASES.get(" ".join((name, *rest[:1])), ALIASES.get(name, name))
        words = [*dropwhile(_is_option, rest[1:] if own else rest)] or words[:1]
        if words == [name]:
            return name
    return None


def _starts(own: tuple[str, ...], word: str) -> bool:
    """Whether a launcher starts a program with this word."""
    return not own or word in own


def _is_option(word: str) -> bool:
    return word.startswith("-")


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    return [word for word in words if not _ASSIGNMENT.fullmatch(word)]
