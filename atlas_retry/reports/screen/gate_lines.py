"""Results of gates as styled lines: one gate, all failures, a whole validation."""

from collections.abc import Iterator

from atlas_retry.model import Diagnostic, GateResult, Kind, Status, Validation
from atlas_retry.reports.problems import more, position, tests_first
from atlas_retry.reports.screen.lines import (
    MAX_MESSAGE_CHARS,
    Line,
    command_lines,
    names_of,
    printable,
)
from atlas_retry.text.units import bounded, counted, seconds

MARKS = {
    Status.PASSED: ("ok", "good"),
    Status.FAILED: ("FAILED", "bad"),
    Status.TIMED_OUT: ("TIMED OUT", "bad"),
    Status.BROKEN: ("BROKEN", "bad"),
    Status.VACUOUS: ("NO TESTS", "bad"),
    Status.FLAKY: ("flaky", "warn"),
    Status.SKIPPED: ("skipped", "dim"),
}
HEAD_LINES, TAIL_LINES, MAX_DIAGNOSTICS, GLIMPSE = 8, 24, 20, 3
INDENT = " " * 12
"""Indentation below the name of a gate."""


def gate_lines(result: GateResult, *, with_glimpse: bool) -> Iterator[Line]:
    """Status of a gate and the files it changed; if it failed, its first problems."""
    mark, style = MARKS[result.status]
    if not result.required and not result.success:
        style, mark = "warn", f"{mark} (optional)"
    error = f": {bounded(result.error, MAX_MESSAGE_CHARS)}" if result.error else ""
    took = seconds(result.duration_ms)
    if result.reused:
        took = f"reused, from {result.reused[:19].replace('T', ' ')} UTC"
    yield f"  {mark:<9} {result.name} ({took}){error}", style
    if result.changed:
        yield f"{INDENT}changed while it ran: {names_of(result.changed)}", "dim"
    for note in result.notes:
        yield f"{INDENT}{note}", "warn"
    if with_glimpse and not result.success:
        shown = tests_first(result)[:GLIMPSE]
        for diagnostic in shown:
            yield f"{INDENT}{_problem(diagnostic)}", "dim"
        if left := more(result, shown):
            yield f"{INDENT}and {left}", "dim"


def failure_lines(validation: Validation, *, verbosity: int = 0) -> Iterator[Line]:
    """Failures by gate; gates that could not run come last."""
    for result in sorted(validation.results, key=lambda one: one.status is Status.BROKEN):
        if not result.success:
            error = bounded(result.error or result.status, MAX_MESSAGE_CHARS)
            yield "", ""
            yield f"{result.name}: {error}", "gate"
            yield f"  $ {result.command or 'atlas validate --review'}", "code"
            yield from _problems(result, verbosity)
            if verbosity > 0 or not _is_all_listed(result):
                yield from _output(result, verbosity)
            if result.log_path:
                yield f"  the whole output: {result.log_path}", "dim"


def _is_all_listed(result: GateResult) -> bool:
    """Whether the list of problems says what the output says; of a test it lacks the traceback."""
    read = result.kind is not Kind.TEST and not result.at_least
    return read and bool(result.diagnostics) and all(map(position, result.diagnostics))


def _problems(result: GateResult, verbosity: int) -> Iterator[Line]:
    count = len(result.diagnostics)
    limit = count if verbosity > 0 else MAX_DIAGNOSTICS
    shown = tests_first(result)[:limit]
    yield from ((f"  {_problem(diagnostic)}", "") for diagnostic in shown)
    if left := more(result, shown):
        hint = f" (-v shows {count})" if limit < count else ""
        yield f"  ... and {left}{hint}", "dim"


def _problem(diagnostic: Diagnostic) -> str:
    """A failing test with id and place, any other problem with its place."""
    place, message = printable(position(diagnostic)), _message(diagnostic)
    if diagnostic.test_id is None:
        return f"{place or printable(diagnostic.tool)}: {message}"
    return f"{printable(diagnostic.test_id)}: {message}{f' ({place})' if place else ''}"


def _message(diagnostic: Diagnostic) -> str:
    first = (diagnostic.message.strip().splitlines() or [""])[0]
    rule, message = diagnostic.rule_id or "", bounded(printable(first), MAX_MESSAGE_CHARS)
    if rule and not first.startswith(rule):
        # a code such as F401 is read first, a rule that is made of words last
        message = f"{rule} {message}" if any(map(str.isdigit, rule)) else f"{message} [{rule}]"
    times = f" (x{diagnostic.count})" if diagnostic.count > 1 else ""
    before = " (there before the change)" if diagnostic.preexisting else ""
    return f"{message}{times}{before}"


def _output(result: GateResult, verbosity: int) -> Iterator[Line]:
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        lines = text.rstrip().splitlines()
        left_out = len(lines) - HEAD_LINES - TAIL_LINES
        if verbosity <= 0 and left_out > 1:
            lines[HEAD_LINES:-TAIL_LINES] = [f"... {left_out} lines left out ..."]
        if lines:
            yield f"  {name}:", "dim"
            yield from ((f"    {line}", "") for line in lines)


def validation_summary(
    validation: Validation, next_command: str, *, is_reviewed: bool = True
) -> Iterator[Line]:
    """The last lines of `atlas validate`; `is_reviewed`: no change waits for a person."""
    yield "", ""
    if validation.success:
        head = ("clean", "good") if is_reviewed else ("not reviewed", "warn")
        yield f"{head[0]}: {_passed(validation)}", head[1]
        return
    names = names_of(result.name for result in validation.failures)
    if names:
        word = "broken" if validation.broken else "failed"
        yield f"{word}: {names} ({validation.counts})", "bad"
    else:
        yield f"not checked: {validation.unchecked}", "bad"
    yield from command_lines("next", next_command)


def _passed(validation: Validation) -> str:
    """The counts of a success; if a change need not concern all gates, of those that ran."""
    results = validation.results
    if validation.is_limited:
        results = tuple(result for result in results if result.status is not Status.SKIPPED)
    rest = len(validation.results) - len(results)
    others = f"; {counted(rest, 'gate')} did not run" if rest else ""
    only_optional = "" if all(r.success for r in results) else "no required gate failed, "
    fine = (Status.PASSED, Status.SKIPPED)
    warned = [result.name for result in results if result.status not in fine]
    look = f"; look at {names_of(warned)}" if warned else ""
    took = seconds(validation.duration_ms)
    return f"{only_optional}{validation.counts} ({took}){others}{look}"
