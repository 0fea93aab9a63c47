"""Run gates: which run alone, first or in parallel, and to which tree each result belongs.

Each result belongs to the tree on which its gate ended. A validation counts only if code and
settings are the same for all gates and at the end: stale gates run again, once. Asks no agent.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby

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
from atlas_retry.gates.lines import Job, run_lines
from atlas_retry.gates.plan import Plan, Reuse, log_name, losses
from atlas_retry.gates.reruns import (
    held,
    may_be_flaky,
    passing_now,
    report_final,
    rerun,
    still_failing,
)
from atlas_retry.gates.results import changing, redacted_gate, skipped
from atlas_retry.gates.state import FINAL, PENDING, ValidationState, is_writer, reads
from atlas_retry.model import ExtraRun, Gate, GateResult, Kind, Status, Validation
from atlas_retry.text.units import first_few
from atlas_retry.workspace.snapshot.look import Look


def run_gates(gates: Sequence[Gate], plan: Plan, emit: Emit = unseen) -> Validation:
    """Run every gate that can run, and again those after which code or settings changed.

    Raises Interrupted once all child processes have ended.
    """
    emit(ValidationStarted(gates=tuple(redacted_gate(gate, plan.secrets) for gate in gates)))
    started_at, clock = now(), time.monotonic()
    plan = replace(plan, lost=losses(plan.root))
    extra: list[ExtraRun] = []
    state = GateRun(gates=tuple(gates), plan=plan, emit=noting(emit, extra))
    for number, gate in enumerate(gates):
        if why := why_not_run(gate, plan.scope):
            state.results[number] = skipped(redacted_gate(gate, plan.secrets), why)
            state.report(number)
    numbers, began_s = state.not_remembered(), time.time()
    if numbers:
        state.restore_unstaged, state.seen = plan.keep_unstaged(), plan.seen()
        numbers = tuple(number for number in numbers if not state.has_its_inputs(number))
    numbers = numbers or state.next_round()
    while numbers:
        for group in state.groups(numbers):
            state.outdated.difference_update(group)
            run = state.runner_of(gates[group[0]])
            run(group)
        numbers = state.next_round()
    state.blame()
    state.learn(began_s)
    validation = Validation(
        results=tuple(state.results[number] for number in range(len(gates))),
        started_at=started_at,
        completed_at=now(),
        duration_ms=round((time.monotonic() - clock) * 1000),
        is_limited=plan.scope.is_limited,
        extra_runs=tuple(extra),
    )
    emit(ValidationFinished(validation=validation))
    return validation


_ALONE, _BUILDS, _READS = range(3)


def _phase(gate: Gate) -> int:
    """What a gate may run beside: nothing, builds, or gates that may need what builds write."""
    if gate.kind is Kind.REVIEW or is_writer(gate):
        return _ALONE
    return _BUILDS if gate.kind is Kind.BUILD else _READS


def _of_mover(
    result: GateResult, paths: tuple[str, ...], *, again: bool, fails: bool, is_alone: bool
) -> GateResult:
    if result.success and fails:
        who = "it" if is_alone else "it or a gate that ran at the same time"
        result = changing(result, paths, " again" if again else "", who=who)
    return replace(result, changed=paths)


class GateRun(ValidationState, kw_only=True):
    """The steps of a validation: what runs next, and what its result means for the others."""

    def not_remembered(self) -> tuple[int, ...]:
        """The gates that must run; the others have remembered results on this same tree."""
        numbers = tuple(n for n in range(len(self.gates)) if n not in self.results)
        watched = None if self.plan.reuse is Reuse.NONE else self.plan.watched
        if not watched or not watched.memory:
            return numbers
        only_red = self.plan.reuse is Reuse.BESIDE_FAILURES
        files = watched.tracker().files
        recalled = watched.memory.recall(self.gates, lambda: files()[1], only_red=only_red)
        for number in numbers:
            result = recalled.get(self.gates[number])
            if result and result.success:
                self.reuse(number, result)
            elif result:
                self.failed_before[number] = result
        return tuple(number for number in numbers if number not in self.results)

    def has_its_inputs(self, number: int) -> bool:
        """Whether a gate passed in this run, and none of its inputs changed since."""
        gate, plan = self.gates[number], self.plan
        if plan.wrap or not self.seen or gate not in plan.learned.passed:
            return False
        look, result = plan.learned.passed[gate]
        if reads(gate, plan.between(look, self.seen)):
            return False
        self.reuse(number, replace(result, reused=result.completed_at))
        return True

    def _stretches(self, numbers: Iterable[int]) -> Iterator[tuple[int, Iterator[int]]]:
        """Successive gates of one phase; first those that wait for no other of these."""
        left = [*numbers]
        while left:
            waiting = {self.gates[number].name for number in left}
            wave = [n for n in left if waiting.isdisjoint(self.gates[n].after)]
            left = [number for number in left if number not in wave]
            yield from groupby(self._builds_first(wave), key=lambda n: _phase(self.gates[n]))

    def _builds_first(self, numbers: Iterable[int]) -> list[int]:
        """The numbers with the builds before the first gate that may need what they write."""
        phases = {number: _phase(self.gates[number]) for number in numbers}
        builds = [number for number in phases if phases[number] == _BUILDS]
        others = [number for number in phases if phases[number] != _BUILDS]
        readers = (at for at, number in enumerate(others) if phases[number] == _READS)
        first = next(readers, len(others))
        return [*others[:first], *builds, *others[first:]]

    def groups(self, numbers: Iterable[int]) -> Iterator[tuple[int, ...]]:
        """Groups that run together; readers that change files run alone, before the others."""
        for phase, stretch in self._stretches(numbers):
            members = tuple(stretch)
            run_alone = {*members} if phase == _ALONE else self.movers()
            yield from ((number,) for number in members if number in run_alone)
            if rest := tuple(number for number in members if number not in run_alone):
                yield rest

    def runner_of(self, gate: Gate) -> Callable[[tuple[int, ...]], None]:
        """The function that runs a group which begins with this gate."""
        if self.plan.fail_fast and self.is_blocked():
            return self._skip
        if gate.kind is Kind.REVIEW:
            return self._run_review
        return self._run_writer if is_writer(gate) else self._run_readers

    def _skip(self, group: tuple[int, ...]) -> None:
        for number in group:
            self.results[number] = skipped(self.gates[number], "an earlier gate failed")

    def _run_writer(self, group: tuple[int, ...]) -> None:
        (number,) = group
        before = self.seen
        result = self.run(number)
        changed = self.look(group)
        if changed and result.status is Status.FAILED:
            result = self.run(number, "-again")
            self.look(group)
            changed = self.plan.between(before, self.seen)
        result = replace(result, changed=changed)
        if changed and result.success and self.plan.check:
            result = changing(result, changed)
        self.record(number, result)
        self.report(number)

    def _run_readers(self, group: tuple[int, ...]) -> None:
        """Run gates in parallel, longest first.

        A gate that failed before tries its `recheck` first, and passes only by its full command.
        """
        before, changes, snapshot = self.seen, len(self.changes), held(self, group)
        plan = self.plan
        order = sorted(group, key=lambda number: -plan.known_s.get(self.gates[number].name, 0.0))
        results = still_failing(self, order)
        whole = [(number, self.gates[number]) for number in order if number not in results]
        jobs = [Job(gate=gate, line=gate.run, log_name=log_name(n, gate)) for n, gate in whole]
        tell, restore = partial(report_final, state=self), self.restore_unstaged
        ran = run_lines(jobs, plan, self.emit, tell, restore=restore)
        results |= {number: result for (number, _), result in zip(whole, ran, strict=True)}
        results = {number: results[number] for number in group}
        self.look(group)
        if len(self.changes) > changes:
            self._record_movers(results, changes)
        elif len(group) > 1 and (paths := self.rewritten(before)):
            self._run_apart(results, paths)
        else:
            self._record_readers(results, before, snapshot)

    def _record_readers(
        self, results: dict[int, GateResult], before: Look | None, held: str | None
    ) -> None:
        for number, result in results.items():
            self.record(number, result)
        for number, result in results.items():
            is_reported = not may_be_flaky(result, self)
            if not is_reported:
                self.results[number] = rerun(self, number, before, held)
            elif number in self.failed_before:
                self.results[number] = passing_now(result, self)
            if not is_reported or self.results[number].status is not result.status:
                self.report(number)

    def _run_apart(self, results: dict[int, GateResult], paths: tuple[str, ...]) -> None:
        """Have gates run again, each alone: one of them wrote code that the others may have read.

        It is as before now, so nobody fails for that.
        """
        note = f"{first_few(paths)} was written while other gates ran: each now runs alone"
        self.isolate(results)
        self.rerun.difference_update(results)
        for number, result in results.items():
            is_final = result.status in FINAL
            noted = replace(result, notes=(*result.notes, note))
            self.record(number, noted, ended_on=None if is_final else PENDING)
            if may_be_flaky(result, self):
                self.report(number)

    def _record_movers(self, results: dict[int, GateResult], changes: int) -> None:
        """Record results of readers that changed code or settings; `changes` is the count before.

        From now on each runs alone, and must change nothing when it runs again.
        """
        is_alone, paths = len(results) == 1, self.changes[-1].paths
        check = self.plan.check
        names = ", ".join(self.gates[number].name for number in results)
        note = f"code or settings changed while {names} ran: it now runs alone, before the others"
        new = self.isolate(results)
        self.rerun -= new
        for number, result in results.items():
            again = number in self.rerun
            fails = again or check
            last = _of_mover(result, paths, again=again, fails=fails, is_alone=is_alone)
            if number in new:
                last = replace(last, notes=(*result.notes, note))
            is_settled = fails or (is_alone and not last.success)
            self.record(number, last, ended_on=None if is_settled else changes)
            if is_alone or last.status is not result.status or may_be_flaky(result, self):
                self.report(number)

    def _run_review(self, group: tuple[int, ...]) -> None:
        """Run a review; it costs money, so only once all gates before it passed on this tree."""
        (number,) = group
        gate = self.gates[number]
        is_pending = bool(self.to_rerun())
        if self.plan.review is None:
            result = skipped(gate, "not run: atlas validate --review asks it, and spends")
        elif is_pending:
            result = skipped(gate, "review postponed until the earlier gates have re-run")
        elif any(other.blocks for n, other in self.results.items() if n < number):
            result = skipped(gate, "review postponed until the earlier gates pass")
        else:
            self.emit(GateStarted(gate=gate.name, command="review"))
            result = self.plan.review(gate)
        self.emit(GateFinished(result=result))
        self.look(group)
        self.record(number, result, ended_on=PENDING if is_pending else None)

    def blame(self) -> None:
        """Fail the gates that changed code or settings even after others had run again for that."""
        stale = self.stale()
        if not stale or self.is_over():
            return
        first = min(self.ended_on[number] for number in stale)
        changed: defaultdict[int, set[str]] = defaultdict(set)
        for change in (*self.changes[first:], *self.undone()):
            for number in change.numbers:
                changed[number].update(change.paths)
        for number in sorted(changed):
            result = self.results[number]
            if result.success:
                how = " again, after other gates had run on them"
                failed = changing(result, sorted(changed[number]), how)
                self.results[number] = replace(failed, required=True)
                self.report(number)

    def learn(self, began_s: float) -> None:
        plan, seen = self.plan, self.seen
        if seen is None:
            return
        steady = {self.gates[n]: self.results[n] for n in sorted(self.steady)}
        for gate, result in steady.items():
            is_new = result.status is Status.PASSED and not (result.reused or result.changed)
            if is_new and gate.inputs and not plan.wrap:
                plan.learned.passed[gate] = (seen, result)
        memory = plan.watched.memory if plan.learns and plan.watched else None
        if memory and not self.is_over():
            memory.learn(steady, seen, began_s)
