"""The command lines that a gate started by a script, a recipe or an environment. Runs nothing."""

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from atlas_retry.model import GateResult
from atlas_retry.patterns import regex

MAX_CHARS = 200_000
"""Characters of each stream that are looked through."""
_VARIABLES = regex(r"(?:[A-Za-z_]\w*=(?:[^\s'\"]|'[^']*'|\"[^\"]*\")* +)*")
_MANAGER = regex(r"(?:npx|pnpm|yarn|bunx?|node)\b")
_NOX_FOLDER = regex(r"(?m)^nox > .* virtual environment .*?(?:in|at) (?P<folder>\S+?)\.?$")
_BESIDE = regex(r"(?P<beside>(?:uv|poetry|pdm) run (?:-\S+ )*|\S+/)?poe$")


class StartedLine(Struct, frozen=True, kw_only=True):
    """A command line that a task runner says it started."""

    line: str
    before: str = ""
    """What the line needs in front to start as it did there."""


def _as_printed(_start: str, said: re.Match[str]) -> StartedLine:
    return StartedLine(line=said["line"])


class TaskRunner(Struct, frozen=True):
    """How a program that starts others says so."""

    program: str
    """Pattern of its name in a gate's command."""
    says: re.Pattern[str]
    """Pattern of a line with the group `line`."""
    started: Callable[[str, re.Match[str]], StartedLine] = _as_printed
    """Of the gate's command up to the program's name, and a match."""


def _by_manager(start: str, said: re.Match[str]) -> StartedLine:
    """The line of a package's script, whose programs are in `node_modules`."""
    variables = _VARIABLES.match(said["line"])
    line = said["line"][variables.end() if variables else 0 :]
    own = f"{variables[0] if variables else ''}"
    if _MANAGER.match(line):
        return StartedLine(line=line, before=own)
    name = re.split(r"[\s/]", start)[-1]
    runs = {"pnpm": "pnpm exec ", "yarn": "yarn ", "bun": "bunx "}.get(name, "npx ")
    return StartedLine(line=line, before=f"{own}{runs}")


def _by_nox(_start: str, said: re.Match[str]) -> StartedLine:
    folders = [*_NOX_FOLDER.finditer(said.string[: said.start()])]
    before = f"{folders[-1]['folder']}/bin/" if folders else ""
    return StartedLine(line=said["line"], before=before)


def _by_poe(start: str, said: re.Match[str]) -> StartedLine:
    beside = _BESIDE.search(start)
    return StartedLine(line=said["line"], before=(beside and beside["beside"]) or "")


_SCRIPT = regex(
    r"(?m)^(?:[\w@./-]+:[\w:-]+: |[\w@./-]+ [\w:.-]+(?=\$))?[>$] (?!\S+@\S+ )(?P<line>\S.*)$"
)
_TOX = regex(
    r"(?m)^ *(?P<environment>[\w.-]+): "
    r"(?:commands\[\d+\]|exit \d+ \([\d.]+ seconds\) \S+)> (?P<line>.+?)(?: pid=\d+)?$"
)
TASK_RUNNERS = (
    TaskRunner("npm|pnpm|yarn|npx|bun|turbo|lerna|nx", _SCRIPT, _by_manager),
    # https://tox.wiki/en/latest/cli_interface.html#tox-exec-(e)
    TaskRunner(
        "tox",
        _TOX,
        lambda start, said: StartedLine(
            line=said["line"], before=f"{start} exec -e {said['environment']} -- "
        ),
    ),
    TaskRunner("nox", regex(r"(?m)^nox > (?P<line>\S.*)$"), _by_nox),
    TaskRunner("poe", regex(r"(?m)^Poe => (?P<line>\S.*)$"), _by_poe),
    # make, just and invoke print the line itself, as `sh -x` does behind a sign
    TaskRunner(
        "g?make|just|task|inv|invoke",
        regex(
            r"(?m)^(?:task: \[[\w:-]+\] )?"
            r"(?P<line>(?:[A-Za-z_]\w*=\S* )*(?:[\w./@-]+ ){0,4}?[\w./@-]+(?: .*)?)$"
        ),
    ),
    TaskRunner(r"\S+", regex(r"(?m)^\++ (?P<line>\S.*)$")),
)


def started_lines(result: GateResult) -> Iterator[StartedLine]:
    """What task runners say in the output that they started."""
    for runner in TASK_RUNNERS:
        named = re.search(rf"(?<![\w.-])(?:{runner.program})(?![\w-])", result.command)
        if not named:
            continue
        for text in (result.stdout[:MAX_CHARS], result.stderr[:MAX_CHARS]):
            for said in runner.says.finditer(text):
                yield runner.started(result.command[: named.end()], said)
