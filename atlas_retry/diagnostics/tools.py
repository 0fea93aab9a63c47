"""Finds the tool that a gate's command runs, for reports by tool."""

import re
from collections.abc import Sequence

from atlas_retry.patterns import regex, words

ASSIGNED = r"(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\S*)\s+)*"
_VALUED = "group|only-group|extra|with|python|package|project|isolated|env-file|filter|C|p"
OPTIONS = rf"(?:--?(?:{_VALUED})[ =]\S+\s+|-{{1,2}}[\w-]+(?:=\S+)?\s+)*"
LAUNCHER = regex(
    r"(?:(?:uv|poetry|pdm|pipenv|rye|hatch|pixi) run|uvx|pipx run|npx|bunx"
    r"|(?:pnpm|npm|yarn|bundle|composer) exec|(?:pnpm|yarn) dlx|yarn run|yarn|pnpm"
    r"|(?:\S*/)?python[\d.]*(?: -[WX] ?\S+| -[bBdEIOqsSuv]+)* -[bBdEIOqsSuv]*m"
    r"|coverage run -m|xvfb-run|cross-env|env|nice|time|timeout \S+"
    rf"|bun run|sudo|mise exec --|rtx exec --)\s+{OPTIONS}(?:--\s+)?"
)
"""Programs that start another one, removed before the program is looked up."""
_PLACE = regex(r"^(?:\./)?(?:node_modules/\.bin|vendor/bin|bin|\.venv/bin|venv/bin)/")


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


_BETWEEN = regex(r"&&|\|\||[;|&\n]|(?<!\S)(?:then|do|else)(?!\S)")
_OPENS = regex(r"(?:(?:[!({]|if|elif|while|until)(?=[\s(!])\s*|\()+")
"""Words and marks of the shell before a command."""
_NO_PROGRAM = regex(
    r"(?:\[\[?|test|cd|pushd|exit|export|set|unset|read|for|case|fi|done|esac|[)}:])(?!\S)|$"
)
"""Commands that only ask or prepare, and words that are no commands."""


def first_program(line: str) -> str:
    """The part of a shell line from its first program on: `ruff .` for `cd a && ruff .`.

    The whole line if it has none.
    """
    start = 0
    for end in (*(found.span() for found in _BETWEEN.finditer(line)), (len(line), len(line))):
        part = line[start : end[0]].strip()
        command = _OPENS.sub("", part, count=1) if _OPENS.match(part) else part
        if not _NO_PROGRAM.match(command):
            return command.rstrip(" )")
        start = end[1]
    return line.strip()


def tool_of(command: str) -> str | None:
    """The name of the tool: `ruff` for `CI=1 uv run --frozen ruff check .`.

    It is the name in the tool's diagnostics, except for scripts like `npm run lint`, whose tool is
    not known. None if the line has no words.
    """
    program, *rest = bare(command).split() or [""]
    name = program.rpartition("/")[2]
    return ALIASES.get(" ".join((name, *rest[:1])), ALIASES.get(name, name)) or None


_STARTS_OTHERS = words("""
    make gmake just task tox nox npm pnpm yarn bun deno hatch poe pdm poetry uv invoke inv rake nx
    turbo lerna moon wireit gradle gradlew mvn mvnw sbt ant cmake ninja bazel buck2 pants meson
    pre-commit prek lefthook lint-staged husky trunk docker podman sh bash zsh dash xargs find
    parallel concurrently python python3 node ruby php perl java cargo go dotnet git act
    """)
"""Programs whose output may be that of another one."""


def only_tool(command: str) -> str | None:
    """The name of the tool whose output a command prints; None if it may be several tools'."""
    if _BETWEEN.search(command.strip()):
        return None
    tool = tool_of(command)
    is_script = tool is None or "/" in bare(command).partition(" ")[0] or "." in tool
    return None if is_script or tool in _STARTS_OTHERS else tool


_SCRIPT = regex(r"((?:npm|pnpm|yarn|bun) run)(?: -\S+)* (\w[\w.:-]*)")

_OUTPUT_TESTED = regex(r"(?:test|\[) .*\$\(\s*([^()]+)\)")

_INTERPRETER = regex(r"(?:ba|da|k|z)?sh|node|perl|php|pwsh|python[\d.]*|ruby|Rscript")
_SUBCOMMAND = regex(r"[a-z][a-z0-9:_-]*")
_SCRIPT_FILE = regex(r"(?:[\w.@-]*/)+[\w.@-]+|[\w@-][\w.@-]*\.\w+")


def _interpreted(tool: str, words: Sequence[str]) -> str:
    """Name of the script that an interpreter runs, else the interpreter with its long option."""
    first = next((word for word in words if not word.startswith("-")), "")
    if _SCRIPT_FILE.fullmatch(first):
        return first.rpartition("/")[2]
    return next((f"{tool} {word}" for word in words if word.startswith("--")), tool)


def short_name(command: str) -> str:
    """Short name of a command: `ruff check` for `ruff check .`."""
    if inner := _OUTPUT_TESTED.match(command) or _OUTPUT_TESTED.match(first_program(command)):
        return short_name(inner[1])
    command = first_program(command)
    if script := _SCRIPT.match(re.sub(rf"^{ASSIGNED}", "", command)):
        return f"{script[1]} {script[2]}"
    calls_script = re.match(r"(?:pnpm|yarn|bun) (?!exec |dlx )", command)
    start, *words = (command if calls_script else bare(command)).split() or [command]
    tool = start.rpartition("/")[2] or start
    if _INTERPRETER.fullmatch(tool):
        return _interpreted(tool, words)
    return f"{tool} {words[0]}" if words and _SUBCOMMAND.fullmatch(words[0]) else tool
