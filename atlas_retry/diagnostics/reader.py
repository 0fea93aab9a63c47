"""Parses the output of one command into findings. Reads no file and starts nothing."""

import posixpath
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, starmap

from msgspec.structs import replace

from atlas_retry.diagnostics import blocks, lines
from atlas_retry.diagnostics.annotations import ANNOTATIONS, without_annotations
from atlas_retry.diagnostics.diffs import DIFF, joined_with_diffs
from atlas_retry.diagnostics.environment import is_to_blame, lack
from atlas_retry.diagnostics.failures import PYTHON, UNITTEST, inside
from atlas_retry.diagnostics.numbered_logs import CTEST, PHPUNIT, RSPEC
from atlas_retry.diagnostics.places import Named, read_places
from atlas_retry.diagnostics.pytest_log import PYTEST
from atlas_retry.diagnostics.report_formats import kind_of, read_any, read_report
from atlas_retry.diagnostics.report_values import Report
from atlas_retry.diagnostics.runner_logs import (
    AVA,
    CARGO_UNCAPTURED,
    GO_TEST,
    MAVEN,
    MOCHA,
    NODE_TEST,
    PRE_COMMIT,
    go_text,
)
from atlas_retry.diagnostics.selecting import folder_of
from atlas_retry.diagnostics.streams import OutputSection, folders_of, inside_root, separated
from atlas_retry.diagnostics.summaries import failures_counted
from atlas_retry.diagnostics.table import LineFormat
from atlas_retry.diagnostics.tests_ran import tests_ran
from atlas_retry.diagnostics.unread import unread
from atlas_retry.diagnostics.values import (
    THRESHOLD_RULE,
    Findings,
    Holds,
    Located,
    Log,
    Parser,
    ToolOutput,
    no_file,
    no_files,
)
from atlas_retry.model import Diagnostic, Kind, Level, Region
from atlas_retry.patterns import regex

FALLBACKS: tuple[Parser, ...] = (PYTHON, *lines.FALLBACKS, PRE_COMMIT)
"""Parsers tried only if no tool reported a problem, and for hooks, which run any tool."""

_PARSERS = (
    lines.COVERAGE,
    PYTEST,
    UNITTEST,
    *blocks.ROWS,
    CARGO_UNCAPTURED,
    NODE_TEST,
    MOCHA,
    AVA,
    GO_TEST,
    MAVEN,
    PHPUNIT,
    RSPEC,
    DIFF,
    *lines.ROWS,
    CTEST,
    *lines.NAMED,
    ANNOTATIONS,
    *FALLBACKS,
)

PARSERS: Mapping[str, Parser] = {parser.name: parser for parser in _PARSERS}
"""In the order in which they claim lines: parsers of whole blocks come first."""


def relative(path: str, root: str | None, cwd: str = ".") -> str:
    """The path relative to the root; a path outside it stays absolute."""
    plain = path.removeprefix("file://")
    if not plain.startswith("/"):
        joined = posixpath.normpath(posixpath.join(cwd, plain))
        return plain if joined.startswith("../") else joined
    base = root.rstrip("/") + "/" if root else None
    return (
        posixpath.normpath(plain.removeprefix(base)) if base and plain.startswith(base) else plain
    )


def settled(
    diagnostic: Diagnostic,
    root: str | None,
    cwd: str,
    holds: Holds = no_file,
    endings: Callable[[str], Sequence[str]] = no_files,
) -> Diagnostic:
    """The diagnostic with paths relative to the root, and without frames outside it."""
    found = partial(_found, root=root, cwd=cwd, holds=holds, endings=endings)
    if not diagnostic.frames and diagnostic.test_id is None and diagnostic.path:
        plain = found(diagnostic.path)
        return diagnostic if plain == diagnostic.path else replace(diagnostic, path=plain)
    frames = tuple(
        replace(frame, path=path)
        for frame in diagnostic.frames
        if _belongs(path := found(frame.path), root)
    )
    test_id = diagnostic.test_id
    if test_id and test_id.startswith(("/", "../")):
        test_id = _found_test(test_id, root, cwd, holds)
    if diagnostic.path is None:
        return replace(diagnostic, frames=frames, test_id=test_id)
    place = found(diagnostic.path)
    moved = replace(diagnostic, path=place, frames=frames, test_id=test_id)
    if not frames or _belongs(place, root):
        return moved
    return replace(moved, path=frames[-1].path, region=Region(start_line=frames[-1].line))


_UPWARDS = regex(r"^(?:\.\./)+")
_DRIVE = regex(r"[A-Za-z]:(?=[\\/])")
MAX_DROPPED = 12
"""Folders of another machine in front of the project's path."""


def _found(
    path: str,
    root: str | None,
    cwd: str,
    holds: Holds,
    endings: Callable[[str], Sequence[str]] = no_files,
) -> str:
    """The path relative to the root, also if the tool ran elsewhere, or on another machine.

    pytest below `changedir` of tox names tests by `../`, and the workspace has them; Cargo names
    files by their path in its workspace, whichever member it runs in; a log of CI has the
    folders of the runner, in the spelling of Windows perhaps.
    """
    path = _unix(path)
    plain = relative(path, root, cwd)
    if holds(plain):
        return plain
    if path.startswith(("/", "file://")):
        return (_shorter(plain, holds) or plain) if plain.startswith("/") else plain
    inner = _UPWARDS.sub("", posixpath.normpath(plain))
    if plain.startswith("../"):
        return inner if holds(inner) else plain
    above = posixpath.dirname(cwd) if cwd != "." else ""
    found = next(filter(holds, _upwards(above, path)), None)
    alone = () if found else endings(posixpath.normpath(inner))
    return found or (alone[0] if len(alone) == 1 else plain)


def _unix(path: str) -> str:
    """A path of Windows in the spelling of others; any other path unchanged."""
    if _DRIVE.match(path) or ("\\" in path and "/" not in path):
        return _DRIVE.sub("", path.replace("\\", "/"))
    return path


def _upwards(folder: str, path: str) -> Iterator[str]:
    """The path in the folder, and in each folder above it up to the root."""
    while folder:
        yield posixpath.normpath(posixpath.join(folder, path))
        folder = posixpath.dirname(folder)
    yield posixpath.normpath(path)


def _shorter(path: str, holds: Holds) -> str | None:
    """The file of the workspace that an absolute path of another machine ends with."""
    parts = path.lstrip("/").split("/")
    for start in range(1, min(len(parts) - 1, MAX_DROPPED)):
        if holds(shorter := "/".join(parts[start:])):
            return shorter
    return None


def _found_test(test_id: str, root: str | None, cwd: str, holds: Holds) -> str:
    """The test id with its path relative to the root, or to the folder that the command enters."""
    path, colons, name = test_id.partition("::")
    if path.startswith("/"):
        return relative(test_id, root, cwd)
    found = _found(path, root, cwd, holds)
    is_moved = relative(path, root, cwd) != found
    return f"{posixpath.relpath(found, cwd)}{colons}{name}" if is_moved else test_id


def _belongs(path: str, root: str | None) -> bool:
    return inside(path) and not (root and path.startswith(("/", "../")))


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


def diagnose(output: ToolOutput) -> Findings:
    """The findings of one command's output: its problems in order, without duplicates, and triage.

    Never raises: unreadable parts are skipped. A command that exits with 0 has no errors, unless
    the last summary or the report of a test runner counts failures.
    """
    if counted := _counted(output):
        return replace(diagnose(replace(output, exit_code=1)), counted=counted)
    text, is_cut = _bounded("\n".join(filter(None, (output.stdout, output.stderr))))
    plain, sections = separated(go_text(unstamped(text)), folders_of(output.packages))
    log = Log.of(plain, output.command, output.exit_code)
    problems = _claims(len(log.lines), _read_sections(output, log, sections))
    report = _report(output)
    if report is not None and (report.diagnostics or not problems):
        problems = [Located(diagnostic, *_NOWHERE) for diagnostic in report.diagnostics]
    placed = (_placed(problem, output, log, sections) for problem in problems)
    distinct = tuple(_distinct(joined_with_diffs(without_annotations(placed))))
    diagnostics = tuple(replace(problem.diagnostic, count=count) for problem, count in distinct)
    findings = replace(
        _findings(output, log, report, diagnostics),
        beyond=_beyond(output, problems, distinct),
        cut=is_cut,
        unknown_report=kind_of(output.report[1]) if output.report and report is None else None,
    )
    is_known = output.parser or report or findings.ran is not None
    rest = None if is_known else unread(log, problems, _PROGRAMS)
    return replace(findings, diagnostics=(*findings.diagnostics, rest)) if rest else findings


def _bounded(text: str) -> tuple[str, bool]:
    """The text without the lines in the middle if it has too many, and whether it had."""
    if text.count("\n") < MAX_LINES:
        return text, False
    lines = text.split("\n")
    head = MAX_LINES // 4
    return "\n".join((*lines[:head], *lines[head - MAX_LINES :])), True


def _counted(output: ToolOutput) -> str:
    """Failures that a test runner counts although the command exits with 0."""
    if output.exit_code != 0 or output.kind is not Kind.TEST or output.trusts_exit_code:
        return ""
    summary = failures_counted(unstamped(output.stdout), unstamped(output.stderr))
    if summary is None and (report := _report(output)) and report.ran is not None:
        count = sum(d.level is Level.ERROR for d in report.diagnostics)
        return f"{count} failed" if count else ""
    return str(summary or "")


def _beyond(
    output: ToolOutput, problems: Sequence[Located], kept: Sequence[tuple[Located, int]]
) -> int:
    """How many problems are left out because there are too many."""
    if output.exit_code == 0 or len(kept) < MAX_DIAGNOSTICS:
        return 0
    return len(problems) - sum(count for _, count in kept)


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


def _placed(
    problem: Located, output: ToolOutput, log: Log, sections: Sequence[OutputSection]
) -> Located:
    """The problem with its text, and its paths as the workspace calls them."""
    cwd = posixpath.normpath(posixpath.join(output.cwd, folder_of(output.command)))
    index = bisect(sections, problem.first, key=lambda section: section.first) - 1
    if problem.first >= 0 and sections[index].folder is not None:
        cwd = inside_root(sections[index].folder, output.root, cwd)
    quoted = _quoted(problem, log)
    return replace(
        problem, diagnostic=settled(quoted, output.root, cwd, output.holds, output.endings)
    )


def _read(output: ToolOutput, log: Log) -> list[Located]:
    """Problems from the tools' parsers, and those that the structure of other lines shows."""
    chosen = _chosen(output, log)
    named = [parser for parser in chosen if isinstance(parser, Named)]
    problems = _parsed(log, (parser for parser in chosen if not isinstance(parser, Named)))
    is_known = bool(problems) and not PRE_COMMIT.recognises(log)
    is_open = output.parser is None and output.exit_code != 0
    if is_open and not is_known:
        problems += _parsed(log, FALLBACKS)
    # a runner prints places that are no problems
    is_open = is_open and not any(problem.diagnostic.test_id for problem in problems)
    if named or is_open:
        places = read_places(log, output.holds, strict=is_known or output.exit_code == 0)
        problems += _attributed(places, named, log, others=is_open)
    return problems


def _parsed(log: Log, parsers: Iterable[Parser]) -> list[Located]:
    return [*chain.from_iterable(parser.read(log) for parser in parsers)]


def _attributed(
    places: Iterable[Located], named: Sequence[Named], log: Log, *, others: bool
) -> Iterator[Located]:
    """The problems with the name of the tool that they fit; `others`: also those of no tool."""
    for problem in places:
        tool = next((tool for tool in named if tool.fits(problem)), None)
        if tool is not None:
            yield tool.named(problem, log)
        elif others:
            yield problem


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
    custom = [*filter(None, starmap(_custom, output.custom))]
    known = {**PARSERS, **{parser.name: parser for parser in custom}}
    if output.parser is not None:
        return (known[output.parser],) if output.parser in known else ()
    special = [p for p in (*custom, *_TOOLS) if p.recognises(log)]
    return tuple(sorted(special, key=lambda parser: not parser.starts(log)))


def _custom(name: str, pattern: str) -> Parser | None:
    """The user's own parser; None for an invalid pattern, which the configuration reports."""
    try:
        re.compile(pattern)
    except re.error:
        return None
    return LineFormat(name=name, pattern=pattern, message="failed")


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


def _quoted(problem: Located, log: Log) -> Diagnostic:
    """The diagnostic with a message, even if its tool gives none, and with its lines."""
    d = problem.diagnostic
    lines = log.lines[problem.first : min(problem.last + 1, problem.first + _TEXT_LINES)]
    text = "" if problem.first < 0 else "\n".join(lines).rstrip("\n")
    message = d.message if d.message.strip() else d.rule_id or "failed without a message"
    return replace(d, message=message, text=d.text or text)


def _distinct(problems: Iterable[Located]) -> Iterator[tuple[Located, int]]:
    """The first of all equal problems, and their number.

    A problem at the same place is the same one, however often it is printed: by a compiler, by a
    second reporter, or at each retry of a test.
    """
    first: dict[Hashable, Located] = {}
    counts: Counter[Hashable] = Counter()
    for problem in problems:
        d = problem.diagnostic
        key = (d.tool, d.rule_id, d.level, d.message, d.path, d.region, d.test_id, d.frames)
        if key not in first and len(first) < MAX_DIAGNOSTICS:
            first[key] = problem
            counts[key] = 1
        elif key in first and not _is_same(d, first[key].diagnostic):
            counts[key] += 1
    return ((problem, counts[key]) for key, problem in first.items())


def _is_same(d: Diagnostic, first: Diagnostic) -> bool:
    """Whether a diagnostic equal to another one is that one, printed twice."""
    if d.path is None or d.region is None:
        return False
    if d.test_id:
        return True
    # MSBuild repeats them at its end, indented and without what was below
    return d.region.start_column is not None or first.text.strip().startswith(d.text.strip())


def _findings(
    output: ToolOutput, log: Log, report: Report | None, problems: tuple[Diagnostic, ...]
) -> Findings:
    failed = output.exit_code != 0
    if failed:
        problems = _without_warnings(problems, output, log)
    errors = [d for d in problems if d.level is Level.ERROR]
    reported = report.ran if report else None
    printed = tests_ran(log)
    ran = reported if printed is None else printed
    below = failed and bool(errors) and all(d.rule_id == THRESHOLD_RULE for d in errors)
    return Findings(
        diagnostics=problems
        if failed
        else tuple(d for d in problems if d.level is not Level.ERROR),
        ran=ran,
        vacuous=output.kind is Kind.TEST and not errors and printed is False,
        threshold=below,
        environment=failed and is_to_blame(output, log, errors),
        lack=lack(output, log, errors, _PROGRAMS) if failed else None,
    )


def _without_warnings(
    problems: tuple[Diagnostic, ...], output: ToolOutput, log: Log
) -> tuple[Diagnostic, ...]:
    """The problems without a compiler's warnings, which come and go with what is compiled again.

    They are kept if nothing else was read, or if warnings are what the gate looks for.
    """
    wanted = output.kind is Kind.LINT or _WARNINGS_FAIL in log.text
    if wanted or all(d.level is not Level.ERROR for d in problems):
        return problems
    return tuple(filter(_stays, problems))


def _stays(problem: Diagnostic) -> bool:
    """Whether a problem is no warning of a compiler."""
    return problem.level is Level.ERROR or problem.tool not in _COMPILERS
