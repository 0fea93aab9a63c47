"""When a run ends and how: every stop rule in one pure function."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics.fingerprints import steady
from atlas_retry.guard.places import INSTALLED
from atlas_retry.model import (
    TO_CHECK,
    Answer,
    Attempt,
    Gate,
    GateResult,
    Kind,
    Validation,
    Verdict,
)
from atlas_retry.run import held
from atlas_retry.run.progress import Limits, Progress
from atlas_retry.settings import attempts_allowed
from atlas_retry.text.globs import Globs
from atlas_retry.text.units import counted, first_few

MAX_REJECTIONS = 2
MAX_ERROR_CHARS = 400
UNFIXED = (Verdict.EXHAUSTED, Verdict.STALLED, Verdict.GAVE_UP)
_INSTALLED = Globs(INSTALLED)


class End(Struct, frozen=True, kw_only=True):
    verdict: Verdict
    reason: str | None = None
    remedy: str | None = None


Rule = Callable[[Progress, Limits], End | None]


def decide(progress: Progress, limits: Limits) -> End | None:
    """The end of the run, or None to continue. The first rule that applies decides."""
    if _may_reconsider(progress, limits):
        return None
    for rule in RULES:
        if end := rule(progress, limits):
            return _explained(end, progress)
    return None


def _may_reconsider(progress: Progress, limits: Limits) -> bool:
    """Whether the agent has yet to be told of what a person must review, and can be asked.

    It has one more attempt, whatever the limits of attempts are.
    """
    last, earlier = progress.last, progress.attempts[:-1]
    if last is None or last.ends or last.gave_up:
        return False
    if not progress.latest.success or progress.refused or not limits.with_agent:
        return False
    raised = (progress.run_id, last.number)
    is_new = any((one.run_id, one.attempt) == raised for one in progress.open_reviews)
    is_told = any(held.for_review(one) for one in earlier)
    is_spent = _cost_spent(progress, limits) or _time_spent(progress, limits)
    return is_new and not is_told and not is_spent


def _explained(end: End, progress: Progress) -> End:
    """The end with why the last attempt failed and which changes were reverted."""
    error = _error(progress)
    if end.verdict is Verdict.EXHAUSTED and error:
        end = replace(end, reason=f"{end.reason}; the last attempt failed: {error}")
    if end.verdict not in UNFIXED:
        return end
    green = next((a for a in reversed(progress.attempts) if held.needed_paths(a)), None)
    remedy = _pick(progress, green) if green else end.remedy
    denied = held.denied_edits(progress.attempts)
    by_hand = "" if all(map(_is_installed, denied)) else ": change it by hand"
    denial = f"the agent is not permitted to edit {first_few(denied)}{by_hand}" if denied else ""
    parts = (end.reason, held.account(progress.attempts), denial)
    return replace(end, reason="; ".join(filter(None, parts)), remedy=remedy)


def permitting(end: End, attempts: held.Attempts, root: str) -> str | None:
    """The command that allows the denied edits in the next run; None if that is not possible.

    Of the files that an agent may not edit, only installed ones can be allowed.
    """
    denied = held.denied_edits(attempts)
    if end.verdict not in UNFIXED or not denied or not all(map(_is_installed, denied)):
        return None
    flags = " ".join(f"--allow {shlex.quote(path)}" for path in denied)
    return f"atlas retry {shlex.quote(root)} --ai-fix {flags}"


def _is_installed(path: str) -> bool:
    return not path.startswith("/") and _INSTALLED.match(path)


def _error(progress: Progress) -> str:
    """Why the last attempt changed nothing, in one line; empty if it did, or if unknown.

    A refused command is no reason: the agent could have edited files all the same.
    """
    last = progress.last
    if last is None or last.changes:
        return ""
    return " ".join((last.error or "").split())[:MAX_ERROR_CHARS]


def _pick(progress: Progress, attempt: Attempt) -> str | None:
    if held.is_by_hand(attempt):
        return None
    return f"atlas pick {progress.run_id} {attempt.number} --held"


def _ended_by_guard(progress: Progress, _: Limits) -> End | None:
    """The guard ended the run: what cannot be restored is no base for another attempt."""
    last = progress.last
    if last is None or last.ends is None:
        return None
    reason = held.account((last,)) or last.error or "the guard ended the run"
    accept = _pick(progress, last) if held.held_paths(last) else None
    is_restored = last.rolled_back and not last.left
    return End(
        verdict=last.ends, reason=reason, remedy=accept if is_restored else last.remedy or accept
    )


def _passed(progress: Progress, _: Limits) -> End | None:
    if not progress.latest.success:
        return None
    if reviews := progress.open_reviews:
        return _to_review(reviews, reviews[-1].run_id)
    if progress.attempts and _is_as_before(progress):
        # flaky, or a gate undoes the fix after another one has passed
        reason = "the gates now pass without any change: probably flaky, or a gate undoes the fix"
        return End(verdict=Verdict.STALLED, reason=reason, remedy="atlas validate")
    if unstaged := held.unstaged(progress.attempts):
        reason = f"the gates pass once the fix is staged: {first_few(unstaged)}"
        remedy = f"git add -- {shlex.join(unstaged)}"
        return End(verdict=Verdict.NEEDS_REVIEW, reason=reason, remedy=remedy)
    changed = progress.attempts or progress.fixers_changed or not progress.baseline.success
    return End(verdict=Verdict.FIXED if changed else Verdict.CLEAN)


def _better_before(progress: Progress, _: Limits) -> End | None:
    """The attempt after a green with changes to review left it red: those changes are the end."""
    last, earlier = progress.last, progress.attempts[:-1]
    if last is None or not last.worse or not progress.base[0].success:
        return None
    reviews = [*chain.from_iterable(map(held.for_review, earlier))]
    if not reviews:
        return None
    return _to_review(reviews, progress.run_id)


def _to_review(reviews: Sequence[Answer], run_id: str) -> End:
    reason = f"all gates pass, but a person must review {held.named(reviews)}"
    return End(verdict=Verdict.NEEDS_REVIEW, reason=reason, remedy=f"atlas accept {run_id}")


def _unchecked(progress: Progress, _: Limits) -> End | None:
    """Nothing failed, but no required gate has run."""
    why = progress.latest.unchecked
    if why is None or progress.latest.failures:
        return None
    return End(verdict=Verdict.FAILED, reason=why, remedy=TO_CHECK)


def _broken(progress: Progress, limits: Limits) -> End | None:
    broken, refused = progress.latest.broken, progress.refused
    if broken and not progress.attempts:
        return _broken_by(broken[0])
    if twice := _broken_twice(progress.attempts):
        return _broken_by(twice[0])
    if reviews := [result for result in broken if result.kind is Kind.REVIEW]:
        return End(verdict=Verdict.BROKEN, reason=f"{reviews[0].name}: {reviews[0].error}")
    if refused and limits.with_agent:
        reason = refused.error or "no agent is available"
        return End(verdict=Verdict.BROKEN, reason=reason, remedy=refused.remedy)
    return None


def _broken_twice(attempts: Sequence[Attempt]) -> tuple[GateResult, ...]:
    """Gates that could not be run after each of two attempts, for one cause, if all else passed.

    Once, it may be the attempt's own failure.
    """
    last = [attempt.validation for attempt in attempts[-2:] if attempt.validation]
    if len(last) < 2 or any(one.failures != one.broken for one in last):  # noqa: PLR2004
        return ()
    first, second = ([(one.name, one.error) for one in each.broken] for each in last)
    return last[-1].broken if first == second else ()


def _broken_by(gate: GateResult) -> End:
    """Broken because of this gate. One whose files are gone has run: to run it is no remedy."""
    is_gone = gate.triage == "target_missing"
    reason = f"{gate.name} {'has nothing to judge' if is_gone else 'cannot be run'}: {gate.error}"
    see = f"run it yourself: {gate.command}" if gate.command else None
    remedy = "atlas undo" if is_gone else gate.remedy or see
    return End(verdict=Verdict.BROKEN, reason=reason, remedy=remedy)


def _lost_code(progress: Progress, limits: Limits) -> End | None:
    """No agent can fix a gate whose only failure is that its exit code contradicts its output."""
    required = (one for one in progress.latest.failures if one.required)
    lost = [one for one in required if one.triage == "exit-code"]
    if not lost or not limits.with_agent:
        return None
    reason = f"{lost[0].name}: {lost[0].error}; no failure is named that an agent could fix"
    return End(verdict=Verdict.FAILED, reason=reason, remedy=f"run it yourself: {lost[0].command}")


def _no_agent(progress: Progress, limits: Limits) -> End | None:
    if limits.with_agent:
        return None
    names = ", ".join(result.name for result in progress.latest.failures)
    return End(verdict=Verdict.FAILED, reason=f"still failing: {names}")


def _gave_up(progress: Progress, _: Limits) -> End | None:
    reason = progress.last.gave_up if progress.last else None
    return End(verdict=Verdict.GAVE_UP, reason=f"the agent says: {reason}") if reason else None


def _rejected(progress: Progress, _: Limits) -> End | None:
    refused = [attempt for attempt in progress.attempts if attempt.rolled_back]
    if len(refused) < MAX_REJECTIONS:
        return None
    what = held.named(chain.from_iterable(attempt.violations for attempt in refused))
    return End(verdict=Verdict.REJECTED, reason=f"the guard refused two attempts: {what}")


def _attempts_spent(progress: Progress, limits: Limits) -> End | None:
    allowed, made = limits.budget.attempts, len(progress.attempts)
    if allowed is None or made < allowed:
        return None
    return _exhausted(f"{progress.latest.failed_step or 'validation'} failed{_after(made)}")


def _after(attempts: int) -> str:
    return f" after {counted(attempts, 'attempt')}" if attempts else ", and no attempt is allowed"


def _gate_spent(progress: Progress, limits: Limits) -> End | None:
    """A gate may have fewer attempts than the run; each attempt made while it failed counts."""
    for gate, tried, allowed in _tries(progress, limits):
        if tried >= allowed:
            limit = ", its limit" if tried else ""
            return _exhausted(f"{gate.name} failed{_after(tried)}{limit}")
    return None


def last_attempt(progress: Progress, limits: Limits) -> int | None:
    """Number of the last attempt if the same gates keep failing; None = unlimited."""
    made = len(progress.attempts)
    by_gate = [made + allowed - tried for _, tried, allowed in _tries(progress, limits)]
    of_run = [] if limits.budget.attempts is None else [limits.budget.attempts]
    last = min((*by_gate, *of_run), default=None)
    return None if last is None else max(last, made + 1)


def _tries(progress: Progress, limits: Limits) -> Iterator[tuple[Gate, int, int]]:
    """Every gate that blocks, the attempts made while it failed, and its limit of attempts."""
    current, before = progress.settled, list[Validation]()
    for attempt in progress.attempts:
        before.append(current)
        current = current if attempt.worse else attempt.validation or current
    results = zip(limits.gates, progress.base[0].results, strict=False)
    for position, (gate, result) in enumerate(results):
        if result.blocks:
            earlier = [v.results[position] for v in before if position < len(v.results)]
            flag, configured = limits.attempts_flag, limits.attempts_configured
            allowed = attempts_allowed(gate, flag=flag, configured=configured)
            yield gate, sum(result.blocks for result in earlier), allowed


def _cost_spent(progress: Progress, limits: Limits) -> End | None:
    allowed = limits.budget.cost_usd
    if allowed is None:
        return None
    others = progress.elsewhere
    spent, likely = (
        progress.cost_usd + others.cost_usd,
        max(progress.dearest_usd, others.dearest_usd),
    )
    together = " by all workspaces together" if others.cost_usd else ""
    if spent >= allowed:
        return _exhausted(f"the budget of ${allowed:.2f} is spent{together}")
    text = f"the next attempt would exceed the budget: ${spent:.2f} of ${allowed:.2f} are spent"
    text += f"{together}, the most expensive attempt cost ${likely:.2f}"
    return _exhausted(text) if spent + likely > allowed else None


def _time_spent(progress: Progress, limits: Limits) -> End | None:
    allowed_s = limits.budget.wall_s
    if allowed_s is None or progress.elapsed_s < allowed_s:
        return None
    return _exhausted(f"the time limit of {allowed_s / 60:g} minutes is reached")


def _exhausted(reason: str) -> End:
    return End(verdict=Verdict.EXHAUSTED, reason=reason)


def _stalled(progress: Progress, _: Limits) -> End | None:
    """No progress; if changes were reverted for the first time, one more attempt is told so."""
    attempts = progress.attempts
    if not attempts or attempts[-1].rolled_back or held.has_new_reversal(attempts):
        return None
    reason = _standstill(progress, attempts)
    return End(verdict=Verdict.STALLED, reason=reason) if reason else None


def _standstill(progress: Progress, attempts: held.Attempts) -> str | None:
    gone = held.account(attempts[-1:])
    if not attempts[-1].changes:
        what = "last attempt added" if held.account(attempts) else "attempt changed"
        if error := _error(progress):
            return f"the attempt failed: {error}"
        unseen = first_few(attempts[-1].unseen)
        ignored = f" but files that git ignores (not-under-git): {unseen}"
        return f"the {what} nothing{ignored if unseen else ''}"
    if _is_as_before(progress):
        gave = "the attempt reproduced an earlier state of the files"
        return "the attempt made no new change" if gone else gave
    problems = [_problems(attempt) for attempt in attempts[-2:]]
    if len(problems) > 1 and problems[0] == problems[1] is not None:
        return "two attempts in a row ended with the same diagnostics"
    return None


def _is_as_before(progress: Progress) -> bool:
    """Whether the last attempt left the files in a state in which gates failed before."""
    return progress.trees[-1] in progress.trees[:-1]


def _problems(attempt: Attempt) -> list[object] | None:
    """The problems of a validation, messages included, without their places.

    Of a gate whose output no parser reads: the output.
    """
    if attempt.validation is None:
        return None
    return [
        (r.name, r.status, tuple((d.fingerprint, steady(d.message)) for d in r.diagnostics))
        if r.diagnostics
        else (r.name, r.status, steady(r.stdout), steady(r.stderr))
        for r in attempt.validation.failures
    ]


STOPS: tuple[Rule, ...] = (_attempts_spent, _gate_spent, _cost_spent, _time_spent, _stalled)


def _needs_review(progress: Progress, limits: Limits) -> End | None:
    """Green only with held changes, and nothing is left to try: a person must decide."""
    last = held.standing(progress.attempts)
    needed = held.needed_paths(last) if last else ()
    if last is None or not needed:
        return None
    if not held.repeats(progress.attempts) and not any(stop(progress, limits) for stop in STOPS):
        return None
    names = first_few(sorted(needed))
    reason, remedy = f"passes only with held changes: {names}", _pick(progress, last)
    if remedy is None:
        reason = (
            f"passes only because of files that git ignores ({names}): a fresh clone would fail"
        )
        remedy = f"look at {names}, then: atlas validate"
    return End(verdict=Verdict.NEEDS_REVIEW, reason=reason, remedy=remedy)


RULES: tuple[Rule, ...] = (
    _ended_by_guard,
    _passed,
    _better_before,
    _unchecked,
    _broken,
    _lost_code,
    _no_agent,
    _gave_up,
    _rejected,
    _needs_review,
    *STOPS,
)
