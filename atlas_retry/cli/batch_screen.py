"""What a person reads at the end of a batch, as styled lines. Prints nothing."""

from collections import Counter
from collections.abc import Iterator

from atlas_retry.reports.screen.gate_lines import failure_lines
from atlas_retry.reports.screen.lines import Line, command_lines, printable
from atlas_retry.reports.screen.run_lines import answer_lines, headline, lost_lines
from atlas_retry.run.folders import labels
from atlas_retry.run.one import Done, Finished
from atlas_retry.text.units import usd

MAX_NAMES = 8


def batch_lines(done: Done, *, verbosity: int = 0) -> Iterator[Line]:
    """How each workspace ended, why no more were started, and what to type next."""
    names = labels([one.root for one in done.finished])
    if verbosity > 0:
        for one in done.finished:
            if not one.outcome.verdict.is_green:
                yield "", ""
                yield printable(names[one.root]), "head"
                yield from failure_lines(one.outcome.final, verbosity=verbosity)
    yield "", ""
    yield _counts(done)
    width = max(map(len, names.values()), default=0)
    for one in done.finished if verbosity >= 0 else ():
        style = "good" if one.outcome.verdict.is_green else "bad"
        yield f"  {printable(names[one.root]):<{width}}  {headline(one.outcome)}", style
        yield from ((f"  {text}", style) for text, style in answer_lines(one.outcome))
    yield from _cascade(done)
    yield from _next(done, verbosity)
    for one in done.finished:
        yield from lost_lines(one.outcome)


def _counts(done: Done) -> Line:
    outcomes = [one.outcome for one in done.finished]
    counts = Counter(outcome.verdict.value.replace("_", " ") for outcome in outcomes)
    words = [f"{count} {word}" for word, count in counts.items()]
    if done.not_started:
        words.append(f"{len(done.not_started)} not started")
    cost = sum(outcome.cost_usd for outcome in outcomes)
    total = len(outcomes) + len(done.not_started)
    is_green = not done.not_started and all(outcome.verdict.is_green for outcome in outcomes)
    tail = f" ({usd(cost)})" if cost else ""
    return f"{total} workspaces: {', '.join(words)}{tail}", "good" if is_green else "bad"


def _cascade(done: Done) -> Iterator[Line]:
    cascade = done.cascade
    if cascade.cascade_detected:
        counts = (
            f"{cascade.failures_in_window} failures close together, {cascade.threshold} are enough"
        )
        yield f"cascade ({counts}): {cascade.diagnosis}", "warn"
        yield f"{cascade.recommendation}.", "warn"


def _next(done: Done, verbosity: int) -> Iterator[Line]:
    commands = dict.fromkeys(
        filter(None, map(_next_command, done.finished if verbosity >= 0 else ()))
    )
    if done.not_started:
        shown = done.not_started if verbosity > 0 else done.not_started[:MAX_NAMES]
        more = len(done.not_started) - len(shown)
        tail = f" and {more} more (-v shows all)" if more else ""
        yield f"not started: {', '.join(map(printable, shown))}{tail}", ""
        commands = {done.next_command: None, **commands}
    if commands:
        yield from command_lines("next", *commands)


def _next_command(one: Finished) -> str | None:
    outcome = one.outcome
    fell_short = outcome.attempts and not outcome.verdict.is_green
    return outcome.remedy or (f"atlas log {outcome.run_id}" if fell_short else None)
