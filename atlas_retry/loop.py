"""The loop: validate, fix, ask, judge, validate again, until `decide` says how it ended.

Everything it touches comes in as `Effects`; it starts no process, reads no file and prints nothing.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from atlas_retry.decision import End, Limits, Progress, best, compared, decide
from atlas_retry.errors import Interrupted
from atlas_retry.events import (
    AgentReplied,
    AttemptFinished,
    AttemptStarted,
    Emit,
    RunFinished,
    RunStarted,
    Scope,
    ViolationsFound,
    within,
)
from atlas_retry.model import (
    Agent,
    AgentReply,
    AgentRequest,
    Attempt,
    Change,
    Level,
    Outcome,
    ReplyStatus,
    Validation,
    Violation,
    WorkspaceFacts,
)
from atlas_retry.settings import OnExhausted

__all__ = ["Effects", "Judgement", "Run", "Taken", "decide", "retry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A snapshot, as the loop sees it."""

    id: str
    """Brings everything back that it holds."""
    tree: str
    """Of the files that count: equal exactly when these are equal."""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the guard says of an attempt's changes."""

    violations: tuple[Violation, ...] = ()
    put_back: tuple[str, ...] | None = ()
    """Files whose return removes the violations; None: all of the attempt has to go."""
    blocks: bool = True
    """False: violations are told, nothing is put back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a run does to the world, each a callable, so that the loop itself is plain."""

    snapshot: Callable[[str], Taken]
    """Take one and keep it under a name within the run."""
    changes: Callable[[str, str], tuple[Change, ...]]
    restore: Callable[[str, str, Collection[str] | None], None]
    """Bring back a snapshot, whole or some paths of it. The second id is what should be there
    now: what differs from it was edited by the user meanwhile, and is told, not overwritten."""
    validate: Callable[[Validation | None], Validation]
    """Run the gates; None for the baseline, else the validation before."""
    fix: Callable[[Validation], tuple[str, ...]]
    """Run the fixers of what failed; the paths that changed."""
    request: Callable[[Progress, int], tuple[AgentRequest, str]]
    """The next attempt's request, and the path its prompt was written to."""
    ask: Agent
    judge: Callable[[str, str, Validation], Judgement]
    """What the guard says of the change between two snapshots, given what failed before it."""
    learn: Callable[[Outcome], str | None]
    """Record what a failed run teaches; the record's id."""
    account: Callable[[Progress], Progress]
    """The same with the time it took, and with what others have spent of a budget they share."""
    elapsed_s: Callable[[], float]
    emit: Emit


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run is about."""

    run_id: str
    workspace: WorkspaceFacts
    limits: Limits
    agent: str = ""
    on_exhausted: OnExhausted = OnExhausted.BEST
    recorded: Validation | None = None
    """Failures to start from instead of a baseline validation."""
    so_far: Progress | None = None
    """Of an interrupted run that goes on."""


def retry(run: Run, do: Effects) -> Outcome:
    """Validate, and spend the budget on what fails until it passes or a stop rule speaks.

    Raises Interrupted after the unfinished attempt's edits have been put back.
    """
    scope = Scope(workspace=run.workspace.name, run=run.run_id)
    do = replace(do, emit=within(do.emit, scope))
    progress = run.so_far or _begin(run, do)
    while (end := decide(progress := do.account(progress), run.limits)) is None:
        progress = _attempt(progress, run, do)
    progress, final = _keep(progress, end, run, do)
    outcome = _outcome(run, progress, end, final, round(do.elapsed_s() * 1000))
    outcome = replace(outcome, learning_record_id=do.learn(outcome))
    do.emit(RunFinished(outcome=outcome))
    return outcome


def _begin(run: Run, do: Effects) -> Progress:
    """The baseline, and what the gates' own fixers make of it."""
    start = do.snapshot("start")
    do.emit(RunStarted(workspace=run.workspace, start_snapshot=start.id, left_out=start.left_out))
    baseline = run.recorded or do.validate(None)
    changed = () if baseline.success or baseline.broken else do.fix(baseline)
    settled = do.validate(baseline) if changed else baseline
    origin = do.snapshot("origin")
    return Progress(
        baseline=baseline,
        settled=settled,
        latest=settled,
        start=start.id,
        origin=origin.id,
        current=origin.id,
        trees=(origin.tree,),
        fixers_changed=changed,
    )


def _attempt(progress: Progress, run: Run, do: Effects) -> Progress:
    """One agent turn, the guard, and the validation after it."""
    number = len(progress.attempts) + 1
    scope = Scope(
        workspace=run.workspace.name,
        run=run.run_id,
        attempt=number,
        max_attempts=run.limits.budget.attempts,
        failed_step=progress.latest.failed_step,
    )
    do = replace(do, emit=within(do.emit, scope))
    before = do.snapshot(f"{number}-before")
    try:
        return _turn(progress, before, number, run, do)
    except Interrupted:
        unfinished = do.snapshot(f"{number}-unfinished")
        do.restore(before.id, unfinished.id, None)
        raise


def _turn(progress: Progress, before: Taken, number: int, run: Run, do: Effects) -> Progress:
    since_s = do.elapsed_s()
    request, prompt_path = do.request(progress, number)
    do.emit(
        AttemptStarted(
            number=number,
            agent=run.agent,
            model=request.model,
            session_id=request.session_id,
            snapshot=before.id,
            prompt_chars=len(request.prompt),
            prompt_path=prompt_path,
        )
    )
    reply = do.ask(request)
    do.emit(AgentReplied(number=number, reply=reply))
    after = do.snapshot(str(number))
    if reply.status is ReplyStatus.UNAVAILABLE:
        do.restore(before.id, after.id, None)
        return replace(progress, refused=reply)
    attempt = replace(
        _told(reply, run, request),
        number=number,
        prompt_chars=len(request.prompt),
        prompt_path=prompt_path,
        snapshot=after.id,
        changes=do.changes(before.id, after.id),
    )
    attempt, end, validation = _settled(attempt, before, after, progress, do)
    fixed, remaining, introduced = compared(progress.latest, validation or progress.latest)
    attempt = replace(
        attempt,
        duration_ms=round((do.elapsed_s() - since_s) * 1000),
        result=end.id,
        validation=validation,
        fixed=fixed,
        remaining=remaining,
        introduced=introduced,
    )
    do.emit(AttemptFinished(result=attempt))
    return replace(
        progress,
        latest=validation or progress.latest,
        current=end.id,
        trees=(*progress.trees, end.tree),
        attempts=(*progress.attempts, attempt),
    )


def _told(reply: AgentReply, run: Run, request: AgentRequest) -> Attempt:
    """What the agent says of its own turn."""
    return Attempt(
        number=request.attempt,
        agent=run.agent,
        model=reply.model or request.model,
        session_id=reply.session_id,
        transport_retries=reply.transport_retries,
        cost_usd=reply.cost_usd,
        tokens=reply.tokens,
        summary=reply.summary,
        error=reply.error,
        gave_up=reply.gave_up,
    )


def _settled(
    attempt: Attempt, before: Taken, after: Taken, progress: Progress, do: Effects
) -> tuple[Attempt, Taken, Validation | None]:
    """The attempt after guard and gates, what is there then, and the validation if there was one.

    The guard looks again when the tree moved while the gates ran: what it sees then counts.
    """
    if not attempt.changes:
        return attempt, after, None
    attempt, judged = _guarded(attempt, before, after, progress, do)
    if attempt.rolled_back:
        return attempt, judged, None
    validation = do.validate(progress.latest)
    end = do.snapshot(f"{attempt.number}-end")
    if end.tree != judged.tree:
        again, end = _guarded(attempt, before, end, progress, do)
        if again.rolled_back or again.violations != attempt.violations:
            return again, end, None if again.rolled_back else do.validate(validation)
    return attempt, end, validation


def _guarded(
    attempt: Attempt, before: Taken, after: Taken, progress: Progress, do: Effects
) -> tuple[Attempt, Taken]:
    """Put violating files back, or all of the attempt where they cannot be told apart."""
    judgement = do.judge(before.id, after.id, progress.latest)
    if not judgement.violations:
        return attempt, after
    told = replace(attempt, violations=judgement.violations)
    if not judgement.blocks:
        do.emit(_found(judgement, rolled_back=False))
        return told, after
    do.restore(before.id, after.id, judgement.put_back)
    left = do.snapshot(f"{attempt.number}-guarded")
    rolled_back = judgement.put_back is None or left.tree == before.tree
    do.emit(_found(judgement, rolled_back=rolled_back))
    return replace(told, rolled_back=rolled_back), left


def _found(judgement: Judgement, *, rolled_back: bool) -> ViolationsFound:
    return ViolationsFound(
        level=Level.WARNING, violations=judgement.violations, rolled_back=rolled_back
    )


def _keep(progress: Progress, end: End, run: Run, do: Effects) -> tuple[Progress, Validation]:
    """Leave the tree behind that `on_exhausted` asks for; the validation that goes with it."""
    if end.verdict.is_green or not progress.attempts or run.on_exhausted is OnExhausted.KEEP:
        return _marked(progress, progress.attempts[-1:]), progress.latest
    if run.on_exhausted is OnExhausted.RESTORE:
        do.restore(progress.start, progress.current, None)
        return progress, progress.baseline
    chosen = best(progress)
    target = (chosen and chosen.result) or progress.origin
    if target != progress.current:
        do.restore(target, progress.current, None)
    if chosen is None or chosen.validation is None:
        return progress, progress.settled
    return _marked(progress, (chosen,)), chosen.validation


def _marked(progress: Progress, kept: tuple[Attempt, ...]) -> Progress:
    numbers = {attempt.number for attempt in kept if not attempt.rolled_back}
    marked = tuple(replace(a, kept=a.number in numbers) for a in progress.attempts)
    return replace(progress, attempts=marked)


def _outcome(
    run: Run, progress: Progress, end: End, final: Validation, duration_ms: int
) -> Outcome:
    return Outcome(
        run_id=run.run_id,
        verdict=end.verdict,
        workspace=run.workspace,
        baseline=progress.baseline,
        final=final,
        attempts=progress.attempts,
        final_error=end.reason,
        remedy=end.remedy,
        cost_usd=progress.cost_usd,
        duration_ms=duration_ms,
        escalation_required=bool(progress.attempts) and not end.verdict.is_green,
        start_snapshot=progress.start,
    )
