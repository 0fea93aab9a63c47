"""The loop: validate, fix, ask, judge, validate again, until `decide` says how it ended.

All side effects are methods of `Effects`; the loop starts no process itself and reads no file.
"""

import shlex
from itertools import chain

from msgspec.structs import replace

from atlas_retry.diagnostics.counting import compared, first_problem
from atlas_retry.errors import AtlasError, Interrupted
from atlas_retry.events import (
    AgentReplied,
    AttemptFinished,
    AttemptRestored,
    AttemptStarted,
    EventScope,
    Notice,
    RunFinished,
    RunStarted,
)
from atlas_retry.history.rescue import START
from atlas_retry.model import (
    AgentReply,
    Attempt,
    ExtraRun,
    Held,
    Level,
    Outcome,
    ReplyStatus,
    Validation,
    Verdict,
)
from atlas_retry.process import uninterruptible
from atlas_retry.run.decide import End, decide, last_attempt, permitting
from atlas_retry.run.effects import Effects
from atlas_retry.run.held import CHANGED_IN_GIT, needed_paths, standing
from atlas_retry.run.progress import Progress, Run, best, is_worse
from atlas_retry.run.settle import Turn, forget, name_restored, settle
from atlas_retry.text.units import first_few
from atlas_retry.workspace.gitunder import Under
from atlas_retry.workspace.snapshot.snapshots import Snapshot


def retry(do: Effects) -> Outcome:
    """Validate, and spend the budget on what fails until it passes or a stop rule applies.

    Raises Interrupted after the unfinished attempt's edits have been reverted.
    """
    run = do.run
    extra: list[ExtraRun] = []
    do = do.within(EventScope(workspace=run.workspace.name, run=run.run_id)).counting(extra)
    progress = run.so_far
    if progress is None:
        start = do.tree.snapshot(START)
        do.emit(RunStarted(facts=run.workspace, start_snapshot=start.id, left_out=start.left_out))
        if run.limits.with_agent:
            do.git.pin(start.id)
            do.agent.say_unavailable()
        baseline = run.recorded or do.gates.validate(None)
        fixed = () if baseline.success or baseline.broken else do.gates.fix(baseline)
        settled, origin = do.gates.validate(None) if fixed else baseline, do.tree.snapshot("origin")
        progress = Progress(
            run_id=run.run_id,
            baseline=baseline,
            settled=settled,
            latest=settled,
            start=start.id,
            origin=origin.id,
            current=origin.id,
            trees=(origin.tree,),
            fixers_changed=fixed,
        )
    while (end := decide(progress := do.account(progress), run.limits)) is None:
        progress = _attempt(progress, do)
    unproven = do.gates.unproven(progress) if end.verdict is Verdict.FIXED else ()
    with uninterruptible(f"run {run.run_id} is being ended"):
        progress, final = _keep(progress, end, run, do)
        if not end.verdict.is_green:
            forget(progress, do)
        outcome = _outcome(progress, end, final, do)
        outcome = replace(outcome, extra_runs=tuple(extra), unproven=unproven)
        outcome = do.accept(progress.current, outcome)
        outcome = replace(outcome, learning_record_id=do.learn(outcome))
        do.emit(RunFinished(outcome=outcome))
    return outcome


def _attempt(progress: Progress, do: Effects) -> Progress:
    """One agent turn, the guard, and the validation after it."""
    if unavailable := do.agent.unavailable():
        return replace(progress, refused=unavailable.reply)
    run, number = do.run, len(progress.attempts) + 1
    scope = EventScope(
        workspace=run.workspace.name,
        run=run.run_id,
        attempt=number,
        max_attempts=last_attempt(progress, run.limits),
        failed_step=progress.base[0].failed_step,
    )
    do = do.within(scope)
    progress = _on_its_base(progress, do)
    if progress.latest.success:
        text = "the gates pass; the agent is asked once for a fix that nobody must review"
        do.emit(Notice(text=f"  {text}"))
    before = do.tree.snapshot(f"{number}-before")
    do.guard.seal(progress)
    try:
        return _turn(progress, before, number, do)
    except Interrupted as interrupted:
        if error := _reverted(before, number, do):
            raise error from interrupted
        interrupted.reverted = number
        raise
    except AtlasError:
        _reverted(before, number, do)  # the first error is the one to report
        raise


def _reverted(before: Snapshot, number: int, do: Effects) -> AtlasError | None:
    """Revert the edits of an abandoned attempt; they stay in its snapshot.

    What moved since the turn may be the user's: it is named. If that fails, says that the changes
    stay, and returns the error.
    """
    try:
        with uninterruptible(f"the changes of attempt {number} are being reverted"):
            name = f"{number}-unfinished"
            do.git.undo_git(number, is_abandoned=True)
            unfinished = do.tree.snapshot(name)
            do.tree.restore(before.id, unfinished.id, None)
            if turn := do.tree.kept(f"{number}-left") or do.tree.kept(f"{number}"):
                reverted = do.tree.moved(before.id, unfinished.id)
                name_restored(reverted & do.tree.moved(turn, unfinished.id), name, do)
            do.emit(AttemptRestored(number=number))
    except AtlasError as error:
        lines = (
            f"the changes of attempt {number} are still in the workspace: {error}",
            *do.git.how_to_undo(),
        )
        do.emit(Notice(level=Level.WARNING, text="\n".join(lines)))
        return error
    return None


def _on_its_base(progress: Progress, do: Effects) -> Progress:
    """Revert the last attempt if it left things worse: nothing is built on it."""
    validation, snapshot = progress.base
    if not progress.attempts or not progress.attempts[-1].worse or progress.latest == validation:
        return progress
    _restore_snapshot(snapshot, progress, do)
    return replace(progress, latest=validation, current=snapshot)


def _turn(progress: Progress, before: Snapshot, number: int, do: Effects) -> Progress:
    """Ask the agent, judge its changes, and run the gates on what is left of them."""
    since_s = do.elapsed_s()
    attempt, reply = _asked(progress, before, number, do)
    after = do.tree.snapshot(str(number))
    under = do.git.changed_under(before.id, after.id)
    turn = Turn(before=before, after=after)
    if under and (clash := _clash(turn, under, reply, do)):
        return _set_aside(progress, replace(attempt, held=clash), turn, under, do)
    before, theirs = _before_the_agent(turn, reply, under, number, do)
    progress = replace(progress, theirs=progress.theirs | theirs)
    if reply.status is ReplyStatus.UNAVAILABLE:
        do.tree.restore(before.id, after.id, None)
        return replace(progress, refused=reply)
    changes = do.tree.changes(before.id, after.id)
    attempt = replace(attempt, snapshot=after.id, changes=changes)
    do.tree.refresh(changes)
    turn = Turn(before=before, after=after)
    attempt, end, validation = settle(attempt, turn, progress, do)
    fixed, remaining, introduced = compared(progress.latest, validation or progress.latest)
    is_red = validation is not None and is_worse(validation, than=progress.latest)
    attempt = replace(
        attempt,
        validation=validation,
        fixed=fixed,
        remaining=remaining,
        introduced=introduced,
        worse=is_red and not needed_paths(attempt),  # it may be green with the held changes
        duration_ms=round((do.elapsed_s() - since_s) * 1000),
        result=end.id,
        since_start=do.tree.changes(progress.start, end.id),
    )
    do.emit(AttemptFinished(result=attempt))
    return _advanced(progress, attempt, end, validation)


def _asked(
    progress: Progress, before: Snapshot, number: int, do: Effects
) -> tuple[Attempt, AgentReply]:
    """Ask the agent; returns the attempt as it reports it, and its reply.

    The cost includes that of the turn before an interruption.
    """
    request, prompt_path = do.agent.request(progress, number)
    started = AttemptStarted(
        number=number,
        agent=do.run.agent,
        model=request.model,
        session_id=request.session_id,
        snapshot=before.id,
        prompt_chars=len(request.prompt),
        prompt_path=prompt_path,
    )
    do.emit(started)
    reply = do.agent.ask(request)
    do.emit(AgentReplied(number=number, reply=reply))
    begun_usd = progress.begun_usd
    attempt = Attempt(
        number=number,
        prompt_chars=started.prompt_chars,
        prompt_path=prompt_path,
        agent=do.run.agent,
        model=reply.model or request.model,
        session_id=reply.session_id,
        transport_retries=reply.transport_retries,
        denials=reply.denials,
        cost_usd=begun_usd + (reply.cost_usd or 0.0) if begun_usd else reply.cost_usd,
        reviews_usd=progress.begun_reviews_usd,
        tokens=reply.tokens,
        summary=reply.summary,
        error=reply.error,
        gave_up=reply.gave_up,
    )
    return attempt, reply


def _clash(turn: Turn, under: Under, reply: AgentReply, do: Effects) -> tuple[Held, ...]:
    """Files in which the attempt and someone else's git are not to be told apart, or that decide.

    They could neither be judged nor restored without overwriting what that git brought.
    """
    mixed = under.mixed - do.tree.by_others(under.mixed, reply)
    paths = mixed.union(do.tree.deciding(turn.before.id, turn.after.id, under.paths))
    detail = f"was changed in git during the attempt ({under.how}), and not by the agent's git"
    return tuple(
        Held(rule=CHANGED_IN_GIT, path=path, detail=detail, in_place=True) for path in sorted(paths)
    )


def _set_aside(
    progress: Progress, attempt: Attempt, turn: Turn, under: Under, do: Effects
) -> Progress:
    """End the run with the attempt as a patch, and leave everything as it is."""
    before, after = turn.before.id, turn.after.id
    changes = tuple(c for c in do.tree.changes(before, after) if c.path not in under.paths)
    patch = do.tree.as_patch(before, after, [change.path for change in changes], attempt.number)
    quoted = shlex.quote(str(patch))
    names = first_few([held.path for held in attempt.held])
    attempt = replace(
        attempt,
        snapshot=after,
        changes=changes,
        result=after,
        since_start=do.tree.changes(progress.start, after),
        error=f"{under.how}: this changed {names} during the attempt, so nothing is overwritten, "
        "and the attempt's own changes are a patch",
        ends=Verdict.NEEDS_REVIEW,
        remedy="git stash pop" if under.is_stashed else f"git apply --3way {quoted}",
    )
    do.emit(AttemptFinished(result=attempt))
    return _advanced(progress, attempt, turn.after, None)


def _advanced(
    progress: Progress, attempt: Attempt, end: Snapshot, validation: Validation | None
) -> Progress:
    return replace(
        progress,
        latest=validation or progress.latest,
        current=end.id,
        trees=(*progress.trees, end.tree),
        attempts=(*progress.attempts, attempt),
        begun_usd=0.0,
        begun_reviews_usd=0.0,
    )


def _keep(progress: Progress, end: End, run: Run, do: Effects) -> tuple[Progress, Validation]:
    """Leave the tree that `on_exhausted` asks for; returns the validation of that tree."""
    if end.verdict is Verdict.NEEDS_REVIEW:
        return _with_green(progress, do)
    if end.verdict.is_green or not progress.attempts or run.on_exhausted == "keep":
        last = standing(progress.attempts)
        return _marked(progress, (last,) if last else ()), progress.latest
    if run.on_exhausted == "restore":
        _restore_snapshot(progress.start, progress, do)
        return replace(progress, current=progress.start), progress.baseline
    chosen = best(progress)
    target = (chosen and chosen.result) or progress.origin
    if target != progress.current:
        _restore_snapshot(target, progress, do)
        progress = replace(progress, current=target)
    if chosen is None or chosen.validation is None:
        return progress, progress.settled
    return _marked(progress, (chosen,)), chosen.validation


def _with_green(progress: Progress, do: Effects) -> tuple[Progress, Validation]:
    """Leave the tree; if the attempt after a green one made it worse, that of the green one."""
    attempts = progress.attempts
    if attempts and progress.base[0].success:
        progress = _on_its_base(progress, do)
        attempts = tuple(one for one in attempts if not one.worse)
    last = standing(attempts)
    return _marked(progress, (last,) if last else ()), progress.latest


def _marked(progress: Progress, kept: tuple[Attempt, ...]) -> Progress:
    numbers = {attempt.number for attempt in kept if not attempt.rolled_back}
    marked = tuple(replace(a, kept=a.number in numbers) for a in progress.attempts)
    return replace(progress, attempts=marked)


def _by_agents(progress: Progress) -> frozenset[str]:
    changes = chain.from_iterable(attempt.changes for attempt in progress.attempts)
    return frozenset(change.path for change in changes)


def _outcome(progress: Progress, end: End, final: Validation, do: Effects) -> Outcome:
    """The outcome of the run; its error names the first problem if gates still fail."""
    run, problems = do.run, first_problem(final)
    is_spent = end.verdict in (Verdict.FAILED, Verdict.EXHAUSTED, Verdict.STALLED)
    kept = next((a.result for a in reversed(progress.attempts) if a.kept), None)
    chosen, moved = best(progress), do.tree.moved(progress.start, progress.current)
    is_better = chosen and chosen.validation and is_worse(final, than=chosen.validation)
    return Outcome(
        run_id=run.run_id,
        verdict=end.verdict,
        workspace=run.workspace,
        baseline=progress.baseline,
        final=final,
        attempts=progress.attempts,
        final_error=f"{end.reason}; {problems}" if problems and is_spent else end.reason,
        remedy=end.remedy or permitting(end, progress.attempts, run.workspace.root),
        cost_usd=progress.cost_usd,
        interrupted_usd=run.interrupted_usd,
        duration_ms=round(do.elapsed_s() * 1000),
        escalation_required=bool(progress.attempts) and not end.verdict.is_green,
        start_snapshot=progress.start if do.tree.kept(START) else None,
        lost=do.tree.lost(progress.start, kept, progress.theirs) if kept else (),
        better=chosen.number if chosen and is_better else None,
        gates_changed=tuple(sorted(moved - _by_agents(progress) - progress.theirs)),
        open_reviews=do.open_reviews(progress),
    )


def _before_the_agent(
    turn: Turn, reply: AgentReply, under: Under | None, number: int, do: Effects
) -> tuple[Snapshot, frozenset[str]]:
    """The snapshot before the turn plus edits by others during it, and the paths of those edits.

    Changes from there on are the agent's only. It is `before` itself if edits by others are not
    known: then all changes count as the agent's.
    """
    before, after = turn.before, turn.after
    changed = do.tree.moved(before.id, after.id)
    theirs = do.tree.by_others(changed, reply) | (under.paths if under else frozenset())
    if not theirs:
        return before, theirs
    named = first_few(sorted(theirs))
    text = f"changed by someone else during the attempt; atlas keeps that change: {named}"
    do.emit(Notice(level=Level.WARNING, text=text))
    ours = changed - theirs
    do.tree.restore(before.id, after.id, ours)
    mixed = do.tree.snapshot(f"{number}-before")
    do.tree.restore(after.id, mixed.id, ours)
    return mixed, theirs


def _restore_snapshot(target: str, progress: Progress, do: Effects) -> None:
    """Restore an earlier snapshot, except the user's own edits.

    An edit during a validation may be the user's or a gate's: it is restored and named.
    """
    changed = do.tree.moved(progress.current, target) - progress.theirs
    attempts = (attempt.validation for attempt in progress.attempts if attempt.validation)
    results = chain.from_iterable(one.results for one in (progress.baseline, *attempts))
    by_gates = chain.from_iterable(result.changed for result in results)  # by their reports
    unknown = changed.difference(_by_agents(progress), by_gates)
    name = f"{len(progress.attempts)}-reverted"
    if unknown:
        do.tree.snapshot(name)
    do.tree.restore(target, progress.current, changed if progress.theirs else None)
    name_restored(unknown, name, do)
