"""Run gates: which run alone, first or in parallel, and to which tree each result belongs.

Each result belongs to the tree on which its gate ended. A validation counts only if code and
settings are the same for all gates and at the end: stale gates run again, once. Asks no agent.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, takewhile

from msgspec.structs import replace

from atlas_retry.events import (
    Emit,
    GateFinished,
    GateStarted,
    ValidationFinished,
    ValidationStarted,
    noting,
    now,
    unseen,
)
from atlas_retry.gates.files import why_not_run
from atlas_retry.gates.plan import Plan, Reuse, losses
from atlas_retry.gates.reruns import (
    held,
    may_be_flaky,
    passing_now,
    report_final,
    rerun,
    still_failing,
)
from atlas_retry.gates.results import changing, redacted_gate, skipped
from atlas_retry.gates.state import FINAL, PENDING, GateState, ValidationState, is_writer, reads
from atlas_retry.model import ExtraRun, Gate, GateResult, Kind, Status, Validation
from atlas_retry.text.units import first_few
from atlas_retry.workspace.snapshot.look import Look, rewritten

Results = dict[GateState, GateResult]
Runner = Callable[[list[GateState]], None]


def run_gates(gates: Sequence[Gate], plan: Plan, emit: Emit = unseen) -> Validation:
    """Run every gate that can run, and again those after which code or settings changed.

    Raises Interrupted once all child processes have ended.
    """
    started_at, began_s, clock = now(), time.time(), time.monotonic()
    extra: list[ExtraRun] = []
    plan = replace(plan, lost=losses(plan.root))
    state = GateRun(plan=plan, emit=noting(emit, extra))
    due = state.not_remembered(state.able(gates))
    if due:
        state.restore_unstaged, state.seen = plan.keep_unstaged(), plan.seen()
        due = [one for one in due if not state.has_its_inputs(one)]
    due = due or state.next_round()
    while due:
        for group in _groups(due, plan):
            for one in group:
                one.is_outdated = False
            run = state.runner_of(group[0])
            run(group)
        due = state.next_round()
    state.blame()
    state.learn(began_s)
    validation = Validation(
        results=tuple(one.result for one in state.gates),
        started_at=started_at,
        completed_at=now(),
        duration_ms=round((time.monotonic() - clock) * 1000),
        is_limited=plan.scope.is_limited,
        extra_runs=tuple(extra),
    )
    emit(ValidationFinished(validation=validation))
    return validation


_ALONE, _BUILDS, _READS = range(3)


def _phase(one: GateState) -> int:
    """What a gate may run beside: nothing, builds, or gates that may need what builds write."""
    if one.gate.kind is Kind.REVIEW or is_writer(one.gate):
        return _ALONE
    return _BUILDS if one.gate.kind is Kind.BUILD else _READS


def _groups(due: Iterable[GateState], plan: Plan) -> Iterator[list[GateState]]:
    """Gates that run together, in turn: each is after those that it waits for.

    Builds are before the first gate that may need what they write; readers that change files run
    alone, before the others. Which these are is learned while earlier groups run.
    """
    for wave in _waves(due):
        for _, members in groupby(wave, key=_phase):
            among = [*members]
            alone = [one for one in among if _runs_alone(one, plan)]
            yield from ([one] for one in alone)
            if together := [one for one in among if one not in alone]:
                yield together


def _runs_alone(one: GateState, plan: Plan) -> bool:
    return _phase(one) == _ALONE or one.gate in plan.learned.movers


def _waves(due: Iterable[GateState]) -> Iterator[list[GateState]]:
    """Gates that wait for none of the same wave, but may for one before."""
    left = [*due]
    while left:
        waiting = {one.gate.name for one in left}
        wave = [one for one in left if waiting.isdisjoint(one.gate.after)]
        left = [one for one in left if one not in wave]
        yield _builds_first(wave)


def _builds_first(wave: Iterable[GateState]) -> list[GateState]:
    """The gates with the builds before the first one that may need what they write."""
    builds, others = list[GateState](), list[GateState]()
    for one in wave:
        (builds if _phase(one) == _BUILDS else others).append(one)
    before = [*takewhile(lambda one: _phase(one) == _ALONE, others)]
    return [*before, *builds, *others[len(before) :]]


class GateRun(ValidationState, kw_only=True):
    """The steps of a validation: what runs next, and what its result means for the others."""

    def able(self, gates: Sequence[Gate]) -> list[GateState]:
        """The gates for which there is a file, if they take some; the others are skipped."""
        plan = self.plan
        shown = tuple(redacted_gate(gate, plan.secrets) for gate in gates)
        self.emit(ValidationStarted(gates=shown))
        previous = plan.previous.results if plan.previous else ()
        able = []
        for number, gate in enumerate(gates):
            why = why_not_run(gate, plan.scope)
            one = GateState(
                number=number, gate=gate, result=skipped(shown[number], why or "not run")
            )
            one.before = previous[number] if number < len(previous) else None
            self.gates.append(one)
            if why:
                self.report(one)
            else:
                able.append(one)
        return able

    def not_remembered(self, due: list[GateState]) -> list[GateState]:
        """The gates that must run; the others have remembered results on this same tree."""
        plan = self.plan
        watched = None if plan.reuse is Reuse.NONE else plan.watched
        if not watched or not watched.memory:
            return due
        files, only_red = watched.tracker().files, plan.reuse is Reuse.BESIDE_FAILURES
        gates = [one.gate for one in self.gates]
        recalled = watched.memory.recall(gates, lambda: files()[1], only_red=only_red)
        for one in due:
            result = recalled.get(one.gate)
            if result and result.success:
                self.reuse(one, result)
            elif result:
                one.before = one.failed_here = result
        return [one for one in due if not one.has_ended]

    def has_its_inputs(self, one: GateState) -> bool:
        """Whether a gate passed in this run, and none of its inputs changed since."""
        gate, plan = one.gate, self.plan
        if plan.wrap or not self.seen or gate not in plan.learned.passed:
            return False
        look, result = plan.learned.passed[gate]
        if reads(gate, plan.between(look, self.seen)):
            return False
        self.reuse(one, replace(result, reused=result.completed_at))
        return True

    def next_round(self) -> list[GateState]:
        """The gates to run now: stale ones, each once, then those that were only reused."""
        stale = self.to_rerun()
        for one in stale:
            one.has_rerun = True
        if stale or self.plan.reuse is Reuse.PASSED or self.is_blocked():
            return stale
        passed = (one for one in self.gates if one.result.success)
        return [one for one in passed if one.result.reused]

    def runner_of(self, first: GateState) -> Runner:
        """The function that runs a group which begins with this gate."""
        if self.plan.fail_fast and self.is_blocked():
            return self._skip
        if first.gate.kind is Kind.REVIEW:
            return self._run_review
        return self._run_writer if is_writer(first.gate) else self._run_readers

    def _skip(self, group: list[GateState]) -> None:
        for one in group:
            one.result = skipped(one.gate, "an earlier gate failed")

    def _run_writer(self, group: list[GateState]) -> None:
        (one,), before = group, self.seen
        result = self.run(one)
        changed = self.look(group)
        if changed and result.status is Status.FAILED:
            result = self.run(one, "-again")
            self.look(group)
            changed = self.plan.between(before, self.seen)
        result = replace(result, changed=changed)
        if changed and result.success and self.plan.check:
            result = changing(result, changed)
        self.record(one, result)
        self.report(one)

    def _run_review(self, group: list[GateState]) -> None:
        """Run a review; it costs money, so only once all gates before it passed on this tree."""
        (one,) = group
        gate, is_pending = one.gate, bool(self.to_rerun())
        if self.plan.review is None:
            result = skipped(gate, "not run: atlas validate --review asks it, and spends")
        elif is_pending:
            result = skipped(gate, "review postponed until the earlier gates have re-run")
        elif any(other.result.blocks for other in self.gates[: one.number]):
            result = skipped(gate, "review postponed until the earlier gates pass")
        else:
            self.emit(GateStarted(gate=gate.name, command="review"))
            result = self.plan.review(gate)
        self.emit(GateFinished(result=result))
        self.look(group)
        self.record(one, result, PENDING if is_pending else len(self.changes))

    def _run_readers(self, group: list[GateState]) -> None:
        """Run gates in parallel, longest first.

        A gate that failed before tries its `recheck` first, and passes only by its full command.
        """
        before, snapshot, changes = self.seen, held(group, self), len(self.changes)
        known_s = self.plan.known_s
        order = sorted(group, key=lambda one: -known_s.get(one.gate.name, 0.0))
        results = still_failing(order, self)
        whole = [(one, one.gate.run) for one in order if one not in results]
        ran = self.run_lines(whole, tell=partial(report_final, state=self))
        results |= {one: result for (one, _), result in zip(whole, ran, strict=True)}
        results = {one: results[one] for one in group}
        self.look(group)
        if len(self.changes) > changes:
            self._record_movers(results, changes)
        elif len(group) > 1 and (paths := self._rewritten(before)):
            # it is as before now, so nobody fails for that, but others may have read it
            note = f"{first_few(paths)} was written while other gates ran: each now runs alone"
            self._record_pending(results, note)
        else:
            self._record_readers(results, before, snapshot)

    def _rewritten(self, before: Look | None) -> tuple[str, ...]:
        """Code and settings that were written since a look, and are as they were."""
        if before is None or self.seen is None or before is self.seen:
            return ()
        return self.code_or_settings(rewritten(before, self.seen))

    def _record_readers(self, results: Results, before: Look | None, snapshot: str | None) -> None:
        for one, result in results.items():
            self.record(one, result)
        for one, result in results.items():
            is_reported = not may_be_flaky(one, result, self)
            if not is_reported:
                one.result = rerun(one, before, snapshot, self)
            elif one.failed_here:
                one.result = passing_now(result, self)
            if not is_reported or one.result.status is not result.status:
                self.report(one)

    def _set_apart(self, results: Results, note: str) -> None:
        """Have gates run alone from now on; those that ran beside others may run again for that."""
        movers = self.plan.learned.movers
        for one, result in results.items():
            if one.gate not in movers:
                movers.add(one.gate)
                one.has_rerun = False
                results[one] = replace(result, notes=(*result.notes, note))

    def _record_pending(self, results: Results, note: str) -> None:
        self._set_apart(results, note)
        for one, result in results.items():
            self.record(one, result, len(self.changes) if result.status in FINAL else PENDING)
            if may_be_flaky(one, result, self):
                self.report(one)

    def _record_movers(self, results: Results, changes: int) -> None:
        """Record results of readers that changed code or settings; `changes` is the count before.

        When it runs again, alone, each must change nothing.
        """
        is_alone = len(results) == 1
        names = ", ".join(one.gate.name for one in results)
        note = f"code or settings changed while {names} ran: it now runs alone, before the others"
        self._set_apart(results, note)
        for one, result in results.items():
            last = self._of_mover(one, result, is_alone=is_alone)
            fails = one.has_rerun or self.plan.check
            is_settled = fails or (is_alone and not last.success)
            self.record(one, last, len(self.changes) if is_settled else changes)
            if is_alone or last.status is not result.status or may_be_flaky(one, last, self):
                self.report(one)

    def _of_mover(self, one: GateState, result: GateResult, *, is_alone: bool) -> GateResult:
        paths, is_failing = self.changes[-1].paths, one.has_rerun or self.plan.check
        moved = replace(result, changed=paths)
        if not (result.success and is_failing):
            return moved
        who = "it" if is_alone else "it or a gate that ran at the same time"
        return changing(moved, paths, " again" if one.has_rerun else "", who=who)

    def blame(self) -> None:
        """Fail the gates that changed code or settings even after others had run again for that."""
        stale = self.stale()
        if not stale or self.is_over():
            return
        first = min(one.ended_on for one in stale)
        changed = defaultdict[GateState, set[str]](set)
        for change in (*self.changes[first:], *self.undone()):
            for one in change.by:
                changed[one].update(change.paths)
        for one in self.gates:
            if one in changed and one.result.success:
                how = " again, after other gates had run on them"
                failed = changing(one.result, sorted(changed[one]), how)
                one.result = replace(failed, required=True)
                self.report(one)

    def learn(self, began_s: float) -> None:
        plan, seen = self.plan, self.seen
        if seen is None:
            return
        steady = {one.gate: one.result for one in self.gates if one.is_steady}
        passed = (gate for gate, result in steady.items() if result.has_just_passed)
        known = {gate: (seen, steady[gate]) for gate in passed if gate.inputs}
        plan.learned.passed |= {} if plan.wrap else known
        memory = plan.watched.memory if plan.learns and plan.watched else None
        if memory and not self.is_over():
            memory.learn(steady, seen, began_s)
