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
    state = ValidationState(gates=tuple(gates), plan=plan, emit=noting(emit, extra))
    for number, gate in enumerate(gates):
        if why := why_not_run(gate, plan.scope):
            state.results[number] = skipped(redacted_gate(gate, plan.secrets), why)
            state.report(number)
    numbers, began_s = _not_remembered(state), time.time()
    if numbers:
        state.restore_unstaged, state.seen = plan.keep_unstaged(), plan.seen()
        numbers = tuple(number for number in numbers if not _has_its_inputs(state, number))
    numbers = numbers or state.next_round()
    while numbers:
        for group in _groups(state, numbers):
            state.outdated.difference_update(group)
            run = _runner(state, gates[group[0]])
            run(state, group)
        numbers = state.next_round()
    _blame(state)
    _learn(state, began_s)
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


def _not_remembered(state: ValidationState) -> tuple[int, ...]:
    """The gates that must run; for the others, remembered results on this same tree are used."""
    numbers = tuple(n for n in range(len(state.gates)) if n not in state.results)
    watched = None if state.plan.reuse is Reuse.NONE else state.plan.watched
    if not watched or not watched.memory:
        return numbers
    only_red = state.plan.reuse is Reuse.BESIDE_FAILURES
    files = watched.tracker().files
    recalled = watched.memory.recall(state.gates, lambda: files()[1], only_red=only_red)
    for number in numbers:
        result = recalled.get(state.gates[number])
        if result and result.success:
            state.reuse(number, result)
        elif result:
            state.failed_before[number] = result
    return tuple(number for number in numbers if number not in state.results)


def _has_its_inputs(state: ValidationState, number: int) -> bool:
    """Whether a gate passed in this run, and none of its inputs changed since."""
    gate, plan = state.gates[number], state.plan
    if plan.wrap or not state.seen or gate not in plan.learned.passed:
        return False
    look, result = plan.learned.passed[gate]
    if reads(gate, plan.between(look, state.seen)):
        return False
    state.reuse(number, replace(result, reused=result.completed_at))
    return True


_ALONE, _BUILDS, _READS = range(3)


def _phase(gate: Gate) -> int:
    """What a gate may run beside: nothing, builds, or gates that may need what builds write."""
    if gate.kind is Kind.REVIEW or is_writer(gate):
        return _ALONE
    return _BUILDS if gate.kind is Kind.BUILD else _READS


def _stretches(
    state: ValidationState, numbers: Iterable[int]
) -> Iterator[tuple[int, Iterator[int]]]:
    """Successive gates of one phase; first those that wait for no other of these."""
    left = [*numbers]
    while left:
        waiting = {state.gates[number].name for number in left}
        wave = [n for n in left if waiting.isdisjoint(state.gates[n].after)]
        left = [number for number in left if number not in wave]
        yield from groupby(_builds_first(state, wave), key=lambda n: _phase(state.gates[n]))


def _builds_first(state: ValidationState, numbers: Iterable[int]) -> list[int]:
    """The numbers with the builds before the first gate that may need what they write."""
    phases = {number: _phase(state.gates[number]) for number in numbers}
    builds = [number for number in phases if phases[number] == _BUILDS]
    others = [number for number in phases if phases[number] != _BUILDS]
    readers = (at for at, number in enumerate(others) if phases[number] == _READS)
    first = next(readers, len(others))
    return [*others[:first], *builds, *others[first:]]


def _groups(state: ValidationState, numbers: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Groups that run together; readers that change files run alone, before the others."""
    for phase, stretch in _stretches(state, numbers):
        members = tuple(stretch)
        run_alone = {*members} if phase == _ALONE else state.movers()
        yield from ((number,) for number in members if number in run_alone)
        if rest := tuple(number for number in members if number not in run_alone):
            yield rest


def _runner(
    state: ValidationState, gate: Gate
) -> Callable[[ValidationState, tuple[int, ...]], None]:
    """The function that runs a group which begins with this gate."""
    if state.plan.fail_fast and state.is_blocked():
        return _skip
    if gate.kind is Kind.REVIEW:
        return _run_review
    return _run_writer if is_writer(gate) else _run_readers


def _skip(state: ValidationState, group: tuple[int, ...]) -> None:
    for number in group:
        state.results[number] = skipped(state.gates[number], "an earlier gate failed")


def _run_writer(state: ValidationState, group: tuple[int, ...]) -> None:
    (number,) = group
    before = state.seen
    result = state.run(number)
    changed = state.look(group)
    if changed and result.status is Status.FAILED:
        result = state.run(number, "-again")
        state.look(group)
        changed = state.plan.between(before, state.seen)
    result = replace(result, changed=changed)
    if changed and result.success and state.plan.check:
        result = changing(result, changed)
    state.record(number, result)
    state.report(number)


def _run_readers(state: ValidationState, group: tuple[int, ...]) -> None:
    """Run gates in parallel, longest first.

    A gate that failed before tries its `recheck` first, and passes only by its full command.
    """
    before, changes, snapshot = state.seen, len(state.changes), held(state, group)
    plan = state.plan
    order = sorted(group, key=lambda number: -plan.known_s.get(state.gates[number].name, 0.0))
    results = still_failing(state, order)
    whole = [(number, state.gates[number]) for number in order if number not in results]
    jobs = [Job(gate=gate, line=gate.run, log_name=log_name(n, gate)) for n, gate in whole]
    tell, restore = partial(report_final, state=state), state.restore_unstaged
    ran = run_lines(jobs, plan, state.emit, tell, restore=restore)
    results |= {number: result for (number, _), result in zip(whole, ran, strict=True)}
    results = {number: results[number] for number in group}
    state.look(group)
    if len(state.changes) > changes:
        _record_movers(state, results, changes)
    elif len(group) > 1 and (paths := state.rewritten(before)):
        _run_apart(state, results, paths)
    else:
        _record_readers(state, results, before, snapshot)


def _record_readers(
    state: ValidationState, results: dict[int, GateResult], before: Look | None, held: str | None
) -> None:
    for number, result in results.items():
        state.record(number, result)
    for number, result in results.items():
        is_reported = not may_be_flaky(result, state)
        if not is_reported:
            state.results[number] = rerun(state, number, before, held)
        elif number in state.failed_before:
            state.results[number] = passing_now(result, state)
        if not is_reported or state.results[number].status is not result.status:
            state.report(number)


def _run_apart(
    state: ValidationState, results: dict[int, GateResult], paths: tuple[str, ...]
) -> None:
    """Have gates run again, each alone: one of them wrote code that the others may have read.

    It is as before now, so nobody fails for that.
    """
    note = f"{first_few(paths)} was written while other gates ran: each now runs alone"
    state.isolate(results)
    state.rerun.difference_update(results)
    for number, result in results.items():
        is_final = result.status in FINAL
        noted = replace(result, notes=(*result.notes, note))
        state.record(number, noted, ended_on=None if is_final else PENDING)
        if may_be_flaky(result, state):
            state.report(number)


def _record_movers(state: ValidationState, results: dict[int, GateResult], changes: int) -> None:
    """Record the results of readers that changed code or settings; `changes` is the count before.

    From now on each runs alone, and must change nothing when it runs again.
    """
    is_alone, paths = len(results) == 1, state.changes[-1].paths
    check = state.plan.check
    names = ", ".join(state.gates[number].name for number in results)
    note = f"code or settings changed while {names} ran: it now runs alone, before the others"
    new = state.isolate(results)
    state.rerun -= new
    for number, result in results.items():
        again = number in state.rerun
        fails = again or check
        last = _of_mover(result, paths, again=again, fails=fails, is_alone=is_alone)
        if number in new:
            last = replace(last, notes=(*result.notes, note))
        is_settled = fails or (is_alone and not last.success)
        state.record(number, last, ended_on=None if is_settled else changes)
        if is_alone or last.status is not result.status or may_be_flaky(result, state):
            state.report(number)


def _of_mover(
    result: GateResult, paths: tuple[str, ...], *, again: bool, fails: bool, is_alone: bool
) -> GateResult:
    if result.success and fails:
        who = "it" if is_alone else "it or a gate that ran at the same time"
        result = changing(result, paths, " again" if again else "", who=who)
    return replace(result, changed=paths)


def _run_review(state: ValidationState, group: tuple[int, ...]) -> None:
    """Run a review; it costs money, so only once all gates before it have passed on this tree."""
    (number,) = group
    gate = state.gates[number]
    is_pending = bool(state.to_rerun())
    if state.plan.review is None:
        result = skipped(gate, "not run: atlas validate --review asks it, and spends")
    elif is_pending:
        result = skipped(gate, "review postponed until the earlier gates have re-run")
    elif any(other.blocks for n, other in state.results.items() if n < number):
        result = skipped(gate, "review postponed until the earlier gates pass")
    else:
        state.emit(GateStarted(gate=gate.name, command="review"))
        result = state.plan.review(gate)
    state.emit(GateFinished(result=result))
    state.look(group)
    state.record(number, result, ended_on=PENDING if is_pending else None)


def _blame(state: ValidationState) -> None:
    """Fail the gates that changed code or settings even after others had run again for that."""
    stale = state.stale()
    if not stale or state.is_over():
        return
    first = min(state.ended_on[number] for number in stale)
    changed: defaultdict[int, set[str]] = defaultdict(set)
    for change in (*state.changes[first:], *state.undone()):
        for number in change.numbers:
            changed[number].update(change.paths)
    for number in sorted(changed):
        result = state.results[number]
        if result.success:
            how = " again, after other gates had run on them"
            failed = changing(result, sorted(changed[number]), how)
            state.results[number] = replace(failed, required=True)
            state.report(number)


def _learn(state: ValidationState, began_s: float) -> None:
    plan, seen = state.plan, state.seen
    if seen is None:
        return
    steady = {state.gates[n]: state.results[n] for n in sorted(state.steady)}
    for gate, result in steady.items():
        is_new = result.status is Status.PASSED and not (result.reused or result.changed)
        if is_new and gate.inputs and not plan.wrap:
            plan.learned.passed[gate] = (seen, result)
    memory = plan.watched.memory if plan.learns and plan.watched else None
    if memory and not state.is_over():
        memory.learn(steady, seen, began_s)
