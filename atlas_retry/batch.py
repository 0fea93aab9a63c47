"""Run one workspace: open it, lock it, keep its journal. Several of them are `many`'s."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry import (
    agents,
    history,
    on_failure,
    process,
    recording,
    state,
    wiring,
    workspace,
)
from atlas_retry.decision import Progress
from atlas_retry.discreet import discreet_agent, discreet_emit
from atlas_retry.effects import Run
from atlas_retry.errors import Interrupted, UsageError, WorkspaceError
from atlas_retry.event_log import EventLog
from atlas_retry.events import Emit, Notice, Scope, fan_out, following
from atlas_retry.history import archive
from atlas_retry.loop import retry
from atlas_retry.model import Agent, Gate, Level, Outcome, Validation
from atlas_retry.purse import Purse
from atlas_retry.recorded import aligned, completed
from atlas_retry.redaction import redact, secret_values
from atlas_retry.reports import Recorded, Subject, of_run
from atlas_retry.reports.documents import Cascade
from atlas_retry.reports.handoff import handoff
from atlas_retry.site import Site, open_site
from atlas_retry.units import some, usd
from atlas_retry.workspace import identity


class Asked(Struct, frozen=True, kw_only=True):
    """What a command line asks of every workspace."""

    ai_fix: bool = False
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Configuration keys, dotted, that flags set."""
    attempts_flag: int | None = None
    allow: tuple[str, ...] = ()
    """Globs that may be changed, beside the configured ones."""
    recorded: Recorded | None = None
    """A failure to start from, instead of a baseline validation."""
    record: Path | None = None
    force: bool = False
    """Even while git is in the middle of a merge or the like."""
    batch: str | None = None
    """As in `history.Order`."""


class Finished(Struct, frozen=True, kw_only=True):
    """A run that has ended, and where."""

    site: Site | None
    """None where it could not be opened, or an error ended the run."""
    outcome: Outcome

    @property
    def root(self) -> Path:
        """Of the workspace; of one that could not be opened, the folder that was named."""
        return Path(self.outcome.workspace.root)

    @property
    def subject(self) -> Subject:
        """For reports, with what each attempt was asked and what it changed."""
        if self.site is None:
            return of_run(self.outcome)
        kept, hidden = workspace.kept(self.site.git), secret_values(self.site.environ)
        patches, prompts = {}, {}
        for attempt in self.outcome.attempts:
            before = kept.get(f"runs/{self.outcome.run_id}/{attempt.number}-before")
            if before and attempt.snapshot:
                patch = workspace.patch(self.site.git, before, attempt.snapshot)
                patches[attempt.number] = redact(patch.decode(errors="replace"), hidden)
            if attempt.prompt_path:
                prompts[attempt.number] = Path(attempt.prompt_path).read_text(encoding="utf-8")
        return of_run(self.outcome, patches=patches, prompts=prompts)


class Done(Struct, frozen=True, kw_only=True):
    """What became of a batch."""

    finished: tuple[Finished, ...]
    """In the order they were asked for."""
    not_started: tuple[str, ...] = ()
    """Absolute paths."""
    next_command: str = ""
    """What starts those."""
    cascade: Cascade = field(default_factory=Cascade)


def site_of(root: Path, asked: Asked, environ: Mapping[str, str]) -> Site:
    """The workspace with its configuration, flags included; the folder of a recording is made.

    Raises ConfigError, WorkspaceError, and UsageError where the configuration forbids the agent or
    the recording has no place.
    """
    site = open_site(root, environ, asked.overrides)
    if asked.ai_fix and not site.settings.retry.ai_retry_enabled:
        raise UsageError(
            "--ai-fix is refused by ai_retry_enabled: false, "
            f"{site.settings.retry.ai_retry_origin}",
            remedy=f"atlas retry {root}, without --ai-fix; or set it to true there",
        )
    if asked.ai_fix and not os.access(site.root, os.W_OK):
        raise WorkspaceError(f"{site.root} cannot be written: no agent could change anything in it")
    if asked.record:
        recording.open_folder(asked.record, site.root)
    guard = replace(site.settings.guard, allow=(*site.settings.guard.allow, *asked.allow))
    return replace(site, settings=replace(site.settings, guard=guard))


def run_one(site: Site, asked: Asked, emit: Emit, purse: Purse | None = None) -> Outcome:
    """One run under the workspace's lock, every event of it in its log.

    `purse` is what several runs share. Raises WorkspaceError where somebody else has the lock, and
    as `refuse_begun`.
    """
    refuse_begun(site.git, asked)
    with workspace.lock(site.git):
        return run_locked(site, asked, emit, purse=purse)


def refuse_begun(git: workspace.Workspace, asked: Asked) -> None:
    """Raise WorkspaceError where git is in the middle of something and nobody forced the run."""
    if git.in_progress and not asked.force:
        raise WorkspaceError(
            f"git is in the middle of {_begun(git)} in {git.root}: what is half done there would "
            "be taken for the failure",
            remedy="finish it or give it up (git status says how), or: "
            f"atlas retry {git.root} --force",
        )


class GoingOn(Struct, frozen=True, kw_only=True):
    """A run that was cut off and goes on."""

    run_id: str
    so_far: Progress
    elapsed_s: float
    with_agent: Callable[[Agent], Agent]
    """The agent that takes up what was begun, made from the one that starts anew."""


def run_locked(
    site: Site,
    asked: Asked,
    emit: Emit,
    going_on: GoingOn | None = None,
    purse: Purse | None = None,
) -> Outcome:
    """As `run_one`, for who holds the lock already."""
    run_id = going_on.run_id if going_on else state.new_run_id()
    folder = wiring.run_folder(site, run_id)
    identity.sign(site.git)
    with process.orderly(), ExitStack() as stack:
        stack.enter_context(history.beating(folder.path))
        told = fan_out((stack.enter_context(EventLog(folder.events)), emit))
        journal = stack.enter_context(
            history.journal(site.state, _opening(site, asked, run_id), told)
        )
        _name_unfinished(site, journal, told, run_id)
        _name_begun(site, told)
        told = following(fan_out((journal, told)), Scope(run=run_id))
        journey = _journey(site, asked, journal, told, going_on)
        journey = replace(journey, purse=purse or purse_of(site.state, asked.batch, but=run_id))
        try:
            outcome = retry(journey.run, wiring.effects(journey))
        except Interrupted:
            text = (
                f"interrupted: what the attempt had changed is put back. "
                f"Go on: atlas resume {site.root} --ai-fix. Put back what was there before the "
                f"run: atlas undo {run_id}"
            )
            told(Notice(level=Level.WARNING, text=text))
            raise
        outcome = _handed_off(outcome, folder)
        on_failure.tell(site.settings.retry.on_failure, outcome, site.environ, told)
        return outcome


def order_of(asked: Asked) -> history.Order:
    """What is kept of it, to ask the same again."""
    return history.Order(
        ai_fix=asked.ai_fix,
        overrides=asked.overrides,
        attempts_flag=asked.attempts_flag,
        allow=asked.allow,
        force=asked.force,
        batch=asked.batch,
    )


def purse_of(
    home: Path, batch: str | None, *, but: str = "", runs: int = 1, jobs: int = 1
) -> Purse:
    """A purse that knows what the batch has spent before, all its runs but one. StateError."""
    if batch is None:
        return Purse(runs=runs, jobs=jobs)
    with history.reading(home) as connection:
        spent_usd, dearest_usd = archive.batch_usd(connection, batch, but=but)
    return Purse(runs=runs, jobs=jobs, spent_usd=spent_usd, dearest_usd=dearest_usd)


def _handed_off(outcome: Outcome, folder: wiring.RunFolder) -> Outcome:
    """Where a person has to go on, the run's folder says how."""
    if not outcome.escalation_required:
        return outcome
    path = folder.path / "handoff.md"
    path.write_text(handoff(outcome), encoding="utf-8", errors="replace")
    return replace(outcome, handoff_path=str(path))


def _opening(site: Site, asked: Asked, run_id: str) -> history.Opening:
    return history.Opening(
        run_id=run_id,
        order=replace(order_of(asked), on_exhausted=site.settings.retry.on_exhausted),
        repository=str(site.git.common_dir),
        mark=process.mark(),
        recorded=_baseline(site, asked.recorded),
    )


def _name_unfinished(site: Site, journal: history.Journal, told: Emit, run_id: str) -> None:
    """The lock is ours, so a run that has no end here was cut off. Ends what it left running."""
    other = journal.unfinished(str(site.root))
    if other and other.id != run_id:
        left = process.end_marked(other.mark)
        ended = f", and what it had left running is ended ({some(left, 4)})" if left else ""
        cost = f" It has cost {usd(other.cost_usd, at_least=True)}{ended}."
        text = (
            f"run {other.id} was cut off in this workspace.{cost} It could have gone on with: "
            f"atlas resume {site.root}. Put back what was there before it: atlas undo {other.id}"
        )
        told(Notice(level=Level.WARNING, text=text))


def _name_begun(site: Site, told: Emit) -> None:
    """An agent may take conflict markers for the failure: whoever is in the middle hears of it."""
    if site.git.in_progress:
        text = (
            f"git is in the middle of {_begun(site.git)}: it stays as it is, and so does its state"
        )
        told(Notice(level=Level.WARNING, text=text))


def _begun(git: workspace.Workspace) -> str:
    return " and ".join(git.in_progress)


def _journey(
    site: Site, asked: Asked, journal: history.Journal, told: Emit, going_on: GoingOn | None
) -> wiring.Journey:
    opening = journal.opening
    hidden = secret_values(site.environ)
    factory = agents.resolve(site.settings.agent.backend)
    agent = factory(site.settings.agent, discreet_emit(told, hidden), site.environ)
    recorded = _recorder(site, asked)
    return wiring.Journey(
        site=site,
        git=site.git,
        folder=wiring.run_folder(site, opening.run_id),
        run=Run(
            run_id=opening.run_id,
            interrupted_usd=journal.cut_off_usd(str(site.root)),
            workspace=site.facts,
            limits=wiring.limits(site, with_agent=asked.ai_fix, attempts_flag=asked.attempts_flag),
            agent=site.settings.agent.backend,
            on_exhausted=site.settings.retry.on_exhausted,
            recorded=opening.recorded,
            so_far=going_on.so_far if going_on else None,
        ),
        agent=recorded(discreet_agent(going_on.with_agent(agent) if going_on else agent, hidden)),
        reviewer=lambda gate: recorded(_reviewer(site, gate, told)),
        facts=workspace.git_facts(site.root, environ=site.environ),
        learnings=journal.recall,
        learn=journal.learn,
        emit=told,
        started_s=time.monotonic() - (going_on.elapsed_s if going_on else 0.0),
    )


def _recorder(site: Site, asked: Asked) -> Callable[[Agent], Agent]:
    """What makes an agent one that is recorded, where that is asked for."""
    if asked.record is None:
        return lambda agent: agent
    folder = asked.record
    return lambda agent: recording.Recorder(agent=agent, git=site.git, folder=folder)


def _reviewer(site: Site, gate: Gate, told: Emit) -> Agent:
    """The agent of a review gate: its own, else the configured one. Raises AgentError."""
    settings = site.settings.agent
    if gate.agent and gate.agent != settings.backend:
        settings = replace(settings, backend=gate.agent, path=None, command=None, extra_args=())
    return agents.resolve(settings.backend)(settings, told, site.environ)


def _baseline(site: Site, recorded: Recorded | None) -> Validation | None:
    """A recorded failure as a validation of this site's gates, told by their commands.

    A record in which nothing fails proves nothing about what is there: None. Raises UsageError
    where the record speaks of no gate that the configuration has.
    """
    if recorded is None:
        return None
    told = completed(recorded.validation, site.root, site.settings, secret_values(site.environ))
    known = aligned(told, site.settings.gates)
    return known if known.failures else None
