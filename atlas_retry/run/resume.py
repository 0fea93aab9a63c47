"""Continue an interrupted run: rebuild its progress, and pay for nothing twice.

Refuses if the workspace was changed since.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import config, process, state_dir
from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.events import Emit, Notice, now, seconds_of
from atlas_retry.history import archive, database, entries, event_log, rescue, states
from atlas_retry.history.values import OpenAttempt, Remains, RunRow
from atlas_retry.model import (
    Agent,
    AgentReply,
    AgentRequest,
    Level,
    Outcome,
    Session,
    Validation,
    Verdict,
    WorkspaceFacts,
)
from atlas_retry.patterns import regex
from atlas_retry.run import isolation, leftovers
from atlas_retry.run.one import (
    Finished,
    ResumePoint,
    RunOptions,
    budget_of,
    opened_with,
    refuse_begun,
    run_in_tree,
    run_one,
)
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.run.progress import Progress
from atlas_retry.run.settle import restored_notice
from atlas_retry.text.commands import quoted
from atlas_retry.text.units import first_few
from atlas_retry.workspace import discovery
from atlas_retry.workspace.isolation.isolated import lock
from atlas_retry.workspace.snapshot import restoring, snapshots, store, trees
from atlas_retry.workspace.walk import remove_special_rules

if TYPE_CHECKING:
    from atlas_retry.run.channel import Channel


class _InterruptedRun(Struct, frozen=True, kw_only=True):
    git: discovery.Workspace
    run: RunRow
    remains: Remains
    folder: Path
    held: Mapping[str, str]
    emit: Emit

    @property
    def expected(self) -> str:
        """The snapshot that the next attempt starts from."""
        attempt, done = self.remains.open_attempt, self.remains.attempts
        if attempt:
            return attempt.snapshot
        return (done[-1].result if done else None) or self.held[rescue.ORIGIN]


def resume(run: RunRow, environ: Mapping[str, str], emit: Emit, *, ai_fix: bool) -> Finished:
    """Continue an interrupted run with what is left of its budget.

    If no agent was asked yet, a new run starts. Raises UsageError if the run may spend money and
    `ai_fix` does not allow it; WorkspaceError, with the difference, if the workspace or its gates
    were changed since, and like `refuse_begun`.
    """
    with database.reading(state_dir.locate(environ)) as connection:
        remains = archive.remains(connection, run.id)
    order = remains.order
    if order.ai_fix and not ai_fix:
        raise UsageError(
            f"run {run.id} asks an agent, which costs money and needs --ai-fix",
            remedy=f"atlas resume {quoted(run.root)} --ai-fix",
        )
    asked = RunOptions(order=replace(order, ai_fix=ai_fix))
    home = state_dir.locate(environ)
    git = discovery.open_workspace(Path(run.root), home, environ=environ)
    refuse_begun(git, asked)
    with lock(git):
        process.end_marked(run.mark)
        if rescue.is_lost(git, run):
            raise WorkspaceError(
                f"run {run.id} cannot be continued: {git.shadow} does not hold its start any more",
                remedy=f"atlas retry {quoted(run.root)}",
            )
        has_begun = bool(remains.validations) and rescue.ORIGIN in rescue.snapshots(git, run)
        if has_begun and not isolation.is_apart(home, run.id):
            return _continued(run, asked, environ, emit)
        opened = opened_with(git.root, asked, environ)
        if has_begun:
            layers = isolation.prepared(opened, run.id)
            if isinstance(layers, str):
                raise WorkspaceError(
                    f"run {run.id} cannot be resumed in its overlay: {layers}",
                    remedy=f"atlas retry {quoted(run.root)} --ai-fix",
                )
            task = partial(_continued_in_overlay, run, asked, {**opened.environ})
            budget = budget_of(opened.state, order.batch, but=run.id)
            outcome = isolation.run_apart(task, layers, opened, emit, budget)
            return Finished(opened=opened, outcome=outcome)
    emit(Notice(text=f"run {run.id} had not started the agent yet: it starts from the beginning"))
    return Finished(opened=opened, outcome=run_one(opened, asked, emit))


def _continued_in_overlay(
    run: RunRow, asked: RunOptions, environ: Mapping[str, str], channel: "Channel"
) -> Outcome:
    return _continued(run, asked, environ, channel.emit, channel).outcome


def _continued(
    run: RunRow,
    asked: RunOptions,
    environ: Mapping[str, str],
    emit: Emit,
    channel: "Channel | None" = None,
) -> Finished:
    """Prepare the tree that this process sees at the workspace's path, and continue in it."""
    home = state_dir.locate(environ)
    with database.reading(home) as connection:
        remains = archive.remains(connection, run.id)
    git = discovery.open_workspace(Path(run.root), home, environ=environ)
    scene = _InterruptedRun(
        git=git,
        run=run,
        remains=remains,
        folder=state_dir.folder(home, "runs", run.id),
        held=rescue.snapshots(git, run),
        emit=emit,
    )
    alive_s = rescue.last_sign_of_life_s(run, scene.folder)
    turn = _prepare_workspace(scene)
    # not earlier, as the configuration may have been among the unfinished edits
    opened = opened_with(git.root, asked, environ)
    was = [result.name for result in remains.validations[0].results]
    are = [gate.name for gate in opened.settings.gates]
    if was != are:  # attempts are counted per gate
        raise _refusal(scene, f"its gates were {', '.join(was)}, and now they are {', '.join(are)}")
    start = _continued_run(scene, turn, alive_s, opened)
    around = channel or budget_of(opened.state, asked.order.batch, but=run.id)
    outcome = run_in_tree(opened, asked, start, around, emit)
    return Finished(opened=opened, outcome=outcome)


def _prepare_workspace(scene: _InterruptedRun) -> str | None:
    """Restore the start of the next attempt; returns the snapshot to continue its turn from."""
    for path in remove_special_rules(scene.git.root):
        text = f"removed, as git would wait for it: {path} was made a special file"
        scene.emit(Notice(level=Level.WARNING, text=text))
    done = rescue.undo_agents_git(scene.git, scene.folder, is_open=True)
    if done:
        text = f"the agent had changed it in git, and it is restored: {first_few(done)}"
        scene.emit(Notice(level=Level.WARNING, text=text))
    there = snapshots.snapshot(scene.git)
    alive_s = rescue.last_sign_of_life_s(scene.run, scene.folder)
    ours = _difference(scene, there.id, rescue.end_of_run_s(scene.run, scene.folder))
    what = f"run {scene.run.id} is being prepared to continue"
    attempt = scene.remains.open_attempt
    with process.uninterruptible(what):
        # before the log is touched again: until then, older changes are the run's own
        left = attempt and leftovers.clear(scene.git, scene.run, attempt, scene.folder)
        if left:
            raise _refusal(
                scene,
                f"its turn changed files that atlas cannot restore: {first_few(left)}. "
                f"Restore what you did not change yourself; {leftovers.ACCEPTING}",
            )
    log = scene.folder / event_log.NAME
    with state_dir.beating(log), process.uninterruptible(what):
        if not ours:
            return _turn(scene, None)
        turn = _turn(scene, there.id)
        late = restoring.edited_after(scene.git, ours, alive_s)
        restoring.restore(scene.git, scene.expected)
        since = _since_turn(scene, there.id) & {*ours}
        if since:
            name = rescue.unfinished(attempt)
            scene.emit(restored_notice(since, name, scene.run.id))
        _name_unfinished(scene, [path for path in ours if path not in since], late)
        return turn


def _name_unfinished(scene: _InterruptedRun, paths: Sequence[str], late: Collection[str]) -> None:
    """Name the edits that are reverted or continued; those in `late` may be a person's."""
    if not paths:
        return
    attempt, named = scene.remains.open_attempt, first_few(paths)
    take = rescue.pick_hint(scene.run.id, rescue.unfinished(attempt))
    text = f"unfinished edits are reverted ({take}): {named}"
    if attempt and (attempt.reply or attempt.session_id):
        text = f"the agent continues with its unfinished edits: {named}"
        if unsure := first_few([path for path in paths if path in late]):
            text += f"\nof these, changed when or after atlas was killed: {unsure}; {take}"
    scene.emit(Notice(level=Level.WARNING, text=text))


def _since_turn(scene: _InterruptedRun, there: str) -> frozenset[str]:
    """Paths that moved after the turn had ended, by gates or by a person."""
    attempt, held = scene.remains.open_attempt, scene.held
    if attempt is None or attempt.reply is None:
        return frozenset()
    turn = held.get(f"{attempt.number}-left") or held.get(f"{attempt.number}")
    return frozenset(trees.moved(scene.git, turn, there) if turn else ())


def _continued_run(
    scene: _InterruptedRun, turn: str | None, alive_s: float, opened: OpenWorkspace
) -> ResumePoint:
    """The rest of the run, recorded in the journal."""
    elapsed_s = scene.run.spent_ms / 1000 + max(0.0, alive_s - seconds_of(scene.run.segment_at))
    with database.opened(opened.state) as connection:
        reason = "it was interrupted and is resumed"
        entries.record(connection, scene.run, states.RunState.INTERRUPTED, reason)
        entries.continued(connection, scene.run, now(), round(elapsed_s * 1000))
    return ResumePoint(
        run_id=scene.run.id,
        so_far=_progress(scene),
        elapsed_s=elapsed_s,
        with_agent=lambda agent: _continuing_agent(scene, turn, agent),
    )


def _difference(scene: _InterruptedRun, there: str, run_ended_s: float) -> tuple[str, ...]:
    """Paths that the run itself left unfinished. Raises WorkspaceError if someone else edited."""
    paths = trees.moved(scene.git, scene.expected, there)
    attempt = scene.remains.open_attempt
    ended_s = 0.0 if attempt and attempt.restored else run_ended_s
    if why := leftovers.changed_by_others(scene.git, scene.run, paths, ended_s):
        raise _refusal(scene, why)
    return paths


def _refusal(scene: _InterruptedRun, why: str) -> WorkspaceError:
    run, attempt = scene.run, scene.remains.open_attempt
    new = f"to start a new run: atlas retry {quoted(run.root)} --ai-fix"
    undo = f"to restore what was there before the run (later changes stay): atlas undo {run.id}"
    remedy = f"{new}\n{undo}"
    if attempt and not attempt.restored:  # a new run may be refused because of its edits
        remedy = f"{undo}\n{new}"
    return WorkspaceError(f"run {run.id} cannot be resumed: {why}", remedy=remedy)


def _turn(scene: _InterruptedRun, there: str | None) -> str | None:
    """The snapshot to continue the attempt's turn from; keeps the unfinished one, `there`."""
    attempt = scene.remains.open_attempt
    unfinished = rescue.unfinished(attempt)
    if there:
        store.keep(scene.git, rescue.held_under(scene.run.id, unfinished), there)
    if attempt is None:
        return None
    whole = str(attempt.number)
    if attempt.reply and whole in scene.held:
        return scene.held[whole]
    if there and attempt.reply:
        store.keep(scene.git, rescue.held_under(scene.run.id, whole), there)
    return there or scene.held.get(unfinished)


def _progress(scene: _InterruptedRun) -> Progress:
    remains, origin = scene.remains, scene.held[rescue.ORIGIN]
    baseline, settled = remains.validations[0], remains.validations[-1]
    results = [attempt.result or origin for attempt in remains.attempts]
    fixed = trees.moved(scene.git, scene.run.start, origin) if settled != baseline else ()
    progress = Progress(
        run_id=scene.run.id,
        baseline=baseline,
        settled=settled,
        latest=settled,
        start=scene.run.start,
        origin=origin,
        current=results[-1] if results else origin,
        trees=tuple(snapshots.load(scene.git, name).tree for name in (origin, *results)),
        fixers_changed=fixed,
        attempts=remains.attempts,
    )
    progress = _as_in_workspace(progress, remains.open_attempt)
    counted_usd = progress.cost_usd - sum(a.cost_usd or 0.0 for a in remains.attempts)
    return replace(
        progress,
        begun_usd=remains.open_attempt.lost_usd if remains.open_attempt else 0.0,
        begun_reviews_usd=max(remains.reviews_usd - counted_usd, 0.0),
    )


def _as_in_workspace(progress: Progress, begun: OpenAttempt | None) -> Progress:
    """The progress as the workspace is: an attempt begun after a worse one has reverted that."""
    last = progress.attempts[-1].validation if progress.attempts else None
    if begun or last is None:
        current = begun.snapshot if begun else progress.current
        return replace(progress, latest=progress.base[0], current=current)
    return replace(progress, latest=last)


def _continuing_agent(scene: _InterruptedRun, turn: str | None, agent: Agent) -> Agent:
    """An agent that continues the interrupted attempt, and asks as usual afterwards.

    A finished turn is not paid again: its edits and its reply are used. An open conversation is
    resumed with its edits in place. Anything else starts over.
    """
    begun = scene.remains.open_attempt
    if begun is None:
        return agent

    def ask(request: AgentRequest) -> AgentReply:
        if request.attempt != begun.number or not (begun.reply or begun.session_id):
            return agent(request)
        brought = _restore_turn(scene, begun, turn) if turn else ()
        if begun.reply:
            return begun.reply
        done = (a for a in scene.remains.attempts if a.session_id == begun.session_id)
        reply = agent(
            replace(
                request,
                session=Session.RESUME,
                session_id=begun.session_id,
                session_cost_usd=sum((a.cost_usd or 0.0 for a in done), begun.lost_usd),
            )
        )
        # edits from before the interruption are of this turn too, but its reply does not name them
        return replace(reply, touched=(*reply.touched, *brought))

    return ask


def _restore_turn(scene: _InterruptedRun, begun: OpenAttempt, turn: str) -> tuple[str, ...]:
    """Restore the edits that the turn had made when it was interrupted; returns their paths."""
    paths = trees.moved(scene.git, begun.snapshot, turn, ignored=True)
    if paths:
        restoring.restore(scene.git, turn, paths, since=begun.snapshot)
    return paths


_ID = regex(r"[A-Za-z0-9]+([._-]?[A-Za-z0-9])*")
MAX_ID_CHARS = 100


def run_once(
    folder: Path, run_id: str, asked: RunOptions, environ: Mapping[str, str], emit: Emit
) -> Finished:
    """One run for this id, however often it is called: money is spent once, up to one limit.

    An interrupted run continues; if it has ended, its outcome comes from the journal. If it had not
    started the agent yet, a new run starts, with the id only as its batch. Raises UsageError for an
    id that is invalid or of another workspace, and like `run_one` and `resume`.
    """
    if len(run_id) > MAX_ID_CHARS or not _ID.fullmatch(run_id):
        raise UsageError(
            f"{run_id!r} cannot be the id of a run", remedy="use letters, digits and single - . _"
        )
    root = config.root_of(folder.resolve())
    with database.reading(state_dir.locate(environ)) as connection:
        earlier = archive.of_batch(connection, run_id)
    if elsewhere := [row.root for row in earlier if row.root != str(root)]:
        raise UsageError(
            f"run {run_id} belongs to {elsewhere[0]}", remedy="choose another --run-id"
        )
    if earlier and earlier[0].verdict:
        return Finished(opened=None, outcome=_recorded(earlier[0], earlier[0].verdict, environ))
    if earlier and earlier[0].is_open:
        return resume(earlier[0], environ, emit, ai_fix=asked.order.ai_fix)
    order = replace(asked.order, batch=run_id)
    asked = replace(asked, order=order, run_id=None if earlier else run_id)
    opened = opened_with(folder, asked, environ)
    return Finished(opened=opened, outcome=run_one(opened, asked, emit))


def _recorded(row: RunRow, verdict: Verdict, environ: Mapping[str, str]) -> Outcome:
    """Outcome of an ended run from the journal, without the output of gates that passed."""
    with database.reading(state_dir.locate(environ)) as connection:
        final = archive.final_of(connection, row.id) or Validation()
        attempts = archive.attempts(connection, row.id)
    return Outcome(
        run_id=row.id,
        verdict=verdict,
        workspace=WorkspaceFacts(name=row.name, root=row.root, head=row.head),
        baseline=Validation(),
        final=final,
        attempts=attempts,
        final_error=row.reason,
        cost_usd=row.cost_usd,
        duration_ms=row.duration_ms or 0,
        learning_record_id=row.learning,
        start_snapshot=row.start,
    )
