"""What happens, as styled lines: an event at a time. Prints nothing."""

from collections.abc import Iterator

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
from atlas_retry.model import Held, Level, ReplyStatus, Violation
from atlas_retry.reports.screen.gate_lines import first_problems, gate_lines
from atlas_retry.reports.screen.lines import MAX_MESSAGE_CHARS, Line, names_of, printable
from atlas_retry.text.units import bounded, counted, seconds, usd

MAX_STEP_CHARS, DIAGNOSIS_LINES, MAX_LEFT_OUT = 74, 6, 3


def lines_of(event: Event, *, verbosity: int = 0) -> Iterator[Line]:
    """The lines of an event. `verbosity`: -1 quiet, 0 as usual, 1 and more: everything."""
    match event:
        case Notice():
            yield event.text, "warn" if event.level is not Level.NOTE else ""
        case GateStarted() | ValidationStarted() if verbosity > 0:
            yield event.message, "dim"
        case GateFinished():
            yield from gate_lines(event.result)
            if event.scope.run:
                yield from first_problems(event.result)
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


def _left_out(event: RunStarted, verbosity: int) -> Iterator[Line]:
    if event.left_out:
        shown = event.left_out if verbosity > 0 else event.left_out[:MAX_LEFT_OUT]
        rest = f" and {len(event.left_out) - len(shown)} more" if shown != event.left_out else ""
        names = "; ".join(map(printable, shown))
        yield f"not held by the snapshot: {names}{rest}", "dim"


def _violations(event: ViolationsFound) -> Iterator[Line]:
    if event.violations:
        done = "all of the attempt is reverted" if event.rolled_back else "these files are reverted"
        yield f"  the guard refuses {counted(len(event.violations), 'change')}; {done}:", "bad"
        yield from map(_change, event.violations)
    if held := [seen for seen in event.held if not seen.in_place]:
        yield (
            f"  {counted(len(held), 'change')} for a person to accept, reverted meanwhile:",
            "warn",
        )
        yield from map(_change, held)
    if review := [seen for seen in event.held if seen.in_place]:
        yield f"  {counted(len(review), 'change')} for a person to look at, left in place:", "warn"
        yield from map(_change, review)


def _change(seen: Violation | Held) -> Line:
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
        from atlas_retry.reports.screen.run_lines import headline

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
        yield f"  not permitted: {names_of(tuple(dict.fromkeys(attempt.denials)))}", "warn"
    if needed := [held.path for held in attempt.held if held.needed]:
        yield f"  green only with what was held: {names_of(dict.fromkeys(needed))}", "warn"
    if not passed:
        counts = f"{len(attempt.fixed)} fixed, {len(attempt.remaining)} remaining"
        yield f"  {counts}, {len(attempt.introduced)} introduced", "dim"
    if attempt.worse:
        yield "  this is worse than before: it is reverted before another attempt", "warn"
