"""What a command is and how it ended. Starts nothing."""

import signal
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

GRACE_S = 3.0
RESTORE_S = 10.0
"""Longest grace of a process that still writes in the work tree."""
MAX_OUTPUT_BYTES = 1 << 30

Sink = Callable[[bytes], None]


class Ended(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    """By a signal that atlas did not send."""
    TIMED_OUT = "timed_out"
    IDLE = "idle"
    """It printed nothing for `idle_timeout_s`."""
    OUTPUT_LIMIT = "output_limit"
    NOT_STARTED = "not_started"
    """It could not be started; `Completed.error` says why."""


class Command(Struct, frozen=True, kw_only=True):
    """One process to start, in its own session."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    """The whole environment: nothing is inherited except the markers of an outer atlas."""
    stdin: bytes = b""
    """If empty, /dev/null."""
    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    log_dir: Path | None = None
    """Folder for `stdout.log` and `stderr.log`, each created on the first output; None: no logs."""
    grace_s: float = GRACE_S
    """Seconds between the first signal and KILL."""
    stop_signal: signal.Signals = signal.SIGTERM
    """First signal to its group; if that is INT, TERM follows after half of the grace, and a
    process that restores or writes files in the work tree gets up to `RESTORE_S`."""
    keep_daemons: bool = False
    """Whether processes that it leaves running after a normal end stay alive."""
    pass_fds: tuple[int, ...] = ()
    """File descriptors that it inherits, with the same numbers."""
    max_output_bytes: int = MAX_OUTPUT_BYTES
    """Limit of both streams together; then it is stopped, and the logs are cut."""
    waits: bool = False
    """Whether it is known to use little CPU: it does not count towards `jobs` of `run_all`."""
    halt_signal: signal.Signals = signal.SIGSTOP
    """Signal to its group on Ctrl-Z; SIGTSTP for an inner atlas, which halts its own commands."""


class Output(Struct, frozen=True, kw_only=True):
    """One stream, decoded as UTF-8 with replacement, cut in the middle if it is long."""

    head: str = ""
    """The whole output if nothing is omitted."""
    tail: str = ""
    omitted_bytes: int = 0
    size_bytes: int = 0

    @property
    def text(self) -> str:
        """Head and tail with a line between them that says how much is missing."""
        if not self.omitted_bytes:
            return self.head
        return f"{self.head}\n... {self.omitted_bytes} bytes omitted ...\n{self.tail}"


class Completed(Struct, frozen=True, kw_only=True):
    """A command that has ended, with everything that it started."""

    command: Command
    ended: Ended
    exit_code: int | None = None
    """Negative if a signal ended it; None if it never started, or atlas ended it."""
    duration_s: float = 0.0
    cpu_s: float = 0.0
    """CPU seconds of the command and of the children it waited for."""
    started_at: str = ""
    completed_at: str = ""
    stdout: Output = Output()
    stderr: Output = Output()
    survivors: tuple[str, ...] = ()
    """Descendants that outlived the command and were ended: `sleep 100 (pid 71)`."""
    error: str | None = None
    """Reason in one sentence for a person; None if it exited by itself."""


class Captured(Struct, frozen=True, kw_only=True):
    """A short command that has ended, with all its output."""

    exit_code: int | None
    """As in `Completed`."""
    stdout: bytes
    stderr: bytes
    """Head and tail; if it was not started, or atlas ended it, the reason instead."""


class Watch(Protocol):
    """Observer of the commands of `run_all`, by their index. Called in its thread."""

    def started(self, index: int) -> None: ...

    def progress(self, index: int, last_line: str, elapsed_s: float) -> None:
        """At most 10 times a second; `last_line` as it was printed, control codes included."""

    def ended(self, index: int, completed: Completed) -> None: ...
