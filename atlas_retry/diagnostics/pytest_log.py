"""Parses pytest's output: failures in every traceback style, errors, counts."""

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics.failures import (
    above,
    crash,
    inside,
    matching,
    placed,
    python_frames,
    shortened,
)
from atlas_retry.diagnostics.table import region_of
from atlas_retry.diagnostics.values import Located, Log, parses
from atlas_retry.model import Diagnostic, Frame
from atlas_retry.patterns import regex

# https://docs.pytest.org/en/stable/how-to/output.html
_BANNER = regex(r"^={2,} (\S.{0,300}) ={2,}$")
_TITLE = regex(r"^_{1,200} (?!_ )(\S.{0,600}) _{1,200}$")
_STAGE = regex(r"^ERROR (?:at (setup|teardown) of|(collecting)) (.+)$")
_CONFTEST = regex(r"^ImportError while loading conftest '([^']*)'")
_BLANK = regex(r"\s*$")
_USAGE = regex(r"^(?:ERROR: (?!Coverage|usage:)|pytest: error: )(\S.*)$")
_TIMEOUT = regex(r"^\+{3,} Timeout \+{3,}$")
_CRASHED = regex(r"^worker '\w+' crashed while running '(.+)'$")
_INTERNAL = "INTERNALERROR> "
_NEAR = 50
"""Number of places to search for an entry's: `--tb=line` keeps the order of the summary."""
_CAPTURED = regex(r"^-{3,} Captured .+ -{3,}$")
_ONE_LINE = regex(r"^([^\s:][^:]*):(\d{1,9}): (\S.*)$")
_RAISED = regex(r"^(?:\w+\.)*([A-Z]\w*)(?:: |:?$)")
_MARK = regex(r"^E(?: {3}(.*)|\s*)$")
_LONG = regex(r"^([^\s:][^:]*):(\d{1,9}): ?([\w.]*)$")
_SHORT = regex(r"^([^\s:][^:]*):(\d{1,9}): in (.+)$")
_SYNTAX = regex(r'^E\s+File "([^"]+)", line (\d{1,9})')
_DEF = regex(r"^[ >] +(?:async )?def (\w+)")
_WORKER = regex(r"^\[gw\d+\] \w+ -- Python ")
_HEADING = regex(r"^={2,} short test summary info ={2,}$")
# subtests name their parameters, other plugins a duration, in front of the id
_ENTRY = regex(r"^(FAILED|ERROR|SUBFAILED)(?: ?\[[^\]]*\]| ?\([^)]*\))* (\S.*)$")
_VERBOSE = regex(
    r"^(?:\[gw\d+\] \[ *\d+%\] (?:FAILED|ERROR) (\S+::.+?)"
    r"|(\S+::.+?) (?:FAILED|ERROR)(?: +\[.*\])?)\s*$"
)
_NODE = regex(r"^[^\s:]\S*\.\w{1,20}(?:::|$)")
_COUNTS = regex(
    r"^(?:=+ )?(?:\d{1,9} [a-z ]{1,41}(?:, \d{1,9} [a-z ]{1,41})*|no tests ran) in [\d.]+s\b"
)


class SummaryLine(Struct, frozen=True):
    """A line of the short test summary."""

    number: int
    """Line number in the output, 0-based."""
    word: str
    """FAILED, ERROR or SUBFAILED."""
    node: str
    """Node id for pytest's command line."""
    message: str
    """First line of the message, often cut."""

    @property
    def title(self) -> str:
        """Title in the heading of the failure."""
        plain, bracket, parameters = self.node.partition("::")[2].partition("[")
        return plain.replace("::", ".") + bracket + parameters


def summary_start(lines: Sequence[str]) -> int:
    """Number of the last heading, as captured output may have others; else the end."""
    return max(matching(lines, _HEADING), default=len(lines))


def entries_of(lines: Sequence[str]) -> tuple[SummaryLine, ...]:
    """The entries below the last heading, or in all lines if there is no heading."""
    start = summary_start(lines) % len(lines) if lines else 0
    entries: list[SummaryLine] = []
    for number in range(start, len(lines)):
        match = _ENTRY.match(lines[number])
        if match is None or not _NODE.match(match[2]):
            continue
        node, _, message = match[2].partition(" - ")
        if node.count("[") > node.count("]"):  # a parameter contains ` - `
            node, end, message = match[2].partition("] - ")
            node += end[:1]
        entries.append(SummaryLine(number, match[1], node, message))
    return tuple(entries)


Titled = Mapping[str, Sequence[SummaryLine]]
"""Entries by heading of the failure; tests in different files may have the same name."""


def entry_for(title: str, entries: Titled, paths: frozenset[str]) -> SummaryLine | None:
    """The entry of a failure's heading, preferably in the file of one of its frames."""
    name = title.removeprefix("[doctest] ")
    # A subtest's heading ends with its message or parameters.
    names = (name, name.partition(" (")[0], name.partition(" [")[0])
    same = next((entries[n] for n in names if n in entries), ())
    own = (entry for entry in same if entry.node.partition("::")[0] in paths)
    return next(own, same[0] if same else None)


def explain(lines: Sequence[str]) -> Diagnostic:
    """The last exception of a chain, and every frame of the project."""
    frames: list[Frame] = []
    marked: list[str] = []
    fresh, rule, function = True, None, None
    for line in lines:
        mark, defined = _MARK.match(line), _DEF.match(line)
        short, long = _SHORT.match(line), _LONG.match(line)
        if mark:
            marked = [*marked[: 0 if fresh else None], mark[1] or ""]
        elif short:
            _add(frames, short, short[3])
        elif long:
            _add(frames, long, function)
            rule = long[3] or rule
        elif defined:
            function = defined[1]
        fresh = not mark and bool(fresh or short or long)
    syntax = [*filter(None, map(_SYNTAX.match, lines))]
    if syntax:
        place = syntax[-1]
        kind = marked[-1].strip()
        return Diagnostic(
            tool="pytest",
            rule_id=kind.partition(":")[0],
            message="\n".join((kind, *marked[1:-1])),
            path=place[1],
            region=region_of({"line": place[2]}),
        )
    return _diagnostic(lines, frames, marked, rule) if marked else _unmarked(lines)


def _add(frames: list[Frame], place: re.Match[str], function: str | None) -> None:
    """Append a frame unless it equals the last one."""
    frame = Frame(path=place[1], line=int(place[2]), function=function)
    if frames[-1:] != [frame]:
        frames.append(frame)


def _unmarked(lines: Sequence[str]) -> Diagnostic:
    """A failure with a plain traceback (`--tb=native`, doctest), or none (`[XPASS(strict)]`)."""
    text = [line for line in lines if line.strip()]
    place = _LONG.match(text[-1]) if text else None
    body = text[:-1] if place else lines
    plain = crash("pytest", body)
    plain = plain or Diagnostic(tool="pytest", message=shortened(text[: len(body)]))
    if place is None or plain.path:
        return plain
    region = region_of({"line": place[2]})
    return replace(plain, rule_id=plain.rule_id or place[3], path=place[1], region=region)


def _diagnostic(
    lines: Sequence[str], frames: Sequence[Frame], marked: Sequence[str], rule: str | None
) -> Diagnostic:
    message = textwrap.dedent("\n".join(marked)).split("\n")
    own = [frame for frame in frames if inside(frame.path)]
    if not frames:  # `--tb=line` gives the place below the message
        places = (Frame(path=m[1], line=int(m[2])) for m in matching(lines, _ONE_LINE).values())
        own = [frame for frame in places if inside(frame.path)][:1]
    problem = Diagnostic(
        tool="pytest", rule_id=_rule(message[0]) or rule, message=shortened(message)
    )
    return placed(problem, (*own,), {})


def _rule(message: str) -> str | None:
    """The exception at the start of a message; pytest omits it for a bare assertion."""
    raised = _RAISED.match(message)
    if raised:
        return raised[1]
    return "AssertionError" if message.startswith("assert ") else None


@parses(
    "pytest",
    commands=("pytest", "py.test", "-m pytest"),
    marks=(
        "short test summary info",
        "test session starts",
        "= FAILURES =",
        "= ERRORS =",
        "no tests ran in ",
        " passed in ",
        " failed in ",
        " skipped in ",
        " deselected in ",
        "ImportError while loading conftest '",
    ),
)
def pytest(log: Log) -> list[Located]:
    """The failures with their tracebacks, what stops it before any test, and the summary."""
    entries = entries_of(log.lines)
    titled = defaultdict(list)
    for entry in entries:
        titled[entry.title].append(entry)
    return _PytestOutput(log.lines, entries, titled).problems()


def _ends(line: str, *, captured: bool) -> bool:
    banner = _BANNER.match(line)
    if banner is None:
        return not captured and (line.startswith("!!!!") or _COUNTS.match(line) is not None)
    return not captured or banner[1] == "warnings summary"


def _of_entry(entry: SummaryLine, place: re.Match[str] | None) -> Diagnostic:
    message = place[3] if place else entry.message
    parts = {"path": entry.node.partition("::")[0]}
    if place and inside(place[1]):
        parts = {"path": place[1], "line": place[2]}
    return Diagnostic(
        tool="pytest",
        rule_id=_rule(message),
        message=message or entry.word.lower(),
        path=parts["path"],
        region=region_of(parts),
        test_id=entry.node,
    )


class _PytestOutput(Struct, frozen=True):
    """One output with the entries of its summary."""

    lines: Sequence[str]
    entries: Sequence[SummaryLine]
    titled: Titled

    def problems(self) -> list[Located]:
        failures = [self._failure(first, last) for first, last in self._blocks()]
        failures += self._outside_tests()
        entries = self.entries
        if not failures and not entries:  # only the progress of `-v` lists them: `--tb=no -rN`
            listed = matching(self.lines, _VERBOSE).items()
            entries = [SummaryLine(at, "FAILED", m[1] or m[2], "") for at, m in listed]
        return [*failures, *self._only_listed(failures, entries)]

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """First and last line of each failure.

        Captured output may itself be pytest's: after it, a heading counts only if it is in the
        summary.
        """
        end = summary_start(self.lines)
        start: int | None = None
        captured = False
        for number in range(end):
            line = self.lines[number]
            if start is not None and _CAPTURED.match(line):
                captured = True
            is_title = self._is_title(line, captured=captured)
            if not is_title and not _ends(line, captured=captured):
                continue
            if start is not None:
                yield start, number - 1
            start = number if is_title else None
            captured = False
        if start is not None:
            yield start, end - 1

    def _is_title(self, line: str, *, captured: bool) -> bool:
        title = _TITLE.match(line)
        if title is None or title[1].startswith("coverage: "):
            return False
        if not captured or not self.titled:
            return True
        stage = _STAGE.match(title[1])
        if stage and stage[2]:
            return any(entry.node == stage[3] for entry in self.titled.get("", ()))
        return entry_for(stage[3] if stage else title[1], self.titled, frozenset()) is not None

    def _failure(self, first: int, last: int) -> Located:
        title = _TITLE.match(self.lines[first])
        name = title[1] if title else ""
        stage = _STAGE.match(name)
        printed = above(self.lines[first + 1 : last + 1], _CAPTURED)
        body = [line for line in printed if not _WORKER.match(line)]
        diagnostic = explain(body)
        if stage and stage[2]:
            test_id: str | None = stage[3]
        else:
            paths = frozenset(frame.path for frame in diagnostic.frames)
            test_id = self._test_id(stage[3] if stage else name, paths, diagnostic)
        at = f"error at {stage[1]}: " if stage and stage[1] else ""
        problem = replace(
            diagnostic,
            message=at + (diagnostic.message or name),
            path=diagnostic.path or (test_id or "").partition("::")[0] or None,
            test_id=test_id,
        )
        return Located(problem, first, last)

    def _test_id(self, name: str, paths: frozenset[str], diagnostic: Diagnostic) -> str | None:
        crashed = _CRASHED.search(diagnostic.message)
        if crashed:
            return crashed[1]
        entry = entry_for(name, self.titled, paths)
        if entry is not None:
            return entry.node
        if not diagnostic.frames:
            return None
        plain, bracket, parameters = name.partition("[")
        return f"{diagnostic.frames[0].path}::{plain.replace('.', '::')}{bracket}{parameters}"

    def _outside_tests(self) -> Iterator[Located]:
        """Errors that stop pytest before any test: usage, failing conftest, internal crash."""
        for number, usage in matching(self.lines, _USAGE).items():
            problem = Diagnostic(tool="pytest", rule_id="usage", message=usage[1])
            yield Located(problem, number, number)
        for number, conftest in matching(self.lines, _CONFTEST).items():
            body = above(self.lines[number + 1 :], _BLANK)
            problem = explain(body)
            problem = replace(problem, path=problem.path or conftest[1])
            yield Located(problem, number, number + len(body))
        yield from self._timed_out()
        internal = [i for i, line in enumerate(self.lines) if line.startswith(_INTERNAL)]
        own = crash("pytest", [self.lines[i].removeprefix(_INTERNAL) for i in internal])
        if own:
            yield Located(own, internal[0], internal[-1])

    def _timed_out(self) -> Iterator[Located]:
        """The test that pytest-timeout ended by its thread method: stacks remain of the process."""
        start = min(matching(self.lines, _TIMEOUT), default=None)
        if start is None:
            return
        rest = self.lines[start:]
        stacks = [n for n, line in enumerate(rest) if line.startswith("~~~")]
        for first, after in pairwise((*stacks, len(rest))):
            frames = python_frames(rest[first:after])
            test = next((f for f in frames if (f.function or "").startswith("test")), None)
            if test:
                test_id = f"{test.path}::{test.function}"
                problem = Diagnostic(
                    tool="pytest", rule_id="timeout", message="Timeout in the test", test_id=test_id
                )
                yield Located(placed(problem, frames, {}), start, start + after - 1)
                return

    def _only_listed(
        self, failures: Sequence[Located], entries: Sequence[SummaryLine]
    ) -> Iterator[Located]:
        """Failures that only the summary has: `--tb=no`, `--tb=line`, a log cut in the middle."""
        known = Counter(failure.diagnostic.test_id for failure in failures)
        places = [*matching(self.lines, _ONE_LINE).values()] if entries else []
        for entry in entries:
            if known[entry.node]:
                known[entry.node] -= 1
                continue
            start = entry.message.removesuffix("...") or "\n"
            place = next((near for near in places[:_NEAR] if near[3].startswith(start)), None)
            if place:
                places.remove(place)
            yield Located(_of_entry(entry, place), entry.number, entry.number)
