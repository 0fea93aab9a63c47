"""GitHub Actions annotations as workflow commands for standard output.

Source: docs.github.com, "Workflow commands for GitHub Actions". A step shows ten of each level.
"""

from collections.abc import Iterable, Iterator

from atlas_retry.model import Diagnostic, GateResult, Kind, Level, Status
from atlas_retry.reports.findings import Finding
from atlas_retry.reports.phrases import plain
from atlas_retry.reports.problems import listed, reason
from atlas_retry.reports.subject import Subject
from atlas_retry.text.units import counted

SHOWN = 10
COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def report(subject: Subject) -> str:
    """One line per annotation; if a step cannot show all, the last one says so."""
    results = sorted(subject.validation.results, key=lambda r: r.kind is not Kind.TEST)
    return annotations(_in_order(results, subject.findings), results)


def annotations(diagnostics: Iterable[Diagnostic], results: Iterable[GateResult] = ()) -> str:
    """Annotations of any diagnostics; `results` may have more problems than these."""
    every, gates = [*diagnostics], [*results]
    lines: list[str] = []
    for level in Level:
        # unlisted problems of a gate count as errors only if it is required
        required = {Level.ERROR: True, Level.WARNING: False}.get(level)
        of_level = [problem for problem in every if problem.level is level]
        lines += _of_level(level, of_level, [r for r in gates if r.required is required])
    return "".join(f"{line}\n" for line in lines)


def _in_order(results: Iterable[GateResult], findings: Iterable[Finding]) -> Iterator[Diagnostic]:
    """The first problem of every gate, the guard's findings, other failing tests, the rest."""
    rest: list[Diagnostic] = []
    for result in results:
        if result.status is Status.FLAKY:
            yield Diagnostic(tool=result.name, message=reason(result), level=Level.WARNING)
            continue
        problems = listed(result)
        yield from problems[:1]
        rest += problems[1:]
    yield from (finding.diagnostic for finding in findings)
    yield from sorted(rest, key=lambda problem: problem.test_id is None)


def _of_level(
    level: Level, diagnostics: list[Diagnostic], results: list[GateResult]
) -> Iterable[str]:
    left_out = sum(result.beyond for result in results)
    least = any(result.at_least for result in results)
    if len(diagnostics) <= SHOWN and not left_out and not least:
        return map(_annotation, diagnostics)
    rest = sum(problem.count for problem in diagnostics[SHOWN - 1 :]) + left_out
    count = f"{'at least ' if least else ''}{counted(rest, f'more {COMMANDS[level]}')}"
    where = "the whole output has them" if left_out or least else "the report has all of them"
    more = f"::{COMMANDS[level]} title=atlas::{_escaped(f'and {count}; {where}')}"
    return [*map(_annotation, diagnostics[: SHOWN - 1]), more]


def _annotation(problem: Diagnostic) -> str:
    values: dict[str, object] = {"file": problem.path}
    region = problem.region if problem.path else None
    if region:
        values |= {"line": region.start_line, "endLine": region.end_line}
    if region and region.end_line in (None, region.start_line):
        # GitHub refuses columns of a region of several lines
        values |= {"col": region.start_column, "endColumn": region.end_column}
    values["title"] = " ".join(filter(None, (problem.test_id, problem.tool, problem.rule_id)))
    properties = ",".join(
        f"{name}={_escaped(str(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in values.items()
        if value is not None
    )
    return f"::{COMMANDS[problem.level]} {properties}::{_escaped(problem.message)}"


def _escaped(text: str) -> str:
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
