"""From the output of one command to what it says. Reads no file and starts nothing."""

import posixpath
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, starmap

from msgspec.structs import replace

from atlas_retry.diagnostics.compiled_logs import go_text
from atlas_retry.diagnostics.environment import blame, lack
from atlas_retry.diagnostics.places import settled
from atlas_retry.diagnostics.registry import FALLBACKS, PARSERS
from atlas_retry.diagnostics.report_formats import Report, read_report
from atlas_retry.diagnostics.selecting import folder_of
from atlas_retry.diagnostics.stamps import unstamped
from atlas_retry.diagnostics.table import LineFormat, parser_of
from atlas_retry.diagnostics.unread import unread
from atlas_retry.diagnostics.values import (
    THRESHOLD_RULE,
    Findings,
    Located,
    Log,
    Parser,
    Reading,
    Section,
    ToolOutput,
)
from atlas_retry.model import Diagnostic, Kind, Level

MAX_DIAGNOSTICS = 10_000
"""Distinct ones kept of one output; whoever has more has a misconfigured tool."""
_TOOLS = tuple(parser for parser in PARSERS.values() if parser not in FALLBACKS)
_PROGRAMS = frozenset(chain.from_iterable(parser.commands for parser in _TOOLS))
_NOWHERE = -1, -1
"""Lines of what a report file says."""
_TEXT_LINES = 400
"""Of one diagnostic: what a test captured can be endless."""


def diagnose(output: ToolOutput) -> Findings:
    """What the output of one command says: its problems in order, each once, and the triage.

    Never raises: what cannot be read is left out. A command that exits 0 has no errors, whatever
    it prints.
    """
    text = "\n".join(filter(None, (output.stdout, output.stderr)))
    log = Log.of(go_text(unstamped(text)), output.command, output.exit_code)
    readings = _read(output, log)
    told = _claims(len(log.lines), readings)
    report = _report(output)
    if report is not None and (report.diagnostics or not told):
        told = [Located(diagnostic, *_NOWHERE) for diagnostic in report.diagnostics]
        readings = _counting(readings, report.tests_run)
    distinct = tuple(_distinct(told))
    diagnostics = (replace(_quoted(found, log), count=count) for found, count in distinct)
    cwd = posixpath.normpath(posixpath.join(output.cwd, folder_of(output.command)))
    placed = tuple(settled(_worded(d), output.root, cwd) for d in diagnostics)
    beyond = len(told) - sum(count for _, count in distinct) if output.exit_code != 0 else 0
    findings = replace(_findings(output, log, readings, placed), beyond=beyond)
    rest = None if output.parser or report else unread(log, told, readings, _PROGRAMS)
    return replace(findings, diagnostics=(*findings.diagnostics, rest)) if rest else findings


def _counting(readings: tuple[Reading, ...], tests_run: int | None) -> tuple[Reading, ...]:
    """The readings, and how many tests a report counts where none of them does."""
    return readings if _total(readings) is not None else (*readings, Reading(tests_run=tests_run))


def _read(output: ToolOutput, log: Log) -> tuple[Reading, ...]:
    """What the tools' parsers say; where none has found anything, what the fallbacks do."""
    readings = tuple(_readings(log, _chosen(output, log)))
    if output.parser is not None or output.exit_code == 0 or any(r.found for r in readings):
        return readings
    return (*readings, *_readings(_unsaid(log, readings), FALLBACKS))


def _unsaid(log: Log, readings: Sequence[Reading]) -> Log:
    """The log without the lines in which a runner says how many tests ran: no error is one."""
    return log.without(tuple(Section("", number, number) for number in _closing(readings)))


def _closing(readings: Iterable[Reading]) -> list[int]:
    """Numbers of the lines with which the tools close."""
    return [*chain.from_iterable(reading.summary for reading in readings)]


def _worded(diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic with a message, even where its tool gives none."""
    if diagnostic.message.strip():
        return diagnostic
    return replace(diagnostic, message=diagnostic.rule_id or "failed without a message")


def _report(output: ToolOutput) -> Report | None:
    """What the report file says, or the output itself when the gate names a format as parser."""
    if output.report is not None:
        return read_report(*output.report)
    content = output.stdout.encode("utf-8", "replace")
    return read_report(output.parser, content) if output.parser else None


def _chosen(output: ToolOutput, log: Log) -> tuple[Parser, ...]:
    """The parser that was asked for, or those that know the output, named in the command first."""
    custom = [*filter(None, starmap(_custom, output.custom))]
    known = {**PARSERS, **{parser.name: parser for parser in custom}}
    if output.parser is not None:
        return (known[output.parser],) if output.parser in known else ()
    special = [p for p in (*custom, *_TOOLS) if p.recognises(log)]
    special.sort(key=lambda parser: not parser.starts(log))
    return tuple(special)


def _custom(name: str, pattern: str) -> Parser | None:
    """The user's own parser; none when its expression is none, which the configuration reports."""
    try:
        re.compile(pattern)
    except re.error:
        return None
    row = LineFormat(name=name, pattern=pattern, message="failed")
    return parser_of(row)


def _readings(log: Log, parsers: Iterable[Parser]) -> Iterator[Reading]:
    for parser in parsers:
        reading = parser.read(log)
        for section in reading.sections:
            yield _section(log, section)
        yield reading
        log = log.without(reading.sections)


def _section(log: Log, section: Section) -> Reading:
    """What the tools of a section say, with the line numbers of the whole."""
    part = log.part(section.first, section.last, section.command)
    parsers = _chosen(ToolOutput(command=section.command), part)
    parsers = tuple(p for p in parsers if not p.divides)
    readings = tuple(_readings(part, parsers))
    if not any(r.found for r in readings):
        readings += tuple(_readings(part, FALLBACKS))
    found = tuple(_claims(len(part.lines), readings))
    if not found and section.otherwise:
        found = (Located(section.otherwise, 0, section.last - section.first),)
    return Reading(
        found=tuple(
            Located(f.diagnostic, f.first + section.first, f.last + section.first) for f in found
        ),
        summary=tuple(number + section.first for number in _closing(readings)),
        tests_run=_total(readings),
        vacuous=any(r.vacuous for r in readings),
    )


def _claims(lines: int, readings: Sequence[Reading]) -> list[Located]:
    """What was found, in the order of the lines; a line belongs to the first that read it."""
    taken = bytearray(lines)
    kept: list[Located] = []
    for found in chain.from_iterable(reading.found for reading in readings):
        if not taken[found.first]:
            other = taken.find(1, found.first, found.last + 1)
            last = found.last if other < 0 else other - 1
            kept.append(Located(found.diagnostic, found.first, last))
            taken[found.first : last + 1] = b"\x01" * (last + 1 - found.first)
    return sorted(kept, key=lambda f: f.first)


def _quoted(found: Located, log: Log) -> Diagnostic:
    """The diagnostic with the lines it was read from, unless it brings them along."""
    if found.diagnostic.text or found.first < 0:
        return found.diagnostic
    lines = log.lines[found.first : min(found.last + 1, found.first + _TEXT_LINES)]
    return replace(found.diagnostic, text="\n".join(lines).rstrip("\n"))


def _distinct(found: Iterable[Located]) -> Iterator[tuple[Located, int]]:
    """What comes first of everything that says the same, and how often it is said."""
    first: dict[Hashable, Located] = {}
    counts: Counter[Hashable] = Counter()
    for told in found:
        d = told.diagnostic
        key = (d.tool, d.rule_id, d.level, d.message, d.path, d.region, d.test_id, d.frames)
        if key in first or len(first) < MAX_DIAGNOSTICS:
            first.setdefault(key, told)
            counts[key] += 1
    return ((told, counts[key]) for key, told in first.items())


def _total(readings: Iterable[Reading]) -> int | None:
    counts = [r.tests_run for r in readings if r.tests_run is not None]
    return sum(counts) if counts else None


def _findings(
    output: ToolOutput, log: Log, readings: Sequence[Reading], told: tuple[Diagnostic, ...]
) -> Findings:
    failed = output.exit_code != 0
    errors = [d for d in told if d.level is Level.ERROR]
    ran = _total(readings)
    empty = output.kind is Kind.TEST and not errors and not ran
    below = failed and bool(errors) and all(d.rule_id == THRESHOLD_RULE for d in errors)
    return Findings(
        diagnostics=told if failed else tuple(d for d in told if d.level is not Level.ERROR),
        tests_run=ran,
        vacuous=empty and any(r.vacuous for r in readings),
        threshold=below,
        environment=blame(output, log, errors) if failed else None,
        lack=lack(output, log, errors, _PROGRAMS) if failed else None,
        summary=tuple(log.lines[number] for number in sorted({*_closing(readings)})),
    )
