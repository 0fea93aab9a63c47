"""Parses the output of one command into findings. Reads no file and starts nothing."""

import posixpath
import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics import blocks, lines
from atlas_retry.diagnostics.annotations import annotations, without_annotations
from atlas_retry.diagnostics.diffs import diff, joined_with_diffs
from atlas_retry.diagnostics.environment import is_to_blame, not_installed
from atlas_retry.diagnostics.failures import python, unittest
from atlas_retry.diagnostics.gherkin_log import gherkin
from atlas_retry.diagnostics.go_log import go_test, go_text
from atlas_retry.diagnostics.named_files import named_files
from atlas_retry.diagnostics.paths import MAX_ABOVE, FolderNames, ToolPaths
from atlas_retry.diagnostics.places import read_places
from atlas_retry.diagnostics.pytest_log import pytest
from atlas_retry.diagnostics.report_formats import kind_of, read_any, read_report
from atlas_retry.diagnostics.runner_logs import (
    ava,
    cargo_uncaptured,
    ctest,
    maven,
    mocha,
    node_test,
    phpunit,
    pre_commit,
    prove,
    rspec,
)
from atlas_retry.diagnostics.sections import OutputSection, folders_of, inside_root, separated
from atlas_retry.diagnostics.selecting import folder_of
from atlas_retry.diagnostics.summaries import failures_counted
from atlas_retry.diagnostics.table import LineFormat
from atlas_retry.diagnostics.tests_ran import tests_ran
from atlas_retry.diagnostics.tools import only_tool
from atlas_retry.diagnostics.unread import unread
from atlas_retry.diagnostics.values import (
    THRESHOLD_RULE,
    Findings,
    Located,
    Log,
    Parser,
    Report,
    ToolOutput,
)
from atlas_retry.model import Diagnostic, Kind, Level
from atlas_retry.patterns import regex

FALLBACKS: tuple[Parser, ...] = (python, *lines.FALLBACKS, pre_commit)
"""Parsers tried only if no tool reported a problem, and for hooks, which run any tool."""

_PARSERS = (
    lines.COVERAGE,
    pytest,
    unittest,
    *blocks.ROWS,
    cargo_uncaptured,
    node_test,
    prove,
    mocha,
    ava,
    go_test,
    maven,
    phpunit,
    rspec,
    gherkin,
    diff,
    *lines.ROWS,
    ctest,
    *lines.NAMED,
    annotations,
    *FALLBACKS,
)

PARSERS: Mapping[str, Parser] = {parser.name: parser for parser in _PARSERS}
"""In the order in which they claim lines: parsers of whole blocks come first."""


# GitHub's runner writes times with seven decimals; `gh run view --log` adds job and step before
# them, with tabs (cli/cli, pkg/cmd/run/view). Each step begins with a BOM.
_GITHUB = regex(
    r"^(?:[^\t\n]*\t[^\t\n]*\t)?\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z(?: |$)", re.MULTILINE
)
# GitLab's runner with FF_TIMESTAMPS: the time, the number of the stream, O or E for its kind, and
# `+` if the line continues the one before it (docs.gitlab.com, "CI/CD job logs").
_GITLAB = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z [\da-f]{2}[OE]"
_GITLAB_MORE = regex(rf"\n{_GITLAB}\+")
_GITLAB_LINE = regex(rf"^{_GITLAB} ?", re.MULTILINE)


def unstamped(text: str) -> str:
    """The text without the time stamps of CI."""
    text = _GITHUB.sub("", text)
    return _GITLAB_LINE.sub("", _GITLAB_MORE.sub("", text))


MAX_LINES = 200_000
"""Lines read of one output, most of them from its end: they bound the time that reading takes."""
MAX_DIAGNOSTICS = 10_000
"""Distinct diagnostics kept of one output; more of them mean a misconfigured tool."""
_TOOLS = tuple(parser for parser in PARSERS.values() if parser not in FALLBACKS)
_PROGRAMS = frozenset(chain.from_iterable(parser.programs for parser in _TOOLS))
_COMPILERS = frozenset(row.name for row in (*lines.ROWS, *lines.NAMED) if row.compiles)
_WARNINGS_FAIL = "warnings found and -Werror specified"
"""javac's only error if warnings fail it."""
_NOWHERE = -1, -1
"""Line numbers of diagnostics from a report file."""
_TEXT_LINES = 400
"""Maximum lines of one diagnostic: a test's captured output is unbounded."""


class Streams(Struct, frozen=True, kw_only=True, dict=True):
    """The lines of an output, by source and stream."""

    log: Log
    sections: Sequence[OutputSection]
    stderr_at: int
    """Number of the first line of stderr."""
    is_cut: bool
    """Whether lines in the middle are left out."""

    @cached_property
    def names(self) -> FolderNames:
        """Made when the first path is of several files."""
        return FolderNames(self.log.lines)

    def named_above(self, first: int, folders: Collection[str]) -> str | None:
        """The one of the folders that the nearest line above names, in the same stream."""
        begins = self.stderr_at if first >= self.stderr_at else 0
        return self.names.nearest(folders, max(begins, first - MAX_ABOVE), first)


def diagnose(output: ToolOutput) -> Findings:
    """The findings of one command's output: its problems in order, without duplicates, and triage.

    Never raises: unreadable parts are skipped. A command that exits with 0 has no errors, unless
    the last summary or the report of a test runner counts failures.
    """
    if counted := _counted(output):
        return replace(diagnose(replace(output, exit_code=1)), counted=counted)
    streams = _streams_of(output)
    log = streams.log
    problems = _claims(len(log.lines), _read_sections(output, log, streams.sections))
    problems = problems or _said_last(output, log)
    report = _report(output)
    if report is not None and (report.diagnostics or not problems):
        problems = [Located(diagnostic, *_NOWHERE) for diagnostic in report.diagnostics]
    placed = (_placed(problem, output, streams) for problem in problems)
    distinct = _distinct(joined_with_diffs(without_annotations(placed)))
    is_full = len(distinct) >= MAX_DIAGNOSTICS
    findings = replace(
        _findings(output, log, report, distinct),
        beyond=is_full * (len(problems) - sum(d.count for d in distinct)),
        cut=streams.is_cut,
    )
    is_known = output.parser or report or findings.ran is not None
    rest = None if is_known else unread(log, problems, _PROGRAMS)
    return replace(findings, diagnostics=(*findings.diagnostics, rest)) if rest else findings


def _said_last(output: ToolOutput, log: Log) -> list[Located]:
    """What a failed build says at its end, for an output of which nothing else was read."""
    return _parsed(log, lines.LAST) if output.is_open else []


def _streams_of(output: ToolOutput) -> Streams:
    """Both streams as one log; if it has too many lines, without those in the middle."""
    texts = [go_text(unstamped(text)) for text in (output.stdout, output.stderr) if text]
    text = "\n".join(texts)
    if is_cut := text.count("\n") >= MAX_LINES:
        lines = text.split("\n")
        head = MAX_LINES // 4
        text = "\n".join((*lines[:head], *lines[head - MAX_LINES :]))
    both = len(texts) > 1 and not is_cut
    stderr_at = texts[0].count("\n") + 1 if both else None
    plain, sections = separated(text, folders_of(output.packages), stderr_at=stderr_at)
    log = Log.of(plain, output.command, output.exit_code)
    # lines that are sorted by source are of no one stream
    begins = stderr_at if stderr_at and plain is text else len(log.lines)
    return Streams(log=log, sections=sections, stderr_at=begins, is_cut=is_cut)


def _counted(output: ToolOutput) -> str:
    """Failures that a test runner counts although the command exits with 0."""
    if output.exit_code != 0 or output.kind is not Kind.TEST or output.trusts_exit_code:
        return ""
    summary = failures_counted(unstamped(output.stdout), unstamped(output.stderr))
    if summary is not None:
        return str(summary)
    report = _report(output)
    ran = report.diagnostics if report and report.ran is not None else ()
    count = sum(d.level is Level.ERROR for d in ran)
    return f"{count} failed" if count else ""


def _read_sections(
    output: ToolOutput, log: Log, sections: Sequence[OutputSection]
) -> Iterator[Located]:
    """The problems of each source, with their lines in the whole log."""
    for section in sections:
        own = log
        if len(sections) > 1:
            lines = log.lines[section.first : section.end]
            command = f"{log.command}\n{section.command}" if section.command else log.command
            own = Log(lines, "\n".join(lines), command, log.exit_code)
        elif section.command:
            own = replace(log, command=f"{log.command}\n{section.command}")
        for problem in _read(output, own):
            first, last = problem.first + section.first, problem.last + section.first
            yield replace(problem, first=first, last=last)


def _placed(problem: Located, output: ToolOutput, streams: Streams) -> Located:
    """The problem with a message and its lines, and its paths as the workspace calls them."""
    log, sections = streams.log, streams.sections
    cwd = posixpath.normpath(posixpath.join(output.cwd, folder_of(output.command)))
    index = bisect(sections, problem.first, key=lambda section: section.first) - 1
    if problem.first >= 0 and sections[index].folder is not None:
        cwd = inside_root(sections[index].folder, output.root, cwd)
    paths = ToolPaths(
        root=output.root,
        cwd=cwd,
        holds=output.holds,
        endings=output.endings,
        named_above=partial(streams.named_above, problem.first),
    )
    d = problem.diagnostic
    lines = log.lines[problem.first : min(problem.last + 1, problem.first + _TEXT_LINES)]
    text = "" if problem.first < 0 else "\n".join(lines).rstrip("\n")
    message = d.message if d.message.strip() else d.rule_id or "failed without a message"
    quoted = replace(d, message=message, text=d.text or text)
    return replace(problem, diagnostic=paths.placed(quoted))


def _read(output: ToolOutput, log: Log) -> list[Located]:
    """Problems from the tools' parsers, and those that the structure of other lines shows."""
    chosen = _chosen(output, log)
    named = [parser for parser in chosen if isinstance(parser, lines.Named)]
    problems = _parsed(log, (parser for parser in chosen if not isinstance(parser, lines.Named)))
    is_known = bool(problems) and not pre_commit.recognises(log)
    if output.is_open and not is_known:
        problems += _parsed(log, FALLBACKS)
    # a runner prints places that are no problems
    is_open = output.is_open and not any(problem.diagnostic.test_id for problem in problems)
    if named or is_open:
        places = read_places(log, output.holds, strict=is_known or output.exit_code == 0)
        problems += _attributed(places, named, log, others=is_open)
    return problems or [*_whole_files(output, log)]


def _whole_files(output: ToolOutput, log: Log) -> Iterable[Located]:
    """The files that a failed command names where nothing else was read.

    Only of a command of one program: with several, what is read of one must not depend on whether
    another one failed, as before and after an attempt are compared.
    """
    is_test = output.kind is Kind.TEST
    if is_test or not output.is_open or only_tool(log.command) is None:
        return ()
    is_check = output.kind in (Kind.FORMAT, Kind.LINT)
    files = named_files(log, partial(_found, output), is_check=is_check)
    return _attributed(files, (), log, others=True)


def _found(output: ToolOutput, name: str) -> bool:
    return output.holds(name) or len(output.endings(name)) == 1


def _attributed(
    places: Iterable[Located], named: Sequence[lines.Named], log: Log, *, others: bool
) -> Iterator[Located]:
    """The problems with the name of the tool that they fit; `others`: also those of no tool.

    A command of one program names it. Only other commands are guessed from what they print.
    """
    name = only_tool(log.command)
    possible = named if name is None else [tool for tool in named if tool.starts(log)]
    for problem in places:
        tool = next((tool for tool in possible if tool.fits(problem)), None)
        if tool is not None:
            yield tool.named(problem, log)
        elif others:
            own = replace(problem.diagnostic, tool=name or problem.diagnostic.tool)
            yield replace(problem, diagnostic=own)


def _parsed(log: Log, parsers: Iterable[Parser]) -> list[Located]:
    return [*chain.from_iterable(parser.read(log) for parser in parsers)]


def _report(output: ToolOutput) -> Report | None:
    """The report file, or the output itself if it is one; by what it is, not by its name."""
    if output.report is not None:
        name, content = output.report
        return read_report(name, content) or read_any(content)
    stdout = output.stdout.lstrip()
    content = stdout.encode("utf-8", "replace")
    if output.parser:
        return read_report(output.parser, content)
    is_document = stdout.startswith(("{", "[", "<?xml", "<testsuite", "<checkstyle"))
    return read_any(content) if is_document else None


def _chosen(output: ToolOutput, log: Log) -> tuple[Parser, ...]:
    """The configured parser, or those that recognise the output, named in the command first."""
    custom: list[Parser] = []
    for name, pattern in output.custom:
        with suppress(re.error):  # the configuration reports it
            re.compile(pattern)
            custom.append(LineFormat(name=name, pattern=pattern, message="failed"))
    known = {**PARSERS, **{parser.name: parser for parser in custom}}
    if output.parser is not None:
        return (known[output.parser],) if output.parser in known else ()
    special = [p for p in (*custom, *_TOOLS) if p.recognises(log)]
    return tuple(sorted(special, key=lambda parser: not parser.starts(log)))


def _claims(lines: int, problems: Iterable[Located]) -> list[Located]:
    """The problems in order of lines; a line belongs to the first parser that read it."""
    taken = bytearray(lines)
    kept: list[Located] = []
    for problem in sorted(problems, key=lambda problem: problem.otherwise):
        other = taken.find(1, problem.first, problem.last + 1)
        if other != problem.first and not (problem.otherwise and other > 0):
            last = problem.last if other < 0 else other - 1
            kept.append(Located(problem.diagnostic, problem.first, last))
            taken[problem.first : last + 1] = b"\x01" * (last + 1 - problem.first)
    return sorted(kept, key=lambda problem: problem.first)


def _distinct(problems: Iterable[Located]) -> tuple[Diagnostic, ...]:
    """The first of all equal problems, with their number.

    A problem at the same place is the same one, however often it is printed: by a compiler, by a
    second reporter, or at each retry of a test. MSBuild repeats them at its end, indented and
    without what was below.
    """
    first: dict[Hashable, Diagnostic] = {}
    counts = Counter[Hashable]()
    for d in (problem.diagnostic for problem in problems):
        key = (d.tool, d.rule_id, d.level, d.message, d.path, d.region, d.test_id, d.frames)
        if key not in first and len(first) >= MAX_DIAGNOSTICS:
            continue
        known = first.setdefault(key, d)
        column = d.region and d.region.start_column
        is_placed = d.path is not None and d.region is not None
        is_named = d.test_id or column is not None or known.text.strip().startswith(d.text.strip())
        counts[key] += known is d or not (is_placed and is_named)
    return tuple(replace(d, count=counts[key]) for key, d in first.items())


def _findings(
    output: ToolOutput, log: Log, report: Report | None, problems: tuple[Diagnostic, ...]
) -> Findings:
    failed = output.exit_code != 0
    errors = [d for d in problems if d.level is Level.ERROR]
    reported = report.ran if report else None
    printed = tests_ran(log)
    return Findings(
        diagnostics=_without_warnings(problems, errors, output, log),
        ran=reported if printed is None else printed,
        vacuous=output.kind is Kind.TEST and not errors and printed is False,
        threshold=failed and {d.rule_id for d in errors} == {THRESHOLD_RULE},
        environment=failed and is_to_blame(output, log, errors),
        not_installed=not_installed(output, log, errors, _PROGRAMS) if failed else None,
        unknown_report=kind_of(output.report[1]) if output.report and report is None else None,
    )


def _without_warnings(
    problems: tuple[Diagnostic, ...], errors: Sequence[Diagnostic], output: ToolOutput, log: Log
) -> tuple[Diagnostic, ...]:
    """The problems without a compiler's warnings, which come and go with what is compiled again.

    They are kept if nothing else was read, or if warnings are what the gate looks for. Of a
    command that passed, only warnings are kept.
    """
    if output.exit_code == 0:
        return tuple(d for d in problems if d.level is not Level.ERROR)
    if not errors or output.kind is Kind.LINT or _WARNINGS_FAIL in log.text:
        return problems
    return tuple(filter(lambda d: d.level is Level.ERROR or d.tool not in _COMPILERS, problems))
