"""One poll loop for the commands of one call. However it is left, no child process remains."""

import math
import select
from collections import deque
from collections.abc import Callable, Sequence

from atlas_retry.errors import Interrupted
from atlas_retry.process import stopping, tree
from atlas_retry.process.output import Stream
from atlas_retry.process.running import RunningCommand, start
from atlas_retry.process.stopping import clock
from atlas_retry.process.values import Command, Completed, Sink, Watch

MAX_WAITING = 8
"""Limit of commands with `waits`, in addition to `jobs`."""

PROGRESS_S = 0.1
HOUSEKEEPING_S = 0.25
"""Seconds between checks for orphans, and for requests that cannot be polled."""


class Loop:
    """Starts commands in order, at most `jobs` at a time, and follows each to its end."""

    def __init__(
        self,
        commands: Sequence[Command],
        *,
        watch: Watch | None = None,
        sink: Sink | None = None,
        stop_when: Callable[[Completed], bool] | None = None,
        is_shielded: bool = False,
    ) -> None:
        """After the first end for which `stop_when` is true, nothing more is started.

        If `is_shielded`, the first request to stop has no effect; the second still kills.
        """
        self._is_shielded = is_shielded
        self._stop_when = stop_when
        self._queue = deque(enumerate(commands))
        self._results: list[Completed | None] = [None] * len(commands)
        self._running: dict[int, RunningCommand] = {}
        self._files: dict[int, tuple[RunningCommand, Stream | None]] = {}
        self._watch = watch
        self._sink = sink
        self._poll = select.poll()
        self._ignores_requests = True
        self._house_s = clock() + HOUSEKEEPING_S
        self._progress_s = clock() + PROGRESS_S

    def run(self, jobs: int) -> tuple[Completed | None, ...]:
        """The end of each, in order; None: not started. Raises Interrupted if asked to stop."""
        tree.prepare()
        self._listen()
        try:
            while True:
                while self._may_start() and (number := self._next(jobs)) is not None:
                    index, command = self._queue[number]
                    del self._queue[number]
                    self._follow(index, start(command))
                if not self._running:
                    break
                self._wait()
                self._advance()
        finally:
            if self._running:
                self._end_all()
        self._interrupt()
        return tuple(self._results)

    def alone(self) -> Completed:
        """The end of the only command."""
        (completed,) = self.run(1)
        if completed is None:
            raise RuntimeError("a command neither ended nor was interrupted")
        return completed

    def _interrupt(self) -> None:
        signum = stopping.stop_requested()
        if signum is not None and (not self._is_shielded or stopping.kill_requested()):
            raise Interrupted(signum)

    def _listen(self) -> None:
        self._interrupt()
        if not self._is_shielded:
            self._poll.register(stopping.wake_fd(), select.POLLIN)
            self._ignores_requests = False

    def _next(self, jobs: int) -> int | None:
        commands = [running.command for running in self._running.values()]
        busy = sum(not command.waits for command in commands)
        if busy < jobs:
            return 0 if self._queue else None
        if len(commands) - busy >= MAX_WAITING:
            return None
        return next((n for n, (_, command) in enumerate(self._queue) if command.waits), None)

    def _may_start(self) -> bool:
        return self._is_shielded or stopping.stop_requested() is None

    def _follow(self, index: int, begun: RunningCommand | Completed) -> None:
        if isinstance(begun, RunningCommand):
            self._poll_files(index, begun)
        if self._watch:
            self._watch.started(index)
        if isinstance(begun, Completed):
            self._record(index, begun)

    def _poll_files(self, index: int, running: RunningCommand) -> None:
        running.streams[0].sink = self._sink
        self._running[index] = running
        pollable = [(stream.source, stream) for stream in running.streams if not stream.direct]
        for descriptor, stream in [*pollable, (running.pidfd, None)]:
            if descriptor is not None:
                self._files[descriptor] = running, stream
                self._poll.register(descriptor, select.POLLIN)

    def _wait(self) -> None:
        at = min(running.wake_s for running in self._running.values())
        at = min(at, self._house_s, self._progress_s if self._watch else at)
        timeout_ms = math.ceil(max(0.0, at - clock()) * 1000)
        for descriptor, _ in self._poll.poll(timeout_ms):
            if descriptor in self._files:
                self._react(descriptor)

    def _react(self, descriptor: int) -> None:
        running, stream = self._files[descriptor]
        if stream is None:
            running.may_have_ended = True
            self._ignore(descriptor)
            return
        running.pump(stream)
        if not stream.is_open:
            self._ignore(descriptor)

    def _ignore(self, descriptor: int) -> None:
        if self._files.pop(descriptor, None):
            self._poll.unregister(descriptor)

    def _advance(self) -> None:
        now_s = clock()
        self._handle_requests(now_s)
        for index, running in tuple(self._running.items()):
            running.step(now_s)
            if running.is_gone:
                self._forget(index, running)
        if self._watch and now_s >= self._progress_s:
            self._progress_s = now_s + PROGRESS_S
            self._tell_progress(self._watch, now_s)
        if now_s >= self._house_s:
            self._house_s = now_s + HOUSEKEEPING_S
            tree.reap_adopted()

    def _handle_requests(self, now_s: float) -> None:
        if stopping.stop_requested() is None:
            return
        if not self._ignores_requests:  # the descriptor stays readable
            self._poll.unregister(stopping.wake_fd())
            self._ignores_requests = True
        for running in self._running.values():
            if stopping.kill_requested():
                running.kill(now_s)
            elif not self._is_shielded:
                running.stop(now_s)

    def _forget(self, index: int, running: RunningCommand) -> None:
        for descriptor in [d for d, (owner, _) in self._files.items() if owner is running]:
            self._ignore(descriptor)
        del self._running[index]
        if self._may_start():
            self._record(index, running.completed())

    def _record(self, index: int, completed: Completed) -> None:
        self._results[index] = completed
        if self._stop_when and self._stop_when(completed):
            self._queue.clear()
        if self._watch:
            self._watch.ended(index, completed)

    def _tell_progress(self, watch: Watch, now_s: float) -> None:
        for index, running in self._running.items():
            out, err = (stream.excerpt.last_line() for stream in running.streams)
            watch.progress(index, out or err, now_s - running.started_s)

    def _end_all(self) -> None:
        """End all children after an exception in a callback or signal handler, which then rises."""
        self._watch = self._stop_when = None
        self._queue.clear()
        for running in self._running.values():
            running.streams[0].sink = None
        try:
            self._until_gone(RunningCommand.stop)
        finally:
            self._until_gone(RunningCommand.kill)

    def _until_gone(self, end: Callable[[RunningCommand, float], None]) -> None:
        for running in self._running.values():
            end(running, clock())
        while self._running:
            self._wait()
            self._advance()
