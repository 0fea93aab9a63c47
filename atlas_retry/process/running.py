"""One command, from its start to the end of its last descendant. Never waits itself."""

import errno
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import IO

from atlas_retry.events import now
from atlas_retry.process import proc
from atlas_retry.process.output import Stream, open_log
from atlas_retry.process.stopping import clock
from atlas_retry.process.tree import ProcessTree
from atlas_retry.process.values import RESTORE_S, Command, Completed, Ended

SETTLE_S = 0.1
"""Time for processes that a command left to end by themselves."""
KILL_S = 0.7
"""Time for the kernel to end killed processes, before we return anyway."""
GIVE_UP_S = 10.0
"""Time after which we return even if new descendants still appear."""
BLIND_S = 0.02
"""Seconds between checks of what cannot be polled: a command without pidfd, a direct log."""
_PAUSES_S = (0.005, 0.05)

_NEVER = float("inf")
_SIGNALLED = 128
"""Offset of a shell's exit code for a command that a signal ended (POSIX, 2.8.2)."""
_REASONS = {
    errno.ENOENT: "it was not found (or the interpreter that its first line names)",
    errno.EACCES: "it is not executable",
    errno.E2BIG: "its arguments and environment are too long for the system",
    errno.ENOEXEC: "it is for another architecture, or a script without `#!`",
}

Streams = tuple[Stream, Stream]
"""Standard output and standard error."""


def start(command: Command) -> "RunningCommand | Completed":
    """Start a command; if that fails, return its end with the reason."""
    tree, at = ProcessTree(command.halt_signal), now()
    earlier = signal.pthread_sigmask(signal.SIG_SETMASK, ())  # it would be inherited
    with ExitStack() as undo, ExitStack() as theirs:
        theirs.callback(signal.pthread_sigmask, signal.SIG_SETMASK, earlier)
        undo.callback(tree.leave, keep=False)
        try:
            stdin = _stdin(command, theirs)
            out, out_end = _stream(command, "stdout.log", undo, theirs)
            err, err_end = _stream(command, "stderr.log", undo, theirs)
            process = subprocess.Popen(
                command.argv,
                stdin=stdin,
                stdout=out_end,
                stderr=err_end,
                cwd=command.cwd,
                env={**command.env, **tree.markers},
                start_new_session=True,
                pass_fds=command.pass_fds,
            )
        except (OSError, ValueError) as error:
            return Completed(
                command=command,
                ended=Ended.NOT_STARTED,
                started_at=at,
                completed_at=now(),
                error=_obstacle(command, error),
            )
        undo.pop_all()
        return RunningCommand(command, tree, process, (out, err))


class RunningCommand:
    """State machine of a command: it runs, settles, is asked to stop, is killed, is gone.

    Call `step` whenever something happened, and at `wake_s` at the latest.
    """

    def __init__(
        self,
        command: Command,
        tree: ProcessTree,
        process: subprocess.Popen[bytes],
        streams: Streams,
    ) -> None:
        tree.begin(process.pid)
        self.command = command
        self.tree = tree
        self.streams = streams
        self.pidfd: int | None = None
        with suppress(AttributeError, OSError):  # macOS; Linux before 5.3, seccomp
            self.pidfd = os.pidfd_open(process.pid)
        self.started_s = self._printed_s = clock()
        self.is_gone = False
        self.may_have_ended = True
        """Whether to check for its end; with a pidfd, only after that is readable."""
        self.wake_s = 0.0
        self._started_at = now()
        self._process = process
        self._exit_code: int | None = None
        """Also None after the end, if another process took its status."""
        self._reason: Ended | None = None
        self._survivors: tuple[str, ...] = ()
        self._give_up_s = _NEVER
        self._term_s = self._restored_s = 0.0
        self._has_said = False
        self._enter(RunningCommand._run, _NEVER)

    def pump(self, stream: Stream) -> None:
        if stream.pump():
            self._printed_s = clock()

    def step(self, now_s: float) -> None:
        self._step(self, now_s)

    def _enter(self, step: Callable[["RunningCommand", float], None], until_s: float) -> None:
        # a function, as a bound method would keep the input and output in memory in a cycle
        self._step, self._until_s, self._pause_s = step, until_s, _PAUSES_S[0]

    def _rest(self, now_s: float) -> None:
        self.wake_s = min(now_s + self._pause_s, self._until_s)
        self._pause_s = min(2 * self._pause_s, _PAUSES_S[1])

    def _has_ended(self) -> bool:
        if self.tree.is_over or not (self.may_have_ended or self.pidfd is None):
            return self.tree.is_over
        self.may_have_ended = False
        has_ended, status = self.tree.reap()
        if has_ended:
            self._exit_code = None if status is None else os.waitstatus_to_exitcode(status)
            # otherwise subprocess would keep waiting for it
            self._process.returncode = self._exit_code or 0
        return has_ended

    def _run(self, now_s: float) -> None:
        for stream in self.streams:
            if stream.direct:
                self.pump(stream)
        if not self._has_ended():
            self._reason = self._overdue(now_s)
            if self._reason:
                self.stop(now_s)
        elif self.command.keep_daemons:
            self._finish()
        else:
            self._enter(RunningCommand._settle, now_s + SETTLE_S)
            self._settle(now_s)

    def _overdue(self, now_s: float) -> Ended | None:
        """Why it must be stopped; None if not yet, with `wake_s` set to the next check."""
        command, is_blind = self.command, any(stream.direct for stream in self.streams)
        end_s = idle_s = _NEVER
        if command.timeout_s is not None:
            end_s = self.started_s + command.timeout_s
        if command.idle_timeout_s is not None:
            idle_s = self._printed_s + command.idle_timeout_s
        look_s = now_s + BLIND_S if is_blind or self.pidfd is None else _NEVER
        self.wake_s = min(end_s, idle_s, look_s)
        if now_s >= end_s:
            return Ended.TIMED_OUT
        if now_s >= idle_s:
            return Ended.IDLE
        printed_bytes = sum(stream.excerpt.size_bytes for stream in self.streams)
        return Ended.OUTPUT_LIMIT if printed_bytes > command.max_output_bytes else None

    def _settle(self, now_s: float) -> None:
        left = self.tree.remaining()
        if not left:
            self._finish()
        elif now_s >= self._until_s:
            self._survivors = proc.names(left)
            self.stop(now_s)
        else:
            self._rest(now_s)

    def stop(self, now_s: float) -> None:
        """Ask it to end within its grace; no effect if it was asked before."""
        if self._step in (RunningCommand._run, RunningCommand._settle):
            self._enter(RunningCommand._await_end, now_s + self.command.grace_s)
            self._term_s, self._restored_s = now_s, now_s + RESTORE_S
            if self.command.stop_signal is signal.SIGINT and not self._has_ended():
                self._term_s += self.command.grace_s / 2
                self.tree.signal_group(signal.SIGINT)
                self.tree.signal_group(signal.SIGCONT)
            self._await_end(now_s)

    def _await_end(self, now_s: float) -> None:
        """Wait for the end: INT was sent, TERM and KILL follow, later while it restores files."""
        if self._has_ended() and not self.tree.remaining():
            self._finish()
        elif now_s >= min(self._term_s, self._until_s) and self._still_writes(now_s):
            self._rest(now_s)
        elif now_s >= self._until_s:
            self.kill(now_s)
        else:
            if now_s >= self._term_s:
                self.tree.terminate()
            self._rest(now_s)

    def _still_writes(self, now_s: float) -> bool:
        """Whether an interrupted command still writes in its folder, and may go on with that."""
        if self.command.stop_signal is not signal.SIGINT or now_s >= self._restored_s:
            return False
        folder = str(self.command.cwd)
        if not any(proc.is_writing(one, folder) for one in self.tree.remaining()):
            return False
        if not self._has_said:
            self._has_said = True
            text = "atlas: a stopped command still writes files here; it gets a few seconds\n"
            with suppress(OSError):
                os.write(2, text.encode())
        self._term_s = now_s + _PAUSES_S[1]
        self._until_s = max(self._until_s, self._term_s + KILL_S)
        return True

    def kill(self, now_s: float) -> None:
        """Kill it and everything it started, at once."""
        if self._step is not RunningCommand._kill:
            self._enter(RunningCommand._kill, now_s + KILL_S)
            self._give_up_s = now_s + GIVE_UP_S
            if self._has_ended():
                self._survivors = self._survivors or proc.names(self.tree.remaining())
            self._kill(now_s)

    def _kill(self, now_s: float) -> None:
        if self._has_ended() and not self.tree.remaining():
            self._finish()
            return
        if self.tree.kill():
            # orphans of another command may be ended only once that one is gone
            self._until_s = min(now_s + KILL_S, self._give_up_s)
        if now_s >= self._until_s:
            self._survivors = proc.names(self.tree.remaining())
            self._finish()
        else:
            self._rest(now_s)

    def _finish(self) -> None:
        self.tree.leave(keep=self.command.keep_daemons)
        for stream in self.streams:
            self.pump(stream)
            stream.close()
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None  # `stop` may still check it
        self.is_gone = True

    def completed(self) -> Completed:
        """The end of the command, once it is gone."""
        code = self._exit_code if self._reason is None else None
        ended = self._reason or (Ended.SIGNALLED if code is not None and code < 0 else Ended.EXITED)
        lost = next((stream.lost for stream in self.streams if stream.lost), None)
        return Completed(
            command=self.command,
            ended=ended,
            exit_code=code,
            duration_s=clock() - self.started_s,
            cpu_s=self.tree.cpu_s,
            started_at=self._started_at,
            completed_at=now(),
            stdout=self.streams[0].excerpt.output(),
            stderr=self.streams[1].excerpt.output(),
            survivors=self._survivors,
            error=_sentence(ended, code, self.command) or lost,
        )


def _stdin(command: Command, theirs: ExitStack) -> int:
    """Standard input: an unnamed file, in memory if possible, because TMPDIR may be full."""
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
    log, room = command.log_dir and command.log_dir / name, command.max_output_bytes
    if log and command.keep_daemons:
        end = open_log(log)
        theirs.callback(os.close, end)
        source = os.open(log, os.O_RDONLY)
        stream = Stream(source, log=None, direct=True, room=room)
    else:
        if log:
            with suppress(OSError):
                os.truncate(log, 0)  # remove the log of an earlier command
        source, end = os.pipe()
        theirs.callback(os.close, end)
        os.set_blocking(source, False)
        stream = Stream(source, log=log, direct=False, room=room)
    undo.callback(stream.close)
    return stream, end


def _obstacle(command: Command, error: OSError | ValueError) -> str:
    program, folder = command.argv[0], str(command.cwd)
    if isinstance(error, ValueError):
        return f"`{program!a}` cannot be started: {error}"
    if error.filename and os.fspath(error.filename) not in (program, folder):
        return f"its output cannot be kept in {error.filename}: {error.strerror}"
    if not command.cwd.is_dir():
        return f"the folder {folder} that `{program}` runs in does not exist"
    return f"`{program}` cannot be started: {_REASONS.get(error.errno or 0, error.strerror)}"


def _sentence(ended: Ended, code: int | None, command: Command) -> str | None:
    limit_bytes = command.max_output_bytes
    sentences = {
        Ended.TIMED_OUT: f"it did not end within {command.timeout_s or 0:g} s and was stopped",
        Ended.IDLE: f"it printed nothing for {command.idle_timeout_s or 0:g} s and was stopped",
        Ended.OUTPUT_LIMIT: f"it printed more than {limit_bytes} bytes and was stopped",
    }
    if ended in sentences:
        return sentences[ended]
    if code is None:
        return "its exit status was lost: another process waited for it"
    if code < 0:
        return f"it was killed by {_signal_name(-code)}"
    if _SIGNALLED < code < _SIGNALLED + signal.NSIG:
        return f"exit code {code}, as if killed by {_signal_name(code - _SIGNALLED)}"
    return None


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"{name} (out of memory?)" if name == "SIGKILL" else name
