"""Reads annotations for CI: workflow commands of GitHub, logging commands of Azure Pipelines.

They often repeat what the tool printed for people as well: then only the latter counts.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from urllib.parse import unquote

from atlas_retry.diagnostics.table import LEVELS, region_of
from atlas_retry.diagnostics.values import Located, Log, parses
from atlas_retry.model import Diagnostic, Level
from atlas_retry.patterns import regex

# https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
_GITHUB = regex(r"::(?P<level>error|warning|notice)(?: (?P<properties>[^\n]*?))?::(?P<message>.*)$")
# https://learn.microsoft.com/en-us/azure/devops/pipelines/scripts/logging-commands
_AZURE = regex(r"##vso\[task\.logissue (?P<properties>[^\]]*)\](?P<message>.*)$")
_PROPERTY = regex(r"(?P<name>\w+)=(?P<value>.*?)(?=[,;]\s?\w+=|[,;]?$)")
_RULE = regex(r"^(?:\w+ \((?P<inner>[^)\s]+)\)|(?P<rule>[\w@/-]+))$")
_REPEATED = regex(r"^\S+?:\d+(?::\d+)?: ")
_ALIASES = {"sourcepath": "file", "linenumber": "line", "columnnumber": "col", "code": "title"}
TOOL = "github"


@parses(
    TOOL,
    commands=("--output-format github", "--format github"),
    marks=("::error ", "::warning ", "##vso[task.logissue"),
)
def annotations(log: Log) -> Iterator[Located]:
    """The problems in workflow commands of GitHub and Azure."""
    for number, line in enumerate(log.lines):
        if "::" not in line and "##vso[" not in line:
            continue
        found = _GITHUB.match(line.lstrip()) or _AZURE.match(line)
        problem = _annotation(found) if found else None
        if problem is not None:
            yield Located(problem, number, number)


def _annotation(found: re.Match[str]) -> Diagnostic | None:
    parts = {
        _ALIASES.get(p["name"], p["name"]): unquote(p["value"])
        for p in _PROPERTY.finditer(found["properties"] or "")
    }
    if not parts.get("file"):
        return None
    level = found.groupdict().get("level") or parts.get("type", "error")
    message = unquote(found["message"])
    rule = _RULE.match(parts.get("title", ""))
    region = region_of(
        {
            "line": parts.get("line", ""),
            "column": parts.get("col") or parts.get("column") or "",
            "end_line": parts.get("endLine", ""),
            "end_column": parts.get("endColumn") or "",
        }
    )
    return Diagnostic(
        tool=TOOL,
        message=_REPEATED.sub("", message).strip() or parts.get("title", "failed"),
        rule_id=(rule["inner"] or rule["rule"]) if rule else None,
        level=LEVELS.get(level, Level.ERROR),
        path=parts["file"],
        region=region,
    )


def without_annotations(problems: Iterable[Located]) -> list[Located]:
    """The problems without annotations of a place that another tool reports."""
    every = list(problems)
    tools = (problem.diagnostic for problem in every if problem.diagnostic.tool != TOOL)
    known = set(chain.from_iterable(map(_places, tools)))
    kept: list[Located] = []
    for problem in every:
        d = problem.diagnostic
        if d.tool != TOOL or known.isdisjoint(_places(d)):
            kept.append(problem)
    return kept


def _places(d: Diagnostic) -> set[tuple[str, int]]:
    own = {(d.path, d.region.start_line)} if d.path and d.region else set()
    return own | {(frame.path, frame.line) for frame in d.frames}
