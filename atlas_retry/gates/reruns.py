"""Run failed gates again: a part of one that failed before, and tests that may be flaky."""

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from atlas_retry.diagnostics.counting import shares_problem
from atlas_retry.diagnostics.selecting import reproducing
from atlas_retry.errors import AtlasError
from atlas_retry.events import GateFinished, GateRanAgain, Notice
from atlas_retry.gates.files import can_run
from atlas_retry.gates.state import GateState, ValidationState
from atlas_retry.model import GateResult, Kind, Status
from atlas_retry.workspace.snapshot.look import Look


def still_failing(
    order: Sequence[GateState], state: ValidationState
) -> dict[GateState, GateResult]:
    """Results of gates that failed before and fail again by their `recheck`.

    If it fails with other problems only, or names none, the whole gate decides: a suite that is
    narrowed down may lack what makes it start, as the import path that another test file would
    have set, and the narrower command may be wrong.
    """
    known: dict[GateState, GateResult] = {}

    def keep_failed(one: GateState, result: GateResult) -> None:
        if _fails_as_before(one, result):
            known[one] = one.failed_here or result
            report_final(one, known[one], state)

    failed = (one for one in order if one.has_failed)
    asked = [one for one in failed if can_run(one.gate, one.gate.recheck, state.plan.scope)]
    state.run_lines([(one, one.gate.recheck or "") for one in asked], "-recheck", keep_failed)
    return known


def report_final(one: GateState, result: GateResult, state: ValidationState) -> None:
    """Report a result, unless the gate may run again."""
    if not may_be_flaky(one, result, state):
        state.emit(GateFinished(result=result))


def _fails_as_before(one: GateState, result: GateResult) -> bool:
    if one.before is None or one.before.success:
        return False
    if result.success or result.status is Status.TIMED_OUT:
        return not result.success
    return shares_problem(result, one.before)


def may_be_flaky(one: GateState, result: GateResult, state: ValidationState) -> bool:
    """Whether to run a failed gate again; not after a timeout, or if it failed so before.

    A test may be flaky. Others run again only if their failure would cost money, and names no place
    in the workspace, or the machine. One that only has new problems may have failed because of the
    gates beside it.
    """
    if result.status is not Status.FAILED or state.plan.flake_reruns == 0:
        return False
    if result.kind is not Kind.TEST:
        would_cost = state.plan.before_money and result.required
        if not would_cost or result.kind not in (Kind.LINT, Kind.BUILD, Kind.CUSTOM):
            return False
        if result.triage != "environment" and any(d.path for d in result.diagnostics):
            return False
    return not _fails_as_before(one, result)


def passing_now(result: GateResult, state: ValidationState) -> GateResult:
    """The result of a gate that failed on this same tree before: a test that passes is flaky."""
    passes = result.kind is Kind.TEST and result.status is Status.PASSED
    if not passes or state.plan.flake_reruns == 0:
        return result
    return _flaky(result, "failed on this same tree before, now passed")


def _flaky(result: GateResult, error: str) -> GateResult:
    return replace(result, status=Status.FLAKY, success=True, triage="flaky", error=error)


def held(group: Sequence[GateState], state: ValidationState) -> str | None:
    """Snapshot before tests that may be flaky; None if no snapshot is possible."""
    watched = state.plan.watched if state.plan.flake_reruns > 0 else None
    is_test = any(one.gate.kind is Kind.TEST for one in group)
    if is_test and watched:
        with suppress(AtlasError):
            return watched.hold()
    return None


def rerun(
    one: GateState, before: Look | None, snapshot: str | None, state: ValidationState
) -> GateResult:
    """Run a failed gate again on the tree `before`; it is flaky if it passes now.

    Ignored files are restored as well: a failing test may have recorded there what it compares
    with. If only a part of it ran again, the tree is as the whole gate left it: that is what it
    writes.
    """
    result = one.result
    if one.may_have_changed:
        return result
    left_by_gate = held([one], state)
    for again in range(1, state.plan.flake_reruns + 1):
        _put_back(snapshot, state)
        if left := state.plan.between(before, state.seen):
            _put_back(left_by_gate, state)
            note = f"not run again, as files it wrote cannot be restored: {', '.join(left[:5])}"
            return replace(result, notes=(*result.notes, note))
        text = f"  {result.name} failed; running it again, because it may be flaky"
        state.emit(Notice(text=text))
        if again == 1 and _fails_in_part(one, state):
            _put_back(left_by_gate, state)
            break
        passes = not one.may_have_changed and (
            _run_again(one, f"-rerun{again}", None, state).status is Status.PASSED
        )
        if one.may_have_changed:
            break
        if passes:
            return _flaky(result, f"failed, then passed on the unchanged tree (run {again + 1})")
    return result


def _run_again(one: GateState, suffix: str, line: str | None, state: ValidationState) -> GateResult:
    second = state.run(one, suffix, line)
    took_ms = second.duration_ms
    state.emit(GateRanAgain(gate=second.name, reason="it may be flaky", duration_ms=took_ms))
    state.look([one])
    return second


def _fails_in_part(one: GateState, state: ValidationState) -> bool:
    """Whether the failing tests fail again without the others: then the gate cannot pass.

    By their trace, where one is wanted anyway, else by `recheck` or the first of them alone. A part
    that passes, or fails otherwise, decides nothing.
    """
    gate, result, traces = one.gate, one.result, state.plan.traces
    if gate.kind is not Kind.TEST or gate.report:
        return False
    if traces and traces(result):
        return True
    line = gate.recheck
    if not can_run(gate, gate.recheck, state.plan.scope):
        tests = (reproducing(result, test) for test in result.diagnostics if test.test_id)
        line = next(tests, None)
    if line is None:
        return False
    second = _run_again(one, "-alone", line, state)
    return not second.success and shares_problem(second, result)


def _put_back(snapshot: str | None, state: ValidationState) -> None:
    watched = state.plan.watched
    if snapshot is not None and watched:
        watched.put_back(snapshot)
        state.seen = state.plan.seen()
