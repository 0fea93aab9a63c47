"""What a person reads: events, results and outcomes as styled lines. Prints nothing."""

import re
from collections.abc import Iterable, Iterator, Sequence

from atlas_retry.events import (
    AgentActivity,
    AgentReplied,
    AnswerRetried,
    AttemptFinished,
    AttemptStarted,
    Event,
    FixerFinished,
    GateFinished,
    GateStarted,
    Notice,
    RunStarted,
    TransportRetried,
    ValidationStarted,
    ViolationsFound,
    WorkspaceFinished,
)
from atlas_retry.model import (
    Attempt,
    Change,
    Diagnostic,
    GateResult,
    Held,
    Level,
    Outcome,
    ReplyStatus,
    Status,
    Validation,
    Verdict,
    Violation,
)
from atlas_retry.text.units import bounded, counted, seconds, some, spent, usd

Line = tuple[str, str]
"""Text and the name of its style, a key of `STYLES`; `gate` heads what a gate had to say, up to the
next empty line."""

STYLES = {
    "": "",
    "good": "green",
    "bad": "bold red",
    "gate": "bold red",
    "warn": "yellow",
    "dim": "dim",
    "head": "bold",
    "code": "cyan",
}
"""As Rich names them."""

MARKS = {
    Status.PASSED: ("ok", "good"),
    Status.FAILED: ("FAILED", "bad"),
    Status.TIMED_OUT: ("TIMED OUT", "bad"),
    Status.BROKEN: ("BROKEN", "bad"),
    Status.VACUOUS: ("NO TESTS", "bad"),
    Status.FLAKY: ("flaky", "warn"),
    Status.SKIPPED: ("skipped", "dim"),
}

HEAD_LINES, TAIL_LINES, MAX_DIAGNOSTICS, GLIMPSE, MAX_CHANGES = 8, 24, 20, 3, 5
MAX_MESSAGE_CHARS, MAX_STEP_CHARS, DIAGNOSIS_LINES = 240, 74, 6


def lines_of(event: Event, *, verbosity: int = 0) -> Iterator[Line]:
    """The lines that tell an event. `verbosity`: -1 quiet, 0 as usual, 1 and more: everything."""
    match event:
        case Notice():
            yield event.text, "warn" if event.level is not Level.NOTE else ""
        case GateStarted() | ValidationStarted() if verbosity > 0:
            yield event.message, "dim"
        case GateFinished():
            yield from _gate(event.result)
            if event.scope.run:
                yield from _first_problems(event.result)
        case FixerFinished():
            yield f"  {event.message}: {event.command}", "good" if event.changed else "dim"
        case RunStarted():
            yield from _left_out(event, verbosity)
        case AttemptStarted():
            yield "", ""
            yield event.message, "head"
        case TransportRetried() | AnswerRetried():
            yield f"  {event.message}", "warn"
        case ViolationsFound():
            yield from _violations(event)
        case AgentActivity() | AgentReplied():
            yield from _agents(event)
        case AttemptFinished() | WorkspaceFinished():
            yield from _ended(event)
        case _:
            return


def _gate(result: GateResult) -> Iterator[Line]:
    mark, style = MARKS[result.status]
    if not result.required and not result.success:
        style, mark = "warn", f"{mark} (optional)"
    tail = f": {bounded(result.error, MAX_MESSAGE_CHARS)}" if result.error else ""
    took = f"reused, from {_when(result.reused)}" if result.reused else seconds(result.duration_ms)
    yield f"  {mark:<9} {result.name} ({took}){tail}", style
    if result.changed:
        yield f"            changed {_some(result.changed)}", "dim"
    for note in result.notes:
        yield f"            {note}", "warn"


def _when(stamp: str) -> str:
    return f"{stamp[:19].replace('T', ' ')} UTC"


def _first_problems(result: GateResult) -> Iterator[Line]:
    """Within a run the details come last, so a glimpse comes first."""
    if result.success:
        return
    shown = _tests_first(result)[:GLIMPSE]
    for diagnostic in shown:
        yield f"            {_told(diagnostic)}", "dim"
    if left := _more(result, shown):
        yield f"            and {left}", "dim"


def _tests_first(result: GateResult) -> list[Diagnostic]:
    return sorted(result.diagnostics, key=lambda diagnostic: diagnostic.test_id is None)


def _more(result: GateResult, shown: Iterable[Diagnostic]) -> str:
    """How many problems are not shown; empty for none."""
    left = result.problems - sum(diagnostic.count for diagnostic in shown)
    if left > 0:
        return f"{'at least ' if result.at_least else ''}{left} more"
    return "perhaps more: not all of the output could be read" if result.at_least else ""


def _some(names: Iterable[str]) -> str:
    return some(map(printable, names), limit=4)


def printable(text: str) -> str:
    """A name as it can be shown: surrogates and control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, and what turns the direction of writing."""


def harmless(text: str) -> str:
    """Any text as a terminal may get it: whatever would command it is escaped."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _left_out(event: RunStarted, verbosity: int) -> Iterator[Line]:
    if event.left_out:
        shown = event.left_out if verbosity > 0 else event.left_out[:3]
        rest = f" and {len(event.left_out) - len(shown)} more" if shown != event.left_out else ""
        names = "; ".join(printable(name) for name in shown)
        yield f"not held by the snapshot: {names}{rest}", "dim"


def _violations(event: ViolationsFound) -> Iterator[Line]:
    if event.violations:
        done = "all of the attempt is reverted" if event.rolled_back else "these files are reverted"
        yield f"  the guard refuses {counted(len(event.violations), 'change')}; {done}:", "bad"
        yield from map(_found, event.violations)
    if held := [seen for seen in event.held if not seen.in_place]:
        yield (
            f"  {counted(len(held), 'change')} for a person to accept, reverted meanwhile:",
            "warn",
        )
        yield from map(_found, held)
    if review := [seen for seen in event.held if seen.in_place]:
        yield f"  {counted(len(review), 'change')} for a person to look at, left in place:", "warn"
        yield from map(_found, review)


def _found(seen: Violation | Held) -> Line:
    place = f"{seen.path}:{seen.line}" if seen.line else seen.path
    return f"    {printable(place)}: {seen.rule}: {seen.detail}", "warn"


def _agents(event: AgentActivity | AgentReplied) -> Iterator[Line]:
    """A step of the agent, or its own account of the turn: what it found and did."""
    if isinstance(event, AgentActivity):
        yield f"  · {bounded(event.text, MAX_STEP_CHARS)}", "dim"
        return
    if event.reply.status is ReplyStatus.UNAVAILABLE:
        yield f"  the agent is not available: this was not attempt {event.number}", "warn"
        return
    lines = [line for line in event.reply.summary.splitlines() if line.strip()]
    for line in lines[:DIAGNOSIS_LINES]:
        yield f"  > {bounded(line.strip(), MAX_MESSAGE_CHARS)}", ""
    if len(lines) > DIAGNOSIS_LINES:
        yield f"  > ... {counted(len(lines) - DIAGNOSIS_LINES, 'more line')}", "dim"


def _ended(event: AttemptFinished | WorkspaceFinished) -> Iterator[Line]:
    if isinstance(event, WorkspaceFinished):
        style = "good" if event.outcome.verdict.is_green else "bad"
        yield f"{headline(event.outcome)} [{event.number} of {event.total}]", style
        return
    attempt = event.result
    passed = attempt.validation is not None and attempt.validation.success
    cost = "" if attempt.cost_usd is None else f", {usd(attempt.cost_usd)}"
    yield f"{event.message} ({seconds(attempt.duration_ms)}{cost})", "good" if passed else "bad"
    if attempt.error:
        yield f"  the agent: {bounded(attempt.error, MAX_MESSAGE_CHARS)}", "warn"
    if attempt.denials:
        yield f"  not permitted: {_some(tuple(dict.fromkeys(attempt.denials)))}", "warn"
    if needed := [held.path for held in attempt.held if held.needed]:
        yield f"  green only with what was held: {_some(dict.fromkeys(needed))}", "warn"
    if not passed:
        counts = (("fixed", attempt.fixed), ("remaining", attempt.remaining))
        told = [f"{len(found)} {word}" for word, found in counts]
        yield f"  {', '.join(told)}, {len(attempt.introduced)} introduced", "dim"
    if attempt.worse:
        yield "  this is worse than before: it is reverted before another attempt", "warn"


def failure_lines(validation: Validation, *, verbosity: int = 0) -> Iterator[Line]:
    """What failed and where, gate by gate."""
    for result in validation.results:
        if not result.success:
            yield "", ""
            yield (
                f"{result.name}: {bounded(result.error or result.status, MAX_MESSAGE_CHARS)}",
                "gate",
            )
            yield f"  $ {result.command}", "code"
            yield from _problems(result, verbosity)
            yield from _output(result, verbosity)


def _problems(result: GateResult, verbosity: int) -> Iterator[Line]:
    limit = len(result.diagnostics) if verbosity > 0 else MAX_DIAGNOSTICS
    shown = _tests_first(result)[:limit]
    for diagnostic in shown:
        yield f"  {_told(diagnostic)}", ""
    if left := _more(result, shown):
        count = len(result.diagnostics)
        all_of = "all" if not (result.beyond or result.at_least) else f"the first {count}"
        yield f"  ... and {left}{f' (-v shows {all_of})' if limit < count else ''}", "dim"


def _told(diagnostic: Diagnostic) -> str:
    """A failing test by its id and then its place, everything else by its place."""
    place, said = _place(diagnostic), _said(diagnostic)
    if diagnostic.test_id is None:
        return f"{place or printable(diagnostic.tool)}: {said}"
    return f"{printable(diagnostic.test_id)}: {said}{f' ({place})' if place else ''}"


def _place(diagnostic: Diagnostic) -> str:
    region = diagnostic.region
    if diagnostic.path is None:
        return ""
    numbers = (region.start_line, region.start_column) if region else ()
    return ":".join((printable(diagnostic.path), *(str(n) for n in numbers if n)))


def _said(diagnostic: Diagnostic) -> str:
    first = diagnostic.message.strip().splitlines() or [""]
    named = diagnostic.rule_id and not first[0].startswith(diagnostic.rule_id)
    rule = f"{diagnostic.rule_id} " if named else ""
    times = f" (x{diagnostic.count})" if diagnostic.count > 1 else ""
    before = " (there before the change)" if diagnostic.preexisting else ""
    return f"{rule}{bounded(printable(first[0]), MAX_MESSAGE_CHARS)}{times}{before}"


def _output(result: GateResult, verbosity: int) -> Iterator[Line]:
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        lines = text.rstrip().splitlines()
        if lines:
            yield f"  {name}:", "dim"
            yield from ((f"    {line}", "") for line in _middle_out(lines, verbosity))
    if result.log_path:
        yield f"  the whole output: {result.log_path}", "dim"


def _middle_out(lines: list[str], verbosity: int) -> list[str]:
    if verbosity > 0 or len(lines) <= HEAD_LINES + TAIL_LINES + 1:
        return lines
    left_out = len(lines) - HEAD_LINES - TAIL_LINES
    return [*lines[:HEAD_LINES], f"... {left_out} lines left out ...", *lines[-TAIL_LINES:]]


def validation_summary(validation: Validation, next_command: str) -> Iterator[Line]:
    """The last lines of `atlas validate`."""
    count = len(validation.results)
    passed = sum(result.success for result in validation.results)
    yield "", ""
    if validation.success:
        warned = [r.name for r in validation.results if r.status is Status.FLAKY or not r.success]
        tail = f"; look at {_some(tuple(warned))}" if warned else ""
        took = seconds(validation.duration_ms)
        said = "" if passed == count else "no required gate failed, "
        yield f"clean: {said}{passed} of {count} gates passed ({took}){tail}", "good"
        return
    if not validation.failures:
        yield f"not checked: {validation.unchecked}", "bad"
        yield f"next: {next_command}", "code"
        return
    names = _some(tuple(result.name for result in validation.failures))
    word = "broken" if validation.broken else "failed"
    yield f"{word}: {names} ({passed} of {count} gates passed)", "bad"
    yield f"next: {next_command}", "code"


def outcome_summary(outcome: Outcome, *, with_commands: bool = True) -> Iterator[Line]:
    """The last lines of `atlas retry`: how it ended, what stays, what to type next."""
    yield "", ""
    yield headline(outcome), "good" if outcome.verdict.is_green else "bad"
    kept = [attempt for attempt in outcome.attempts if attempt.kept]
    for attempt in kept:
        own = [c for c in attempt.since_start if c.path not in outcome.gates_changed]
        yield f"  attempt {attempt.number} is in the workspace: {_changes(own)}", ""
    if outcome.gates_changed:
        yield f"  changed by gates: {_some(outcome.gates_changed)}", ""
    yield from _course(outcome, kept)
    yield from answer_lines(outcome)
    if outcome.learning_record_id:
        yield f"  recorded as {outcome.learning_record_id}: atlas learnings", "dim"
    if outcome.handoff_path:
        yield f"  for whoever goes on: {outcome.handoff_path}", ""
    if with_commands:
        yield from _next_commands(outcome)
    yield from lost_lines(outcome)


def _course(outcome: Outcome, kept: list[Attempt]) -> Iterator[Line]:
    """How the number of problems went, and where the best tree is if it is not in the workspace."""
    from atlas_retry.diagnostics.counting import counts_of, course_of
    from atlas_retry.reports.phrases import sparkline, strip_of

    if outcome.verdict.is_green:
        return
    if problems := course_of(outcome):
        yield f"  problems: {problems}  {sparkline(counts_of(outcome)).strip()}", ""
        red = [(name, seen) for name, seen in strip_of(outcome) if not all(map(_is_ok, seen))]
        yield f"  gates: {some((f'{name} {_strip(seen)}' for name, seen in red), limit=6)}", ""
    if outcome.better is not None:
        yield f"  attempt {outcome.better} came closest, and is not kept", "warn"
        yield f"take: atlas pick {outcome.run_id} {outcome.better}", "code"
    elif outcome.attempts and not kept:
        yield "  no attempt was better: the workspace is as it was before the first one", ""


def _is_ok(result: GateResult | None) -> bool:
    return result is not None and result.success


def _strip(seen: Sequence[GateResult | None]) -> str:
    """A character for each validation: passed, not passed, not run."""
    return "".join("-" if one is None else "✓" if one.success else "✗" for one in seen)


def lost_lines(outcome: Outcome) -> Iterator[Line]:
    """What was not committed and is gone, with the command that brings its file back."""
    for lost in outcome.lost:
        names = f"{printable(lost.path)}: {_some(lost.names)}"
        yield f"gone, and it was not committed: {names}", "warn"
        yield f"bring it back: {lost.command}", "code"


def answer_lines(outcome: Outcome) -> Iterator[Line]:
    """What the guard answered and what became of it, a line each."""
    from atlas_retry.reports import findings

    found = findings.of_run(outcome)
    for fate in dict.fromkeys(one.fate for one in found):
        paths = dict.fromkeys(
            f"{one.seen.path} ({one.seen.rule})" for one in found if one.fate == fate
        )
        yield f"  {fate}: {_some(paths)}", "dim" if fate == findings.AnswerWord.NOTED else "warn"


def _next_commands(outcome: Outcome) -> Iterator[Line]:
    if outcome.remedy:
        yield f"next: {outcome.remedy}", "code"
    elif outcome.attempts and not outcome.verdict.is_green:
        yield f"next: atlas log {outcome.run_id}", "code"
    elif outcome.verdict is Verdict.FAILED:
        yield f"next: atlas retry {outcome.workspace.root} --ai-fix", "code"
    yield from _accepting(outcome)
    if outcome.attempts:
        yield f"look: atlas diff {outcome.run_id}", "code"
        yield f"back: atlas undo {outcome.run_id}", "code"


def _accepting(outcome: Outcome) -> Iterator[Line]:
    """What accepts what was held, where it is not named already."""
    from atlas_retry.reports import findings

    held = (one for one in findings.of_run(outcome) if one.is_accepting)
    for command in dict.fromkeys(one.command for one in held):
        if command != outcome.remedy:
            yield f"accept: {command}", "code"


def headline(outcome: Outcome) -> str:
    """How a run ended, in one line."""
    has_cost = outcome.cost_usd or outcome.interrupted_usd
    cost = f", {spent(outcome.cost_usd, outcome.interrupted_usd)}" if has_cost else ""
    took = f"({seconds(outcome.duration_ms)}{cost})"
    if outcome.verdict is Verdict.FIXED:
        count = len(outcome.attempts)
        by = f"in {count} attempt{'s' if count > 1 else ''}" if count else "by the fixers"
        return f"fixed {by} {took}"
    error = bounded(outcome.final_error or "", MAX_MESSAGE_CHARS)
    reason = f": {error}" if error else ""
    return f"{outcome.verdict.value.replace('_', ' ')}{reason} {took}"


def _changes(changes: Sequence[Change]) -> str:
    more = f"; and {len(changes) - MAX_CHANGES} more" if len(changes) > MAX_CHANGES else ""
    return ("; ".join(map(_change, changes[:MAX_CHANGES])) or "no change") + more


def _change(change: Change) -> str:
    if change.added is None or change.removed is None:
        return f"{printable(change.path)} ({change.status})"
    return f"{printable(change.path)} (+{change.added} -{change.removed})"
