"""Finds the tool that a gate's command runs, for reports by tool."""

import re

from atlas_retry.patterns import regex

ASSIGNED = r"(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\S*)\s+)*"
_VALUED = "group|only-group|extra|with|python|package|project|isolated|env-file|filter|C|p"
OPTIONS = rf"(?:--?(?:{_VALUED})[ =]\S+\s+|-{{1,2}}[\w-]+(?:=\S+)?\s+)*"
LAUNCHER = regex(
    r"(?:(?:uv|poetry|pdm|pipenv|rye|hatch|pixi) run|uvx|pipx run|npx|bunx"
    r"|(?:pnpm|npm|yarn|bundle|composer) exec|(?:pnpm|yarn) dlx|yarn run|yarn|pnpm|python[\d.]* -m"
    r"|coverage run -m|xvfb-run|cross-env|env|nice|time"
    rf"|bun run|sudo|mise exec --|rtx exec --)\s+{OPTIONS}(?:--\s+)?"
)
"""Programs that start another one, removed before the program is looked up."""
_PLACE = regex(r"(?:\./)?(?:node_modules/\.bin|vendor/bin|bin|\.venv/bin|venv/bin)/")


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
"""Tool name of programs whose diagnostics use another name."""


def bare(line: str) -> str:
    """The line without assignments of variables and starting programs."""
    rest = re.sub(rf"^{ASSIGNED}", "", line.strip())
    while True:
        shorter = LAUNCHER.sub("", rest, count=1) if LAUNCHER.match(rest) else rest
        shorter = _PLACE.sub("", re.sub(rf"^{ASSIGNED}", "", shorter), count=1)
        if shorter in (rest, ""):
            return rest
        rest = shorter


def tool_of(command: str) -> str | None:
    """The name of the tool: `ruff` for `CI=1 uv run --frozen ruff check .`.

    It is the name in the tool's diagnostics, except for scripts like `npm run lint`, whose tool is
    not known. None if the line has no words.
    """
    program, *rest = bare(command).split() or [""]
    name = program.rpartition("/")[2]
    return ALIASES.get(" ".join((name, *rest[:1])), ALIASES.get(name, name)) or None
