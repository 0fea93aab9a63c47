"""Put the parts of a run together: git, gates, prompt, agent, guard. Decides nothing."""

import shlex
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from itertools import count
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry import agents, gates, judge, process, review, state, workspace
from atlas_retry.briefing import SHOWN, traced_brief
from atlas_retry.decision import Elsewhere, Limits, Progress, decide, last_attempt
from atlas_retry.effects import Contents, Effects, Run, Taken
from atlas_retry.errors import WorkspaceError
from atlas_retry.events import Emit, Event, Notice, ValidationFinished, ValidationStarted
from atlas_retry.fixers import run_fixers
from atlas_retry.gate_plan import Plan
from atlas_retry.guard.judgement import Judgement
from atlas_retry.guard.places import is_made
from atlas_retry.json_text import encodable
from atlas_retry.model import (
    Agent,
    AgentReply,
    AgentRequest,
    Gate,
    GateResult,
    GitFacts,
    Kind,
    Level,
    Outcome,
    Session,
    Validation,
    Violation,
)
from atlas_retry.prompt import Brief, compose
from atlas_retry.purse import Purse
from atlas_retry.redaction import redact, secret_values
from atlas_retry.settings import GuardMode, ReviewMode, attempts_of_run
from atlas_retry.site import Site, failing_gates, plan, remember
from atlas_retry.triage import against_baseline
from atlas_retry.uncommitted import lost_definitions


class RunFolder(Struct, frozen=True, kw_only=True):
    """Where a run keeps its prompts, logs and transcripts, in the state directory."""

    path: Path

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    def logs(self, number: int) -> Path:
        """Of the n-th validation; 0 is the baseline. The oldest may go, see `state.trim`."""
        parent = state.folder(self.path, "logs")
        state.trim(parent)
        return state.folder(parent, str(number))

    def aside(self, number: int) -> Path:
        """Of the n-th time that gates ran with other files in place."""
        parent = state.folder(self.path, "asides")
        state.trim(parent)
        return state.folder(parent, str(number))

    def scratch(self, attempt: int) -> Path:
        return state.folder(self.path, "attempts", str(attempt))


def run_folder(site: Site, run_id: str) -> RunFolder:
    """The folder of a run, made if need be. Raises StateError."""
    return RunFolder(path=state.folder(site.state, "runs", run_id))


def limits(site: Site, *, with_agent: bool, attempts_flag: int | None) -> Limits:
    """What a run in this site may spend; the attempts of all gates bound those of the run."""
    attempts = attempts_of_run(site.settings, flag=attempts_flag)
    return Limits(
        budget=replace(site.settings.retry.budget, attempts=attempts),
        gates=site.settings.gates,
        with_agent=with_agent,
        attempts_flag=attempts_flag,
        attempts_configured=site.settings.retry.attempts_configured,
    )


class Journey(Struct, frozen=True, kw_only=True):
    """One run's surroundings: the site, its folder, its git, who is asked and who listens."""

    site: Site
    git: workspace.Workspace
    folder: RunFolder
    run: Run
    agent: Agent
    reviewer: Callable[[Gate], Agent]
    """Who judges for a review gate. Raises AgentError."""
    facts: GitFacts
    """What git held when the run began, or went on."""
    learnings: Callable[[Validation], tuple[str, ...]]
    learn: Callable[[Outcome], str | None]
    emit: Emit
    started_s: float
    purse: Purse = field(default_factory=Purse)
    """What the runs of a batch share."""


def effects(journey: Journey) -> Effects:
    """What the loop may do in this run."""
    seals: deque[judge.Seal] = deque(maxlen=1)
    asides = count(1)
    return Effects(
        snapshot=lambda name: _take(journey, name),
        changes=lambda before, after: workspace.changes(journey.git, before, after),
        restore=lambda target, expected, paths: _restore(journey, target, expected, paths),
        read=lambda snapshot, paths: _read(journey, snapshot, paths),
        write=lambda files: workspace.write(journey.git, files),
        validate=_validations(journey),
        fix=lambda failed: run_fixers(
            failing_gates(journey.site, failed),
            plan(journey.site, journey.folder.logs(0)),
            journey.emit,
        ),
        request=lambda progress, number: _request(journey, progress, number),
        lack=lambda: agents.check(journey.site.settings.agent, journey.site.environ),
        seal=lambda: seals.append(
            judge.seal(journey.git, journey.site.settings, journey.site.environ)
        ),
        ask=lambda request: _ask(journey, request),
        judge=lambda _, before, after, progress: _judgement(
            journey, before, after, seals[-1], progress
        ),
        rewritten=lambda before, after, validation: _rewritten(journey, before, after, validation),
        unseen=lambda origin, after, paths: _unseen(journey, origin, after, paths),
        aside=lambda chosen, files, previous: _aside(
            journey, next(asides), chosen, files, previous
        ),
        lost=lambda start, left: tuple(
            replace(lost, command=_bring_back(journey.run.run_id, lost.path))
            for lost in lost_definitions(journey.git, start, left, journey.site.environ)
        ),
        learn=journey.learn,
        account=lambda progress: _account(journey, progress),
        elapsed_s=lambda: time.monotonic() - journey.started_s,
        emit=journey.emit,
    )


def _bring_back(run_id: str, path: str) -> str:
    return f"atlas pick {run_id} start --path {shlex.quote(encodable(path))}"


def _account(journey: Journey, progress: Progress) -> Progress:
    """A run that is over anyway takes nothing out of the purse, not even for a moment."""
    own_s = time.monotonic() - journey.started_s
    told = replace(progress, elapsed_s=max(own_s, journey.purse.elapsed_s), elsewhere=Elsewhere())
    if decide(told, journey.run.limits):
        return told
    allowed = journey.run.limits.budget.cost_usd
    return replace(told, elsewhere=journey.purse.draw(str(journey.site.root), told, allowed))


def _ask(journey: Journey, request: AgentRequest) -> AgentReply:
    with process.at_once():
        reply = journey.agent(request)
    journey.purse.settle(str(journey.site.root), reply.cost_usd or 0.0)
    return replace(reply, touched=tuple(_real(journey.site.root, path) for path in reply.touched))


def _real(root: Path, path: str) -> str:
    """The file behind a path that an agent named, links followed."""
    there = (root / path).resolve()
    inside = there.is_relative_to(root.resolve())
    return there.relative_to(root.resolve()).as_posix() if inside else path


def _take(journey: Journey, name: str) -> Taken:
    taken = workspace.snapshot(journey.git)
    workspace.keep(journey.git, f"runs/{journey.run.run_id}/{name}", taken.id)
    return Taken(id=taken.id, tree=taken.work, left_out=taken.left_out)


def _restore(journey: Journey, target: str, expected: str, paths: Collection[str] | None) -> None:
    """Put files back, all but those that somebody else has edited since `expected`.

    A whole restore puts git's own state back as well, where it moved since the run began.
    """
    with process.uninterruptible(f"{journey.site.root} is being restored"):
        if paths is None and (moved := _moved(journey)):
            workspace.put_back_git(journey.git, target, moved)
        done = workspace.restore(journey.git, target, paths, since=expected)
    if not journey.git.git_dir.is_dir():
        text = "is gone, with the commits that no snapshot holds; the files are put back"
        raise WorkspaceError(f"{journey.git.git_dir} {text}", remedy="copy it from a clone")
    if done.conflicts:
        names = ", ".join(done.conflicts)
        text = f"edited meanwhile by somebody else, and left as it is: {names}"
        journey.emit(Notice(level=Level.WARNING, text=text))
    if paths is None and (left := workspace.unheld(journey.git, target)):
        text = f"not as before, and no snapshot holds it: {', '.join(left)}"
        journey.emit(Notice(level=Level.WARNING, text=text))


def _read(journey: Journey, snapshot: str, paths: Collection[str]) -> Contents:
    found = workspace.tree(journey.git, snapshot, ignored=True)
    found.preload(paths)
    files = ((path, found.mode(path), found.read(path)) for path in paths)
    return {
        path: None if mode is None or content is None else (mode, content)
        for path, mode, content in files
    }


def _moved(journey: Journey) -> frozenset[str]:
    """What git holds beside the work tree and the index that is not as it was at the start."""
    was = journey.facts
    now = workspace.facts_since(journey.site.root, was, environ=journey.site.environ)
    return frozenset(name for name in {*was, *now} - {"index"} if was.get(name) != now.get(name))


def _validations(journey: Journey) -> Callable[[Validation | None], Validation]:
    """A function that validates, each time with logs of its own."""
    numbers = count(len(journey.run.so_far.attempts) + 1 if journey.run.so_far else 0)

    def validate(previous: Validation | None) -> Validation:
        settings, number = journey.site.settings, next(numbers)
        chosen = replace(
            plan(journey.site, journey.folder.logs(number)),
            review=_reviewing(journey, number) if journey.run.limits.with_agent else None,
            flake_reruns=settings.retry.flake_reruns if previous is None else 0,
            after_attempt=previous is not None,
            previous=previous,
        )
        validation = gates.validate(settings.gates, chosen, journey.emit)
        if previous is None:
            validation = against_baseline(
                journey.site, settings.gates, validation, chosen, journey.emit
            )
        remember(journey.site, validation)
        return validation

    return validate


def _aside(
    journey: Journey, number: int, chosen: Sequence[Gate], files: Contents, previous: Validation
) -> Validation:
    """Run gates with these files in place, and leave everything as it was."""
    how = replace(
        plan(journey.site, journey.folder.aside(number)),
        after_attempt=True,
        previous=previous,
    )
    seen, way = _beside(journey, chosen, files, how)
    if way is workspace.Way.IN_PLACE or seen.success or not previous.success:
        return seen
    # in an overlay no gate sees what another wrote: only a red in place is one
    return _beside(journey, chosen, files, how, in_place=True)[0]


def _beside(
    journey: Journey, chosen: Sequence[Gate], files: Contents, how: Plan, *, in_place: bool = False
) -> tuple[Validation, workspace.Way]:
    """It is no validation of the run: of its events only the gates' own are reported."""

    def told(event: Event) -> None:
        if not isinstance(event, ValidationStarted | ValidationFinished):
            journey.emit(event)

    lines = [gate.run for gate in chosen]
    with workspace.beside(journey.git, files, lines, in_place=in_place) as there:
        if there.reason and not in_place:
            journey.emit(Notice(level=Level.NOTE, text=f"gates run in place: {there.reason}"))
        wrapped = replace(how, wrap=there.wrap, locate=there.file)
        return gates.validate(chosen, wrapped, told), there.way


def _reviewing(journey: Journey, number: int) -> Callable[[Gate], GateResult]:
    """How the n-th validation's reviews are made, and paid."""
    settings, run_id = journey.site.settings, journey.run.run_id
    hidden = secret_values(journey.site.environ)

    def diff() -> str:
        start = workspace.kept(journey.git)[f"runs/{run_id}/start"]
        present = workspace.snapshot(journey.git).id
        return workspace.patch(journey.git, start, present).decode(errors="replace")

    desk = review.Desk(
        root=journey.site.root,
        diff=diff,
        agent=journey.reviewer,
        promised_usd=lambda: journey.purse.promise(
            str(journey.site.root), settings.retry.budget.cost_usd
        ),
        redact=lambda text: redact(text, hidden),
        scratch=journey.folder.scratch(max(number, 1)),
        model=_nth(settings.agent.models, 1),
        attempt=max(number, 1),
        idle_timeout_s=settings.agent.idle_timeout_s,
    )

    def reviewed(gate: Gate) -> GateResult:
        result = review.review(gate, desk)
        journey.purse.settle(str(journey.site.root), result.cost_usd or 0.0)
        return result

    return reviewed


def _request(journey: Journey, progress: Progress, number: int) -> tuple[AgentRequest, str]:
    """The next attempt's request; its prompt is written where a person can read it."""
    settings = journey.site.settings
    scratch = journey.folder.scratch(number)
    prompt = compose(_brief(journey, progress, number))
    prompt_file = scratch / "prompt.md"
    prompt_file.write_text(prompt.text, encoding="utf-8", errors="replace")
    session_id, session_cost_usd = _conversation(journey, progress, number)
    request = AgentRequest(
        prompt=prompt.text,
        stable_chars=prompt.stable_chars,
        workspace=str(journey.site.root),
        scratch=str(scratch),
        attempt=number,
        model=_nth(settings.agent.models, number),
        session=Session.RESUME if session_id else Session.NEW,
        session_id=session_id,
        session_cost_usd=session_cost_usd,
        cost_usd=progress.elsewhere.promised_usd,
        timeout_s=_sooner(
            settings.agent.timeout_s,
            _left(settings.retry.budget.wall_s, progress.elapsed_s),
        ),
        idle_timeout_s=settings.agent.idle_timeout_s,
        commands=tuple(gate.run for gate in settings.gates if gate.run),
        protected=judge.protected(journey.site.root, settings),
        readable=(str(scratch / SHOWN),),
    )
    return request, str(prompt_file)


T = TypeVar("T")


def _nth(values: Sequence[T], number: int) -> T | None:
    """The value of the n-th attempt; the last one repeats."""
    return values[min(number, len(values)) - 1] if values else None


def _left(allowed: float | None, spent: float) -> float | None:
    return None if allowed is None else max(allowed - spent, 0.0)


def _sooner(one_s: float, other_s: float | None) -> float:
    return one_s if other_s is None else min(one_s, other_s)


def _conversation(journey: Journey, progress: Progress, number: int) -> tuple[str | None, float]:
    """The session to resume and what it has cost; that of an attempt that was put back is over."""
    wanted = _nth(journey.site.settings.agent.session, number)
    last = progress.attempts[-1] if progress.attempts else None
    if wanted is not Session.RESUME or last is None or not last.session_id:
        return None, 0.0
    if last.rolled_back or last.worse:
        return None, 0.0
    same = [a.cost_usd or 0.0 for a in progress.attempts if a.session_id == last.session_id]
    return last.session_id, sum(same)


def _brief(journey: Journey, progress: Progress, number: int) -> Brief:
    first = traced_brief(journey.site, progress.latest, journey.folder.scratch(number))
    return replace(
        first,
        attempt=number,
        max_attempts=last_attempt(progress, journey.run.limits),
        history=progress.attempts,
        learnings=journey.learnings(progress.latest),
    )


def _judgement(
    journey: Journey, before: str, after: str, seal: judge.Seal, progress: Progress
) -> Judgement:
    guard = journey.site.settings.guard
    if guard.mode is GuardMode.OFF:
        return Judgement()
    earlier = (a.changes for a in progress.attempts if not (a.rolled_back or a.worse))
    turn = judge.Turn(
        origin=progress.origin,
        before=before,
        after=after,
        failing=progress.latest.failures,
        earlier=frozenset(change.path for changes in earlier for change in changes),
        theirs=progress.theirs,
        outputs=_written_by_gates(journey, progress),
    )
    judgement = judge.judge_attempt(
        journey.git, turn, seal, notes_reviews=guard.review is ReviewMode.NOTE
    )
    judge.clean(seal)
    if guard.mode is GuardMode.BLOCK:
        judge.restore_modes(seal)
    return replace(judgement, blocks=guard.mode is GuardMode.BLOCK)


def _unseen(journey: Journey, origin: str, after: str, paths: Collection[str]) -> Contents:
    was, now = _read(journey, origin, paths), _read(journey, after, paths)
    return {path: None if was[path] == now[path] or is_made(path) else was[path] for path in paths}


def _rewritten(
    journey: Journey, before: str, after: str, validation: Validation
) -> tuple[Violation, ...]:
    if journey.site.settings.guard.mode is not GuardMode.BLOCK:
        return ()
    checkers = {Kind.FORMAT, Kind.LINT, Kind.PRE_COMMIT}
    results = (result for result in validation.results if result.kind in checkers)
    changed = {path for result in results for path in result.changed}
    return judge.rewritten(journey.git, before, after, changed)


def _written_by_gates(journey: Journey, progress: Progress) -> frozenset[str]:
    """What moved during the baseline, but for what the fixers were asked to change."""
    moved = workspace.changes(journey.git, progress.start, progress.origin)
    return frozenset(change.path for change in moved) - {*progress.fixers_changed}
