"""Start one command: its session, environment, standard files and logs. Waits for nothing."""

import errno
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from typing import IO

from atlas_retry.process.family import Family
from atlas_retry.process.output import Stream
from atlas_retry.process.stopping import clock
from atlas_retry.process.values import Command, Completed, Ended

_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC

_REASONS = {
    errno.ENOENT: "it was not found (or the interpreter that its first line names)",
    errno.EACCES: "it may not be executed",
    errno.E2BIG: "its arguments and environment are too long for the system",
    errno.ENOEXEC: "no program for this machine: another architecture, or a script without `#!`",
}


class Child:
    """A command that runs, with what is needed to follow it."""

    __slots__ = (
        "_process",
        "command",
        "exit_code",
        "family",
        "pidfd",
        "printed_s",
        "started_at",
        "started_s",
        "streams",
    )

    def __init__(
        self, command: Command, family: Family, process: subprocess.Popen[bytes], streams: "Streams"
    ) -> None:
        family.begin(process.pid)
        self.command = command
        self.family = family
        self.streams = streams
        self.pidfd = _pidfd(process.pid)
        self.exit_code: int | None = None
        """None as well after the end, if somebody else took its status."""
        self.started_at = now()
        self.started_s = self.printed_s = clock()
        self._process = process

    @property
    def printed_bytes(self) -> int:
        return sum(stream.excerpt.size_bytes for stream in self.streams)

    def pump(self, stream: Stream) -> None:
        if stream.pump():
            self.printed_s = clock()

    def reap(self) -> bool:
        """Whether it has ended; `exit_code` is known then."""
        has_ended, status = self.family.reap()
        if has_ended:
            self.exit_code = None if status is None else os.waitstatus_to_exitcode(status)
            # subprocess would go on waiting for it
            self._process.returncode = self.exit_code or 0
        return has_ended

    def close(self) -> None:
        """Let go of every file."""
        for stream in self.streams:
            stream.close()
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


Streams = tuple[Stream, Stream]
"""Standard output and standard error."""


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # macOS; Linux before 5.3, seccomp
        return None


def now() -> str:
    """The time in UTC, ISO 8601 with milliseconds."""
    seconds = time.time()
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"


def start(command: Command) -> Child | Completed:
    """Start it; where that cannot be, its end at once, with the reason."""
    family, at = Family(command.halt_signal), now()
    with ExitStack() as undo:
        undo.callback(family.part, keep=False)
        try:
            child = _spawn(command, family, undo)
        except (OSError, ValueError) as error:
            return Completed(
                command=command,
                ended=Ended.NOT_STARTED,
                started_at=at,
                completed_at=now(),
                error=explain(command, error),
            )
        undo.pop_all()
        return child


def _spawn(command: Command, family: Family, undo: ExitStack) -> Child:
    with ExitStack() as theirs:
        stdin = _stdin(command, theirs)
        out, out_end = _stream(command, "stdout.log", undo, theirs)
        err, err_end = _stream(command, "stderr.log", undo, theirs)
        earlier = signal.pthread_sigmask(signal.SIG_SETMASK, ())  # it would be inherited
        try:
            process = subprocess.Popen(
                command.argv,
                stdin=stdin,
                stdout=out_end,
                stderr=err_end,
                cwd=command.cwd,
                env={**command.env, **family.markers},
                start_new_session=True,
                pass_fds=command.pass_fds,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, earlier)
    return Child(command, family, process, (out, err))


def _stdin(command: Command, theirs: ExitStack) -> int:
    """A file that has no name; of memory where there is such a thing, for TMPDIR may be full."""
    if not command.stdin:
        return subprocess.DEVNULL
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("stdin"), "w+b", buffering=0)
    else:
        import tempfile

        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - `theirs` closes it
    theirs.callback(file.close)
    file.write(command.stdin)
    file.seek(0)
    return file.fileno()


def _stream(command: Command, name: str, undo: ExitStack, theirs: ExitStack) -> tuple[Stream, int]:
    """Our end and the descriptor that the command gets."""
    path = None
    log = None
    if command.log_dir is not None:
        os.makedirs(command.log_dir, mode=0o700, exist_ok=True)  # noqa: PTH103 - start-up
        path = command.log_dir / name
        log = os.open(path, _LOG_FLAGS, 0o600)
    if command.keep_daemons and path is not None and log is not None:
        theirs.callback(os.close, log)
        source = os.open(path, os.O_RDONLY)
        stream = Stream(source, log=None, direct=True, room=command.max_output_bytes)
        end = log
    else:
        source, end = os.pipe()
        theirs.callback(os.close, end)
        os.set_blocking(source, False)
        stream = Stream(source, log=log, direct=False, room=command.max_output_bytes)
    undo.callback(stream.close)
    return stream, end


def explain(command: Command, error: OSError | ValueError) -> str:
    """Why it could not be started, in one sentence."""
    program, folder = command.argv[0], str(command.cwd)
    if isinstance(error, ValueError):
        return f"`{program!a}` cannot be started: {error}"
    if error.filename and os.fspath(error.filename) not in (program, folder):
        return f"its output cannot be kept in {error.filename}: {error.strerror}"
    if not command.cwd.is_dir():
        return f"the folder {folder} that `{program}` runs in does not exist"
    return f"`{program}` cannot be started: {_REASONS.get(error.errno or 0, error.strerror)}"
