"""Run one workspace: open it, lock it, keep its journal. `many` runs several."""

import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry import agents, process, state_dir
from atlas_retry.agents import capture
from atlas_retry.agents.redacted import redacted_agent, redacted_emit
from atlas_retry.errors import Interrupted, UsageError, WorkspaceError
from atlas_retry.events import Emit, EventScope, Notice, fan_out, following
from atlas_retry.history import archive, database, event_log, identity, rescue, values
from atlas_retry.history.event_log import EventLog
from atlas_retry.history.journal import Journal, opened_journal
from atlas_retry.model import Agent, Level, Outcome, Validation
from atlas_retry.reports.documents import Cascade
from atlas_retry.reports.subject import Recorded, Subject
from atlas_retry.run import isolation, ledger, leftovers, on_failure
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.effects import Effects
from atlas_retry.run.effects.open_run import OpenRun, run_folder
from atlas_retry.run.loop import retry
from atlas_retry.run.open import OpenWorkspace, open_configured, select
from atlas_retry.run.progress import Progress, Run, limits
from atlas_retry.run.reviewer import agent_of
from atlas_retry.run.triage import aligned, check_baseline, completed
from atlas_retry.text.commands import quoted
from atlas_retry.text.redaction import redact, secret_values
from atlas_retry.text.units import first_few, labelled, usd
from atlas_retry.workspace import discovery
from atlas_retry.workspace.discovery import holding_gitfile
from atlas_retry.workspace.isolation.isolated import lock
from atlas_retry.workspace.snapshot import store, trees

if TYPE_CHECKING:
    from atlas_retry.run.channel import Channel


class RunOptions(Struct, frozen=True, kw_only=True):
    """What a command line asks of every workspace."""

    order: values.Order = values.Order()
    """What `atlas resume` asks for again."""
    recorded: Recorded | None = None
    """A failure to start from, instead of a baseline validation."""
    record: Path | None = None
    run_id: str | None = None
    """Id of the run; None: made from the time."""


class Finished(Struct, frozen=True, kw_only=True):
    """A run that has ended, with its workspace."""

    opened: OpenWorkspace | None
    """None if it could not be opened, or an error ended the run."""
    outcome: Outcome

    @property
    def root(self) -> Path:
        """Root of the workspace; if it could not be opened, the folder that was named."""
        return Path(self.outcome.workspace.root)

    def subject(self, formats: Collection[str]) -> Subject:
        """The subject of reports in these formats; `html` shows each attempt's prompt and patch."""
        whole = Subject(result=self.outcome, workspace=self.outcome.workspace)
        if self.opened is None or "html" not in formats:
            return whole
        hidden = secret_values(self.opened.environ)
        patches, prompts = {}, {}
        attempts = self.outcome.attempts
        held = store.kept(self.opened.git) if attempts else {}
        for attempt in attempts:
            before = held.get(f"runs/{self.outcome.run_id}/{attempt.number}-before")
            if before and attempt.snapshot:
                patch = trees.patch(self.opened.git, before, attempt.snapshot)
                patches[attempt.number] = redact(patch.decode(errors="replace"), hidden)
            if attempt.prompt_path:
                prompts[attempt.number] = Path(attempt.prompt_path).read_text(encoding="utf-8")
        return replace(whole, patches=patches, prompts=prompts)


class BatchResult(Struct, frozen=True, kw_only=True):
    finished: tuple[Finished, ...]
    """In the order they were asked for."""
    not_started: tuple[str, ...] = ()
    next_command: str = ""
    """Command that starts `not_started`."""
    cascade: Cascade = field(default_factory=Cascade)


def opened_with(root: Path, asked: RunOptions, environ: Mapping[str, str]) -> OpenWorkspace:
    """The workspace with its configuration, flags included; creates the folder of a recording.

    Raises ConfigError, WorkspaceError, and UsageError if the configuration forbids the agent or the
    recording has no usable folder.
    """
    only = asked.order.only
    opened = open_configured(root, environ, asked.order.overrides, named=only)
    check_baseline(opened.root, opened.settings, environ)
    if asked.order.ai_fix and not opened.settings.retry.ai_retry_enabled:
        raise UsageError(
            "--ai-fix is turned off: retry.ai_retry_enabled is false in "
            f"{opened.settings.ai_retry_origin}",
            remedy=f"atlas retry {quoted(root)}",
        )
    if asked.order.ai_fix and not os.access(opened.root, os.W_OK):
        raise WorkspaceError(
            f"{opened.root} cannot be written: no agent could change anything in it"
        )
    if asked.record:
        capture.open_folder(asked.record, opened.root)
    guard = replace(opened.settings.guard, allow=(*opened.settings.guard.allow, *asked.order.allow))
    gates = select(opened.settings.gates, only)
    return replace(opened, settings=replace(opened.settings, guard=guard, gates=gates))


def run_one(
    opened: OpenWorkspace, asked: RunOptions, emit: Emit, budget: SharedBudget | None = None
) -> Outcome:
    """One run under the workspace's lock, with all its events in its log.

    `budget` is shared by several runs. Raises WorkspaceError if another process holds the lock, and
    like `refuse_begun` and `refuse_leftovers`.
    """
    refuse_begun(opened.git, asked)
    with lock(opened.git):
        leftovers.refuse_leftovers(opened, emit)
        resume_point = ResumePoint(run_id=asked.run_id or state_dir.new_run_id())
        run_id = resume_point.run_id
        budget = budget or budget_of(opened.state, asked.order.batch, but=run_id)
        layers = None
        if asked.order.ai_fix and opened.settings.agent.isolation != "none":
            layers = isolation.layers(opened, run_id, asked.record, emit)
        if layers is None:
            return run_in_tree(opened, asked, resume_point, budget, emit)
        fresh = replace(opened, environ={**opened.environ})  # without cached properties
        task = partial(run_in_tree, fresh, asked, resume_point)
        return isolation.run_apart(task, layers, opened, emit, budget)


def refuse_begun(git: discovery.Workspace, asked: RunOptions) -> None:
    """Raise WorkspaceError if git is in the middle of an operation, unless the run is forced."""
    if git.in_progress and not asked.order.force:
        begun = " and ".join(git.in_progress)
        raise WorkspaceError(
            f"git is in the middle of {begun} in {git.root}: its unfinished changes would "
            "be taken for the failure",
            remedy="finish or abort it (git status says how), or: "
            f"atlas retry {quoted(git.root)} --force",
        )


class ResumePoint(Struct, frozen=True, kw_only=True):
    """A run from its start, or from where it was interrupted."""

    run_id: str
    so_far: Progress | None = None
    elapsed_s: float = 0.0
    with_agent: Callable[[Agent], Agent] | None = None
    """Makes an agent that continues the interrupted attempt, from one that starts a new one."""


def run_in_tree(
    opened: OpenWorkspace,
    asked: RunOptions,
    start: ResumePoint,
    around: "SharedBudget | Channel",
    emit: Emit = lambda _: None,
) -> Outcome:
    """The run itself, in the tree that this process sees at the workspace's path.

    In an overlay, events and the shared budget go through the channel. Raises like `run_one`.
    """
    budget: SharedBudget
    channel = None
    if isinstance(around, SharedBudget):
        budget = around
    else:
        from atlas_retry.run.channel import RemoteBudget

        budget, channel, emit = RemoteBudget(around), around, around.emit
    run_id = start.run_id
    before = ledger.standing(opened, asked.order, but=run_id)
    if asked.order.ai_fix:
        opened = ledger.limited(opened, before)
    folder = run_folder(opened, run_id)
    state_dir.folder(folder)
    process.note_end(str(folder / rescue.ALL_ENDED))
    identity.sign(opened.git)
    with process.orderly(), holding_gitfile(opened.root, opened.git.home), ExitStack() as stack:
        log = stack.enter_context(EventLog(folder / event_log.NAME))
        stack.enter_context(state_dir.beating(log.path))
        emit = fan_out((log, emit))
        opening = values.Opening(
            run_id=run_id,
            order=replace(asked.order, on_exhausted=opened.settings.retry.on_exhausted),
            repository=str(opened.git.common_dir),
            mark=process.mark(),
            recorded=_baseline(opened, asked.recorded),
        )
        journal = stack.enter_context(opened_journal(opened.state, opening, emit))
        _name_unfinished(opened, journal, emit, run_id)
        emit = following(fan_out((journal, emit)), EventScope(run=run_id))
        ledger.warn(before, emit)
        if asked.order.ai_fix and opened.settings.guard.mode != "block":
            mode = opened.settings.guard.mode
            text = f"guard.mode is {mode}: no change of the agent is reverted (atlas config show)"
            emit(Notice(level=Level.WARNING, text=text))
        do = _effects(opened, asked, journal, emit, start)
        do.of.budget, do.of.channel = budget, channel
        paying = " --ai-fix" if asked.order.ai_fix else ""
        try:
            outcome = retry(do)
        except Interrupted as interrupted:
            text = "interrupted; no attempt was running, so nothing is reverted"
            if interrupted.reverted is not None:
                text = f"interrupted: the changes of attempt {interrupted.reverted} are reverted"
            lines = (
                text,
                *labelled("to continue", f"atlas resume {quoted(opened.root)}{paying}"),
                *rescue.how_to_undo(opened.git, run_id, "to restore what was there before the run"),
            )
            emit(Notice(level=Level.WARNING, text="\n".join(lines)))
            raise
        ledger.warn(before, emit, outcome.cost_usd)
        if outcome.escalation_required:
            from atlas_retry.reports.handoff import handoff

            path = folder / "handoff.md"
            path.write_text(handoff(outcome), encoding="utf-8", errors="replace")
            outcome = replace(outcome, handoff_path=str(path))
        if channel is None:
            on_failure.tell(opened.settings.retry.on_failure, outcome, opened.environ, emit)
        return outcome


def budget_of(
    home: Path, batch: str | None, *, but: str = "", runs: int = 1, jobs: int = 1
) -> SharedBudget:
    """A budget that counts what the batch has spent, except in the run `but`. StateError."""
    if batch is None:
        return SharedBudget(runs=runs, jobs=jobs)
    with database.reading(home) as connection:
        spent_usd, dearest_usd = archive.batch_usd(connection, batch, but=but)
    return SharedBudget(runs=runs, jobs=jobs, spent_usd=spent_usd, dearest_usd=dearest_usd)


def _name_unfinished(opened: OpenWorkspace, journal: Journal, emit: Emit, run_id: str) -> None:
    """Report an interrupted run, and end its processes. With our lock, no other run is active."""
    unfinished = journal.unfinished(str(opened.root))
    if unfinished is None or unfinished[0].id == run_id:
        return
    other, attempt = unfinished
    left = process.end_marked(other.mark)
    ended = f", and the processes it left running are ended ({first_few(left)})" if left else ""
    is_held = attempt is not None and not rescue.is_lost(opened.git, other)
    folder = run_folder(opened, other.id)
    changed = leftovers.clear(opened.git, other, attempt, folder) if attempt and is_held else ()
    cleared = (
        f" Restore or reinstall what its turn changed: {first_few(changed)}" if changed else ""
    )
    cost = f"Its cost: {usd(other.cost_usd, at_least=True)}{ended}.{cleared}"
    lines = (
        f"run {other.id} was interrupted in this workspace, and this run takes its place. {cost}",
        *labelled("it could have been resumed with", f"atlas resume {quoted(opened.root)}"),
        *rescue.how_to_undo(opened.git, other.id, "to restore what was there before it"),
    )
    emit(Notice(level=Level.WARNING, text="\n".join(lines)))


def _effects(
    opened: OpenWorkspace,
    asked: RunOptions,
    journal: Journal,
    emit: Emit,
    start: ResumePoint,
) -> Effects:
    """Everything that a run needs, with its own budget."""
    opening, so_far = journal.opening, start.so_far
    run = Run(
        run_id=opening.run_id,
        interrupted_usd=journal.interrupted_usd(str(opened.root)),
        workspace=discovery.facts(opened.git),
        limits=limits(
            opened.settings, with_agent=asked.order.ai_fix, attempts_flag=asked.order.attempts_flag
        ),
        agent=opened.settings.agent.backend,
        on_exhausted=opened.settings.retry.on_exhausted,
        recorded=opening.recorded,
        so_far=so_far,
    )
    hidden = secret_values(opened.environ)

    def captured(agent: Agent) -> Agent:
        if asked.record is None:
            return agent
        return capture.CapturingAgent(agent=agent, git=opened.git, folder=asked.record)

    factory = agents.resolve(opened.settings.agent.backend)
    agent = factory(opened.settings.agent, redacted_emit(emit, hidden), opened.environ)
    agent = start.with_agent(agent) if start.with_agent else agent
    open_run = OpenRun(
        run=run,
        opened=opened,
        folder=run_folder(opened, opening.run_id),
        agent=captured(redacted_agent(agent, hidden)),
        reviewer=lambda gate: captured(agent_of(opened, gate, emit)),
        journal=journal,
        emit=emit,
        started_s=time.monotonic() - start.elapsed_s,
        budget=SharedBudget(),
        validations=count(len(so_far.attempts) + 1 if so_far else 0),
    )
    return Effects(of=open_run)


def _baseline(opened: OpenWorkspace, recorded: Recorded | None) -> Validation | None:
    """A recorded failure as a validation of this workspace's gates, matched by their commands.

    None if nothing fails in the record, which proves nothing about the workspace. Raises UsageError
    if the record has no gate of the configuration.
    """
    if recorded is None:
        return None
    hidden = secret_values(opened.environ)
    whole = completed(recorded.validation, opened.root, opened.settings, hidden)
    known = aligned(whole, opened.settings.gates)
    return known if known.failures else None
