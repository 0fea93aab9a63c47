"""Requests to stop, by signal or from another thread, and a clock that stops on Ctrl-Z.

Ends nothing itself: the loops that wait for commands check for requests.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from msgspec import Struct

from atlas_retry.errors import Interrupted
from atlas_retry.process import tree

_Handler = Callable[[int, FrameType | None], None]
ENDING = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU),
    *(signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF),
)
"""Signals to end; timers survive an exec, so a caller may have set one as a deadline."""
MEANINGLESS = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals without a meaning here, which would kill us by default."""


class _Request(Struct):
    """A request to stop. Written by signal handlers, so without a lock."""

    signum: int | None = None
    forced: bool = False
    wake: tuple[int, int] | None = None


class _Section(threading.local):
    depth = 0
    """Number of nested uninterruptible sections."""
    orderly = 0
    """Number of nested `orderly` sections, in which nothing is raised between commands."""
    at_once = False
    """Whether Interrupted may still be raised once."""


class _Clock(Struct):
    """State of the clock that does not run while we are stopped (Ctrl-Z)."""

    halted_at: float | None = None
    lost_s: float = 0.0


_request = _Request()
_section = _Section()
_waited_for: list[str] = []
"""Descriptions of the uninterruptible sections of all threads."""
_opening = threading.Lock()
_clock = _Clock()


def clock() -> float:
    """Monotonic seconds, without the time while Ctrl-Z halted us."""
    now = _clock.halted_at or time.monotonic()
    return now - _clock.lost_s


def stop_requested() -> int | None:
    """The signal that asked to stop; None if none did."""
    return _request.signum


def kill_requested() -> bool:
    """Whether a second request came, so there is no grace, except in uninterruptible sections."""
    return _request.forced and not _section.depth


def request_stop(signum: int) -> None:
    """Make every `run` and `run_all` end its children and raise Interrupted; thread-safe.

    A second request kills at once what has not ended yet.
    """
    if _request.signum is not None:
        _request.forced = True
    else:
        _request.signum = signum
    if _request.wake:
        with suppress(BlockingIOError):
            os.write(_request.wake[1], b"!")


def wake_fd() -> int:
    """Descriptor that is readable from the first request on; for polling only."""
    with _opening:
        if _request.wake is None:
            wake = os.pipe()
            for end in wake:
                os.set_blocking(end, False)
            _request.wake = wake
            if _request.signum is not None:  # requested before the pipe existed
                os.write(wake[1], b"!")
        return _request.wake[0]


def _forget() -> None:
    _request.signum, _request.forced = None, False
    if _request.wake:
        with suppress(BlockingIOError):
            while os.read(_request.wake[0], 64):
                pass


@contextmanager
def handle_signals(*, is_inner: bool = False) -> Iterator[None]:
    """Turn signals that end us into requests to stop; Ctrl-Z also halts the commands.

    USR1 and USR2 do nothing; signals ignored on entry (nohup) stay ignored, except INT. A second
    request kills what is running, or raises Interrupted if nothing is. For the main thread only
    (ValueError elsewhere). Requests made before entry or left over on exit are forgotten.

    `is_inner` is for an atlas that another one started, and that only the other one halts and
    continues; its threads must be started inside this context.
    """
    _forget()
    handlers: dict[signal.Signals, _Handler] = {
        **dict.fromkeys(ENDING, _on_ending),
        **dict.fromkeys(MEANINGLESS, _on_nothing),
        signal.SIGTSTP: _on_halt_by_outer if is_inner else _on_halt,
    }
    earlier = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        # a shell's background job inherits INT as ignored, and so would a tool that restores on it
        if earlier[number] is not signal.SIG_IGN or number is signal.SIGINT:
            signal.signal(number, handler)
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        # inherited; the kernel would discard every exit status
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCONT,) if is_inner else ())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, before in earlier.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)
        _forget()


@contextmanager
def interruptible() -> Iterator[None]:
    """A wait for a person's answer: the first INT raises Interrupted. For the main thread only."""

    def end(signum: int, _: FrameType | None) -> None:
        raise Interrupted(signum)

    earlier = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)


@contextmanager
def uninterruptible(what: str) -> Iterator[None]:
    """Defer signals that end us until the section has ended.

    A second signal prints `what` is being waited for. Git's commands are not ended either; outside
    the main thread, which alone gets signals, this is the only effect.
    """
    _section.depth += 1
    _waited_for.append(what)
    deferred: list[int] = []

    def defer(signum: int, _: FrameType | None) -> None:
        if deferred or stop_requested() is not None:
            _say_what_is_waited_for()
        deferred.append(signum)

    earlier: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in ENDING}
        untouched = (None, signal.SIG_IGN)
        earlier = {number: now for number, now in handlers.items() if now not in untouched}
    try:
        for number in earlier:
            signal.signal(number, defer)
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)
        _waited_for.remove(what)
        _section.depth -= 1
        if deferred:
            signal.raise_signal(deferred[0])


def _say_what_is_waited_for() -> None:
    for what in _waited_for[-1:]:
        with suppress(OSError):
            os.write(2, f"atlas: {what}; this cannot be interrupted\n".encode())


@contextmanager
def orderly() -> Iterator[None]:
    """Raise Interrupted only from a running command, never between two commands.

    So no signal comes between a change and its restoration. A handler may run anywhere, even in
    `__exit__`: only code that enters this context before is safe from it.
    """
    _section.orderly += 1
    try:
        yield
    finally:
        _section.orderly -= 1


@contextmanager
def at_once() -> Iterator[None]:
    """Let a second request interrupt foreign code inside `orderly`, which may wait for anything."""
    _section.at_once = True
    try:
        yield
    finally:
        _section.at_once = False


def _on_ending(signum: int, _: FrameType | None) -> None:
    again = _request.signum is not None
    request_stop(signum)
    if again:
        _say_what_is_waited_for()
    if again and not tree.running() and _may_raise():
        raise Interrupted(signum)


def _may_raise() -> bool:
    """Whether to raise now; `at_once` allows it only once, as the code after that restores."""
    if _section.depth or not _section.orderly:
        return not _section.depth
    may, _section.at_once = _section.at_once, False
    return may


def _on_nothing(_signum: int, _frame: FrameType | None) -> None:
    """Ignore the signal; unlike SIG_IGN, commands do not inherit this."""


def _on_halt(signum: int, _: FrameType | None) -> None:
    """Halt every command, then ourselves; CONT continues both."""
    with _all_halted():
        signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)
        # reached only after CONT
        signal.signal(signum, _on_halt)


def _on_halt_by_outer(_signum: int, _frame: FrameType | None) -> None:
    """Halt every command until CONT.

    TSTP stops no process of an orphaned group, and STOP could come after the CONT that ends it. So
    CONT is blocked and stays pending; the kernel drops an old one when TSTP comes.
    """
    with _all_halted():
        signal.sigwait({signal.SIGCONT})


@contextmanager
def _all_halted() -> Iterator[None]:
    _clock.halted_at = time.monotonic()
    for command in tree.running():
        command.signal_group(command.halt_signal)
    yield
    for command in tree.running():
        command.signal_group(signal.SIGCONT)
    _clock.lost_s += time.monotonic() - _clock.halted_at
    _clock.halted_at = None
