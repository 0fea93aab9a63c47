"""Reads the lines that CircleCI and Azure Pipelines run: one job a file, values as they stand."""

import re
from collections.abc import Iterator, Mapping
from posixpath import normpath

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.ci.expressions import text_of
from atlas_retry.config.ci.jobs import CiJob, CiLine
from atlas_retry.config.ci.script import ShellCommand, commands_of
from atlas_retry.config.project import ProjectFiles, Table, strings, table
from atlas_retry.patterns import regex

FILES = (
    ".circleci/config.yml",
    "azure-pipelines.yml",
    ".azure/*.yml",
    ".azure-pipelines/*.yml",
)
LINES = ("run", "script", "bash", "command")
FOLDERS = ("working_directory", "workingDirectory")
VARIABLES = ("env", "environment", "variables")
ASIDE = {"on", "strategy", "services", "parameters", *VARIABLES}
OTHER_JOBS = regex(
    r"deploy|publish|release|bench|fuzz|nightly|msrv|windows|macos|miri|wasm", re.IGNORECASE
)
_EXPRESSION = regex(r"\$\{\{.*?\}\}|\$\[\[?.*?\]|<<\s*[\w.]+\s*>>|\$\((?!nproc|pwd)[A-Za-z_.]\w*\)")


class _Around(Struct, frozen=True, kw_only=True):
    """Values that the steps in a node inherit."""

    where: str
    cwd: str = "."
    env: Mapping[str, str] = {}

    def line(self, piece: ShellCommand) -> CiLine:
        expressions = _EXPRESSION.findall(f"{piece.text} {piece.cwd}")
        return CiLine(
            line=piece.text,
            inner=piece.inner,
            where=self.where,
            cwd=piece.cwd,
            left_out=piece.left_out,
            env=tuple(sorted(piece.env.items())),
            unknown=(*(f"${name}" for name in piece.unset), *expressions),
        )


def jobs(project: ProjectFiles) -> Iterator[CiJob]:
    """A job for each file: every line for a push or a pull request."""
    for path in project.below(*FILES):
        yield CiJob(key=path, lines=tuple(_walk(project.yaml(path), _Around(where=path))))


def _walk(node: object, around: _Around) -> Iterator[CiLine]:
    for item in node if isinstance(node, list) else ():
        yield from _walk(item, around)
    inside = _inside(table(node), around)
    for key, value in table(node).items():
        script = "\n".join(strings(value)) if key in LINES else ""
        if script:
            yield from map(inside.line, commands_of(script, inside.cwd, inside.env))
        elif key not in ASIDE and not OTHER_JOBS.search(str(key)):
            yield from _walk(value, inside)


def _inside(node: Table, around: _Around) -> _Around:
    own = next((str(node[key]) for key in FOLDERS if key in node), ".")
    env = dict(around.env)
    for key in VARIABLES:
        env |= {
            str(k): text_of(v)
            for k, v in table(node, key).items()
            if not isinstance(v, dict | list)
        }
    return replace(around, cwd=normpath(f"{around.cwd}/{own}"), env=env)
