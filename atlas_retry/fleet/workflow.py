"""The workflow of a batch: it asks `plan` for the next runs, and sends them to workers."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError
from temporalio.exceptions import TimeoutError as TimedOut

with workflow.unsafe.imports_passed_through():
    import msgspec
    from msgspec.structs import replace

    from atlas_retry.fleet import batch, books, plan
    from atlas_retry.fleet.batch import Assignment, BatchStatus, ItemResult, State
    from atlas_retry.fleet.books import Beat

ACTIVITY, WORKFLOW = "atlas-run", "atlas-fleet"
HEARTBEAT_S = 10.0
"""Time without a heartbeat after which a worker counts as lost."""
_ONCE = RetryPolicy(maximum_attempts=1)
"""No retries by Temporal: `plan` decides whether a run starts again, and with what budget."""


@workflow.defn(name=WORKFLOW)
class Fleet:
    """One batch, from its start or from the end of the last history."""

    @workflow.init
    def __init__(self, state: State) -> None:
        self._state = batch.opened(state)
        self._runs: dict[str, asyncio.Task[None]] = {}

    @workflow.run
    async def run(self, _: State) -> BatchStatus:
        """Start runs whenever anything has changed; returns the final status."""
        while not batch.is_segment_over(self._state):
            await self._step()
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not batch.is_last_segment(self._state):
            workflow.continue_as_new(batch.next_segment(self._state))
        await self._until(lambda: not self._state.books.held_usd, forever=False)
        return batch.status(self._state)

    @workflow.query
    def status(self) -> BatchStatus:
        return batch.status(self._state)

    @workflow.signal
    def pause(self, why: str) -> None:
        """Start no more runs; current runs finish."""
        self._state = replace(self._state, paused=why)

    @workflow.signal
    def resume(self) -> None:
        """End the pause; earlier results do not count for another one."""
        self._state = replace(self._state, paused="", latest=())

    @workflow.signal
    def stop(self) -> None:
        self._state = replace(self._state, stopped=True)
        for run in self._runs.values():
            run.cancel()

    @workflow.signal
    def reported(self, beats: list[Beat]) -> None:
        """Record the cost of runs from a machine's journal, even if its worker was lost."""
        for beat in beats:
            self._state = replace(self._state, books=books.report(self._state.books, beat))

    async def _step(self) -> None:
        self._state, assignments = plan.start(self._state)
        for one in assignments:
            self._runs[one.run] = asyncio.create_task(self._carry_out(one))
        before = self._state
        if batch.is_segment_over(before):
            return
        # if nothing runs, only reports of lost machines can still free money
        is_busy = bool(batch.running(before) or before.paused)
        if not await self._until(lambda: self._state is not before, forever=is_busy):
            self._state = plan.forgone(self._state)

    async def _until(self, condition: Callable[[], bool], *, forever: bool) -> bool:
        """Wait, but unless `forever` only `settle_minutes`; returns whether the condition holds."""
        settle = timedelta(minutes=self._state.limits.settle_minutes)
        try:
            await workflow.wait_condition(condition, timeout=None if forever else settle)
        except TimeoutError:
            return False
        return True

    async def _carry_out(self, one: Assignment) -> None:
        try:
            result = await workflow.execute_activity(
                ACTIVITY,
                one,
                result_type=ItemResult,
                start_to_close_timeout=timedelta(days=1),
                heartbeat_timeout=timedelta(seconds=HEARTBEAT_S),
                retry_policy=_ONCE,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
        except ActivityError as error:
            self._state = _without_result(self._state, one, error.cause)
        else:
            self._state = plan.ended(self._state, one, result)
        del self._runs[one.run]


def _without_result(state: State, one: Assignment, cause: BaseException | None) -> State:
    """The state after a run whose worker was lost, or that was cancelled before it started."""
    if isinstance(cause, CancelledError):
        return plan.lost(state, one, None)
    details: tuple[object, ...] = ()
    if isinstance(cause, TimedOut):
        details = tuple(cause.last_heartbeat_details)
    if isinstance(cause, ApplicationError):
        details = tuple(cause.details)
    beat = msgspec.convert(details[0], Beat) if details else None
    return plan.lost(state, one, beat)
