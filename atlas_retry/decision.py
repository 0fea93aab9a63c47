"""When a run ends and as what: every stop rule in one pure function, and the order of attempts."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from atlas_retry.diagnostics.fingerprints import steady
from atlas_retry.model import (
    CANNOT_EXECUTE,
    NOT_FOUND,
    AgentReply,
    Attempt,
    Budget,
    Gate,
    GateResult,
    Kind,
    Status,
    Validation,
    Verdict,
)
from atlas_retry.settings import attempts_allowed

MAX_REJECTIONS = 2


class Limits(Struct, frozen=True, kw_only=True):
    """What a run may spend, and on what."""

    budget: Budget
    gates: tuple[Gate, ...]
    with_agent: bool
    """Without it no money is spent, whatever the budget."""
    attempts_flag: int | None = None
    attempts_configured: int | None = None


class Elsewhere(Struct, frozen=True, kw_only=True):
    """What the runs that share this one's budget have come to, this one left out."""

    cost_usd: float = 0.0
    """Spent, and promised to attempts that are under way."""
    dearest_usd: float = 0.0
    """The most that one attempt has cost, in this run or another."""
    promised_usd: float | None = None
    """What the next attempt of this run may cost; None = unlimited."""


class Progress(Struct, frozen=True, kw_only=True):
    """Everything a run has come to so far."""

    baseline: Validation
    settled: Validation
    """After the fixers: what the first attempt starts from."""
    latest: Validation
    """After every attempt that was not rolled back."""
    start: str
    """Snapshot of what was there before the run."""
    origin: str
    """Snapshot that the first attempt starts from: after the fixers."""
    current: str
    """Snapshot of what is there now."""
    trees: tuple[str, ...] = ()
    """Ids of every work tree there has been, the present one last."""
    fixers_changed: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    refused: AgentReply | None = None
    """The agent could not be had."""
    theirs: frozenset[str] = frozenset()
    """What the user has edited while an agent worked: it is not put back."""
    begun_usd: float = 0.0
    """What the turn that comes next has cost already, where it was cut off and goes on."""
    begun_reviews_usd: float = 0.0
    """The same of the reviews after it."""
    elapsed_s: float = 0.0
    elsewhere: Elsewhere = Elsewhere()

    @property
    def cost_usd(self) -> float:
        """Of every turn, counted as an attempt or not, cut off or not, and of every review."""
        refused = (self.refused.cost_usd or 0.0) if self.refused else 0.0
        settled = self.settled.cost_usd if self.settled is not self.baseline else 0.0
        begun = self.begun_usd + self.begun_reviews_usd
        return sum(
            map(_cost_usd, self.attempts), refused + self.baseline.cost_usd + settled + begun
        )

    @property
    def dearest_usd(self) -> float:
        """The most that one attempt has cost."""
        return max(map(_cost_usd, self.attempts), default=0.0)


def _cost_usd(attempt: Attempt) -> float:
    """Of the agent's turn and of the reviews after it."""
    reviews = attempt.validation.cost_usd if attempt.validation else 0.0
    return (attempt.cost_usd or 0.0) + attempt.reviews_usd + reviews


class End(Struct, frozen=True, kw_only=True):
    """Why a run is over."""

    verdict: Verdict
    reason: str | None = None
    remedy: str | None = None


Rule = Callable[[Progress, Limits], End | None]


def decide(progress: Progress, limits: Limits) -> End | None:
    """The end of the run, or None to go on. The first rule that speaks decides."""
    for rule in RULES:
        if end := rule(progress, limits):
            return end
    return None


def _passed(progress: Progress, _: Limits) -> End | None:
    if not progress.latest.success:
        return None
    changed = progress.attempts or progress.fixers_changed or not progress.baseline.success
    return End(verdict=Verdict.FIXED if changed else Verdict.CLEAN)


def _blamed(broken: GateResult) -> End:
    """A command that has run, and is void for what has gone, is not to be run again."""
    if broken.exit_code in (None, CANNOT_EXECUTE, NOT_FOUND):
        reason = f"{broken.name} cannot be run: {broken.error}"
        remedy = f"see it for yourself: {broken.command}" if broken.command else None
    else:
        reason, remedy = f"{broken.name} is void: {broken.error}", "atlas undo"
    return End(verdict=Verdict.BROKEN, reason=reason, remedy=remedy)


def _broken(progress: Progress, limits: Limits) -> End | None:
    if progress.latest.broken and not progress.attempts:
        return _blamed(progress.latest.broken[0])
    if unheard := [r for r in progress.latest.broken if r.kind is Kind.REVIEW]:
        return End(verdict=Verdict.BROKEN, reason=f"{unheard[0].name}: {unheard[0].error}")
    if progress.refused and limits.with_agent:
        reason = progress.refused.error or "the agent could not be had"
        return End(verdict=Verdict.BROKEN, reason=reason, remedy=progress.refused.remedy)
    return None


def _no_agent(progress: Progress, limits: Limits) -> End | None:
    if limits.with_agent:
        return None
    names = ", ".join(result.name for result in progress.latest.failures)
    return End(verdict=Verdict.FAILED, reason=f"still failing: {names}")


def _gave_up(progress: Progress, _: Limits) -> End | None:
    reason = progress.attempts[-1].gave_up if progress.attempts else None
    return End(verdict=Verdict.GAVE_UP, reason=f"the agent says: {reason}") if reason else None


def _rejected(progress: Progress, _: Limits) -> End | None:
    refused = [attempt for attempt in progress.attempts if attempt.rolled_back]
    if len(refused) < MAX_REJECTIONS:
        return None
    rules = ", ".join(dict.fromkeys(v.rule for a in refused for v in a.violations))
    return End(verdict=Verdict.REJECTED, reason=f"the guard refused two attempts: {rules}")


def _attempts_spent(progress: Progress, limits: Limits) -> End | None:
    allowed, made = limits.budget.attempts, len(progress.attempts)
    if allowed is None or made < allowed:
        return None
    step = progress.latest.failed_step or "validation"
    return _exhausted(f"{step} failed after {made} attempt{'' if made == 1 else 's'}")


def _gate_spent(progress: Progress, limits: Limits) -> End | None:
    """A gate may have fewer attempts than the run; each attempt made while it failed counts."""
    before = tuple(_before_each(progress))
    for position, (gate, result) in enumerate(
        zip(limits.gates, progress.latest.results, strict=False)
    ):
        allowed = attempts_allowed(
            gate, flag=limits.attempts_flag, configured=limits.attempts_configured
        )
        tried = sum(_failed_at(validation, position) for validation in before)
        if result.blocks and tried >= allowed:
            times = f"{tried} attempt{'' if tried == 1 else 's'}"
            return _exhausted(f"{gate.name} failed after {times}, all that it may cost")
    return None


def _before_each(progress: Progress) -> Iterator[Validation]:
    """The validation that each attempt started from."""
    current = progress.settled
    for attempt in progress.attempts:
        yield current
        current = attempt.validation or current


def _failed_at(validation: Validation, position: int) -> bool:
    return position < len(validation.results) and validation.results[position].blocks


def _cost_spent(progress: Progress, limits: Limits) -> End | None:
    allowed = limits.budget.cost_usd
    if allowed is None:
        return None
    others = progress.elsewhere
    spent = progress.cost_usd + others.cost_usd
    together = " by all workspaces together" if others.cost_usd else ""
    if spent >= allowed:
        return _exhausted(f"the budget of ${allowed:.2f} is spent{together}")
    likely = max(progress.dearest_usd, others.dearest_usd)
    if spent + likely > allowed:
        return _exhausted(
            f"the next attempt would exceed the budget: ${spent:.2f} of ${allowed:.2f} are spent"
            f"{together}, the dearest attempt cost ${likely:.2f}"
        )
    return None


def _time_spent(progress: Progress, limits: Limits) -> End | None:
    allowed_s = limits.budget.wall_s
    if allowed_s is None or progress.elapsed_s < allowed_s:
        return None
    return _exhausted(f"{allowed_s / 60:g} minutes are over")


def _exhausted(reason: str) -> End:
    return End(verdict=Verdict.EXHAUSTED, reason=reason, remedy="atlas log shows what was tried")


def _stalled(progress: Progress, _: Limits) -> End | None:
    if not progress.attempts or progress.attempts[-1].rolled_back:
        return None
    if not progress.attempts[-1].changes:
        return End(verdict=Verdict.STALLED, reason="the attempt changed nothing")
    if progress.trees[-1] in progress.trees[:-1]:
        return End(verdict=Verdict.STALLED, reason="the attempt gave back a tree that was there")
    if len(progress.attempts) > 1 and _same_complaints(*progress.attempts[-2:]):
        return End(
            verdict=Verdict.STALLED, reason="two attempts in a row ended with the same diagnostics"
        )
    return None


def _same_complaints(first: Attempt, second: Attempt) -> bool:
    if first.validation is None or second.validation is None:
        return False
    return _complaints(first.validation) == _complaints(second.validation)


def _complaints(validation: Validation) -> list[tuple[str, Status, tuple[tuple[str, str], ...]]]:
    """What a validation says, messages included, without where it says it."""
    return [
        (r.name, r.status, tuple((d.fingerprint, steady(d.message)) for d in r.diagnostics))
        for r in validation.failures
    ]


RULES: tuple[Rule, ...] = (
    _passed,
    _broken,
    _no_agent,
    _gave_up,
    _rejected,
    _attempts_spent,
    _gate_spent,
    _cost_spent,
    _time_spent,
    _stalled,
)


def best(progress: Progress) -> Attempt | None:
    """The attempt worth keeping when a run does not end green; None when the start was no worse.

    Order: required gates that pass, nothing introduced, fewest remaining, smallest change.
    """
    candidates = [a for a in progress.attempts if a.validation and a.result and not a.rolled_back]
    if not candidates:
        return None
    start = progress.settled.fingerprints
    chosen = max(candidates, key=lambda attempt: _rank(attempt, start))
    floor = _worth(progress.settled, start)
    return chosen if chosen.validation and _worth(chosen.validation, start) > floor else None


def _rank(attempt: Attempt, start: frozenset[str]) -> tuple[tuple[int, bool, int], int]:
    size = sum((c.added or 0) + (c.removed or 0) for c in attempt.changes)
    return (_worth(attempt.validation or Validation(), start), -size)


def _worth(validation: Validation, start: frozenset[str]) -> tuple[int, bool, int]:
    green = -sum(result.blocks for result in validation.results)
    found = validation.fingerprints
    return (green, not found - start, -len(found))


def compared(
    before: Validation, after: Validation
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Fingerprints fixed, remaining and introduced between two validations, sorted."""
    old, new = before.fingerprints, after.fingerprints
    return tuple(sorted(old - new)), tuple(sorted(old & new)), tuple(sorted(new - old))
