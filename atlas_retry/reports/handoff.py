"""What a person needs to go on where a run gave up: Markdown for a terminal, a chat or a ticket."""

import re
import shlex
from collections.abc import Iterator
from typing import Final

from atlas_retry.model import Attempt, Change, Diagnostic, GateResult, Outcome
from atlas_retry.reports.findings import of_attempt
from atlas_retry.reports.phrases import VERDICTS, plain
from atlas_retry.reports.problems import listed, more, place
from atlas_retry.text.units import bounded, counted, seconds, spent, usd

MAX_PROBLEMS: Final = 10
MAX_FILES: Final = 10
MAX_LINE_CHARS: Final = 300
_OPERATORS: Final = re.compile(r"[|&;<>()$`\\\n]")


def handoff(outcome: Outcome) -> str:
    """What failed, what was tried, the smallest command that shows it, how to go on."""
    root = shlex.quote(outcome.workspace.root)
    told = [
        f"# {_line(outcome.workspace.name)}: {VERDICTS[outcome.verdict]}",
        "",
        f"{_line(outcome.final_error or '')}.".lstrip("."),
        "",
        (
            f"Run `{outcome.run_id}` in `{_line(outcome.workspace.root)}`: "
            f"{counted(len(outcome.attempts), 'attempt')}, {seconds(outcome.duration_ms)}, "
            f"{spent(outcome.cost_usd, outcome.interrupted_usd)}."
        ),
        "",
        "## What fails",
        "",
    ]
    for result in outcome.final.failures:
        told += _failure(result, root)
    told += ["## What was tried", ""]
    for attempt in outcome.attempts:
        told += _attempt(outcome, attempt)
    told += ["", "## How to go on", "", *_ways(outcome, root)]
    return "\n".join(told).rstrip() + "\n"


def _failure(result: GateResult, root: str) -> Iterator[str]:
    yield f"### {_line(result.name)}: {_line(result.error or result.status.value)}"
    yield ""
    told = listed(result)[:MAX_PROBLEMS]
    for problem in told:
        where, message = place(problem), _line(problem.message)
        yield f"- {f'`{_line(where)}` ' if where else ''}{message}"
    if left := more(result, told):
        yield f"- and {left}"
    yield ""
    if result.command:
        yield "```sh"
        yield f"cd {root}"
        if smallest := _smallest(result.command, told):
            yield f"{smallest}  # the first of them alone"
        yield result.command
        yield "```"
        yield ""
    if result.log_path:
        yield f"The whole output: `{result.log_path}`"
        yield ""


def _smallest(command: str, told: tuple[Diagnostic, ...]) -> str | None:
    """The command for one failing test, for runners that can name one; None for a shell script."""
    test_id = next((diagnostic.test_id for diagnostic in told if diagnostic.test_id), None)
    if test_id is None or _OPERATORS.search(command):
        return None
    words = shlex.split(command) if command.count("'") % 2 == command.count('"') % 2 == 0 else []
    runner = next((word for word in words if word.split("/")[-1] in _RUNNERS), None)
    if runner is None:
        return None
    upto = words[: words.index(runner) + 1]
    return shlex.join((*upto, test_id))


_RUNNERS: Final = frozenset({"pytest", "py.test", "unittest"})
"""Runners that take a test by the name under which it is reported."""


def _attempt(outcome: Outcome, attempt: Attempt) -> Iterator[str]:
    who = " ".join(part for part in (attempt.agent, attempt.model) if part)
    cost = f", {usd(attempt.cost_usd)}" if attempt.cost_usd else ""
    yield f"{attempt.number}. {_line(who)}{cost}: {_line(attempt.summary) or 'no summary'}"
    if attempt.error:
        yield f"   - it ended with: {_line(attempt.error)}"
    yield f"   - changed {_files(attempt.changes)}"
    yield (
        f"   - {counted(len(attempt.fixed), 'problem')} fixed, {len(attempt.remaining)} remained,"
        f" {len(attempt.introduced)} came with it"
    )
    for found in of_attempt(outcome, attempt):
        yield f"   - `{_line(found.where)}` {found.seen.rule}: {_line(found.sentence)}"
    if attempt.worse and not attempt.kept:
        yield "   - it left things worse than before, and nothing was built on it"
    if attempt.kept:
        yield "   - this is what is in the workspace now"


def _files(changes: tuple[Change, ...]) -> str:
    named = ", ".join(f"`{_line(change.path)}`" for change in changes[:MAX_FILES])
    more = len(changes) - MAX_FILES
    return f"{named} and {more} more" if more > 0 else named or "nothing"


def _ways(outcome: Outcome, root: str) -> Iterator[str]:
    if outcome.remedy:
        yield f"- {_line(outcome.remedy)}"
    best = next((a.number for a in outcome.attempts if a.kept), None)
    if outcome.better is not None:
        pick = f"atlas pick {outcome.run_id} {outcome.better}"
        yield f"- Take the attempt that came closest: `{pick}`"
    elif best is None and outcome.attempts:
        yield "- No attempt made it better: the workspace is as it was before the first one."
    for lost in outcome.lost:
        named = f"`{_line(lost.path)}` ({_line(', '.join(lost.names))})"
        yield f"- Bring back what was not committed, {named}: `{lost.command}`"
    yield f"- See what an attempt changed: `atlas diff {outcome.run_id} N`"
    yield f"- Take an attempt's files: `atlas pick {outcome.run_id} N`"
    yield f"- Restore what was there before the run: `atlas undo {outcome.run_id}`"
    yield f"- Fix it by hand in {root}, then `atlas validate {root}`"
    yield f"- Read the prompt of the next attempt: `atlas prompt {root}`"
    yield f"- Let it try again, with more to spend: `atlas retry {root} --ai-fix --max-attempts 5`"


def _line(text: str) -> str:
    """One line, bounded, that opens no code and no markup of its own."""
    folded = " ".join(plain(text).replace("`", "'").replace("<", "&lt;").split())
    return bounded(folded, MAX_LINE_CHARS)
