"""A worker: takes runs from a queue of the server, and runs them as child processes."""

import asyncio
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from atlas_retry import process
from atlas_retry.fleet import tries
from atlas_retry.fleet.assignment import BEAT_S, GRACE_S, Stopped, Workplace, carry_out
from atlas_retry.fleet.batch import Assignment, ItemResult
from atlas_retry.fleet.books import Beat
from atlas_retry.fleet.workflow import ACTIVITY, Fleet

REPORT_S = 20.0
REPORTED_AT_ONCE = 200
CONFIRM_S = 5.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Hands:
    def __init__(self, at: Workplace, client: Client) -> None:
        self._at = at
        self._client = client
        self._loop = asyncio.get_running_loop()

    @activity.defn(name=ACTIVITY, no_thread_cancel_exception=True)
    def run(self, one: Assignment) -> ItemResult:
        """Run an assignment; any error names the machine that may have spent money."""
        now = tries.beat_of(self._at.home, self._at.machine, one.run, one.number)
        # raises if the server does not learn who has the run: then nothing may be spent
        handle = self._client.get_async_activity_handle(task_token=activity.info().task_token)
        sent = asyncio.run_coroutine_threadsafe(handle.heartbeat(now), self._loop)
        sent.result(CONFIRM_S)
        try:
            return carry_out(self._at, one, _beat)
        except Exception as error:
            raise ApplicationError(str(error), now) from error


def _beat(beat: Beat) -> None:
    if activity.is_cancelled() or activity.is_worker_shutdown():
        raise Stopped
    activity.heartbeat(beat)


async def work(client: Client, queue: str, slots: int, at: Workplace) -> None:
    """Work until HUP, INT or TERM; then runs are ended cleanly, and continue elsewhere."""
    sys.stdout.write(f"machine {at.machine} works on queue {queue}, {slots} runs at once\n")
    sys.stdout.flush()
    stop = asyncio.Event()
    for number in _ENDING:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if process.stop_requested():  # requested before the handlers were installed
        return
    with ThreadPoolExecutor(slots) as threads:
        worker = Worker(
            client,
            task_queue=queue,
            workflows=[Fleet],
            activities=[Hands(at, client).run],
            activity_executor=threads,
            max_concurrent_activities=slots,
            max_heartbeat_throttle_interval=timedelta(seconds=BEAT_S),
            default_heartbeat_throttle_interval=timedelta(seconds=BEAT_S),
            graceful_shutdown_timeout=timedelta(seconds=GRACE_S),
        )
        async with worker:
            while not stop.is_set():
                await _report(client, at)
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), REPORT_S)
    await _report(client, at)


async def _report(client: Client, at: Workplace) -> None:
    """Report the cost of ended runs from the journal, and delete the notes of reported ones."""
    by_batch = await asyncio.to_thread(tries.to_report, at.home, at.machine)
    for batch, beats in by_batch.items():
        for first in range(0, len(beats), REPORTED_AT_ONCE):
            some = beats[first : first + REPORTED_AT_ONCE]
            if await _is_accepted(client, batch, some):
                await asyncio.to_thread(tries.forget, at.home, some)


async def _is_accepted(client: Client, batch: str, beats: list[Beat]) -> bool:
    try:
        await client.get_workflow_handle(batch).signal(Fleet.reported, beats)
    except RPCError as error:
        return error.status is RPCStatusCode.NOT_FOUND  # the batch is over
    return True
