"""The side effects of one run, as methods that the loop calls. Decides nothing."""

import os
import shlex
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count, filterfalse
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry import agents, process, state_dir
from atlas_retry.agents.unavailable import Unavailable
from atlas_retry.diagnostics.cached import without_cache
from atlas_retry.errors import StateError, WorkspaceError
from atlas_retry.events import (
    Emit,
    Event,
    EventScope,
    GateFinished,
    GateRanAgain,
    Notice,
    noting,
    seconds_of,
    within,
)
from atlas_retry.gates.lines import run_fixers
from atlas_retry.gates.plan import Plan, Reuse
from atlas_retry.gates.trace import ranked
from atlas_retry.gates.validation import run_gates
from atlas_retry.guard import judge
from atlas_retry.guard.judge import seals
from atlas_retry.guard.judgement import Judgement
from atlas_retry.guard.places import is_build_output, is_code, is_product, is_test
from atlas_retry.history import rescue, reviews
from atlas_retry.history.journal import Journal
from atlas_retry.model import (
    Agent,
    AgentReply,
    AgentRequest,
    Attempt,
    Change,
    ChangeStatus,
    Content,
    Contents,
    ExtraRun,
    Gate,
    GateResult,
    Held,
    Kind,
    LeftBehind,
    Level,
    Lost,
    OpenReview,
    Outcome,
    Validation,
    Verdict,
    Violation,
)
from atlas_retry.prompt import compose
from atlas_retry.run import environments, irreversible, staging
from atlas_retry.run.aside import run_aside
from atlas_retry.run.briefing import next_request, step_of, trace_again, traced_brief
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.checked_out import as_checked_out
from atlas_retry.run.decide import decide, last_attempt
from atlas_retry.run.held import for_review
from atlas_retry.run.open import OpenWorkspace, failing_gates, plan, remember
from atlas_retry.run.progress import Elsewhere, Progress, Run
from atlas_retry.run.triage import against_baseline, until_compared
from atlas_retry.run.uncommitted import deleted_ignored, generated, lost_work, recorded
from atlas_retry.run.undecided import undecided
from atlas_retry.text import reinstalling
from atlas_retry.text.json_text import encodable
from atlas_retry.text.redaction import redact
from atlas_retry.text.units import first_few, labelled
from atlas_retry.workspace import discovery, gitmoves, gitunder, installed, place
from atlas_retry.workspace.outside import go_settings
from atlas_retry.workspace.snapshot import pins, restoring, store, trees
from atlas_retry.workspace.snapshot.snapshots import Snapshot
from atlas_retry.workspace.snapshot.unheld import folder_stat, moved_caches, note_caches
from atlas_retry.workspace.walk import remove_special_rules

if TYPE_CHECKING:
    from atlas_retry.run.channel import Channel
    from atlas_retry.workspace.files import Stat


PATIENCE_S = 2.0
"""Seconds after which it is said what is waited for."""
LONG_AGO_S = 315_619_200
"""2 January 1980: archives such as zip hold no earlier time."""


def run_folder(opened: OpenWorkspace, run_id: str) -> Path:
    """Folder of a run in the state directory, for its prompts, logs and transcripts."""
    return opened.state / "runs" / run_id


class Effects(Struct, kw_only=True):
    """One run in one workspace: its agent, its observers, and everything it may do."""

    run: Run
    opened: OpenWorkspace
    folder: Path
    agent: Agent
    reviewer: Callable[[Gate], Agent]
    """The agent of a review gate. Raises AgentError."""
    journal: Journal
    emit: Emit
    started_s: float
    budget: SharedBudget
    """Budget that the runs of a batch share."""
    channel: "Channel | None" = None
    """Connection to the atlas outside, for a run in an overlay."""
    is_agent_there: bool = False
    sealed: seals.Seal | None = None
    git_turn: gitmoves.GitTurn | None = None
    """Who moved git's state in the last turn."""
    by_turn: Mapping[str, str] = field(default_factory=dict)
    """Digests of files of environments as the last turn left them, of those that were put back."""
    at_home: irreversible.SettingsAtHome | None = None
    """Before the agent's turn."""
    before_turn: "Mapping[str, Stat]" = field(default_factory=dict)
    """Stat data of the files before the agent's turn."""
    validations: Iterator[int] = field(default_factory=count)
    """Numbers of validations, for the folders of their logs."""
    asides: Iterator[int] = field(default_factory=lambda: count(1))
    asked: dict[int, tuple[reviews.Question, ...]] = field(default_factory=dict)
    """Attempts whose questions for a person were raised, with those that could not be kept."""

    def within(self, scope: EventScope) -> "Effects":
        """The same effects, with this scope on every event."""
        return replace(self, emit=within(self.emit, scope))

    def counting(self, extra: list[ExtraRun]) -> "Effects":
        """The same effects, which note every run of a gate besides the validations."""
        return replace(self, emit=noting(self.emit, extra))

    def elapsed_s(self) -> float:
        """Seconds since the run began, without the time while it was interrupted."""
        return time.monotonic() - self.started_s

    # --- the tree

    def snapshot(self, name: str) -> Snapshot:
        """Take a snapshot and keep it under a name within the run."""
        discovery.put_back_gitfile(self.opened.root, self.opened.git.home)
        taken = self.opened.tracker.snapshot()
        store.keep(self.opened.git, f"runs/{self.run.run_id}/{name}", taken.id)
        return taken

    def pin(self, snapshot: str) -> None:
        """Hold what git's state in the first snapshot names; say what cannot be held.

        Of caches, stat data are noted, so that an undo can name what it cannot restore.
        """
        note_caches(self.opened.root, self.opened.tracker.scan(), state_dir.folder(self.folder))
        if self.channel is None:  # an overlay protects the repository
            for why in pins.pin(self.opened.git, snapshot):
                self.emit(Notice(level=Level.WARNING, text=why))

    def kept(self, name: str) -> str | None:
        """The id of the snapshot that was taken under this name; None if there is none."""
        return store.kept(self.opened.git).get(f"runs/{self.run.run_id}/{name}")

    def changes(self, before: str, after: str) -> tuple[Change, ...]:
        return trees.changes(self.opened.git, before, after)

    def _logs(self, kind: str, number: int) -> Path:
        """Folder for the logs of the n-th run of this kind; may remove old ones, see `trim`."""
        parent = state_dir.folder(self.folder, kind)
        state_dir.trim(parent)
        return state_dir.folder(parent, str(number))

    def restore(self, target: str, expected: str, paths: Collection[str] | None) -> None:
        """Restore a snapshot, or some paths of it.

        What differs from `expected` was edited by the user meanwhile: it is reported, and not
        overwritten, nor is what others have committed since. A whole restore removes the caches
        that were made since the seal.
        Raises WorkspaceError if git's folder is gone.
        """
        git = self.opened.git
        with process.uninterruptible(f"{self.opened.root} is being restored"):
            if paths is None and self.sealed:
                seals.clean(self.sealed, checks=True)
            look = self.opened.tracker.take
            chosen = paths
            if paths is None and (stays := self._committed_since(target)):
                now = self.opened.tracker.snapshot().id
                moved = trees.changes(git, now, target, ignored=True)
                chosen = {change.path for change in moved} - stays
            done = restoring.restore(git, target, chosen, since=expected, look=look)
            self.opened.tracker.moved()
        if not git.git_dir.is_dir():
            text = "is gone, with the commits that no snapshot holds; the files are restored"
            raise WorkspaceError(f"{git.git_dir} {text}", remedy="copy it from a clone")
        if done.conflicts:
            names = ", ".join(done.conflicts)
            text = f"changed by someone else during the run; atlas keeps that change: {names}"
            self.emit(Notice(level=Level.WARNING, text=text))
        left = restoring.unheld(git, target), moved_caches(git.root, self.folder)
        if paths is None and any(left):
            text = f"not restored, because no snapshot holds it: {', '.join(chain(*left))}"
            self.emit(Notice(level=Level.WARNING, text=text))

    def _committed_since(self, target: str) -> frozenset[str]:
        """Files that others committed since a snapshot, without what decides: that is judged."""
        committed = gitunder.committed_since(self.opened.git, target)
        if not committed:
            return committed
        now = self.opened.tracker.snapshot().id
        return committed.difference(self.deciding(target, now, committed))

    def read(self, snapshot: str, paths: Collection[str]) -> Contents:
        """Contents of these files in a snapshot."""
        return trees.tree(self.opened.git, snapshot, ignored=True).contents(paths)

    def write(self, files: Contents) -> None:
        """Write these files; those whose old content no snapshot could hold stay as they are."""
        restoring.write(self.opened.git, files, self._start())
        self.opened.tracker.moved()

    def outdate(self, paths: Iterable[str]) -> None:
        """Give files a very old time, so that a build makes them again."""
        for path in paths:
            with suppress(OSError):
                os.utime(self.opened.root / path, (LONG_AGO_S, LONG_AGO_S), follow_symlinks=False)
        self.opened.tracker.moved()

    def outdate_builds(self) -> None:
        """Have what builds have made since the start of the run made again."""
        began_s = time.time() - (time.monotonic() - self.started_s)
        ignored = folder_stat(self.opened.root, self.opened.tracker.scan()).ignored
        for path in filter(is_build_output, ignored):
            stamp = ignored[path]
            if stamp and stamp[3] / 1e9 >= began_s:
                self.outdate([path])

    def refresh(self, changes: Iterable[Change]) -> None:
        """Let no cache of a gate take a file that a turn changed for an unchanged one."""
        paths = [change.path for change in changes]
        since_s = dict.fromkeys(paths, self.sealed.taken_ns / 1e9 if self.sealed else 0.0)
        for path in self.before_turn.keys() & since_s.keys():
            # one that was restored before the turn may be dated in the future
            since_s[path] = max(since_s[path], self.before_turn[path][2] / 1e9)
        if place.refresh(self.opened.root, since_s):
            self.opened.tracker.moved()

    def _start(self) -> str:
        held = self.kept("start")
        if held is None:
            gone = f"the start of the run in {self.opened.git.shadow}"
            again = "run the command again"
            raise WorkspaceError(f"{gone} was deleted while atlas used it", remedy=again)
        return held

    def by_others(self, paths: frozenset[str], reply: AgentReply) -> frozenset[str]:
        """The paths that someone other than the agent wrote during a turn.

        Known only in an overlay, or if the reply names everything that the turn can have edited.
        """
        if self.channel:
            return frozenset(filterfalse(self.channel.layers.wrote, paths))
        return paths - set(reply.touched) if reply.touched_all else frozenset()

    def accept(self, left: str, outcome: Outcome) -> Outcome:
        """Bring the result of a run in an overlay to the user's tree; returns the outcome there."""
        return self.channel.accept(left, outcome) if self.channel else outcome

    def lost(self, start: str, left: str, theirs: Collection[str]) -> tuple[Lost, ...]:
        """Lost work that only uncommitted files of the first snapshot held.

        `theirs` are paths that the user changed.
        """
        pick = f"atlas pick {self.run.run_id} start --path"
        if deleted := deleted_ignored(self.opened.git, start, left):
            text = f"deleted in the run, and ignored by git: {first_few(deleted)}"
            self.emit(Notice(level=Level.WARNING, text=f"{text}; {pick} FILE restores one"))
        return tuple(
            replace(
                one,
                command=f"{pick} {shlex.quote(encodable(one.path))}"
                + (" --merge" if one.names and place.is_there(self.opened.root, one.path) else ""),
            )
            for one in lost_work(self.opened.git, start, left, self.opened.environ, theirs)
        )

    # --- gates

    def unproven(self, progress: Progress) -> tuple[str, ...]:
        """Faults in what attempts changed with which no test fails, if that is asked for."""
        if self.opened.settings.retry.prove == "off":
            return ()
        from atlas_retry.run.proving import unproven
        from atlas_retry.source.hunks import hunks_of

        paths = [change.path for change in self.changes(progress.origin, progress.current)]
        before, after = self.read(progress.origin, paths), self.read(progress.current, paths)
        touched = {path: [*hunks_of(path, before[path], after[path])] for path in paths}
        base = dict(zip(self.opened.settings.gates, progress.latest.results, strict=True))
        how = plan(self.opened, self._logs("asides", next(self.asides)))
        unseen = unproven(self.opened, how, base, touched)
        for fault in unseen:
            self.emit(Notice(level=Level.WARNING, text=f"no test fails with {fault}"))
        return unseen

    def validate(self, previous: Validation | None) -> Validation:
        """Run the gates; `previous` is None before the first attempt."""
        settings, number = self.opened.settings, next(self.validations)
        with_agent = self.run.limits.with_agent
        has_review = any(gate.kind is Kind.REVIEW for gate in settings.gates)
        chosen = replace(
            plan(self.opened, self._logs("logs", number)),
            review=self._reviewer_of(number) if with_agent and has_review else None,
            flake_reruns=settings.retry.flake_reruns,
            traces=self._fails_traced if with_agent and previous is None else None,
            before_money=with_agent and previous is None,
            previous=previous,
            learns=previous is None and not with_agent,
            reuse=Reuse.BESIDE_FAILURES if previous is None else Reuse.NONE,
        )
        emit = until_compared(settings.gates, self.emit)
        validation = run_gates(settings.gates, chosen, emit)
        if previous is None or any(gate.accepts_baseline for gate in settings.gates):
            validation = against_baseline(
                self.opened, settings.gates, validation, chosen, self.emit
            )
        remember(self.opened, validation)
        return validation

    def _fails_traced(self, result: GateResult) -> bool:
        """Trace a failed gate's tests for the first prompt; returns whether any failed again."""
        scratch = state_dir.folder(self._attempt_folder(1), "again")
        seen = trace_again(self.opened, (result,), scratch, self.emit)
        self.opened.learned.traced[result] = ranked(seen)
        return any(one.failed for one in seen)

    def _reviewer_of(self, number: int) -> Callable[[Gate], GateResult]:
        """Function that makes a review in the n-th validation, paid from the budget."""
        from atlas_retry.run.reviewer import reviewer  # start-up

        number = max(number, 1)
        scratch = self._attempt_folder(number)
        return reviewer(self.opened, self.reviewer, self.budget, scratch=scratch, attempt=number)

    def fix(self, failed: Validation) -> tuple[str, ...]:
        """Run the fixers of the required gates that failed; returns the changed paths."""
        gates = [gate for gate in failing_gates(self.opened, failed) if gate.required]
        return run_fixers(gates, plan(self.opened, self._logs("logs", 0)), self.emit)

    def alone(self, gate: Gate, previous: GateResult) -> GateResult:
        """Run one test of a gate by itself; its end is no result of a gate, so it is not shown."""
        how = self._plan_aside(Validation(results=(previous,)))
        seen = run_aside(self.opened, (gate,), {}, how, self._emit_no_ends)
        self._report_again(seen, "a test that failed may be skipped now")
        return seen.results[0]

    def _report_again(self, ran: Validation, reason: str) -> None:
        for result in ran.results:
            self.emit(GateRanAgain(gate=result.name, reason=reason, duration_ms=result.duration_ms))

    def _emit_no_ends(self, event: Event) -> None:
        """Emit the event, unless it is the end of a gate."""
        if not isinstance(event, GateFinished):
            self.emit(event)

    def uncached(self, gate: Gate, result: GateResult) -> Gate | None:
        """The gate with the cache of its tool switched off; None if its result is not from one."""
        environ = {**go_settings(self.opened.environ), **self.opened.environ}
        return without_cache(gate, result, environ) if result.success else None

    def aside(
        self, chosen: Sequence[Gate], files: Contents, previous: Validation, reason: str
    ) -> Validation:
        """Run these gates with these files in place, and restore everything afterwards.

        `previous` is the result of the same gates without these files.
        """
        how = self._plan_aside(previous)
        seen = run_aside(self.opened, chosen, files, how, self.emit)
        self._report_again(seen, reason)
        return seen

    def staged(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of these paths whose staged content differs from the last commit."""
        return tuple(sorted(staging.staged_paths(self.opened.git).intersection(paths)))

    def as_if_staged(
        self, chosen: Sequence[Gate], paths: Collection[str], previous: Validation
    ) -> Validation:
        """Run these gates with a copy of the index in which these files are staged as they are."""
        scratch = state_dir.folder(self.folder, "staging")
        line = staging.staging(self.opened.git, paths, scratch)
        gates = [replace(gate, run=f"{line}\n{gate.run}") for gate in chosen]
        seen = run_aside(self.opened, gates, {}, self._plan_aside(previous), self._emit_no_ends)
        self._report_again(seen, "as if the changed files were staged")
        pairs = zip(chosen, seen.results, strict=True)
        return replace(seen, results=tuple(replace(r, command=redact(g.run)) for g, r in pairs))

    def _plan_aside(self, previous: Validation) -> Plan:
        how = plan(self.opened, self._logs("asides", next(self.asides)))
        return replace(how, previous=previous)

    # --- the agent

    def unavailable(self) -> Unavailable | None:
        """Why no agent is available; it is asked before the first attempt of this process."""
        if self.is_agent_there:
            return None
        settings = self.opened.settings.agent
        with self._saying(f"  checking that {settings.backend} is available"):
            unavailable = agents.check(settings, self.opened.environ)
        self.is_agent_there = unavailable is None
        return unavailable

    def say_unavailable(self) -> None:
        """Say before gates and fixers run that no agent will: they may take long."""
        if self.run.limits.budget.attempts != 0 and (unavailable := self.unavailable()):
            text = f"{unavailable.error}: only gates and fixers will run"
            remedy = labelled("next", unavailable.remedy) if unavailable.remedy else ()
            self.emit(Notice(level=Level.WARNING, text="\n".join((text, *remedy))))

    @contextmanager
    def _saying(self, text: str) -> Iterator[None]:
        """Say what is done if it takes longer than people wait without a word."""
        late = threading.Timer(PATIENCE_S, self.emit, [Notice(text=text)])
        late.daemon = True
        late.start()
        try:
            yield
        finally:
            late.cancel()

    def request(self, progress: Progress, number: int) -> tuple[AgentRequest, str]:
        """The next attempt's request, and the path of its prompt."""
        scratch = self._attempt_folder(number)
        with self._saying("  tracing what the failing tests execute"):
            brief = traced_brief(self.opened, progress.latest, scratch, self.emit)
        if number == 1:
            with self._saying("  looking for the part of your change that made a test fail"):
                self._find_introduced(progress.latest, scratch)
        step = step_of(self.opened.settings, number)
        prompt = compose(
            replace(
                brief,
                attempt=number,
                ask=step.ask,
                budget_chars=int(brief.budget_chars * step.room),
                max_attempts=last_attempt(progress, self.run.limits),
                history=progress.attempts,
                learnings=self.journal.recall(progress.latest),
                introduced=self.opened.learned.introduced,
            )
        )
        prompt_file = scratch / "prompt.md"
        prompt_file.write_text(prompt.text, encoding="utf-8", errors="replace")
        return next_request(self.opened, prompt, scratch, progress, number), str(prompt_file)

    def _find_introduced(self, failed: Validation, scratch: Path) -> None:
        from atlas_retry.run.introducing import introduced

        found = introduced(self.opened, failed, scratch, self.emit)
        if found:
            self.emit(Notice(text=f"  {found.test} fails since {found.place} of your change"))
        self.opened.learned.introduced = found

    def ask(self, request: AgentRequest) -> AgentReply:
        """One turn of the agent, paid from the budget."""
        with process.at_once():
            reply = self.agent(request)
        self.opened.tracker.moved()
        for path in remove_special_rules(self.opened.root):
            text = f"removed, as git would wait for it: {path} was made a special file"
            self.emit(Notice(level=Level.WARNING, text=text))
        self.undo_git(request.attempt)
        self.budget.settle(str(self.opened.root), reply.cost_usd or 0.0)
        touched = tuple(_behind_links(self.opened.root, path) for path in reply.touched)
        return replace(reply, touched=touched)

    def how_to_undo(self) -> tuple[str, ...]:
        """Lines with the command that undoes the run, if there is one."""
        label = "to restore what was there before the run"
        return rescue.how_to_undo(self.opened.git, self.run.run_id, label)

    def undo_git(self, number: int, *, is_abandoned: bool = False) -> None:
        """Undo what the agent's git did in a turn, and name what others did.

        If the guard does not block, only that of an attempt that is abandoned.
        """
        git, folder = self.opened.git, self._attempt_folder(number)
        # before git is asked anything
        is_other = discovery.put_back_gitfile(git.root, git.home)
        start = self.kept("start")
        is_rebuilt = start is not None and pins.rebuild(git, start)
        repaired = (
            *(["gitfile"] if is_other else []),
            *(["the repository"] if is_rebuilt else []),
            *gitmoves.repair(git, folder),
        )
        inside = self._give_back_objects(start) if start and self.channel is None else ()
        turn = self.git_turn = gitmoves.turned(git, folder)
        if turn is None:
            return
        for name in inside:
            turn = self.git_turn = turn.with_agents(name)
        for name in repaired:
            turn = self.git_turn = turn.with_agents(name)
            self.emit(
                Notice(level=Level.WARNING, text=f"restored, as git could not use it: {name}")
            )
        if is_abandoned or self.opened.settings.guard.mode == "block":
            with process.uninterruptible(f"git's state in {self.opened.root} is being restored"):
                lines = gitmoves.undo(git, turn, folder)
            for line in lines:
                self.emit(Notice(level=Level.WARNING, text=line))
        if turn.moves.others:
            names = first_few(map(gitmoves.plain, turn.moves.others))
            text = f"changed in git during the attempt, not by the agent, so it stays: {names}"
            self.emit(Notice(level=Level.WARNING, text=text))

    def _give_back_objects(self, start: str) -> tuple[str, ...]:
        """Give back objects of the first snapshot that the last turn destroyed.

        Returns the repositories inside that it had deleted.
        """
        given = pins.put_back(self.opened.git, start)
        if given.inside:
            text = f"deleted during the turn, and restored: {first_few(given.inside)}"
            self.emit(Notice(level=Level.WARNING, text=text))
        for names, what in ((given.again, "restored"), (given.lost, "lost")):
            if names:
                text = f"objects of the repository were destroyed, and are {what}: "
                self.emit(Notice(level=Level.WARNING, text=text + first_few(names)))
        return given.inside

    def changed_under(self, before: str, after: str) -> gitunder.Under | None:
        """What someone else's git changed in the files during the last turn; None if nothing."""
        if self.git_turn is None:
            return None
        paths = [change.path for change in self.changes(before, after)]
        return gitunder.changed_under(self.opened.git, self.git_turn, before, paths)

    def as_patch(self, before: str, after: str, paths: Collection[str], number: int) -> Path:
        """Write the changes of these paths into the attempt's folder, for `git apply`."""
        file = self._attempt_folder(number) / "attempt.patch"
        file.write_bytes(trees.patch(self.opened.git, before, after, paths, whole=True))
        return file

    def deciding(self, before: str, after: str, paths: Collection[str]) -> tuple[str, ...]:
        """Those of the paths whose change the guard would refuse or hold."""
        if self.opened.settings.guard.mode != "block":
            return ()
        span = before, after
        return undecided(self.opened.git, span, paths, self.opened.settings)

    def _attempt_folder(self, number: int) -> Path:
        return state_dir.folder(self.folder, "attempts", str(number))

    def account(self, progress: Progress) -> Progress:
        """The progress with its elapsed time and what others have spent of the shared budget.

        A run that ends anyway reserves nothing of the budget.
        """
        elapsed_s = max(self.elapsed_s(), self.budget.elapsed_s())
        progress = replace(
            progress,
            elapsed_s=elapsed_s,
            elsewhere=Elsewhere(),
            open_reviews=self.open_reviews(progress),
        )
        if decide(progress, self.run.limits):
            return progress
        allowed_usd = self.run.limits.budget.cost_usd
        elsewhere = self.budget.draw(str(self.opened.root), progress, allowed_usd)
        return replace(progress, elsewhere=elsewhere)

    def open_reviews(self, progress: Progress) -> tuple[OpenReview, ...]:
        """Changes in the workspace that a person must review, of this run and earlier ones.

        Those of this run are kept in the state directory, so that later commands ask again. Raises
        StateError if what is kept there cannot be read.
        """
        home, root = self.opened.state, self.opened.root
        for attempt in progress.attempts:
            if attempt.number in self.asked or not (left := for_review(attempt)):
                continue
            self.asked[attempt.number] = ()
            asked = self._questions(progress.origin, attempt, left)
            try:
                reviews.keep(home, root, asked)
            except StateError as error:
                self.asked[attempt.number] = asked
                self.emit(Notice(level=Level.WARNING, text=str(error)))
        return self.opened.open_reviews([*chain.from_iterable(self.asked.values())])

    def _questions(
        self, origin: str, attempt: Attempt, left: Sequence[Held]
    ) -> tuple[reviews.Question, ...]:
        """Questions about the changes since the run began: the guard judges these, too."""
        if attempt.result is None:
            return ()
        paths = [change.path for change in self.changes(origin, attempt.result)]
        was, now = self.read(origin, paths), self.read(attempt.result, paths)
        hunks = [reviews.hunks(path, _text(was[path]), _text(now[path])) for path in paths]
        asked = (
            OpenReview(
                rule=one.rule,
                path=one.path,
                line=one.line,
                detail=one.detail,
                run_id=self.run.run_id,
                attempt=attempt.number,
            )
            for one in left
        )
        return reviews.of_attempt(asked, chain.from_iterable(hunks))

    def learn(self, outcome: Outcome) -> str | None:
        return self.journal.learn(outcome)

    # --- the guard

    def seal(self, progress: Progress) -> None:
        """Record what decides apart from the workspace's files, for the next `judge` to compare."""
        opened = self.opened
        wrote = chain.from_iterable(attempt.unseen for attempt in progress.attempts)
        scan = opened.tracker.scan()
        self.before_turn = scan.files
        self.at_home = irreversible.settings_at_home(opened.environ)
        settings, held = opened.settings, opened.git.installed
        taken = seals.seal(opened.root, settings, opened.environ, scan, held=held)
        self.sealed = seals.without_made(taken, wrote)
        number = len(progress.attempts) + 1
        before = self.kept(f"{number}-before") or progress.current
        gitmoves.note_before(opened.git, self._attempt_folder(number), self.sealed.facts, before)

    def judge(self, before: str, after: str, progress: Progress) -> Judgement:
        """The guard's judgement of the change between two snapshots."""
        guard = self.opened.settings.guard
        if guard.mode == "off" or self.sealed is None:
            return Judgement()
        in_place = (attempt for attempt in progress.attempts if not attempt.rolled_back)
        left = (attempt.changes for attempt in in_place if not attempt.worse)
        turn = judge.JudgedTurn(
            origin=progress.origin,
            before=before,
            after=after,
            failing=progress.latest.failures,
            earlier=frozenset(change.path for change in chain.from_iterable(left)),
            theirs=progress.theirs,
            outputs=self._written_by_gates(progress),
            git_after=self.git_turn.agents if self.git_turn else None,
            puts_back=guard.mode == "block",
        )
        beside = self._by_the_agent(seals.compared(self.sealed, self.opened.tracker.scan()))
        if beside.hiding:
            text = f"the turn made repositories, which stay: {first_few(beside.hiding)}"
            self.emit(Notice(level=Level.WARNING, text=text))
        judgement = judge.judge_attempt(self.opened.git, turn, self.sealed, beside)
        if seals.clean(self.sealed, look=beside.look):
            self.opened.tracker.moved()
        if guard.mode == "block":
            seals.restore_modes(self.sealed, beside.look)
        self.by_turn = {p: installed.digest(self.opened.root, p) for p in judgement.reinstate}
        judgement = self._reinstated(judgement, self.sealed, beside, len(progress.attempts) + 1)
        unseen = *judgement.unseen, *sorted(restoring.empty_folders(self.opened.git, before, after))
        unseen = tuple(path for path in unseen if path not in judgement.reinstate)
        return replace(judgement, unseen=unseen, blocks=guard.mode == "block")

    def _reinstated(
        self, judgement: Judgement, taken: seals.Seal, moved: seals.Moved, number: int
    ) -> Judgement:
        """The judgement after refused files of environments were put back.

        What cannot be put back ends the run.
        """
        root, paths = self.opened.root, judgement.reinstate
        into, left = self._attempt_folder(number) / "removed", tuple[str, ...]()
        if paths:
            with process.uninterruptible(f"what is installed in {root} is being restored"):
                left = seals.put_back(taken, paths, into)
            self.opened.tracker.moved()
        if aside := [path for path in paths if os.path.lexists(into / path.lstrip("/"))]:
            text = f"added to an environment, and moved to {into}: {first_few(aside)}"
            self.emit(Notice(level=Level.WARNING, text=text))
        if left:
            stays = tuple(path for path in paths if path not in left)
            ends = judgement.ends or Verdict.REJECTED
            judgement = replace(judgement, reinstate=stays, ends=ends)
        return self._with_what_stays(judgement, taken, moved) if judgement.ends else judgement

    def installed_by_gates(
        self, progress: Progress, validation: Validation, known: Collection[str]
    ) -> Judgement:
        """The judgement of what gates wrote in environments since the turn, after it is put back.

        What the gates' own commands make stays. The turn's own changes that stay are `known`.
        """
        taken, number = self.sealed, len(progress.attempts) + 1
        if taken is None or self.opened.settings.guard.mode != "block":
            return Judgement()
        moved = seals.compared(taken, self.opened.tracker.scan())
        turn = environments.GatedTurn(
            opened=self.opened,
            taken=taken,
            first=progress.origin,
            now=self.opened.tracker.snapshot().id,
            how=self._plan_aside(validation),
            known=known,
            emit=self.emit,
        )
        judgement = environments.by_gates(turn, moved)
        return self._reinstated(judgement, taken, moved, number)

    def reinstate(self, number: int) -> None:
        """Put back what is installed, as it was before an abandoned turn."""
        if self.sealed and self.opened.settings.guard.mode == "block":
            moved = seals.compared(self.sealed, self.opened.tracker.scan()).restorable
            seals.put_back(self.sealed, moved, self._attempt_folder(number) / "removed")

    def made_again(self) -> frozenset[str]:
        """The files of environments that are again as the last turn left them."""
        root, made = self.opened.root, self.by_turn.items()
        return frozenset(path for path, was in made if was == installed.digest(root, path))

    def _by_the_agent(self, moved: seals.Moved) -> seals.Moved:
        """The changes without repositories inside in which only someone else has worked."""
        if self.sealed is None or self.git_turn is None:
            return moved
        was, did, environ = self.sealed.nested, self.git_turn.did, self.opened.environ
        inner = {path: (self.opened.root / path).parent for path in moved.nested}
        worked = (
            path
            for path, root in inner.items()
            if gitmoves.has_worked(root, was[path], did, environ)
        )
        outside = moved.outside
        if not any(name.startswith("user:") for name in self.git_turn.moves.agents):
            users = gitmoves.users_files(environ)  # what git would run there is restored
            outside = tuple(change for change in outside if str(change) not in users)
        return replace(moved, nested=tuple(worked), outside=outside)

    def _with_what_stays(
        self, judgement: Judgement, taken: seals.Seal, moved: seals.Moved
    ) -> Judgement:
        """The judgement with the changes that stay; atlas's own configuration is restored."""
        left = self._lasting(taken, moved, judgement)
        own = f"{self.at_home.path}" if self.at_home else ""
        others = tuple(one for one in left if one.path != own)
        is_back = others != left and taken.guard.mode == "block" and self._put_back_settings()
        stay = others if is_back else left
        paths = [one.path for one in stay]
        remedy = reinstalling.remedy(
            paths,
            new=moved.added,
            there=self.opened.tracker.scan().visible(),
            by_path=installed.distributions(taken.root, taken.held, paths),
        )
        return replace(judgement, left=stay, remedy=remedy if stay else None)

    def _put_back_settings(self) -> bool:
        """Restore atlas's own configuration at home; returns whether it is as before the turn."""
        if self.at_home is None:
            return False
        path, copy = self.at_home.path, self.folder / "refused-config.yaml"
        is_back = irreversible.put_back_settings(self.at_home, copy)
        kept = f"; cp {shlex.quote(str(copy))} {shlex.quote(str(path))} takes it again"
        if is_back:
            text = f"restored: {path}{kept if copy.exists() else ''}"
            self.emit(Notice(level=Level.WARNING, text=text))
        return is_back

    def _lasting(
        self, taken: seals.Seal, moved: seals.Moved, judgement: Judgement
    ) -> tuple[LeftBehind, ...]:
        """Refused changes that stay; those written in an overlay are removed with it."""
        refused = {one.path for one in judgement.refused}.difference(judgement.reinstate)
        left = irreversible.lasting(taken, moved, refused)
        if self.channel is None:
            return left
        return tuple(one for one in left if self.channel.layers.shows_through(one.states))

    def _written_by_gates(self, progress: Progress) -> frozenset[str]:
        """Files that changed during the baseline, except by fixers."""
        moved = self.changes(progress.start, progress.origin)
        return frozenset(change.path for change in moved) - {*progress.fixers_changed}

    def rewritten(self, before: str, after: str, validation: Validation) -> tuple[Violation, ...]:
        """Violations: files that decide and changed while the gates of a validation ran."""
        if self.opened.settings.guard.mode != "block":
            return ()
        checkers = {Kind.FORMAT, Kind.LINT, Kind.PRE_COMMIT}
        results = (result for result in validation.results if result.kind in checkers)
        changed = set(chain.from_iterable(result.changed for result in results))
        return judge.rewritten(self.opened.git, before, after, changed)

    def rewritten_data(self, before: str, after: str, progress: Progress) -> tuple[Held, ...]:
        """For review: data of tests that gates changed after a turn and not in the baseline."""
        guard, known = self.opened.settings.guard, self._written_by_gates(progress)
        if guard.mode != "block" or guard.review == "note":
            return ()
        there = (c for c in self.changes(before, after) if c.status is not ChangeStatus.ADDED)
        moved = {change.path for change in there} - known
        paths = filterfalse(is_product, filterfalse(is_code, filter(is_test, sorted(moved))))
        detail = "test data changed while the gates ran; it did not in the baseline"
        return tuple(
            Held(rule="rewritten-by-a-gate", path=path, detail=detail, in_place=True)
            for path in paths
        )

    def unseen(
        self, start: str, left: str, end: str, paths: Collection[str], green: Validation
    ) -> Contents:
        """What the run wrote that git does not hold, with its content in the first snapshot.

        These are the `paths` that turns wrote, ignored files written between the snapshots and
        before the validation `green`, and if several gates ran, ignored code that an earlier
        validation wrote too: in the snapshot `left`, right before `green`. Without files that a
        build makes again, or whose content is unchanged. A folder counts with its ignored files,
        unless it holds other files too. Other changed files are as a checkout would hold them,
        if that is different.
        """
        git, began_s = self.opened.git, seconds_of(green.started_at)
        held, earlier = store.read_state(git, end), recorded(git, start, end, began_s)
        again = generated(git, start, left) if len(green.results) > 1 else frozenset()
        wrote = {*paths, *earlier, *again & held.ignored.keys()} - place.folders_above(held.work)
        wrote |= {path for path in held.ignored if not wrote.isdisjoint(place.parents(path))}
        was, now = self.read(start, wrote), self.read(end, wrote)
        ignored = {
            path: None if was[path] == now[path] or is_build_output(path) else was[path]
            for path in sorted(wrote)
        }
        changed = [change.path for change in self.changes(start, end)]
        visible = as_checked_out(git, self.read(start, changed), self.read(end, changed))
        return {**visible, **ignored}


def _text(file: Content | None) -> bytes | None:
    return file[1] if file else None


def _behind_links(root: Path, path: str) -> str:
    """The path that an agent named, with links resolved."""
    there = (root / path).resolve()
    inside = there.is_relative_to(root.resolve())
    return there.relative_to(root.resolve()).as_posix() if inside else path
