"""GitHub Actions annotations as workflow commands, for standard output; no summary.

Source: docs.github.com, "Workflow commands for GitHub Actions". Of each kind a step shows ten.
"""

from collections.abc import Iterable, Iterator

from atlas_retry.model import Diagnostic, Level, Region, Status
from atlas_retry.reports.phrases import complaints, counted, plain, reason
from atlas_retry.reports.subject import Subject

SHOWN = 10
COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def report(subject: Subject) -> str:
    """A line per annotation; where there are more than a step shows, the last one says so."""
    told = tuple(_told(subject))
    lines: list[str] = []
    for level in Level:
        lines += _of_level(level, [complaint for complaint in told if complaint.level is level])
    return "".join(f"{line}\n" for line in lines)


def _told(subject: Subject) -> Iterator[Diagnostic]:
    for result in subject.validation.results:
        yield from complaints(result)
        if result.status is Status.FLAKY:
            yield Diagnostic(tool=result.name, message=reason(result), level=Level.WARNING)


def _of_level(level: Level, told: list[Diagnostic]) -> Iterable[str]:
    if len(told) <= SHOWN:
        return map(_annotation, told)
    kept, rest = told[: SHOWN - 1], len(told) - SHOWN + 1
    more = f"and {counted(rest, f'more {COMMANDS[level]}')}; the report has all of them"
    return [*map(_annotation, kept), f"::{COMMANDS[level]} title=atlas::{_escaped(more)}"]


def _annotation(complaint: Diagnostic) -> str:
    title = " ".join(filter(None, (complaint.tool, complaint.rule_id or complaint.test_id)))
    known = {
        "file": complaint.path,
        **(_region(complaint.region) if complaint.region and complaint.path else {}),
        "title": title,
    }
    properties = ",".join(
        f"{name}={_property(str(value))}" for name, value in known.items() if value is not None
    )
    return f"::{COMMANDS[complaint.level]} {properties}::{_escaped(complaint.message)}"


def _region(region: Region) -> dict[str, int | None]:
    """GitHub refuses columns of a region that spans lines."""
    lines = {"line": region.start_line, "endLine": region.end_line}
    if region.end_line not in (None, region.start_line):
        return lines
    return lines | {"col": region.start_column, "endColumn": region.end_column}


def _escaped(text: str) -> str:
    escaped = plain(text).replace("%", "%25")
    return escaped.replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
