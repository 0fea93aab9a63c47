"""Run gates: which run alone, first or in parallel, and to which tree each result belongs.

Each result belongs to the tree on which its gate ended. A validation counts only if code and
settings are the same for all gates and at the end: stale gates run again, once. Asks no agent.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby

from msgspec.structs import replace

from atlas_retry.errors import AtlasError
from atlas_retry.events import (
    Emit,
    GateFinished,
    GateRanAgain,
    GateStarted,
    Notice,
    ValidationFinished,
    ValidationStarted,
    noting,
    now,
    unseen,
)
from atlas_retry.gates.course import FINAL, PUT_OFF, Course, is_writer, reads
from atlas_retry.gates.files import can_run, why_not_run
from atlas_retry.gates.lines import Job, restoring, run_lines
from atlas_retry.gates.plan import Plan, Reuse, log_name, losses
from atlas_retry.gates.results import changing, redacted_gate, skipped
from atlas_retry.model import ExtraRun, Gate, GateResult, Kind, Status, Validation
from atlas_retry.text.units import some
from atlas_retry.workspace.snapshot.look import Look


def run_gates(gates: Sequence[Gate], plan: Plan, emit: Emit = unseen) -> Validation:
    """Run every gate that can run, and again those after which code or settings changed.

    Raises Interrupted once all child processes have ended.
    """
    emit(ValidationStarted(gates=tuple(redacted_gate(gate, plan.secrets) for gate in gates)))
    plan = replace(plan, lost=losses(plan.root))
    started_at, clock = now(), time.monotonic()
    extra: list[ExtraRun] = []
    emit = noting(emit, extra)
    course = Course(gates=tuple(gates), plan=plan, emit=emit)
    _leave_out(course)
    wanted, began_s = _not_known(course), time.time()
    if wanted:
        course.restore_unstaged = plan.keep_unstaged()
        course.seen = plan.seen()
        _run_until_steady(course, tuple(n for n in wanted if not _has_its_inputs(course, n)))
    taken = tuple(number for number in sorted(course.taken) if course.results[number].reused)
    if plan.reuse is not Reuse.PASSED and taken and not course.is_blocked():
        _run_until_steady(course, taken)
    _blame(course)
    _learn(course, began_s)
    validation = Validation(
        results=tuple(course.results[number] for number in range(len(gates))),
        started_at=started_at,
        completed_at=now(),
        duration_ms=round((time.monotonic() - clock) * 1000),
        is_limited=plan.scope.is_limited,
        extra_runs=tuple(extra),
    )
    emit(ValidationFinished(validation=validation))
    return validation


def _leave_out(course: Course) -> None:
    for number, gate in enumerate(course.gates):
        if why := why_not_run(gate, course.plan.scope):
            course.record(number, skipped(redacted_gate(gate, course.plan.secrets), why))
            course.emit(GateFinished(result=course.results[number]))


def _run_until_steady(course: Course, numbers: tuple[int, ...]) -> None:
    """Run these gates, and again those after which others changed code or settings."""
    _run(course, numbers)
    while stale := _to_run_again(course):
        course.again.update(stale)
        _run(course, stale)


def _has_its_inputs(course: Course, number: int) -> bool:
    """Whether a gate passed in this run, and none of its inputs changed since."""
    gate, plan = course.gates[number], course.plan
    if plan.wrap or not course.seen or gate not in plan.learned.passed:
        return False
    look, result = plan.learned.passed[gate]
    if reads(gate, plan.between(look, course.seen)):
        return False
    _take(course, number, replace(result, reused=result.completed_at))
    return True


def _take(course: Course, number: int, result: GateResult) -> None:
    course.taken.add(number)
    course.record(number, result)
    course.emit(GateFinished(result=result))


def _not_known(course: Course) -> tuple[int, ...]:
    """The gates that must run; for the others, remembered results on this same tree are used."""
    everything = tuple(n for n in range(len(course.gates)) if n not in course.results)
    watched = None if course.plan.reuse is Reuse.NONE else course.plan.watched
    if not watched or not watched.memory:
        return everything
    only_red = course.plan.reuse is Reuse.BESIDE_FAILURES
    glance = watched.lookout().glance
    recalled = watched.memory.recall(course.gates, glance, only_red=only_red)
    known = {n: recalled[course.gates[n]] for n in everything if course.gates[n] in recalled}
    course.failed_before = {n: result for n, result in known.items() if not result.success}
    for number in sorted(known.keys() - course.failed_before.keys()):
        _take(course, number, known[number])
    return tuple(number for number in everything if number not in course.results)


def _learn(course: Course, began_s: float) -> None:
    plan, seen = course.plan, course.seen
    if seen is None:
        return
    steady = {course.gates[n]: course.results[n] for n in sorted(course.steady)}
    for gate, result in steady.items():
        if not plan.wrap and gate.inputs and _is_new(result):
            plan.learned.passed[gate] = (seen, result)
    memory = plan.watched.memory if plan.learns and plan.watched else None
    if memory and not course.is_over():
        memory.learn(steady, seen, began_s)


def _is_new(result: GateResult) -> bool:
    return result.status is Status.PASSED and not result.reused and not result.changed


def _to_run_again(course: Course) -> tuple[int, ...]:
    if course.is_over():
        return ()
    return tuple(number for number in course.stale() if number not in course.again)


def _blame(course: Course) -> None:
    """Fail the gates that changed code or settings even after others had run again for that."""
    stale = course.stale()
    if not stale or course.is_over():
        return
    moves = course.moves[min(course.ended_on[number] for number in stale) :] + course.undone()
    moved: defaultdict[int, set[str]] = defaultdict(set)
    for move in moves:
        for number in move.numbers:
            moved[number].update(move.paths)
    for number in sorted(moved):
        result = course.results[number]
        if result.success:
            paths = sorted(moved[number])
            failed = changing(result, paths, " again, after other gates had run on them")
            course.results[number] = replace(failed, required=True)
            course.emit(GateFinished(result=course.results[number]))


def _run(course: Course, numbers: Iterable[int]) -> None:
    for group in _groups(course, numbers):
        gate = course.gates[group[0]]
        course.outdated.difference_update(group)
        if course.plan.fail_fast and course.is_blocked():
            for number in group:
                why = "an earlier gate failed"
                course.results[number] = skipped(course.gates[number], why)
        elif gate.kind is Kind.REVIEW:
            _run_review(course, group[0])
        elif is_writer(gate):
            _run_writer(course, group[0])
        else:
            _run_readers(course, group)


def _groups(course: Course, numbers: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Groups that run together, those first that wait for no other gate."""
    left = [*numbers]
    while left:
        waiting = {course.gates[number].name for number in left}
        wave = [n for n in left if waiting.isdisjoint(course.gates[n].after)]
        yield from _together(course, wave)
        left = [number for number in left if number not in wave]


def _together(course: Course, numbers: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Groups that run together: readers that change files run alone, before the others."""
    by_phase = groupby(_builds_first(course, numbers), key=lambda n: _phase(course.gates[n]))
    for phase, stretch in by_phase:
        members = tuple(stretch)
        run_alone = {*course.gates} if phase == _ALONE else course.plan.learned.movers
        alone = [number for number in members if course.gates[number] in run_alone]
        yield from ((number,) for number in alone)
        if rest := tuple(number for number in members if number not in alone):
            yield rest


_ALONE, _BUILDS, _READS = range(3)


def _phase(gate: Gate) -> int:
    """What a gate may run beside: nothing, builds, or gates that may need what builds write."""
    if gate.kind is Kind.REVIEW or is_writer(gate):
        return _ALONE
    return _BUILDS if gate.kind is Kind.BUILD else _READS


def _builds_first(course: Course, numbers: Iterable[int]) -> list[int]:
    """The numbers with the builds before the first gate that may need what they write."""
    phases = {number: _phase(course.gates[number]) for number in numbers}
    builds = [number for number in phases if phases[number] == _BUILDS]
    others = [number for number in phases if phases[number] != _BUILDS]
    readers = (at for at, number in enumerate(others) if phases[number] == _READS)
    first = next(readers, len(others))
    return [*others[:first], *builds, *others[first:]]


def _run_writer(course: Course, number: int) -> None:
    before = course.seen
    result = _run_one(course, number)
    changed = course.look((number,))
    if changed and result.status is Status.FAILED:
        result = _run_one(course, number, "-again")
        course.look((number,))
        changed = course.plan.between(before, course.seen)
    result = replace(result, changed=changed)
    if changed and result.success and course.plan.check:
        result = changing(result, changed)
    course.record(number, result)
    course.emit(GateFinished(result=course.results[number]))


def _run_one(course: Course, number: int, suffix: str = "") -> GateResult:
    gate = course.gates[number]
    job = Job(gate=gate, line=gate.run, log_name=log_name(number, gate, suffix))
    (result,) = _lines([job], course)
    return result


def _lines(
    jobs: Sequence[Job], course: Course, on_end: Callable[[GateResult], None] | None = None
) -> Sequence[GateResult]:
    """Run lines of gates; unstaged work that a stopped one had put aside is restored."""
    lines = partial(run_lines, jobs, course.plan, course.emit, on_end)
    return restoring(lines, _is_timed_out, course.restore_unstaged, course.emit)


def _is_timed_out(results: Iterable[GateResult]) -> bool:
    return any(result.status is Status.TIMED_OUT for result in results)


def _run_readers(course: Course, group: tuple[int, ...]) -> None:
    before, moves = course.seen, len(course.moves)
    held = _held(course, group)
    results = _side_by_side(course, group)
    course.look(group)
    if len(course.moves) > moves:
        _record_movers(course, results, moves)
        return
    if len(group) > 1 and (paths := course.rewritten(before)):
        _run_apart(course, results, paths)
        return
    for number, result in results.items():
        course.record(number, result)
    for number, result in results.items():
        is_reported = not _may_be_flaky(result, course)
        if not is_reported:
            course.results[number] = _rerun(course, number, before, held)
        elif _was_flaky(number, result, course):
            course.results[number] = _flaky(result, "failed on this same tree before, now passed")
        if not is_reported or course.results[number].status is not result.status:
            course.emit(GateFinished(result=course.results[number]))


def _side_by_side(course: Course, group: tuple[int, ...]) -> dict[int, GateResult]:
    """Run gates in parallel, longest first; results are in the order of the group.

    A gate that failed before tries its `recheck` first, and passes only by its full command.
    """
    known_s = course.plan.known_s
    order = sorted(group, key=lambda number: -known_s.get(course.gates[number].name, 0.0))
    results = _still_failing(course, order)
    whole = [number for number in order if number not in results]
    gates = [(number, course.gates[number]) for number in whole]
    jobs = [Job(gate=gate, line=gate.run, log_name=log_name(n, gate)) for n, gate in gates]
    ran = _lines(jobs, course, lambda result: _report(result, course))
    results |= dict(zip(whole, ran, strict=True))
    return {number: results[number] for number in group}


def _still_failing(course: Course, order: Sequence[int]) -> dict[int, GateResult]:
    """Results of gates that failed before and fail again by their `recheck`.

    If it fails with other problems only, or names none, the whole gate decides: a suite that is
    narrowed down may lack what makes it start, as the import path that another test file would
    have set, and the narrower command may be wrong.
    """
    known = {course.gates[n].name: result for n, result in course.failed_before.items()}
    earlier = {course.gates[n].name: _earlier(n, course) for n in order}

    def report_failed(result: GateResult) -> None:
        if _fails_again(result, earlier[result.name]):
            _report(known.get(result.name, result), course)

    failed = [(n, course.gates[n]) for n in order if _failed_before(n, course)]
    jobs = {
        n: Job(gate=gate, line=gate.recheck or "", log_name=log_name(n, gate, "-recheck"))
        for n, gate in failed
        if can_run(gate, gate.recheck, course.plan.scope)
    }
    if not jobs:
        return {}
    ended = zip(jobs, _lines([*jobs.values()], course, report_failed), strict=True)
    return {
        number: course.failed_before.get(number, result)
        for number, result in ended
        if _fails_again(result, earlier[result.name])
    }


def _fails_again(result: GateResult, before: GateResult | None) -> bool:
    if result.success or before is None or result.status is Status.TIMED_OUT:
        return not result.success

    from atlas_retry.diagnostics.counting import shares_problem

    return shares_problem(result, before)


def _report(result: GateResult, course: Course) -> None:
    if not _may_be_flaky(result, course):
        course.emit(GateFinished(result=result))


def _failed_before(number: int, course: Course) -> bool:
    earlier = _earlier(number, course)
    return earlier is not None and not earlier.success


def _earlier(number: int, course: Course) -> GateResult | None:
    """The last result of a gate: of this tree, else of the validation before."""
    previous = course.plan.previous.results if course.plan.previous else ()
    default = previous[number] if number < len(previous) else None
    return course.failed_before.get(number, default)


def _run_apart(course: Course, results: dict[int, GateResult], paths: tuple[str, ...]) -> None:
    """Run gates again, each alone: one of them wrote code that the others may have read.

    It is as before now, so nobody fails for that.
    """
    note = f"{some(paths, 3)} was written while other gates ran: each now runs alone"
    for number, result in results.items():
        course.plan.learned.movers.add(course.gates[number])
        course.again.discard(number)
        is_final = result.status in FINAL
        noted = replace(result, notes=(*result.notes, note))
        course.record(number, noted, ended_on=None if is_final else PUT_OFF)
        if _may_be_flaky(result, course):
            course.emit(GateFinished(result=course.results[number]))


def _record_movers(course: Course, results: dict[int, GateResult], moves: int) -> None:
    """Record the results of readers that changed code or settings; `moves` is the count before.

    From now on each runs alone, and must change nothing when it runs again.
    """
    is_alone = len(results) == 1
    names = ", ".join(course.gates[number].name for number in results)
    for number, result in results.items():
        last, changed_again = _mover(course, number, result, names)
        has_failed = is_alone and not last.success
        is_settled = course.plan.check or changed_again or has_failed
        course.record(number, last, ended_on=None if is_settled else moves)
        is_reported = last.status is result.status and not _may_be_flaky(result, course)
        if is_alone or not is_reported:
            course.emit(GateFinished(result=course.results[number]))


def _mover(course: Course, number: int, result: GateResult, names: str) -> tuple[GateResult, bool]:
    """The result of such a reader, and whether it changed files again."""
    gate, movers, paths = course.gates[number], course.plan.learned.movers, course.moves[-1].paths
    is_new = gate not in movers
    changed_again = not is_new and number in course.again
    result = replace(result, changed=paths)
    if is_new:
        movers.add(gate)
        course.again.discard(number)
        note = f"code or settings changed while {names} ran: it now runs alone, before the others"
        result = replace(result, notes=(*result.notes, note))
    if result.success and changed_again:
        return changing(result, paths, " again"), True
    if result.success and course.plan.check:
        who = "it" if names == gate.name else "it or a gate that ran at the same time"
        return changing(result, paths, who=who), False
    return result, changed_again


def _may_be_flaky(result: GateResult, course: Course) -> bool:
    """Whether to run a failed test again; not after a timeout, or if it failed so before.

    One that only has new problems may have failed because of the gates beside it.
    """
    is_test = result.kind is Kind.TEST and result.status is Status.FAILED
    if not (is_test or _may_be_a_hiccup(result, course)) or course.plan.flake_reruns == 0:
        return False
    names = [gate.name for gate in course.gates]
    before = _earlier(names.index(result.name), course)
    return before is None or before.success or not _fails_again(result, before)


def _may_be_a_hiccup(result: GateResult, course: Course) -> bool:
    """Whether a failure that would cost money names no place in the workspace, or the machine."""
    is_other = result.kind in (Kind.LINT, Kind.BUILD, Kind.CUSTOM) and result.required
    if not (course.plan.before_money and is_other and result.status is Status.FAILED):
        return False
    return result.triage == "environment" or not any(d.path for d in result.diagnostics)


def _was_flaky(number: int, result: GateResult, course: Course) -> bool:
    is_test = result.kind is Kind.TEST and result.status is Status.PASSED
    return is_test and course.plan.flake_reruns > 0 and number in course.failed_before


def _flaky(result: GateResult, error: str) -> GateResult:
    return replace(result, status=Status.FLAKY, success=True, triage="flaky", error=error)


def _held(course: Course, group: tuple[int, ...]) -> str | None:
    """Snapshot before tests that may be flaky; None if no snapshot is possible."""
    watched = course.plan.watched if course.plan.flake_reruns > 0 else None
    is_test = any(course.gates[number].kind is Kind.TEST for number in group)
    if is_test and watched and watched.hold:
        with suppress(AtlasError):
            return watched.hold()
    return None


def _rerun(course: Course, number: int, before: "Look | None", held: str | None) -> GateResult:
    """Run a failed test again on the tree `before`; it is flaky if it passes now.

    If only a part of it ran again, the tree is as the whole gate left it: that is what it writes.
    """
    result = course.results[number]
    if course.had_part(number):
        return result
    left_by_gate = _held(course, (number,))
    for again in range(1, course.plan.flake_reruns + 1):
        if left := _restore_tree(course, before, held):
            _put_back(course, left_by_gate)
            note = f"not run again, as files it wrote cannot be restored: {', '.join(left[:5])}"
            return replace(result, notes=(*result.notes, note))
        course.emit(
            Notice(text=f"  {result.name} failed; running it again, because it may be flaky")
        )
        if again == 1 and _fails_in_part(course, number):
            _put_back(course, left_by_gate)
            return result
        passes = not course.had_part(number) and _passes_whole(course, number, f"-rerun{again}")
        if course.had_part(number):
            return result
        if passes:
            error = f"failed, then passed on the unchanged tree (run {again + 1})"
            return _flaky(result, error)
    return result


def _passes_whole(course: Course, number: int, suffix: str) -> bool:
    second = _run_one(course, number, suffix)
    _report_again(course, second)
    course.look((number,))
    return second.status is Status.PASSED


def _fails_in_part(course: Course, number: int) -> bool:
    """Whether the failing tests fail again without the others: then the gate cannot pass.

    By their trace, where one is wanted anyway, else by `recheck` or the first of them alone. A part
    that passes, or fails otherwise, decides nothing.
    """
    gate, result, traces = course.gates[number], course.results[number], course.plan.traces
    if gate.kind is not Kind.TEST or gate.report:
        return False
    if traces and traces(result):
        return True
    from atlas_retry.diagnostics.selecting import reproducing

    tests = (reproducing(result, test) for test in result.diagnostics if test.test_id)
    has_part = can_run(gate, gate.recheck, course.plan.scope)
    line = gate.recheck if has_part else next(tests, None)
    if line is None:
        return False
    job = Job(gate=gate, line=line, log_name=log_name(number, gate, "-alone"))
    (second,) = _lines([job], course)
    _report_again(course, second)
    course.look((number,))
    from atlas_retry.diagnostics.counting import shares_problem

    return not second.success and shares_problem(second, result)


def _report_again(course: Course, result: GateResult) -> None:
    reason = "it may be flaky"
    event = GateRanAgain(gate=result.name, reason=reason, duration_ms=result.duration_ms)
    course.emit(event)


def _restore_tree(course: Course, before: "Look | None", held: str | None) -> tuple[str, ...]:
    """Restore the tree `before`; returns paths that could not be restored.

    Includes ignored files: a failing test may have recorded there what it compares with.
    """
    _put_back(course, held)
    return course.plan.between(before, course.seen)


def _put_back(course: Course, held: str | None) -> None:
    watched = course.plan.watched
    if held is not None and watched and watched.put_back:
        watched.put_back(held)
        course.seen = course.plan.seen()


def _run_review(course: Course, number: int) -> None:
    """Run a review; it costs money, so only once all gates before it have passed on this tree."""
    gate = course.gates[number]
    is_put_off = bool(_to_run_again(course))
    if course.plan.review is None:
        result = skipped(gate, "not run: atlas validate --review asks it, and spends")
    elif is_put_off:
        result = skipped(gate, "review postponed until the earlier gates have re-run")
    elif any(other.blocks for n, other in course.results.items() if n < number):
        result = skipped(gate, "review postponed until the earlier gates pass")
    else:
        course.emit(GateStarted(gate=gate.name, command="review"))
        result = course.plan.review(gate)
    course.emit(GateFinished(result=result))
    course.look((number,))
    course.record(number, result, ended_on=PUT_OFF if is_put_off else None)
