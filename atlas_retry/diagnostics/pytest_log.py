"""Reads what pytest prints: failures in every traceback style, errors, counts. Knows no plugin."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics import traceback
from atlas_retry.diagnostics.failures import inside, matching
from atlas_retry.diagnostics.pytest_failure import CAPTURED, ONE_LINE, RAISED, explain, uncaptured
from atlas_retry.diagnostics.pytest_summary import (
    SummaryLine,
    Titled,
    closing_lines,
    entries_of,
    entry_for,
    runs,
    summary_start,
    tests_run,
    titled,
)
from atlas_retry.diagnostics.table import region_of
from atlas_retry.diagnostics.values import Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic

# https://docs.pytest.org/en/stable/how-to/output.html#modifying-python-traceback-printing
_BANNER = re.compile(r"^={2,} (\S.{0,300}) ={2,}$")
_TITLE = re.compile(r"^_{1,200} (?!_ )(\S.{0,600}) _{1,200}$")
_STAGE = re.compile(r"^ERROR (?:at (setup|teardown) of|(collecting)) (.+)$")
_CONFTEST = "ImportError while loading conftest '"
_USAGE = re.compile(r"^(?:ERROR: (?!Coverage|usage:)|pytest: error: )(\S.*)$")
_CRASHED = re.compile(r"^worker '\w+' crashed while running '(.+)'$")
_INTERNAL = "INTERNALERROR> "
_VACUOUS_EXIT = 5
_NEAR = 50
"""Places among which an entry looks for its own: `--tb=line` keeps the order of the summary."""


def _read(log: Log) -> Reading:
    lines = log.lines
    entries = entries_of(lines)
    known = titled(entries)
    end = summary_start(lines)
    found = [_failure(lines, first, last, known) for first, last in _blocks(lines, known, end)]
    found += _outside_tests(lines)
    found += list(_only_listed(lines, found, entries))
    ran = tests_run(lines)
    nothing = ran == 0 and not found and log.exit_code in (0, _VACUOUS_EXIT)
    return Reading(
        found=tuple(found),
        summary=closing_lines(lines, entries),
        tests_run=ran,
        vacuous=nothing or (log.exit_code == _VACUOUS_EXIT and ran is not None),
    )


def _blocks(lines: Sequence[str], entries: Titled, end: int) -> Iterator[tuple[int, int]]:
    """First and last line of each failure.

    What a test has captured may be pytest's output in turn: below such a line a heading must be
    one that the summary knows.
    """
    start: int | None = None
    captured = False
    for number in range(end):
        line = lines[number]
        if start is not None and CAPTURED.match(line):
            captured = True
        is_title = _is_title(line, entries, captured=captured)
        if not is_title and not _ends(line, captured=captured):
            continue
        if start is not None:
            yield start, number - 1
        start = number if is_title else None
        captured = False
    if start is not None:
        yield start, end - 1


def _is_title(line: str, entries: Titled, *, captured: bool) -> bool:
    title = _TITLE.match(line)
    if title is None or title[1].startswith("coverage: "):
        return False
    return not captured or _known(title[1], entries)


def _known(title: str, entries: Titled) -> bool:
    stage = _STAGE.match(title)
    if stage and stage[2]:
        return any(entry.node == stage[3] for entry in entries.get("", ()))
    return not entries or entry_for(stage[3] if stage else title, entries, frozenset()) is not None


def _ends(line: str, *, captured: bool) -> bool:
    banner = _BANNER.match(line)
    if banner is None:
        return not captured and (line.startswith("!!!!") or runs(line) is not None)
    return not captured or banner[1] == "warnings summary"


def _failure(lines: Sequence[str], first: int, last: int, entries: Titled) -> Located:
    title = _TITLE.match(lines[first])
    name = title[1] if title else ""
    stage = _STAGE.match(name)
    body = list(uncaptured(lines[first + 1 : last + 1]))
    diagnostic = explain(body)
    if stage and stage[2]:
        test_id: str | None = stage[3]
    else:
        paths = frozenset(frame.path for frame in diagnostic.frames)
        test_id = _test_id(stage[3] if stage else name, entries, paths, diagnostic)
    at = f"error at {stage[1]}: " if stage and stage[1] else ""
    told = replace(
        diagnostic,
        message=at + (diagnostic.message or name),
        path=diagnostic.path or (test_id or "").partition("::")[0] or None,
        test_id=test_id,
    )
    return Located(told, first, last)


def _test_id(
    name: str, entries: Titled, paths: frozenset[str], diagnostic: Diagnostic
) -> str | None:
    crashed = _CRASHED.search(diagnostic.message)
    if crashed:
        return crashed[1]
    entry = entry_for(name, entries, paths)
    if entry is not None:
        return entry.node
    if not diagnostic.frames:
        return None
    plain, bracket, parameters = name.partition("[")
    return f"{diagnostic.frames[0].path}::{plain.replace('.', '::')}{bracket}{parameters}"


def _outside_tests(lines: Sequence[str]) -> list[Located]:
    """What stops pytest before any test: usage, a conftest that does not import, its own crash."""
    found: list[Located] = []
    for number, line in enumerate(lines):
        usage = _USAGE.match(line)
        if usage:
            told = Diagnostic(tool="pytest", rule_id="usage", message=usage[1])
            found.append(Located(told, number, number))
        elif line.startswith(_CONFTEST):
            found.append(_conftest(lines, number))
    return found + _internal(lines)


def _conftest(lines: Sequence[str], first: int) -> Located:
    last = first
    while last + 1 < len(lines) and lines[last + 1].strip():
        last += 1
    told = explain(lines[first + 1 : last + 1])
    path = lines[first].removeprefix(_CONFTEST).partition("'")[0]
    return Located(replace(told, path=told.path or path), first, last)


def _internal(lines: Sequence[str]) -> list[Located]:
    numbers = [i for i, line in enumerate(lines) if line.startswith(_INTERNAL)]
    if not numbers:
        return []
    told = traceback.crash("pytest", [lines[i].removeprefix(_INTERNAL) for i in numbers])
    return [Located(told, numbers[0], numbers[-1])] if told else []


def _only_listed(
    lines: Sequence[str], found: Sequence[Located], entries: Sequence[SummaryLine]
) -> Iterator[Located]:
    """Failures that only the summary names: `--tb=no`, `--tb=line`, a log cut in the middle."""
    told = Counter(f.diagnostic.test_id for f in found)
    places = [*matching(lines, ONE_LINE).values()] if entries else []
    for entry in entries:
        if told[entry.node]:
            told[entry.node] -= 1
            continue
        place = _place_of(entry, places[:_NEAR])
        if place:
            places.remove(place)
        yield Located(_of_entry(entry, place), entry.number, entry.number)


def _place_of(entry: SummaryLine, places: Sequence[re.Match[str]]) -> re.Match[str] | None:
    said = entry.said.removesuffix("...")
    if not said:
        return None
    return next((place for place in places if place[3].startswith(said)), None)


def _of_entry(entry: SummaryLine, place: re.Match[str] | None) -> Diagnostic:
    message = place[3] if place else entry.said
    raised = RAISED.match(message)
    failed = "AssertionError" if message.startswith("assert ") else None
    parts = {"path": entry.node.partition("::")[0]}
    if place and inside(place[1]):
        parts = {"path": place[1], "line": place[2]}
    return Diagnostic(
        tool="pytest",
        rule_id=raised[1] if raised else failed,
        message=message or entry.word.lower(),
        path=parts["path"],
        region=region_of(parts),
        test_id=entry.node,
    )


PYTEST = Parser(
    name="pytest",
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
        _CONFTEST,
    ),
    read=_read,
)
