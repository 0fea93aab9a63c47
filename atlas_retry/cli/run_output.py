"""Where the results of `atlas retry` go, for one workspace or several."""

import math
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import typer

from atlas_retry import config
from atlas_retry.cli import output, places
from atlas_retry.cli.accepting import is_inside_agent
from atlas_retry.cli.output import Target, on_github, publish
from atlas_retry.cli.reviewing import accepted
from atlas_retry.errors import ExitCode
from atlas_retry.model import Verdict
from atlas_retry.reports.documents import batch_document, encode
from atlas_retry.reports.handoff import counted_problems, next_usd
from atlas_retry.reports.screen.gate_lines import failure_lines
from atlas_retry.reports.screen.lines import Line, below_others, command_lines, printable
from atlas_retry.reports.screen.run_lines import (
    answer_lines,
    headline,
    lost_lines,
    outcome_summary,
)
from atlas_retry.run.folders import labels
from atlas_retry.run.one import BatchResult, Finished
from atlas_retry.text.commands import from_there
from atlas_retry.text.units import first_few, usd

MAX_NAMES = 8


def last_lines(done: BatchResult, *, verbosity: int, only: Sequence[str] = ()) -> Iterator[Line]:
    """The summary of `atlas retry`, for one workspace or several; its commands work from here.

    Those about runs of other workspaces have `-C DIR`; one that starts the run again has the
    options that limited it.
    """
    here, limited = config.root_of(Path.cwd()).resolve(), output.limited_to(only)
    away = {one.outcome.run_id: one.root for one in done.finished if one.root != here}
    for text, style in _last_lines(done, verbosity=verbosity):
        of = next((root for run, root in away.items() if run in text.split()), None)
        yield _from_here(text, of, limited) if style == "code" else text, style


def _from_here(command: str, of: Path | None, limited: Sequence[str]) -> str:
    here = from_there("atlas ")
    if of and command.startswith(f"  {here}"):
        place = shlex.quote(printable(str(of)))
        return command.replace(here, f"atlas -C {place} ", 1)
    starts = command.startswith(f"  {here}retry ")
    return " ".join((command, *map(shlex.quote, limited))) if starts else command


def _last_lines(done: BatchResult, *, verbosity: int) -> Iterator[Line]:
    if not _is_one(done):
        yield from below_others(batch_lines(done, verbosity=verbosity), verbosity=verbosity)
        return
    outcome, opened = done.finished[0].outcome, done.finished[0].opened
    may_ask = not opened or opened.settings.retry.ai_retry_enabled
    if verbosity >= 0 and not outcome.verdict.is_green:
        yield from failure_lines(outcome.final, verbosity=verbosity)
    yield from below_others(outcome_summary(outcome, may_ask=may_ask), verbosity=verbosity)


def only_here_lines(done: BatchResult, *, verbosity: int) -> Iterator[Line]:
    """What the green of one workspace may be due to that no commit holds, in the last line."""
    first = done.finished[0] if _is_one(done) else None
    if first and first.opened and first.outcome.verdict.is_green:
        yield from output.only_here_lines(first.opened, first.outcome.final, verbosity=verbosity)


def _is_one(done: BatchResult) -> bool:
    return len(done.finished) == 1 and not done.not_started


def batch_lines(done: BatchResult, *, verbosity: int = 0) -> Iterator[Line]:
    """The verdict of each workspace, why others were not started, and the next commands."""
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
    yield from _next(done, verbosity)
    for one in done.finished:
        yield from lost_lines(one.outcome)


def _counts(done: BatchResult) -> Line:
    outcomes = [one.outcome for one in done.finished]
    counts = Counter(outcome.verdict.value.replace("_", " ") for outcome in outcomes)
    words = [f"{count} {word}" for word, count in counts.items()]
    if done.not_started:
        words.append(f"{len(done.not_started)} not started")
    cost = sum(outcome.cost_usd for outcome in outcomes)
    attempts = chain.from_iterable(outcome.attempts for outcome in outcomes)
    is_unknown = any(attempt.cost_usd is None for attempt in attempts)
    total = len(outcomes) + len(done.not_started)
    is_green = not done.not_started and all(outcome.verdict.is_green for outcome in outcomes)
    tail = f" ({usd(cost, at_least=is_unknown)})" if cost else ""
    return f"{total} workspaces: {', '.join(words)}{tail}", "good" if is_green else "bad"


def _next(done: BatchResult, verbosity: int) -> Iterator[Line]:
    """What is left to do, and why: first the common cause of failures, if there is one."""
    cascade = done.cascade
    if cascade.cascade_detected:
        failures = f"{cascade.failures_in_window} failures close together"
        yield f"cascade ({failures}, threshold {cascade.threshold}): {cascade.diagnosis}", "warn"
        yield f"{cascade.recommendation}.", "warn"
    commands = [done.next_command] if done.not_started else []
    if verbosity >= 0:
        commands += filter(None, map(_next_command, done.finished))
    if done.not_started:
        limit = len(done.not_started) if verbosity > 0 else MAX_NAMES
        more = " (-v shows all)" if len(done.not_started) > limit else ""
        yield f"not started: {first_few(map(printable, done.not_started), limit)}{more}", ""
    if commands:
        yield from command_lines("next", *dict.fromkeys(commands))


def _next_command(one: Finished) -> str | None:
    outcome = one.outcome
    fell_short = outcome.attempts and not outcome.verdict.is_green
    return outcome.remedy or (f"atlas log {outcome.run_id}" if fell_short else None)


def publish_runs(done: BatchResult, wanted: Sequence[Target], *, as_json: bool) -> None:
    """Write the results of a run or a batch: one JSON document, and one report for each run."""
    formats = {format_name for format_name, _ in wanted}
    if _is_one(done):
        publish(done.finished[0].subject(formats), wanted, as_json=as_json)
        return
    outcomes = [one.outcome for one in done.finished]
    if as_json:
        document = batch_document(outcomes, not_started=done.not_started, cascade=done.cascade)
        print(encode(document), end="")
    names = labels([one.root for one in done.finished])
    for one in done.finished if wanted or on_github() else ():
        # report.html becomes report-api.html
        suffix = names[one.root].replace("/", "-")
        own = [(kind, path.with_stem(f"{path.stem}-{suffix}")) for kind, path in wanted]
        publish(one.subject(formats), own, as_json=False, to_stderr=as_json)


def more_usd(done: BatchResult) -> float | None:
    """The money that a person adds for what is left of one workspace; None if it is over.

    Asks only at a terminal, and only if the last attempt made progress that was paid for.
    """
    if not _is_one(done):
        return None
    outcome = done.finished[0].outcome
    last = outcome.attempts[-1] if outcome.attempts else None
    has_progress = last is not None and last.kept and last.fixed
    price = next_usd(outcome)
    if outcome.verdict is not Verdict.EXHAUSTED or not has_progress or price is None:
        return None
    if not places.can_ask(sys.stderr) or is_inside_agent(os.environ):
        return None
    found, left = counted_problems(outcome)
    amount = float(math.ceil(price))
    spent = f"{left} of {found} left to fix, {usd(outcome.cost_usd)} spent"
    return amount if typer.confirm(f"{spent}: go on with {usd(amount)}?", err=True) else None


def exit_code(done: BatchResult, *, asks: bool) -> ExitCode:
    """The worst exit code of the workspaces, after asking whether to accept held changes.

    A workspace that was not started is not green.
    """
    verdicts = [one.outcome.verdict for one in done.finished]
    may_ask = asks and _is_one(done) and verdicts == [Verdict.NEEDS_REVIEW]
    if may_ask and accepted(done.finished[0].outcome):
        return ExitCode.OK
    return max([*map(exit_code_of, verdicts), ExitCode.FAILED if done.not_started else ExitCode.OK])


def exit_code_of(verdict: Verdict) -> ExitCode:
    """0 green, 3 broken, else 1."""
    if verdict is Verdict.BROKEN:
        return ExitCode.BROKEN
    return ExitCode.OK if verdict.is_green else ExitCode.FAILED
