"""What a command is and how it ended. Starts nothing."""

import signal
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

GRACE_S = 3.0
MAX_OUTPUT_BYTES = 1 << 30

Sink = Callable[[bytes], None]


class Ended(StrEnum):
    """How a command came to its end."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    """By a signal that was not ours."""
    TIMED_OUT = "timed_out"
    IDLE = "idle"
    """It printed nothing for `idle_timeout_s`."""
    OUTPUT_LIMIT = "output_limit"
    NOT_STARTED = "not_started"
    """It could not be run at all; `Completed.error` says why."""


class Command(Struct, frozen=True, kw_only=True):
    """One process to start, in a session of its own."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    """All of it: nothing is inherited but the markers of an outer atlas."""
    stdin: bytes = b""
    """Empty: /dev/null."""
    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    log_dir: Path | None = None
    """Folder that gets `stdout.log` and `stderr.log`, each made once something is printed there;
    None: no files are kept."""
    grace_s: float = GRACE_S
    """Between TERM and KILL."""
    keep_daemons: bool = False
    """What it leaves running after a normal end goes on running."""
    pass_fds: tuple[int, ...] = ()
    """Descriptors of ours that it gets under the same numbers."""
    max_output_bytes: int = MAX_OUTPUT_BYTES
    """Of both streams together; it is stopped there, and no log file grows beyond."""
    waits: bool = False
    """It is known to take next to no processor time: it runs beside the `jobs` of `run_all`."""
    halt_signal: signal.Signals = signal.SIGSTOP
    """What its group gets on Ctrl-Z; another atlas, which halts its own commands, gets SIGTSTP."""


class Output(Struct, frozen=True, kw_only=True):
    """One stream, decoded as UTF-8 with replacement, cut in the middle when it is long."""

    head: str = ""
    """All of it when nothing is omitted."""
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
    """A command that has ended, and everything it started with it."""

    command: Command
    ended: Ended
    exit_code: int | None = None
    """Negative: ended by that signal. None: never started, or ended by us."""
    duration_s: float = 0.0
    cpu_s: float = 0.0
    """Of the command and of those whose end it has seen."""
    started_at: str = ""
    completed_at: str = ""
    stdout: Output = Output()
    stderr: Output = Output()
    survivors: tuple[str, ...] = ()
    """Descendants that outlived the command and had to be ended: `sleep 100 (pid 71)`."""
    error: str | None = None
    """One sentence for a person; None when it exited by itself."""


class Captured(Struct, frozen=True, kw_only=True):
    """A short command that has ended, with all that it printed."""

    exit_code: int | None
    """As in `Completed`."""
    stdout: bytes
    stderr: bytes
    """Head and tail; where it was not started or was ended by us, the reason instead."""


class Watch(Protocol):
    """Hears what happens to the commands of `run_all`, by their index. Called in its thread."""

    def started(self, index: int) -> None: ...

    def progress(self, index: int, last_line: str, elapsed_s: float) -> None:
        """At most 10 times a second; `last_line` as it was printed, control codes included."""

    def ended(self, index: int, completed: Completed) -> None: ...
