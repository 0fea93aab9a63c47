"""SARIF 2.1.0 (OASIS): one run per tool, also when it has nothing to say.

A result needs a place to be shown at. A failure without one is a notification of its invocation
(§3.20.21), because GitHub refuses a whole file for one result without a location.
"""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from msgspec.structs import replace

from atlas_retry import __version__
from atlas_retry.diagnostics.tools import tool_of
from atlas_retry.model import Diagnostic, GateResult, Held, Level, Region, Status
from atlas_retry.reports.documents import encode
from atlas_retry.reports.findings import TOOL, AnswerWord, Finding
from atlas_retry.reports.phrases import plain
from atlas_retry.reports.problems import problems
from atlas_retry.reports.subject import Subject

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")

Json = dict[str, object]
Listed = list[tuple[GateResult, Diagnostic | None]]


def report(subject: Subject) -> str:
    """A run per tool, in the order in which the gates name them."""
    by_tool: dict[str, Listed] = {}
    for result in subject.validation.results:
        for tool, problem in _told(result):
            by_tool.setdefault(plain(tool), []).append((result, problem))
    runs = [_run(tool, listed) for tool, listed in by_tool.items()] or [_run("atlas", [])]
    if subject.run:
        runs.append(_of_tool(TOOL, [_answered(one) for one in subject.findings]))
    return encode({"$schema": SCHEMA, "version": "2.1.0", "runs": runs})


def _told(result: GateResult) -> Iterator[tuple[str, Diagnostic | None]]:
    """Every problem under its tool; a gate that has none still names the tool that ran."""
    ran = tool_of(result.command) or result.name
    if not result.diagnostics:
        yield ran, next(iter(problems(result)), None)
        return
    for problem in problems(result):
        yield problem.tool or ran, problem


def _run(tool: str, listed: Listed) -> Json:
    gates = {id(result): result for result, _ in listed}
    every = [problem for _, problem in listed if problem]
    run = _of_tool(tool, [(problem, {}) for problem in every if problem.path])
    return run | {"invocations": [_invocation(result, listed) for result in gates.values()]}


def _answered(finding: Finding) -> tuple[Diagnostic, Json]:
    """What the guard answered: only what was refused is more than a note.

    The answer is a property: a result whose `kind` is not "fail" may have no level (§3.27.10).
    """
    diagnostic = finding.diagnostic
    if finding.answer is not AnswerWord.REFUSED:
        diagnostic = replace(diagnostic, level=Level.NOTE)
    return diagnostic, {"properties": _properties(finding)}


def _properties(finding: Finding) -> Json:
    seen = finding.seen
    known = {
        "answer": finding.answer,
        "needed": seen.needed if isinstance(seen, Held) else None,
        "next": finding.command,
    }
    return {name: value for name, value in known.items() if value is not None}


def _of_tool(tool: str, placed: Sequence[tuple[Diagnostic, Json]]) -> Json:
    """What complained where, each with what its result holds besides."""
    rules = list(dict.fromkeys(_rule(problem) for problem, _ in placed))
    return {
        "tool": {
            "driver": {
                "name": tool,
                "rules": [{"id": rule, "shortDescription": {"text": rule}} for rule in rules],
            },
            "extensions": [{"name": "atlas", "version": __version__}],
        },
        "automationDetails": {"id": f"atlas/{tool}/"},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, rules) | more for problem, more in placed],
    }


def _invocation(result: GateResult, listed: Listed) -> Json:
    own = [problem for owner, problem in listed if owner is result]
    homeless = [problem for problem in filter(None, own) if not problem.path]
    known = {
        "startTimeUtc": result.started_at,
        "endTimeUtc": result.completed_at,
        "exitCode": result.exit_code,
    }
    return {
        "commandLine": plain(result.command),
        "executionSuccessful": result.status not in (Status.BROKEN, Status.TIMED_OUT),
        **{name: value for name, value in known.items() if value not in ("", None)},
        "toolExecutionNotifications": [
            {"level": problem.level, "message": {"text": plain(problem.message)}}
            for problem in homeless
        ],
    }


def _result(problem: Diagnostic, rules: list[str]) -> Json:
    rule = _rule(problem)
    physical: Json = {"artifactLocation": _artifact(problem.path or "")}
    if problem.region:
        physical["region"] = _region(problem.region)
    location: Json = {"physicalLocation": physical}
    if problem.symbol:
        location["logicalLocations"] = [{"fullyQualifiedName": plain(problem.symbol)}]
    result: Json = {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": problem.level or Level.ERROR,
        "message": {"text": plain(problem.message) or rule},
        "locations": [location],
    }
    if problem.fingerprint:
        result["partialFingerprints"] = {"atlas/v1": problem.fingerprint}
    return result


def _rule(problem: Diagnostic) -> str:
    return plain(problem.rule_id or problem.test_id or problem.tool)


def _artifact(path: str) -> Json:
    """A file by its URI; a byte of its name that is not UTF-8 stays that byte."""
    uri = quote(_NO_BYTE.sub("\ufffd", path), errors="surrogateescape")
    return {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": "ROOT"}


def _region(region: Region) -> Json:
    """§3.30: lines end inclusive, but `endColumn` is the column after the last character."""
    start = max(region.start_line, 1)
    end = max(region.end_line or start, start)
    after = region.end_column or 0
    empty = end == start and after <= (region.start_column or 0)
    known = {
        "startLine": start,
        "startColumn": region.start_column,
        "endLine": end,
        "endColumn": None if empty else after,
    }
    return {name: value for name, value in known.items() if value}
