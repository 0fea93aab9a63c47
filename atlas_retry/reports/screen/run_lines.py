"""The end of a run as styled lines: kept changes, the guard's answers, next commands."""

import shlex
from collections.abc import Iterator, Sequence

from atlas_retry.diagnostics.counting import counts_of, problem_trend
from atlas_retry.model import (
    AnswerWord,
    Attempt,
    Change,
    ChangeStatus,
    GateResult,
    Kind,
    Outcome,
    Status,
    Verdict,
)
from atlas_retry.reports import findings
from atlas_retry.reports.phrases import gate_history, sparkline
from atlas_retry.reports.problems import SIGNS
from atlas_retry.reports.screen.lines import (
    MAX_MESSAGE_CHARS,
    Line,
    command_lines,
    names_of,
    printable,
)
from atlas_retry.text.units import bounded, changed, counted, first_few, seconds, spent

MAX_CHANGES = 5
MAX_STRIPS = 6


def outcome_summary(
    outcome: Outcome, *, with_commands: bool = True, may_ask: bool = True
) -> Iterator[Line]:
    """The summary of `atlas retry`: verdict, kept changes, next commands.

    `may_ask`: the configuration lets an agent be asked.
    """
    yield "", ""
    yield headline(outcome), "good" if outcome.verdict.is_green else "bad"
    kept = [attempt for attempt in outcome.attempts if attempt.kept]
    for attempt in kept:
        changes = _changes(_own(outcome, attempt))
        what = f"is in the workspace: {changes}" if changes else "left no change in the workspace"
        yield f"  attempt {attempt.number} {what}", ""
    if outcome.gates_changed:
        yield f"  changed by gates: {names_of(outcome.gates_changed)}", ""
    if not outcome.verdict.is_green:
        yield from _course(outcome, kept)
    yield from _without_tests(outcome)
    yield from answer_lines(outcome)
    if outcome.learning_record_id:
        yield f"  recorded as {outcome.learning_record_id} (atlas learnings)", "dim"
    if outcome.handoff_path:
        yield f"  notes for continuing by hand: {outcome.handoff_path}", ""
    if outcome.verdict.is_green:
        yield from _passed_over(outcome, kept)
    if with_commands:
        yield from _commands(outcome, may_ask=may_ask)
    yield from lost_lines(outcome)


def _passed_over(outcome: Outcome, kept: Sequence[Attempt]) -> Iterator[Line]:
    """The new files of a run, if a gate takes its files from git and so passed over them."""
    gates = [result.name for result in outcome.final.results if _asks_git(result)]
    own = _own(outcome, kept[-1]) if kept else []
    new = [change.path for change in own if change.status is ChangeStatus.ADDED]
    if gates and new:
        yield (
            f"  new files that git does not track yet are not checked by {names_of(gates)}",
            "warn",
        )
        yield from command_lines("to check", f"git add -N {shlex.join(new)} && atlas validate")


def _asks_git(result: GateResult) -> bool:
    return result.kind is Kind.PRE_COMMIT or "git ls-files" in result.command


def _changes(own: Sequence[Change]) -> str:
    changes = "; ".join(printable(changed(change)) for change in own[:MAX_CHANGES])
    more = f"; and {len(own) - MAX_CHANGES} more" if len(own) > MAX_CHANGES else ""
    return changes + more


def _own(outcome: Outcome, attempt: Attempt) -> list[Change]:
    """The agent's changes since the start of the run."""
    return [change for change in attempt.since_start if change.path not in outcome.gates_changed]


def headline(outcome: Outcome) -> str:
    """Verdict, reason, duration and cost in one line."""
    has_cost = outcome.cost_usd or outcome.interrupted_usd
    cost = f", {spent(outcome)}" if has_cost else ""
    took = f"({seconds(outcome.duration_ms)}{cost})"
    skipped = any(r.required and r.status is Status.SKIPPED for r in outcome.final.results)
    is_partial = skipped and not outcome.final.is_limited and outcome.final.success
    error = outcome.final_error or (outcome.final.counts if is_partial else "")
    reason = f": {bounded(error, MAX_MESSAGE_CHARS)}" if error else ""
    if outcome.verdict is Verdict.FIXED:
        attempts = len(outcome.attempts)
        by = f"in {counted(attempts, 'attempt')}" if attempts else "by the fixers"
        return f"fixed {by}{reason} {took}"
    return f"{outcome.verdict.value.replace('_', ' ')}{reason} {took}"


def _course(outcome: Outcome, kept: Sequence[Attempt]) -> Iterator[Line]:
    """The problem counts over time, and the best attempt if it is not in the workspace."""
    if problems := problem_trend(outcome):
        yield f"  problems: {problems}  {sparkline(counts_of(outcome)).strip()}", ""
        strips = ((name, "".join(map(_sign, results))) for name, results in gate_history(outcome))
        red = (f"{name} {signs}" for name, signs in strips if signs.strip("✓"))
        yield f"  gates: {first_few(red, limit=MAX_STRIPS)}", ""
    if outcome.better is not None:
        yield f"  attempt {outcome.better} came closest, but is not kept", "warn"
    elif outcome.attempts and not kept:
        stays = any(attempt.left for attempt in outcome.attempts)
        but = ", except what atlas cannot restore" * stays
        yield f"  no attempt improved the result: the workspace was restored{but}", ""


def _sign(result: GateResult | None) -> str:
    return SIGNS[result.status] if result else "-"


def _without_tests(outcome: Outcome) -> Iterator[Line]:
    """The attempts after which a gate ran no tests, which proves nothing and may hide a cheat."""
    for attempt in outcome.attempts:
        results = attempt.validation.results if attempt.validation else ()
        if names := [result.name for result in results if result.status is Status.VACUOUS]:
            yield f"  no tests ran after attempt {attempt.number}: {names_of(names)}", "warn"


def answer_lines(outcome: Outcome) -> Iterator[Line]:
    """The guard's answers and the fate of the changes, one line each."""
    answers = findings.of_run(outcome)
    for fate in dict.fromkeys(answer.fate for answer in answers):
        alike = [answer for answer in answers if answer.fate == fate]
        paths = dict.fromkeys(f"{one.answer.path} ({one.answer.rule})" for one in alike)
        yield f"  {fate}: {names_of(paths)}", "dim" if fate == AnswerWord.NOTED else "warn"


def lost_lines(outcome: Outcome) -> Iterator[Line]:
    """Lost work that was not committed, with the command that restores it."""
    for lost in outcome.lost:
        names = printable(lost.path) + (f": {names_of(lost.names)}" if lost.names else "")
        yield f"lost, and not committed: {names}", "warn"
        yield from command_lines("restore it", lost.command)


def _commands(outcome: Outcome, *, may_ask: bool) -> Iterator[Line]:
    if outcome.remedy:
        yield from command_lines("next", outcome.remedy)
    elif outcome.attempts and not outcome.verdict.is_green:
        yield from command_lines("next", f"atlas log {outcome.run_id}")
    elif outcome.verdict is Verdict.FAILED and may_ask:
        yield from command_lines(
            "next", f"atlas retry {shlex.quote(outcome.workspace.root)} --ai-fix"
        )
    held = dict.fromkeys(a.command for a in findings.of_run(outcome) if a.is_accepting)
    for command in held:
        if command and command != outcome.remedy:
            yield from command_lines("accept", command)
    if outcome.better is not None:
        take = f"atlas pick {outcome.run_id} {outcome.better}"
        yield from command_lines(f"take attempt {outcome.better}", take)
    yield from _looking_back(outcome)


def _looking_back(outcome: Outcome) -> Iterator[Line]:
    changed = [attempt for attempt in outcome.attempts if attempt.changes]
    if outcome.gates_changed or any(attempt.kept and attempt.since_start for attempt in changed):
        yield from command_lines("show the changes", f"atlas diff {outcome.run_id}")
    elif changed:
        last = changed[-1].number
        show = f"atlas diff {outcome.run_id} {last}"
        yield from command_lines(f"show what attempt {last} changed", show)
    earlier = [one for one in outcome.open_reviews if one.run_id != outcome.run_id]
    if looks := dict.fromkeys(f"atlas diff {one.run_id} {one.attempt}" for one in earlier):
        yield from command_lines("show what to review", *looks)
    is_named = (outcome.remedy or "").startswith("atlas undo")
    if outcome.attempts or (outcome.gates_changed and not is_named):
        yield from _undo(outcome)


def _undo(outcome: Outcome) -> Iterator[Line]:
    if outcome.start_snapshot is None:
        yield "this run cannot be undone: the state directory lost its start", "warn"
    else:
        yield from command_lines("undo", f"atlas undo {outcome.run_id}")
