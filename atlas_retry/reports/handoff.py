"""Notes for continuing a failed run by hand: Markdown for a terminal, a chat or a ticket."""

import shlex
from collections.abc import Iterator
from itertools import islice
from typing import Final

from atlas_retry.diagnostics.counting import changed_counts
from atlas_retry.diagnostics.selecting import from_root, reproducing_each
from atlas_retry.model import Attempt, GateResult, Outcome
from atlas_retry.reports.findings import of_attempt
from atlas_retry.reports.phrases import VERDICTS, next_steps, plain
from atlas_retry.reports.problems import listed, more, place
from atlas_retry.text.units import bounded, counted, first_few, seconds, spent, usd

MAX_PROBLEMS: Final = 10
MAX_FILES: Final = 10
MAX_LINE_CHARS: Final = 300


def handoff(outcome: Outcome) -> str:
    """What failed, what was tried, how to reproduce it, and the next steps."""
    root = shlex.quote(outcome.workspace.root)
    cost = spent(outcome)
    attempts = counted(len(outcome.attempts), "attempt")
    facts = f"{attempts}, {seconds(outcome.duration_ms)}, {cost}"
    lines = [
        f"# {_line(outcome.workspace.name)}: {VERDICTS[outcome.verdict]}",
        "",
        f"{_line(outcome.final_error or '')}.".lstrip("."),
        "",
        f"Run `{outcome.run_id}` in `{_line(outcome.workspace.root)}`: {facts}.",
        "",
        "## What fails",
        "",
    ]
    for result in outcome.final.failures:
        lines += _failure(result, root)
    lines += ["## What was tried", ""]
    for attempt in outcome.attempts:
        lines += _attempt(outcome, attempt)
    if outcome.open_reviews:
        lines += ["", "## What a person must review", ""]
        lines += [f"- `{_line(one.place)}`: {_line(one.detail)}" for one in outcome.open_reviews]
    lines += ["", "## Next steps", "", *_ways(outcome, root)]
    return "\n".join(lines).rstrip() + "\n"


def _failure(result: GateResult, root: str) -> Iterator[str]:
    yield f"### {_line(result.name)}: {_line(result.error or result.status.value)}"
    yield ""
    shown = listed(result)[:MAX_PROBLEMS]
    for problem in shown:
        where = f"`{_line(place(problem))}` " if place(problem) else ""
        yield f"- {where}{_line(problem.message)}"
    if left := more(result, shown):
        yield f"- and {left}"
    yield ""
    if result.command:
        tests = filter(None, reproducing_each(result, shown))
        yield from ("```sh", f"cd {root}")
        typed = (from_root(test, result.cwd) for test in islice(tests, 1))
        yield from (f"{test}  # only the first one" for test in typed)
        yield from (from_root(result.command, result.cwd), "```", "")
    if result.log_path:
        yield from (f"The whole output: `{result.log_path}`", "")


def _attempt(outcome: Outcome, attempt: Attempt) -> Iterator[str]:
    agent = " ".join(filter(None, (attempt.agent, attempt.model)))
    cost = f", {usd(attempt.cost_usd)}" if attempt.cost_usd else ""
    yield f"{attempt.number}. {_line(agent)}{cost}: {_line(attempt.summary) or 'no summary'}"
    if attempt.error:
        yield f"   - it ended with: {_line(attempt.error)}"
    files = first_few((f"`{_line(change.path)}`" for change in attempt.changes), MAX_FILES)
    yield f"   - changed {files or 'nothing'}"
    yield f"   - {changed_counts(attempt)}"
    for finding in of_attempt(outcome, attempt):
        where, rule = _line(finding.answer.where), finding.answer.rule
        yield f"   - `{where}` {rule}: {_line(finding.sentence)}"
    if attempt.worse and not attempt.kept:
        yield "   - it made things worse, and was discarded"
    if attempt.kept:
        yield "   - its changes are in the workspace now"


def _ways(outcome: Outcome, root: str) -> Iterator[str]:
    for text, command in next_steps(outcome):
        yield f"- {_line(text)}: `{plain(command)}`"
    kept = any(attempt.kept for attempt in outcome.attempts)
    if outcome.attempts and outcome.better is None and not kept:
        yield "- No attempt improved the result; the workspace was restored."
    for run_id in dict.fromkeys(one.run_id for one in outcome.open_reviews):
        yield f"- Accept what waits for a review, after a look: `atlas accept {run_id}`"
    yield f"- See what an attempt changed: `atlas diff {outcome.run_id} N`"
    yield f"- Take an attempt's files: `atlas pick {outcome.run_id} N`"
    yield f"- Restore the files from before the run: `atlas undo {outcome.run_id}`"
    yield f"- Fix it by hand in {root}, then `atlas validate {root}`"
    yield f"- Read the prompt of the next attempt: `atlas prompt {root}`"
    again = f"`atlas retry {root} --ai-fix --max-attempts 5`"
    yield f"- Try again with more attempts: {again}{_price(outcome)}"


def counted_problems(outcome: Outcome) -> tuple[int, int]:
    """How many problems a run found, and how many it left."""
    found, left = (
        sum(result.problems for result in validation.failures)
        for validation in (outcome.baseline, outcome.final)
    )
    return found, left


def next_usd(outcome: Outcome) -> float | None:
    """What the rest would cost, by what the fixed problems cost; None if that is unknown."""
    found, left = counted_problems(outcome)
    is_known = all(attempt.cost_usd is not None for attempt in outcome.attempts)
    if not (is_known and outcome.cost_usd and 0 < left < found):
        return None
    return outcome.cost_usd / (found - left) * left


def _price(outcome: Outcome) -> str:
    """What the next run would cost, by the figures of this one; empty if they are unknown."""
    costs = [attempt.cost_usd for attempt in outcome.attempts]
    paid = [cost for cost in costs if cost]
    if len(paid) < len(costs) or not paid:
        return ""
    said = f" (an attempt cost {usd(sum(paid) / len(paid))} here"
    rest_usd = next_usd(outcome)
    if rest_usd is not None:
        found, left = counted_problems(outcome)
        said += f"; {found - left} of {found} problems took {usd(outcome.cost_usd)}"
        said += f", so the other {left} may take {usd(rest_usd)}"
    return f"{said})"


def _line(text: str) -> str:
    """One bounded line without markup."""
    folded = " ".join(plain(text).replace("`", "'").replace("<", "&lt;").split())
    return bounded(folded, MAX_LINE_CHARS)
