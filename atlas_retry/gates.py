"""Run gates: what runs alone, what side by side, and what each end means. Asks no agent."""

import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.events import (
    Emit,
    GateFinished,
    GateProgress,
    GateStarted,
    ValidationFinished,
    ValidationStarted,
    now,
    unseen,
)
from atlas_retry.gate_plan import Plan, command_of, log_name
from atlas_retry.gate_results import result_of, skipped
from atlas_retry.ground import ground, lost
from atlas_retry.model import Gate, GateResult, Kind, Status, Validation
from atlas_retry.process import Completed, run_all

WRITERS = frozenset({Kind.FORMAT, Kind.PRE_COMMIT})


def is_writer(gate: Gate) -> bool:
    """Whether a gate changes files, and so runs alone."""
    return gate.writes or gate.kind in WRITERS


def validate(gates: Sequence[Gate], plan: Plan, emit: Emit = unseen) -> Validation:
    """Run every gate that can run.

    A writer that changed files after readers had run makes their results stale: then all run once
    more, and a writer that does it again fails. Raises Interrupted once every child has been ended.
    """
    emit(ValidationStarted(gates=tuple(gates)))
    plan = replace(plan, ground=ground(plan.root))
    started_at, clock = now(), time.monotonic()
    results, is_stale = _pass(gates, plan, emit)
    if is_stale and not any(result.blocks for result in results):
        again, _ = _pass(gates, plan, emit, is_last=True)
        results = tuple(map(_paid_as_well, results, again))
    validation = Validation(
        results=results,
        started_at=started_at,
        completed_at=now(),
        duration_ms=round((time.monotonic() - clock) * 1000),
    )
    emit(ValidationFinished(validation=validation))
    return validation


def _paid_as_well(earlier: GateResult, later: GateResult) -> GateResult:
    """The later result of a gate, with what the earlier one cost."""
    if earlier.cost_usd is None:
        return later
    return replace(later, cost_usd=earlier.cost_usd + (later.cost_usd or 0.0))


def _pass(
    gates: Sequence[Gate], plan: Plan, emit: Emit, *, is_last: bool = False
) -> tuple[tuple[GateResult, ...], bool]:
    """Results in the order of `gates`, and whether a writer made an earlier one stale.

    In the last pass such a writer fails, for nobody has checked what it leaves behind.
    """
    results: list[GateResult] = []
    readers_ran = is_stale = False
    for group in _groups(gates):
        if plan.fail_fast and any(result.blocks for result in results):
            results += [skipped(gate, "an earlier gate failed") for gate in group]
        elif group[0].kind is Kind.REVIEW:
            results.append(_reviewed(group[0], results, plan, emit, is_stale=is_stale))
            readers_ran |= results[-1].status is not Status.SKIPPED
        elif is_writer(group[0]):
            is_late = is_last and readers_ran
            results.append(_run_writer(group[0], len(results), plan, emit, is_late=is_late))
            is_stale |= readers_ran and bool(results[-1].changed)
        else:
            results += _run_readers(group, len(results), plan, emit)
            readers_ran = True
    return tuple(results), is_stale


def _groups(gates: Sequence[Gate]) -> Iterator[tuple[Gate, ...]]:
    for is_alone, group in groupby(gates, key=lambda g: is_writer(g) or g.kind is Kind.REVIEW):
        members = tuple(group)
        yield from ((gate,) for gate in members) if is_alone else (members,)


def _run_writer(gate: Gate, position: int, plan: Plan, emit: Emit, *, is_late: bool) -> GateResult:
    before = plan.seen()
    result = _run_one(gate, log_name(position, gate), plan, emit)
    changed = plan.changed_since(before)
    if changed and not result.success and result.status is Status.FAILED:
        result = _run_one(gate, log_name(position, gate, "-again"), plan, emit)
        changed = plan.changed_since(before)
    result = replace(result, changed=changed)
    if changed and result.success and (plan.check or is_late):
        files = "1 file" if len(changed) == 1 else f"{len(changed)} files"
        again = ", again, after other gates had seen them" if is_late else ""
        result = replace(
            result,
            status=Status.FAILED,
            success=False,
            triage="code",
            error=f"it changed {files}{again}: {', '.join(changed[:5])}",
        )
    emit(GateFinished(result=result))
    return result


def _run_one(gate: Gate, log_name: str, plan: Plan, emit: Emit) -> GateResult:
    (result,) = _wave([Job(gate=gate, line=gate.run, log_name=log_name)], plan, emit)
    return result


class Job(Struct, frozen=True, kw_only=True):
    """One shell line of a gate, to be run."""

    gate: Gate
    line: str
    log_name: str


def _wave(
    jobs: Sequence[Job], plan: Plan, emit: Emit, tell: Callable[[GateResult], None] | None = None
) -> list[GateResult]:
    """Run these side by side; `tell` hears of each as it ends. Results in the order given."""
    watch = _Watch(jobs=jobs, plan=plan, emit=emit, tell=tell)
    commands = [command_of(job.gate, job.line, plan, job.log_name) for job in jobs]
    decisive = {
        command.log_dir
        for job, command in zip(jobs, commands, strict=True)
        if plan.fail_fast and _decides(job.gate, plan)
    }
    run_all(
        commands,
        jobs=plan.jobs,
        watch=watch,
        stop_when=lambda ended: ended.exit_code != 0 and ended.command.log_dir in decisive,
    )
    return [
        watch.results.get(index) or skipped(job.gate, "an earlier gate failed")
        for index, job in enumerate(jobs)
    ]


def _decides(gate: Gate, plan: Plan) -> bool:
    """Whether its first failure is the validation's: what is skipped then has to be no loss."""
    return gate.required and not (plan.flake_reruns and gate.kind is Kind.TEST)


class _Watch(Struct, kw_only=True):
    """Turns what happens to commands into events, and their ends into results."""

    jobs: Sequence[Job]
    plan: Plan
    emit: Emit
    tell: Callable[[GateResult], None] | None
    results: dict[int, GateResult] = field(default_factory=dict)

    def started(self, index: int) -> None:
        job = self.jobs[index]
        self.emit(GateStarted(gate=job.gate.name, command=job.line))

    def progress(self, index: int, last_line: str, elapsed_s: float) -> None:
        gate = self.jobs[index].gate
        self.emit(GateProgress(gate=gate.name, last_line=last_line, elapsed_s=elapsed_s))
        if gate.kind is Kind.TEST:
            # Its end is read whatever it is; to import the readers now costs nobody any time.
            import_module("atlas_retry.diagnostics")

    def ended(self, index: int, completed: Completed) -> None:
        result = _void(result_of(self.jobs[index].gate, completed, self.plan.reading), self.plan)
        self.results[index] = result
        if self.tell:
            self.tell(result)


def _void(result: GateResult, plan: Plan) -> GateResult:
    """Says nothing, optional or not, where what it was to judge has gone; who did it is unknown."""
    gone = plan.ground and lost(plan.ground)
    if not gone or result.status is Status.BROKEN:
        return result
    return replace(
        result,
        status=Status.FAILED if plan.after_attempt else Status.BROKEN,
        success=False,
        required=True,
        triage="environment",
        error=gone,
    )


def _run_readers(
    group: tuple[Gate, ...], position: int, plan: Plan, emit: Emit
) -> list[GateResult]:
    """Side by side, longest known first; results in the order of the group.

    A gate that failed before tries its `recheck` first, and counts as green only after all of it.
    """

    def tell(result: GateResult) -> None:
        if not _may_be_flaky(result, plan):
            emit(GateFinished(result=result))

    def tell_failed(result: GateResult) -> None:
        if not result.success:
            tell(result)

    results: dict[int, GateResult] = {}
    numbered = list(enumerate(group, position))
    order = sorted(numbered, key=lambda item: -plan.known_s.get(item[1].name, 0.0))
    narrow = [(n, g, g.recheck) for n, g in order if g.recheck and _failed_before(n, plan)]
    if narrow:
        jobs = [
            Job(gate=g, line=line, log_name=log_name(n, g, "-recheck")) for n, g, line in narrow
        ]
        ended = zip(narrow, _wave(jobs, plan, emit, tell_failed), strict=True)
        results = {n: result for (n, _, _), result in ended if not result.success}
    whole = [(n, g) for n, g in order if n not in results]
    jobs = [Job(gate=g, line=g.run, log_name=log_name(n, g)) for n, g in whole]

    results |= dict(zip((n for n, _ in whole), _wave(jobs, plan, emit, tell), strict=True))
    return [_settled(number, gate, results[number], plan, emit) for number, gate in numbered]


def _failed_before(number: int, plan: Plan) -> bool:
    earlier = plan.previous.results if plan.previous else ()
    return number < len(earlier) and not earlier[number].success


def _may_be_flaky(result: GateResult, plan: Plan) -> bool:
    """A time-out is not repeated: it would cost the same again."""
    return plan.flake_reruns > 0 and result.kind is Kind.TEST and result.status is Status.FAILED


def _settled(number: int, gate: Gate, result: GateResult, plan: Plan, emit: Emit) -> GateResult:
    """The last word on a reader: run again where it may be flaky."""
    if not _may_be_flaky(result, plan):
        return result
    last = _rerun(gate, number, result, plan, emit)
    emit(GateFinished(result=last))
    return last


def _rerun(gate: Gate, number: int, result: GateResult, plan: Plan, emit: Emit) -> GateResult:
    for again in range(1, plan.flake_reruns + 1):
        second = _run_one(gate, log_name(number, gate, f"-rerun{again}"), plan, emit)
        if second.status is Status.PASSED:
            return replace(
                result,
                status=Status.FLAKY,
                success=True,
                triage="flaky",
                error=f"failed, then passed on the unchanged tree (run {again + 1})",
            )
    return result


def _reviewed(
    gate: Gate, earlier: Sequence[GateResult], plan: Plan, emit: Emit, *, is_stale: bool
) -> GateResult:
    """A review costs money: what the tools refuse, or have yet to see again, is not reviewed."""
    if plan.review is None:
        result = skipped(gate, "no agent to review with")
    elif is_stale:
        result = skipped(gate, "reviewed once the gates before it have seen the files as they are")
    elif any(other.blocks for other in earlier):
        result = skipped(gate, "reviewed once the gates before it pass")
    else:
        emit(GateStarted(gate=gate.name, command="review"))
        result = plan.review(gate)
    emit(GateFinished(result=result))
    return result
