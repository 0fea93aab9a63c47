"""SARIF 2.1.0 (OASIS): one run per tool, even without results.

A failure without a place is a notification of its invocation (§3.20.21), because GitHub refuses
a file if one result has no location.
"""

from collections.abc import Sequence
from urllib.parse import quote

from msgspec.structs import replace

from atlas_retry import __version__
from atlas_retry.diagnostics.tools import tool_of
from atlas_retry.model import AnswerWord, Diagnostic, GateResult, Level, Status
from atlas_retry.patterns import regex
from atlas_retry.reports.documents import encode
from atlas_retry.reports.findings import TOOL, Finding
from atlas_retry.reports.phrases import plain
from atlas_retry.reports.problems import problems
from atlas_retry.reports.subject import Subject

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_NO_BYTE = regex("[\ud800-\udc7f\udd00-\udfff]")

Json = dict[str, object]


def report(subject: Subject) -> str:
    """One run per tool, in the order of the gates, then one for the guard's answers."""
    results: dict[str, list[Json]] = {}
    invocations: dict[str, list[Json]] = {}
    for gate in subject.validation.results:
        for tool, own in _by_tool(gate).items():
            placed = [_result(problem) for problem in own if problem.path]
            results.setdefault(tool, []).extend(placed)
            invocations.setdefault(tool, []).append(_invocation(gate, own))
    runs = [_run(tool, results[tool], invocations[tool]) for tool in results]
    runs = runs or [_run("atlas", [], [])]
    if subject.run:
        runs.append(_run(TOOL, [_answered(finding) for finding in subject.findings], []))
    return encode({"$schema": SCHEMA, "version": "2.1.0", "runs": runs})


def _by_tool(gate: GateResult) -> dict[str, list[Diagnostic]]:
    """Problems by tool; a gate without problems has an empty list for its tool."""
    ran = plain(tool_of(gate.command) or gate.name)
    if not gate.diagnostics:
        return {ran: [*problems(gate)]}
    by_tool: dict[str, list[Diagnostic]] = {}
    for problem in problems(gate):
        by_tool.setdefault(plain(problem.tool) or ran, []).append(problem)
    return by_tool


def _run(tool: str, results: Sequence[Json], invocations: Sequence[Json]) -> Json:
    rules = list(dict.fromkeys(str(result["ruleId"]) for result in results))
    run: Json = {
        "tool": {
            "driver": {
                "name": tool,
                "rules": [{"id": rule, "shortDescription": {"text": rule}} for rule in rules],
            },
            "extensions": [{"name": "atlas", "version": __version__}],
        },
        "automationDetails": {"id": f"atlas/{tool}/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return run | {"invocations": invocations} if invocations else run


def _answered(finding: Finding) -> Json:
    """The result of a guard's answer; everything except a refusal is a note.

    The answer is a property, because a result with a `kind` other than "fail" has no level
    (§3.27.10).
    """
    diagnostic, word = finding.diagnostic, finding.answer.word
    if word is not AnswerWord.REFUSED:
        diagnostic = replace(diagnostic, level=Level.NOTE)
    needed = getattr(finding.answer, "needed", None)
    properties = {"answer": word, "needed": needed, "next": finding.command}
    return _result(diagnostic) | {"properties": _known(properties)}


def _known(values: Json) -> Json:
    return {name: value for name, value in values.items() if value not in (None, "")}


def _invocation(gate: GateResult, own: Sequence[Diagnostic]) -> Json:
    times: Json = {"startTimeUtc": gate.started_at, "endTimeUtc": gate.completed_at}
    return _known(times | {"exitCode": gate.exit_code}) | {
        "commandLine": plain(gate.command),
        "executionSuccessful": gate.status not in (Status.BROKEN, Status.TIMED_OUT),
        "toolExecutionNotifications": [
            {"level": problem.level, "message": {"text": plain(problem.message)}}
            for problem in own
            if not problem.path
        ],
    }


def _result(problem: Diagnostic) -> Json:
    rule = plain(problem.rule_id or problem.test_id or problem.tool)
    path = problem.path or ""
    # bytes of a name that are not UTF-8 are kept
    uri = quote(_NO_BYTE.sub("\ufffd", path), errors="surrogateescape")
    is_absolute = path.startswith("/")
    artifact = {"uri": f"file://{uri}"} if is_absolute else {"uri": uri, "uriBaseId": "ROOT"}
    physical: Json = {"artifactLocation": artifact}
    if region := problem.region:
        # `endLine` is inclusive, `endColumn` is one past the last character (§3.30)
        start = max(region.start_line, 1)
        end = max(region.end_line or start, start)
        empty = end == start and (region.end_column or 0) <= (region.start_column or 0)
        columns = {
            "startColumn": region.start_column,
            "endLine": end,
            "endColumn": None if empty else region.end_column,
        }
        physical["region"] = {"startLine": start} | {k: v for k, v in columns.items() if v}
    location: Json = {"physicalLocation": physical}
    if problem.symbol:
        location["logicalLocations"] = [{"fullyQualifiedName": plain(problem.symbol)}]
    result: Json = {
        "ruleId": rule,
        "level": problem.level,
        "message": {"text": plain(problem.message) or rule},
        "locations": [location],
    }
    if problem.fingerprint:
        result["partialFingerprints"] = {"atlas/v1": problem.fingerprint}
    return result
