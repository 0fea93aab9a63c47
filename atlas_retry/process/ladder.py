"""The steps from a command's start to the end of its last descendant. Does not wait by itself."""

import signal
from collections.abc import Callable

from atlas_retry.process import proc
from atlas_retry.process.spawn import Child, now
from atlas_retry.process.stopping import clock
from atlas_retry.process.values import Completed, Ended

SETTLE_S = 0.1
"""What a command left behind may end by itself within this."""
KILL_S = 0.7
"""How long the kernel may take to end what was killed, before we return without."""
BLIND_S = 0.02
"""Between looks at what cannot be polled: a child without pidfd, a log that is read along."""
_PAUSES_S = (0.005, 0.05)

_NEVER = float("inf")
_SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a command (POSIX, 2.8.2)."""


class Ladder:
    """One running command: it runs, settles, is asked to stop, is killed, is gone.

    `step` is to be called whenever something happened, and at `wake_s` at the latest.
    """

    __slots__ = (
        "_pause_s",
        "_reason",
        "_step",
        "_survivors",
        "_until_s",
        "child",
        "is_gone",
        "may_have_ended",
        "wake_s",
    )

    def __init__(self, child: Child) -> None:
        self.child = child
        self.is_gone = False
        self.may_have_ended = True
        """Whether it is worth asking; with a pidfd, only once that says so."""
        self.wake_s = 0.0
        self._reason: Ended | None = None
        self._step: Callable[[float], None] = self._run
        self._until_s = _NEVER
        self._pause_s = 0.0
        self._survivors: tuple[str, ...] = ()

    def step(self, now_s: float) -> None:
        self._step(now_s)

    def _enter(self, step: Callable[[float], None], until_s: float) -> None:
        self._step, self._until_s, self._pause_s = step, until_s, _PAUSES_S[0]

    def _rest(self, now_s: float) -> None:
        self.wake_s = min(now_s + self._pause_s, self._until_s)
        self._pause_s = min(2 * self._pause_s, _PAUSES_S[1])

    def _has_ended(self) -> bool:
        child = self.child
        if not child.family.is_over and (self.may_have_ended or child.pidfd is None):
            self.may_have_ended = False
            return child.reap()
        return child.family.is_over

    def _run(self, now_s: float) -> None:
        child = self.child
        for stream in child.streams:
            if stream.direct:
                child.pump(stream)
        if not self._has_ended():
            reason = self._overdue(now_s)
            if reason:
                self._reason = reason
                self.stop(now_s)
            else:
                self.wake_s = self._next_look(now_s)
        elif child.command.keep_daemons:
            self._finish()
        else:
            self._enter(self._settle, now_s + SETTLE_S)
            self._settle(now_s)

    def _overdue(self, now_s: float) -> Ended | None:
        command = self.child.command
        if now_s >= self._deadline_s():
            return Ended.TIMED_OUT
        if now_s >= self._idle_s():
            return Ended.IDLE
        if self.child.printed_bytes > command.max_output_bytes:
            return Ended.OUTPUT_LIMIT
        return None

    def _deadline_s(self) -> float:
        timeout_s = self.child.command.timeout_s
        return _NEVER if timeout_s is None else self.child.started_s + timeout_s

    def _idle_s(self) -> float:
        idle_s = self.child.command.idle_timeout_s
        return _NEVER if idle_s is None else self.child.printed_s + idle_s

    def _next_look(self, now_s: float) -> float:
        is_blind = self.child.pidfd is None or any(s.direct for s in self.child.streams)
        return min(self._deadline_s(), self._idle_s(), now_s + BLIND_S if is_blind else _NEVER)

    def _settle(self, now_s: float) -> None:
        left = self.child.family.remaining()
        if not left:
            self._finish()
        elif now_s >= self._until_s:
            self._survivors = proc.names(left)
            self.stop(now_s)
        else:
            self._rest(now_s)

    def stop(self, now_s: float) -> None:
        """Ask it to end; it has its grace for that. Nothing new once it was asked."""
        if self._step in (self._run, self._settle):
            self._enter(self._await_end, now_s + self.child.command.grace_s)
            self._await_end(now_s)

    def _await_end(self, now_s: float) -> None:
        child = self.child
        has_ended = self._has_ended()
        if has_ended and not child.family.remaining():
            self._finish()
        elif now_s >= self._until_s:
            self.kill(now_s)
        else:
            child.family.terminate()
            self._rest(now_s)

    def kill(self, now_s: float) -> None:
        """End it and everyone it started, at once."""
        if self._step != self._kill:
            self._enter(self._kill, now_s + KILL_S)
            if self._has_ended():
                self._survivors = self._survivors or proc.names(self.child.family.remaining())
            self._kill(now_s)

    def _kill(self, now_s: float) -> None:
        has_ended = self._has_ended()
        if has_ended and not self.child.family.remaining():
            self._finish()
        elif now_s >= self._until_s:
            self._survivors = proc.names(self.child.family.remaining())
            self._finish()
        else:
            self.child.family.kill()
            self._rest(now_s)

    def _finish(self) -> None:
        child = self.child
        child.family.part(keep=child.command.keep_daemons)
        for stream in child.streams:
            child.pump(stream)
        child.close()
        self.is_gone = True

    def completed(self) -> Completed:
        """How it ended, once it is gone."""
        child = self.child
        code = child.exit_code if self._reason is None else None
        ended = self._reason or (Ended.SIGNALLED if code is not None and code < 0 else Ended.EXITED)
        lost = next((stream.lost for stream in child.streams if stream.lost), None)
        return Completed(
            command=child.command,
            ended=ended,
            exit_code=code,
            duration_s=clock() - child.started_s,
            cpu_s=child.family.cpu_s,
            started_at=child.started_at,
            completed_at=now(),
            stdout=child.streams[0].excerpt.output(),
            stderr=child.streams[1].excerpt.output(),
            survivors=self._survivors,
            error=_sentence(ended, code, child) or lost,
        )


def _sentence(ended: Ended, code: int | None, child: Child) -> str | None:
    command = child.command
    if ended is Ended.EXITED:
        return _exit_sentence(code)
    if ended is Ended.SIGNALLED and code is not None:
        return f"it was killed by {_signal_name(-code)}"
    if ended is Ended.TIMED_OUT:
        return f"it had not ended after {command.timeout_s:g} s and was stopped"
    if ended is Ended.IDLE:
        return f"it had printed nothing for {command.idle_timeout_s:g} s and was stopped"
    return f"it printed more than {command.max_output_bytes} bytes and was stopped"


def _exit_sentence(code: int | None) -> str | None:
    if code is None:
        return "its exit status was lost: somebody else waited for it"
    if _SIGNALLED < code < _SIGNALLED + signal.NSIG:
        return f"exit code {code}, as if killed by {_signal_name(code - _SIGNALLED)}"
    return None


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"{name} (out of memory?)" if name == "SIGKILL" else name
