"""Which tool a gate's command runs, for reports that are kept per tool; it knows no tool itself."""

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
"""What starts another program: taken off before the program is looked up."""
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
"""A program whose problems carry another name."""


def bare(line: str) -> str:
    """The line without what sets variables and starts other programs."""
    rest = re.sub(rf"^{ASSIGNED}", "", line.strip())
    while True:
        shorter = LAUNCHER.sub("", rest, count=1) if LAUNCHER.match(rest) else rest
        shorter = _PLACE.sub("", re.sub(rf"^{ASSIGNED}", "", shorter), count=1)
        if shorter in (rest, ""):
            return rest
        rest = shorter


def tool_of(command: str) -> str | None:
    """The name of what does the work: `ruff` of `CI=1 uv run --frozen ruff check .`.

    It is the name that the tool's diagnostics have, as far as the command shows it: what a script
    such as `npm run lint` starts is not seen. None where the line has no word at all.
    """
    program, *rest = bare(command).split() or [""]
    name = program.rpartition("/")[2]
    return ALIASES.get(" ".join((name, *rest[:1])), ALIASES.get(name, name)) or None
