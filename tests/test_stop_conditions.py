"""Only if nothing came between: second requests, halts and kills that are asked for again."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from atlas_retry.errors import Interrupted
from atlas_retry.process import Command, handle_signals, run_all
from atlas_retry.process.running import GIVE_UP_S, RunningCommand
from atlas_retry.process.stopping import clock
from tests.processes import run_python, shell
from tests.test_process import Recorder


class _Unkillable:
    """The processes of a command that the kernel does not let go."""

    is_over = False

    def begin(self, _pid: int) -> None: ...

    def reap(self) -> tuple[bool, None]:
        return False, None

    def remaining(self) -> dict[int, str]:
        return {}

    def kill(self) -> bool:
        return True

    def leave(self, *, keep: bool) -> None: ...


def test_a_command_that_cannot_be_killed_is_given_up_though_it_is_asked_again() -> None:
    child = cast("Any", type("Child", (), {"pid": os.getpid(), "returncode": None})())
    streams = cast("Any", ())
    command = Command(argv=("true",), cwd=Path("/"), env={})
    running = RunningCommand(command, cast("Any", _Unkillable()), child, streams)
    for second in range(int(GIVE_UP_S) + 2):
        running.kill(float(second))
        running.step(float(second))
    assert running.is_gone


def test_no_second_passes_on_the_clock_while_the_commands_are_halted() -> None:
    seen = list[float]()

    def look_and_continue() -> None:
        time.sleep(0.2)
        seen.append(clock())
        time.sleep(0.2)
        seen.append(clock())
        os.kill(os.getpid(), signal.SIGCONT)

    with handle_signals(is_inner=True):
        thread = threading.Thread(target=look_and_continue)
        thread.start()
        os.kill(os.getpid(), signal.SIGTSTP)
        thread.join()
    assert seen[0] == seen[1]


class _Impatient(Recorder):
    """A person who presses Ctrl-C twice as soon as a command runs."""

    def __init__(self) -> None:
        super().__init__()
        self.is_whole = False

    def started(self, index: int) -> None:
        super().started(index)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        self.is_whole = True


def test_a_second_signal_does_not_interrupt_our_own_code_while_a_command_runs() -> None:
    impatient = _Impatient()
    with handle_signals(), pytest.raises(Interrupted):
        run_all([shell("sleep 60")], jobs=1, watch=impatient)
    assert impatient.is_whole


def test_a_request_that_came_before_anyone_waited_wakes_who_waits_then() -> None:
    code = (
        "import select\n"
        "from atlas_retry.process import stopping\n"
        "stopping.request_stop(2)\n"
        "print(bool(select.select([stopping.wake_fd()], [], [], 0)[0]))\n"
    )
    assert run_python(code) == (0, "True\n")
