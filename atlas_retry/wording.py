"""What a person reads: events, results and outcomes as styled lines. Prints nothing."""

from collections.abc import Iterable, Iterator

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
    Level,
    Outcome,
    ReplyStatus,
    Status,
    Validation,
    Verdict,
)
from atlas_retry.units import seconds, some, usd

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

HEAD_LINES, TAIL_LINES, MAX_DIAGNOSTICS, GLIMPSE = 8, 24, 20, 3


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
                yield from _first_complaints(event.result)
        case FixerFinished():
            yield f"  {event.message}: {event.command}", "good" if event.changed else "dim"
        case RunStarted():
            yield from _left_out(event, verbosity)
        case AttemptStarted():
            yield "", ""
            yield event.message, "head"
        case AgentActivity():
            yield f"  · {event.text}", "dim"
        case TransportRetried() | AnswerRetried():
            yield f"  {event.message}", "warn"
        case ViolationsFound():
            yield from _violations(event)
        case AttemptFinished() | WorkspaceFinished() | AgentReplied():
            yield from _ended(event)
        case _:
            return


def _gate(result: GateResult) -> Iterator[Line]:
    mark, style = MARKS[result.status]
    if not result.required and not result.success:
        style, mark = "warn", f"{mark} (optional)"
    tail = f": {result.error}" if result.error else ""
    yield f"  {mark:<9} {result.name} ({seconds(result.duration_ms)}){tail}", style
    if result.changed:
        yield f"            changed {_some(result.changed)}", "dim"
    for note in result.notes:
        yield f"            {note}", "warn"


def _first_complaints(result: GateResult) -> Iterator[Line]:
    """Within a run the details come last, so a glimpse comes first."""
    for diagnostic in () if result.success else result.diagnostics[:GLIMPSE]:
        yield f"            {_place(diagnostic)}{_said(diagnostic)}", "dim"
    if not result.success and len(result.diagnostics) > GLIMPSE:
        yield f"            and {len(result.diagnostics) - GLIMPSE} more", "dim"


def _some(names: Iterable[str]) -> str:
    return some(map(printable, names), limit=4)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def printable(text: str) -> str:
    """A name as it can be shown: surrogates and control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _left_out(event: RunStarted, verbosity: int) -> Iterator[Line]:
    if event.left_out:
        shown = event.left_out if verbosity > 0 else event.left_out[:3]
        rest = f" and {len(event.left_out) - len(shown)} more" if shown != event.left_out else ""
        names = "; ".join(printable(name) for name in shown)
        yield f"not held by the snapshot: {names}{rest}", "dim"


def _violations(event: ViolationsFound) -> Iterator[Line]:
    done = "all of the attempt is put back" if event.rolled_back else "these files are put back"
    yield f"  the guard refuses {_counted(len(event.violations), 'change')}; {done}:", "bad"
    for violation in event.violations:
        place = f"{violation.path}:{violation.line}" if violation.line else violation.path
        yield f"    {printable(place)}: {violation.rule}: {violation.detail}", "warn"


def _ended(event: AttemptFinished | WorkspaceFinished | AgentReplied) -> Iterator[Line]:
    if isinstance(event, AgentReplied):
        if event.reply.status is ReplyStatus.UNAVAILABLE:
            yield f"  the agent could not be had: this was not attempt {event.number}", "warn"
        return
    if isinstance(event, WorkspaceFinished):
        style = "good" if event.outcome.verdict.is_green else "bad"
        yield f"{headline(event.outcome)} [{event.number} of {event.total}]", style
        return
    attempt = event.result
    passed = attempt.validation is not None and attempt.validation.success
    cost = "" if attempt.cost_usd is None else f", {usd(attempt.cost_usd)}"
    yield f"{event.message} ({seconds(attempt.duration_ms)}{cost})", "good" if passed else "bad"
    if attempt.error:
        yield f"  the agent: {attempt.error}", "warn"
    if attempt.denials:
        yield f"  not permitted: {_some(tuple(dict.fromkeys(attempt.denials)))}", "warn"
    if not passed:
        counts = (("fixed", attempt.fixed), ("remaining", attempt.remaining))
        told = [f"{len(found)} {word}" for word, found in counts]
        yield f"  {', '.join(told)}, {len(attempt.introduced)} introduced", "dim"


def failure_lines(validation: Validation, *, verbosity: int = 0) -> Iterator[Line]:
    """What failed and where, gate by gate."""
    for result in validation.results:
        if not result.success:
            yield "", ""
            yield f"{result.name}: {result.error or result.status}", "gate"
            yield f"  $ {result.command}", "code"
            yield from _complaints(result, verbosity)
            yield from _output(result, verbosity)


def _complaints(result: GateResult, verbosity: int) -> Iterator[Line]:
    limit = len(result.diagnostics) if verbosity > 0 else MAX_DIAGNOSTICS
    for diagnostic in result.diagnostics[:limit]:
        yield f"  {_place(diagnostic)}{_said(diagnostic)}", ""
    if len(result.diagnostics) > limit:
        yield f"  ... and {len(result.diagnostics) - limit} more (-v shows all)", "dim"


def _place(diagnostic: Diagnostic) -> str:
    region = diagnostic.region
    parts = [printable(diagnostic.path or diagnostic.test_id or diagnostic.tool)]
    if diagnostic.path and region:
        parts += [str(n) for n in (region.start_line, region.start_column) if n]
    return ":".join(parts) + ": "


def _said(diagnostic: Diagnostic) -> str:
    first = diagnostic.message.strip().splitlines() or [""]
    named = diagnostic.rule_id and not first[0].startswith(diagnostic.rule_id)
    rule = f"{diagnostic.rule_id} " if named else ""
    times = f" (x{diagnostic.count})" if diagnostic.count > 1 else ""
    before = " (there before the change)" if diagnostic.preexisting else ""
    return f"{rule}{printable(first[0])}{times}{before}"


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
        yield f"clean: {passed} of {count} gates passed ({took}){tail}", "good"
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
        yield f"  attempt {attempt.number} is in the workspace: {_changes(attempt)}", ""
    if outcome.attempts and not kept and not outcome.verdict.is_green:
        yield "  no attempt was better: the workspace is as it was before the first one", ""
    if outcome.learning_record_id:
        yield f"  recorded as {outcome.learning_record_id}: atlas learnings", "dim"
    if outcome.handoff_path:
        yield f"  for whoever goes on: {outcome.handoff_path}", ""
    if with_commands:
        yield from _next_commands(outcome)


def _next_commands(outcome: Outcome) -> Iterator[Line]:
    if outcome.remedy:
        yield f"next: {outcome.remedy}", "code"
    elif outcome.verdict is Verdict.FAILED:
        yield f"next: atlas retry {outcome.workspace.root} --ai-fix", "code"
    if outcome.attempts:
        yield f"look: atlas diff {outcome.run_id}", "code"
        yield f"back: atlas undo {outcome.run_id}", "code"


def headline(outcome: Outcome) -> str:
    """How a run ended, in one line."""
    spent = f", {usd(outcome.cost_usd)}" if outcome.cost_usd else ""
    took = f"({seconds(outcome.duration_ms)}{spent})"
    if outcome.verdict is Verdict.FIXED:
        count = len(outcome.attempts)
        by = f"in {count} attempt{'s' if count > 1 else ''}" if count else "by the fixers"
        return f"fixed {by} {took}"
    reason = f": {outcome.final_error}" if outcome.final_error else ""
    return f"{outcome.verdict.value.replace('_', ' ')}{reason} {took}"


def _changes(attempt: Attempt) -> str:
    return "; ".join(_change(change) for change in attempt.changes[:5]) or "no change"


def _change(change: Change) -> str:
    if change.added is None or change.removed is None:
        return f"{printable(change.path)} ({change.status})"
    return f"{printable(change.path)} (+{change.added} -{change.removed})"
