"""The workflow that holds a batch: it asks `plan` what is next, and hands that to workers."""

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
"""Without a heartbeat for so long a worker is lost."""
_ONCE = RetryPolicy(maximum_attempts=1)
"""Whether and with what money a run begins again is the plan's to say."""


@workflow.defn(name=WORKFLOW)
class Fleet:
    """One batch, from its start or from where the last history ended."""

    @workflow.init
    def __init__(self, state: State) -> None:
        self._state = batch.opened(state)
        self._runs: dict[str, asyncio.Task[None]] = {}

    @workflow.run
    async def run(self, _: State) -> BatchStatus:
        """Start what may start whenever anything has changed; how the batch ended."""
        while not batch.is_segment_over(self._state):
            await self._step()
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not batch.is_last_segment(self._state):
            workflow.continue_as_new(batch.next_segment(self._state))
        await self._until(lambda: not self._state.books.held_usd, for_ever=False)
        return batch.status(self._state)

    @workflow.query
    def status(self) -> BatchStatus:
        return batch.status(self._state)

    @workflow.signal
    def pause(self, why: str) -> None:
        """Start nothing more; what runs goes on to its end."""
        self._state = replace(self._state, paused=why)

    @workflow.signal
    def resume(self) -> None:
        """Start what a pause held back; what came before it is no cause for another."""
        self._state = replace(self._state, paused="", latest=())

    @workflow.signal
    def stop(self) -> None:
        self._state = replace(self._state, stopped=True)
        for run in self._runs.values():
            run.cancel()

    @workflow.signal
    def reported(self, beats: list[Beat]) -> None:
        """What a machine's journal holds of its runs, whatever became of its worker."""
        for beat in beats:
            self._state = replace(self._state, books=books.report(self._state.books, beat))

    async def _step(self) -> None:
        self._state, assignments = plan.start(self._state)
        for one in assignments:
            self._runs[one.run] = asyncio.create_task(self._carry_out(one))
        before = self._state
        if batch.is_segment_over(before):
            return
        # where nothing runs, only lost machines may still bring money back
        is_busy = bool(batch.running(before) or before.paused)
        if not await self._until(lambda: self._state is not before, for_ever=is_busy):
            self._state = plan.forgone(self._state)

    async def _until(self, condition: Callable[[], bool], *, for_ever: bool) -> bool:
        """Wait, or only as long as lost machines have to report; whether it has come."""
        settle = timedelta(minutes=self._state.limits.settle_minutes)
        try:
            await workflow.wait_condition(condition, timeout=None if for_ever else settle)
        except TimeoutError:
            return False
        return True

    async def _carry_out(self, one: Assignment) -> None:
        try:
            result = await workflow.execute_activity(
                ACTIVITY,
                one,
                result_type=ItemResult,
                start_to_close_timeout=timedelta(seconds=one.timeout_s),
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
    """A run whose worker is lost, or that no worker had begun when it was called off."""
    if isinstance(cause, CancelledError):
        return plan.lost(state, one, None)
    details: tuple[object, ...] = ()
    if isinstance(cause, TimedOut):
        details = tuple(cause.last_heartbeat_details)
    if isinstance(cause, ApplicationError):
        details = tuple(cause.details)
    beat = msgspec.convert(details[0], Beat) if details else None
    return plan.lost(state, one, beat)
