"""The only place that starts processes. Callers judge the output.

Every command gets its own session, an empty standard input and a bounded excerpt of its output.
When a call ends, all processes it started have ended too, except with `Command.keep_daemons`;
`tree` says how descendants are found.
"""

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from atlas_retry.process.loop import Loop
from atlas_retry.process.stopping import (
    at_once,
    handle_signals,
    interruptible,
    orderly,
    request_stop,
    stop_requested,
    uninterruptible,
    wake_fd,
)
from atlas_retry.process.tree import end_marked, mark, note_end
from atlas_retry.process.values import Captured, Command, Completed, Ended, Sink, Watch

__all__ = [
    "Captured",
    "Command",
    "Completed",
    "Ended",
    "Watch",
    "at_once",
    "capture",
    "captured",
    "end_marked",
    "hand_over",
    "handle_signals",
    "interruptible",
    "mark",
    "note_end",
    "orderly",
    "request_stop",
    "run",
    "run_all",
    "started",
    "stop_requested",
    "uninterruptible",
    "wake_fd",
]


def run(command: Command, *, on_stdout: Sink | None = None, shielded: bool = False) -> Completed:
    """Run one command to its end; `on_stdout` gets its output as it is printed.

    If a stop was requested, raises Interrupted once all has ended. A `shielded` command is stopped
    by the second request only; its caller passes on the first.
    """
    with _counted():
        return Loop((command,), sink=on_stdout, is_shielded=shielded).alone()


_ends = count(1)
_started = 0


def started() -> int:
    """A number that changes whenever `run` or `run_all` begins or ends."""
    return _started


@contextmanager
def _counted() -> Iterator[None]:
    global _started  # noqa: PLW0603 - children belong to the process
    _started = next(_ends)
    try:
        yield
    finally:
        _started = next(_ends)


def run_all(
    commands: Sequence[Command],
    *,
    jobs: int,
    watch: Watch | None = None,
    stop_when: Callable[[Completed], bool] | None = None,
) -> tuple[Completed | None, ...]:
    """Run commands in parallel, started in the given order, and return their ends in that order.

    After an end for which `stop_when` is true no more are started (None), and running ones finish.
    If a stop was requested, raises Interrupted once all have ended.
    """
    with _counted():
        return Loop(commands, watch=watch, stop_when=stop_when).run(max(1, jobs))


def capture(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout_s: float = 60.0,
) -> Captured:
    """Run a short trusted command, such as git, and return all its output. See `captured`."""
    return captured(
        Command(
            argv=tuple(argv), cwd=cwd, env=env, stdin=stdin, timeout_s=timeout_s, keep_daemons=True
        )
    )


def captured(command: Command, watch: Watch | None = None) -> Captured:
    """Run a short trusted command, and return all its output.

    A first request to stop does not end it; a second one does, except in an uninterruptible
    section, and raises Interrupted. What `watch` raises ends it as well.
    """
    printed: list[bytes] = []
    completed = Loop((command,), watch=watch, sink=printed.append, is_shielded=True).alone()
    stderr = completed.error if completed.exit_code is None else completed.stderr.text
    return Captured(
        exit_code=completed.exit_code,
        stdout=b"".join(printed),
        stderr=(stderr or "").encode(),
    )


def hand_over(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> str | None:
    """Give the terminal to a user's program, such as an editor, until it ends.

    Returns why it failed, or None. Its output is not kept, and it has no time limit.
    """
    try:
        code = subprocess.run(argv, cwd=cwd, env=env, check=False).returncode
    except OSError as error:
        return f"{argv[0]} cannot be started: {error.strerror}"
    return f"{argv[0]} ended with exit code {code}" if code else None
