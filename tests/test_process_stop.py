import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from atlas_retry.errors import Interrupted
from atlas_retry.process import (
    Ended,
    at_once,
    capture,
    end_marked,
    handle_signals,
    mark,
    orderly,
    request_stop,
    run,
    run_all,
    stop_requested,
    uninterruptible,
)
from atlas_retry.process import running as commands
from tests.needs import MOUNTING, needs
from tests.processes import (
    ENV,
    STUBBORN,
    alive,
    finish,
    python,
    run_python,
    shell,
    start_python,
    states,
    token,
    until,
)
from tests.test_process import Recorder

HANG_S = 50.0
"""A bound on hangs: what these tests start would run for a minute or for hours."""

DRIVER = """
import os
from pathlib import Path
from atlas_retry.errors import Interrupted
from atlas_retry.process import Command, handle_signals, mark, run_all
grace_s, *lines = sys.argv[1:]
commands = [
    Command(argv=("/bin/sh", "-c", line), cwd=Path("/"), env={"PATH": "/usr/bin:/bin"},
            grace_s=float(grace_s), timeout_s=60)
    for line in lines
]
print(mark(), flush=True)
try:
    with handle_signals():
        for end in run_all(commands, jobs=4):
            print(end.ended, end.exit_code)
except Interrupted as interrupted:
    sys.exit(interrupted.exit_code)
"""


def stubborn(number: str, *, background: bool = True) -> str:
    return STUBBORN.format(number, "&" if background else "")


@pytest.mark.parametrize(
    "line",
    [
        "sleep {0}",
        "trap '' TERM; sleep {0}; sleep {0}",
        "sleep {0} & sleep {0} & wait",
        "setsid sleep {0} & wait",
        "env -i sleep {0} & wait",
        "(setsid env -i sleep {0} &); sleep {0}",
        f"{STUBBORN.format('{0}', '&')} wait",
        f"({STUBBORN.format('{0}', '&')}); sleep {{0}}",
        "kill -STOP $$; sleep {0}",
    ],
)
def test_a_timeout_ends_all_processes_in_time(line: str) -> None:
    number = token()
    start = time.monotonic()
    done = run(shell(line.format(number), timeout_s=0.2))
    assert time.monotonic() - start < HANG_S
    assert (done.ended, done.exit_code) == (Ended.TIMED_OUT, None)
    assert done.error == "it did not end within 0.2 s and was stopped"
    assert alive(number) == []


def test_silence_ends_a_command() -> None:
    line = "for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.1; done; sleep 60"
    start = time.monotonic()
    done = run(shell(line, idle_timeout_s=2.0))
    assert done.ended is Ended.IDLE
    assert done.stdout.text.endswith("7\n")
    assert 2 < time.monotonic() - start < HANG_S


def test_a_stopped_command_can_clean_up() -> None:
    done = run(shell("trap 'echo bye; exit 0' TERM; echo hi; sleep 60 & wait", timeout_s=0.2))
    assert (done.ended, done.exit_code) == (Ended.TIMED_OUT, None)
    assert done.stdout.text == "hi\nbye\n"


def test_a_suspended_command_can_clean_up() -> None:
    done = run(shell("trap 'echo bye; exit 0' TERM; kill -STOP $$", timeout_s=0.2))
    assert done.stdout.text == "bye\n"


def test_a_timeout_affects_only_its_own_command() -> None:
    numbers = token(), token()
    late, fine = run_all(
        [
            shell(f"{stubborn(numbers[0])} wait", timeout_s=0.2, grace_s=0.5),
            shell(f"{stubborn(numbers[1])} sleep 1.5; echo fine"),
        ],
        jobs=2,
    )
    assert late
    assert fine
    assert late.ended is Ended.TIMED_OUT
    assert fine.stdout.text == "fine\n"
    for number, done in zip(numbers, (late, fine), strict=True):
        assert any(number in name for name in done.survivors)
        assert alive(number) == []


def test_the_end_of_one_command_leaves_orphans_of_another_running(tmp_path: Path) -> None:
    orphan = "(setsid env -i sh -c 'echo $$ >pid; exec sleep 9' &)"
    lines = f"{orphan}; sleep 0.4; kill -0 $(cat pid) && echo spared", "env -i sleep 9 & sleep 0.1"
    long, short = run_all([shell(line, cwd=tmp_path) for line in lines], jobs=2)
    assert long
    assert short
    assert long.stdout.text == "spared\n"
    assert [name.split(" (")[0][-7:] for name in short.survivors] == ["sleep 9"]


@pytest.mark.parametrize(
    "line",
    [
        "sleep {0} &",
        "(setsid sleep {0} &)",
        "(setsid env -i sleep {0} &) ; sleep 0.05",
        f"({STUBBORN.format('{0}', '&')}) ; sleep 0.05",
    ],
)
def test_processes_left_running_are_ended_and_named(line: str) -> None:
    number = token()
    start = time.monotonic()
    done = run(shell(line.format(number) + "\necho done; exit 5"))
    assert (done.ended, done.exit_code, done.stdout.text) == (Ended.EXITED, 5, "done\n")
    assert any(f"sleep {number}" in name for name in done.survivors)
    assert alive(number) == []
    assert time.monotonic() - start < HANG_S


def test_a_shell_left_running_does_not_execute_its_next_line(tmp_path: Path) -> None:
    number = token()
    left = f"(sleep {number}; echo late >> {tmp_path}/late) &\n" * 12
    run(shell(f"{left} exit 0"))
    assert alive(number) == []
    assert not (tmp_path / "late").exists()


def test_a_process_that_ends_soon_is_not_a_survivor() -> None:
    done = run(shell("(sleep 0.03; echo late) & exit 0"))
    assert done.survivors == ()
    assert done.stdout.text == "late\n"


DAEMON = (
    "import os, sys, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "time.sleep(60)\n"
)


def test_no_daemon_escapes_by_forking_while_it_is_looked_for(tmp_path: Path) -> None:
    file = tmp_path / "daemon.py"
    file.write_text(DAEMON)
    for _ in range(20):
        number = token()
        # without its environment it has no marker
        run(shell(f"env -i {sys.executable} -SE {file} {number}; exit 0"))
        assert not alive(number)


def test_an_allowed_daemon_keeps_running_and_can_print(tmp_path: Path) -> None:
    number = token()
    line = f"(sleep 0.2; echo late; exec sleep {number}) & echo early"
    done = run(shell(line, keep_daemons=True, log_dir=tmp_path))
    assert (done.stdout.text, done.survivors) == ("early\n", ())
    until(lambda: (tmp_path / "stdout.log").read_text() == "early\nlate\n")
    until(lambda: len(alive(f"sleep {number}")) == 1)
    os.kill(int(alive(f"sleep {number}")[0].split()[0]), signal.SIGKILL)


def test_an_allowed_daemon_that_died_does_not_remain_as_a_zombie() -> None:
    number = token()
    run(shell(f"sleep {number} & exit 0", keep_daemons=True))
    (daemon,) = alive(number)
    pid = daemon.split()[0]
    run(shell("true"))
    assert states([pid]) <= {"S", "R"}
    os.kill(int(pid), signal.SIGKILL)
    until(lambda: states([pid]) == {"Z"})
    run(shell("true"))
    assert not Path(f"/proc/{pid}").exists()


def test_a_stopped_command_is_ended_with_its_daemons() -> None:
    number = token()
    done = run(shell(f"setsid sleep {number} & wait", keep_daemons=True, timeout_s=0.2))
    assert done.ended is Ended.TIMED_OUT
    assert alive(number) == []


def test_dead_orphans_do_not_remain_as_zombies(tmp_path: Path) -> None:
    line = "for i in 1 2 3; do (setsid sh -c 'echo $$; sleep 0.02' &); done"
    pids: list[str] = []

    def end_when_they_are_gone() -> None:
        until(lambda: len(pids) == 3 and not any(Path(f"/proc/{pid}").exists() for pid in pids))
        (tmp_path / "gone").touch()

    thread = threading.Thread(target=end_when_they_are_gone)
    thread.start()
    done = run(
        shell(f"{line}; until [ -e gone ]; do sleep 0.05; done", cwd=tmp_path, timeout_s=6),
        on_stdout=lambda data: pids.extend(data.decode().split()),
    )
    thread.join()
    assert done.exit_code == 0


def test_any_thread_can_request_a_stop() -> None:
    number = token()
    commands = [shell(f"{stubborn(number)} sleep {number}") for _ in range(3)]
    with handle_signals():
        asking = threading.Timer(0.2, request_stop, [signal.SIGTERM])
        asking.start()
        start = time.monotonic()
        with pytest.raises(Interrupted) as raised:
            run_all(commands, jobs=2)
        assert time.monotonic() - start < HANG_S
        asking.join()
        assert raised.value.signum == stop_requested() == signal.SIGTERM
        with pytest.raises(Interrupted):
            run(shell("true"))
    assert alive(number) == []
    assert stop_requested() is None
    assert run(shell("true")).exit_code == 0


def test_a_stop_reaches_every_thread_with_a_command() -> None:
    number = token()
    raised: list[int] = []

    def work() -> None:
        try:
            run(shell(f"sleep {number}"))
        except Interrupted as interrupted:
            raised.append(interrupted.signum)

    with handle_signals():
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        until(lambda: len(alive(f"sleep {number}")) >= 3)
        os.kill(os.getpid(), signal.SIGHUP)
        for thread in threads:
            thread.join(HANG_S)
    assert raised == [signal.SIGHUP] * 3
    assert alive(number) == []


def test_uninterruptible_commands_are_completed_first() -> None:
    with handle_signals():
        request_stop(signal.SIGINT)
        done = capture(("sh", "-c", "sleep 0.1; echo whole"), Path("/"), ENV)
        assert done.stdout == b"whole\n"
        again = threading.Timer(0.1, request_stop, [signal.SIGINT])
        again.start()
        start = time.monotonic()
        with pytest.raises(Interrupted):
            capture(("sleep", "60"), Path("/"), ENV)
        assert time.monotonic() - start < HANG_S
        again.join()


def test_a_second_signal_interrupts_code_without_a_command() -> None:
    with handle_signals():
        os.kill(os.getpid(), signal.SIGINT)
        assert stop_requested() == signal.SIGINT
        with pytest.raises(Interrupted):
            os.kill(os.getpid(), signal.SIGINT)


def test_orderly_code_is_not_interrupted_between_commands() -> None:
    with handle_signals(), orderly():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Interrupted):
            capture(("true",), Path("/"), ENV)
        with uninterruptible("it is being restored"):
            assert capture(("echo", "whole"), Path("/"), ENV).stdout == b"whole\n"


def test_code_marked_at_once_can_be_interrupted_immediately() -> None:
    with handle_signals(), orderly():
        request_stop(signal.SIGINT)
        with pytest.raises(Interrupted), at_once():
            os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_a_second_signal_reports_what_must_be_completed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    begun, done = threading.Event(), threading.Event()

    def work() -> None:
        with uninterruptible("it is being restored"):
            begun.set()
            done.wait(5)

    with handle_signals(), orderly():
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait(5)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        done.set()
        thread.join()
    assert capfd.readouterr().err == "atlas: it is being restored; this cannot be interrupted\n"


def test_signal_handlers_are_restored() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in numbers]
    with handle_signals():
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.parametrize(
    ("signum", "code"),
    [
        *((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)),
        *((signal.SIGQUIT, 131), (signal.SIGALRM, 142), (signal.SIGVTALRM, 154)),
    ],
)
def test_a_signal_to_atlas_leaves_no_process(signum: int, code: int) -> None:
    number = token()
    lines = (f"sleep {number}", f"{stubborn(number)} wait", f"({stubborn(number)}); sleep {number}")
    # A shell starts what it puts in the background with some signals ignored.
    heard = f"import signal; signal.signal({int(signum)}, signal.SIG_DFL)"
    with start_python(heard + DRIVER, "0.2", *lines) as driver:
        until(lambda: len(alive(f"sleep {number}")) >= 4)
        driver.send_signal(signum)
        exit_code, out = finish(driver)
    assert exit_code == code
    assert alive(number) == []
    assert alive(out.split()[0]) == []


def test_an_orphan_is_ended_even_if_other_commands_end_slowly() -> None:
    """A busy machine may use up the time for a kill before the orphan is known to be ours."""
    number = token()
    lines = (f"sleep {number}", f"{stubborn(number)} wait", f"({stubborn(number)}); sleep {number}")
    at_once = "from atlas_retry.process import running; running.KILL_S = 1e-6"
    with start_python(at_once + DRIVER, "0", *lines) as driver:
        until(lambda: len(alive(f"sleep {number}")) >= 4)
        driver.send_signal(signal.SIGTERM)
        finish(driver)
    assert alive(number) == []


def test_a_killed_atlas_leaves_no_process() -> None:
    number = token()
    lines = (
        f"sleep {number}",
        f"trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep {number}; sleep {number}' & wait",
        f"env -i sleep {number}",
        f"(setsid sleep {number} &) ; sleep {number}",
    )
    with start_python(DRIVER, "0.2", *lines) as driver:
        until(lambda: len(alive(f"sleep {number}")) >= 5)
        time.sleep(0.5)  # a group that clears its environment is known just after its start
        driver.send_signal(signal.SIGKILL)
        until(lambda: alive(number) == [])
        _, out = finish(driver)
    until(lambda: alive(out.strip()) == [])


def test_the_end_is_noted_for_each_run_although_the_folder_of_one_is_gone(tmp_path: Path) -> None:
    files = [tmp_path / "gone/ended", tmp_path / "ended"]
    code = "".join(f"process.note_end({str(file)!r})\n" for file in files)
    code = f"import os\nfrom atlas_retry import process\n{code}os.kill(os.getpid(), 9)\n"
    run_python(code)
    until(files[1].exists)


def test_the_watchdog_ends_with_atlas() -> None:
    exit_code, out = run_python(DRIVER, "0.2", "exit 4")
    name, end = out.splitlines()
    assert (exit_code, end) == (0, "exited 4")
    assert alive(name) == []


def test_the_second_interrupt_kills_at_once() -> None:
    number = token()
    line = f"trap '' TERM; sleep {number}; sleep {number}"
    with start_python(DRIVER, "30", line) as driver:
        until(lambda: len(alive(number)) >= 3)
        driver.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert driver.poll() is None
        driver.send_signal(signal.SIGINT)
        assert finish(driver, within_s=5)[0] == 130
    assert alive(number) == []


@pytest.mark.parametrize("signum", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH])
def test_other_signals_have_no_effect(signum: int, tmp_path: Path) -> None:
    sent, begun = tmp_path / token(), tmp_path / "begun"
    line = f"touch {begun}; until [ -e {sent} ]; do sleep 0.05; done; kill -{signum} $$; exit 6"
    with start_python(DRIVER, "0.2", line) as driver:
        until(begun.exists)
        driver.send_signal(signum)
        sent.touch()
        exit_code, out = finish(driver)
    # to the commands themselves it means what it always does
    ended = "exited 6" if signum == signal.SIGWINCH else f"signalled {-signum}"
    assert (exit_code, out.splitlines()[1]) == (0, ended)


def test_an_ignored_signal_stays_ignored() -> None:
    number = f"0.3{token()}"
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)" + DRIVER
    with start_python(code, "0.2", f"sleep {number}; exit 6") as driver:
        until(lambda: len(alive(number)) >= 3)
        driver.send_signal(signal.SIGHUP)
        exit_code, out = finish(driver)
    assert (exit_code, out.splitlines()[1]) == (0, "exited 6")


def test_after_a_request_to_stop_nothing_begins_and_no_end_is_told() -> None:
    watch, number = Recorder(), token()

    def stop() -> None:
        until(lambda: alive(number) != [])
        request_stop(signal.SIGTERM)

    stopping = threading.Thread(target=stop)
    with handle_signals():
        stopping.start()
        with pytest.raises(Interrupted):
            run_all((shell(f"sleep {number}"), shell("true")), jobs=1, watch=watch)
        stopping.join()
    assert [one for one in watch.heard if one[0] != "progress"] == [("started", 0)]


def test_control_z_stops_the_commands_and_their_timeout() -> None:
    number = f"1.0{token()}"
    line = f"sleep {number}; sleep 0.3; exit 6"
    code = DRIVER.replace("timeout_s=60", "timeout_s=2.5")

    def sleeping() -> list[str]:
        return [pid for pid, first, *_ in map(str.split, alive(number)) if first == "sleep"]

    with start_python(code, "0.2", line) as driver:
        until(lambda: bool(sleeping()))
        pids = (str(driver.pid), *sleeping())
        driver.send_signal(signal.SIGTSTP)
        until(lambda: states(pids) == {"T"})
        time.sleep(3.0)  # the time of `sleep` goes on meanwhile
        driver.send_signal(signal.SIGCONT)
        exit_code, out = finish(driver)
    assert (exit_code, out.splitlines()[1]) == (0, "exited 6")


def test_an_allowed_daemon_outlives_atlas() -> None:
    number = token()
    code = DRIVER.replace("timeout_s=60", "keep_daemons=True")
    assert run_python(code, "0.2", f"sleep {number} >/dev/null 2>&1 &")[0] == 0
    time.sleep(0.1)
    (daemon,) = alive(number)
    os.kill(int(daemon.split()[0]), signal.SIGKILL)


def test_a_nested_atlas_leaves_no_process() -> None:
    number = token()
    argv = tuple(python(DRIVER, "30", f"{stubborn(number)} sleep {number}"))
    done = run(shell("", argv=argv, timeout_s=0.6))
    assert done.ended is Ended.TIMED_OUT
    assert alive(number) == []


def test_survivors_of_an_earlier_run_are_ended_by_their_marker() -> None:
    number = token()
    run(shell(f"(setsid sleep {number} &) ; sleep 0.05", keep_daemons=True))
    assert len(alive(number)) == 1
    (name,) = end_marked(mark())
    assert name.startswith(f"sleep {number} (pid ")
    until(lambda: alive(number) == [])
    assert end_marked("PATH") == ()


@needs("mounts")
def test_without_proc_and_pidfd_the_group_is_ended() -> None:
    number = token()
    code = f"""
import os
del os.pidfd_open
from pathlib import Path
from atlas_retry.process import Command, run
assert not os.path.exists("/proc/self")
line = "sleep {number} & trap '' TERM; sleep {number}; sleep {number}"
print(run(Command(argv=("/bin/sh", "-c", line), cwd=Path("/"), env={{"PATH": "/usr/bin:/bin"}},
                  timeout_s=0.3, grace_s=0.2)).ended)
print(run(Command(argv=("/bin/sh", "-c", "exit 4"), cwd=Path("/"), env={{}})).exit_code)
"""
    hide = 'mount -t tmpfs none /proc && exec "$@"'
    hidden = [*MOUNTING, "/bin/sh", "-c", hide, "sh"]
    done = subprocess.run([*hidden, *python(code)], env=ENV, check=True, stdout=subprocess.PIPE)
    assert done.stdout == b"timed_out\n4\n"
    assert alive(number) == []


def test_a_command_that_ended_before_the_stop_is_completed(tmp_path: Path) -> None:
    running = commands.start(shell("true", cwd=tmp_path))
    assert isinstance(running, commands.RunningCommand)
    assert running.tree.leader
    os.waitid(os.P_PID, running.tree.leader, os.WEXITED | os.WNOWAIT)
    while not running.is_gone:
        running.may_have_ended = True
        running.stop(time.monotonic())
        running.step(time.monotonic())
    running.step(time.monotonic())
    assert running.completed().exit_code == 0


@pytest.mark.parametrize("module", ["typer", "msgspec", "atlas_retry.cli.stdio"])
def test_an_int_while_a_command_starts_is_exit_130(module: str) -> None:
    program = f"""
import os, signal, sys
from atlas_retry.cli import main

class Killing:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.modules.pop({module!r}, None)
sys.meta_path.insert(0, Killing())
main(["validate", "--help"])
"""
    done = subprocess.run(
        (sys.executable, "-c", program), env=ENV, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
