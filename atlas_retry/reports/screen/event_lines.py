"""Turns events into styled lines. Prints nothing."""

from collections.abc import Iterator, Sequence

from atlas_retry.events import (
    AgentActivity,
    AgentReplied,
    AnswerRetried,
    AttemptFinished,
    AttemptStarted,
    Event,
    FixerFinished,
    GateFinished,
    GateRanAgain,
    GateStarted,
    Notice,
    RunStarted,
    TransportRetried,
    ValidationStarted,
    ViolationsFound,
    WorkspaceFinished,
)
from atlas_retry.model import Answer, Level, ReplyStatus
from atlas_retry.reports.screen.gate_lines import gate_lines
from atlas_retry.reports.screen.lines import MAX_MESSAGE_CHARS, Line, names_of, printable
from atlas_retry.text.units import bounded, counted, first_few, seconds, usd

MAX_STEP_CHARS, DIAGNOSIS_LINES, MAX_LEFT_OUT = 74, 6, 3
MIN_SHOWN_MS = 2000
"""Shorter runs besides the validations are told by their results alone."""


def lines_of(event: Event, *, verbosity: int = 0) -> Iterator[Line]:
    """The lines of an event. `verbosity`: -1 quiet, 0 normal, 1 and more everything."""
    from atlas_retry.reports.screen.run_lines import headline

    match event:
        case Notice():
            yield event.text, "warn" if event.level is not Level.NOTE else ""
        case GateStarted() | ValidationStarted() if verbosity > 0:
            yield event.message, "dim"
        case GateFinished():
            # in a run the details come last, so show the first problems here
            yield from gate_lines(event.result, with_glimpse=event.scope.run is not None)
        case FixerFinished():
            yield f"  {event.message}: {event.command}", "good" if event.changed else "dim"
        case RunStarted() if event.left_out:
            limit = len(event.left_out) if verbosity > 0 else MAX_LEFT_OUT
            names = first_few(map(printable, event.left_out), limit)
            yield f"not in the snapshot: {names}", "dim"
        case AttemptStarted():
            yield "", ""
            yield event.message, "head"
        case TransportRetried() | AnswerRetried() | GateRanAgain():
            yield from _again(event, verbosity)
        case ViolationsFound():
            yield from _violations(event)
        case AgentActivity() | AgentReplied():
            yield from _agent(event)
        case AttemptFinished():
            yield from _attempt(event)
        case WorkspaceFinished():
            style = "good" if event.outcome.verdict.is_green else "bad"
            yield f"{headline(event.outcome)} [{event.number} of {event.total}]", style


def _again(
    event: TransportRetried | AnswerRetried | GateRanAgain, verbosity: int
) -> Iterator[Line]:
    if not isinstance(event, GateRanAgain):
        yield f"  {event.message}", "warn"
    elif verbosity > 0 or event.duration_ms >= MIN_SHOWN_MS:
        yield f"  {event.message}", "dim"


def _violations(event: ViolationsFound) -> Iterator[Line]:
    done = "all of the attempt is reverted" if event.rolled_back else "these files are reverted"
    back = [change for change in event.violations if change.path not in event.left]
    left = [change for change in event.violations if change.path in event.left]
    rest = "; the rest is reverted" if event.rolled_back and not back else ""
    held = [change for change in event.held if not change.in_place]
    review = [change for change in event.held if change.in_place]
    yield from _changes(f"the guard refuses {{}}; {done}", back, "bad")
    yield from _changes(f"the guard refuses {{}} that atlas cannot restore{rest}", left, "bad")
    yield from _changes("{} for a person to accept, reverted until then", held)
    yield from _changes("{} for a person to look at, left in place", review)


def _changes(head: str, changes: Sequence[Answer], style: str = "warn") -> Iterator[Line]:
    if changes:
        yield f"  {head.format(counted(len(changes), 'change'))}:", style
    for change in changes:
        yield f"    {printable(change.where)}: {change.rule}: {change.detail}", "warn"


def _agent(event: AgentActivity | AgentReplied) -> Iterator[Line]:
    """A step of the agent, or its own account of its turn."""
    if isinstance(event, AgentActivity):
        yield f"  · {bounded(event.text, MAX_STEP_CHARS)}", "dim"
        return
    if event.reply.status is ReplyStatus.UNAVAILABLE:
        yield "  the agent is not available: this does not count as an attempt", "warn"
        return
    lines = [line.strip() for line in event.reply.summary.splitlines() if line.strip()]
    for line in lines[:DIAGNOSIS_LINES]:
        yield f"  > {bounded(line, MAX_MESSAGE_CHARS)}", ""
    if len(lines) > DIAGNOSIS_LINES:
        yield f"  > ... {counted(len(lines) - DIAGNOSIS_LINES, 'more line')}", "dim"


def _ended(event: AttemptFinished) -> str:
    """The event log's message; of gates that fail, names and what became of their problems."""
    attempt, validation = event.result, event.result.validation
    if validation is None or validation.success:
        return event.message
    fixed, left, new = map(len, (attempt.fixed, attempt.remaining, attempt.introduced))
    introduced = f", {new} of them new" if new else ""
    counts = f"{counted(left + new, 'problem')}{introduced}, {fixed or 'none'} fixed"
    if not fixed + left + new:
        counts = "no problem could be read from the output"
    names = [result.name for result in validation.failures]
    fails = "fails" if len(names) == 1 else "fail"
    of = f" of {event.scope.max_attempts}" if event.scope.max_attempts else ""
    return f"attempt {attempt.number}{of}: {names_of(names)} still {fails} ({counts})"


def _attempt(event: AttemptFinished) -> Iterator[Line]:
    attempt = event.result
    cost = "" if attempt.cost_usd is None else f", {usd(attempt.cost_usd)}"
    took = f"({seconds(attempt.duration_ms)}{cost})"
    yield f"{_ended(event)} {took}", "good" if attempt.passed else "bad"
    if attempt.error:
        yield f"  the agent: {bounded(attempt.error, MAX_MESSAGE_CHARS)}", "warn"
    if attempt.denials:
        yield f"  not permitted: {names_of(dict.fromkeys(attempt.denials))}", "warn"
    if needed := [held.path for held in attempt.held if held.needed]:
        yield f"  passes only with held changes: {names_of(dict.fromkeys(needed))}", "warn"
    if attempt.worse:
        yield "  this is worse than before: it is reverted before the next attempt", "warn"
