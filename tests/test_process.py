import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.process import Command, Completed, Ended, capture, proc, run, run_all
from tests.processes import ENV, alive, python, run_python, shell, token, until


def test_exit_code_and_both_streams_are_returned(tmp_path: Path) -> None:
    done = run(shell("echo out; echo err >&2; exit 3", cwd=tmp_path))
    assert (done.ended, done.exit_code, done.error) == (Ended.EXITED, 3, None)
    assert (done.stdout.text, done.stderr.text) == ("out\n", "err\n")
    assert done.survivors == ()
    assert done.started_at <= done.completed_at
    assert done.duration_s > 0


def test_a_command_gets_only_the_given_environment_and_a_marker() -> None:
    done = run(shell("env", env={"PATH": "/usr/bin:/bin", "A": "b"}))
    names = {line.partition("=")[0] for line in done.stdout.text.splitlines()}
    assert names - {"PWD", "_"} - {n for n in names if n.startswith("ATLAS_MARK_")} == {"PATH", "A"}


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("no-such-tool-here",), "`no-such-tool-here` cannot be started: it was not found"),
        (("/etc/passwd",), "is not executable"),
        (("/tmp",), "is not executable"),  # noqa: S108 - any directory
        (("tr\0ue",), "embedded null byte"),
        (("true", "x" * 4_000_000), "too long for the system"),
    ],
)
def test_a_command_that_cannot_start_reports_why(argv: tuple[str, ...], reason: str) -> None:
    done = run(Command(argv=argv, cwd=Path("/"), env=ENV))
    assert (done.ended, done.exit_code) == (Ended.NOT_STARTED, None)
    assert reason in (done.error or "")


def test_a_program_for_another_architecture_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF" + bytes(60))
    program.chmod(0o755)
    done = run(Command(argv=(str(program),), cwd=tmp_path, env=ENV))
    assert done.ended is Ended.NOT_STARTED
    assert "another architecture" in (done.error or "")


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    done = run(shell("true", cwd=tmp_path / "gone"))
    assert done.ended is Ended.NOT_STARTED
    assert str(tmp_path / "gone") in (done.error or "")


def test_an_unwritable_log_folder_is_reported_and_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(shell("echo one", log_dir=tmp_path / "file" / "logs"))
    assert (done.ended, done.stdout.text) == (Ended.EXITED, "one\n")
    assert done.error == "the log is incomplete: Not a directory"


def test_a_command_without_output_leaves_no_log(tmp_path: Path) -> None:
    for line in ("echo one", "true"):
        run(shell(line, log_dir=tmp_path / "first"))
    assert (tmp_path / "first/stdout.log").read_bytes() == b""
    run(shell("true", log_dir=tmp_path / "second"))
    assert not (tmp_path / "second").exists()


def test_a_full_disk_loses_only_the_log(tmp_path: Path) -> None:
    (tmp_path / "stdout.log").symlink_to("/dev/full")
    done = run(shell("echo one; echo two", log_dir=tmp_path))
    assert (done.ended, done.exit_code) == (Ended.EXITED, 0)
    assert done.stdout.text == "one\ntwo\n"
    assert done.error == "the log is incomplete: No space left on device"


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("kill -SEGV $$", -signal.SIGSEGV, "it was killed by SIGSEGV"),
        ("kill -KILL $$", -signal.SIGKILL, "it was killed by SIGKILL (out of memory?)"),
        ("sh -c 'kill -KILL $$'; exit $?", 137, "as if killed by SIGKILL (out of memory?)"),
    ],
)
def test_the_signal_that_ended_a_command_is_named(line: str, code: int, error: str) -> None:
    done = run(shell(line))
    assert done.ended is (Ended.SIGNALLED if code < 0 else Ended.EXITED)
    assert done.exit_code == code
    assert error in (done.error or "")


def test_standard_input_is_empty_or_as_given() -> None:
    assert run(shell("cat; echo end")).stdout.text == "end\n"
    assert run(shell("cat; echo end", stdin=b"x" * 300_000)).stdout.size_bytes == 300_004


def test_the_log_is_complete_even_if_the_command_reopens_its_output(tmp_path: Path) -> None:
    line = "echo one; echo two >/dev/stdout; echo three >/dev/stderr; echo four >/dev/stderr"
    done = run(shell(line, log_dir=tmp_path / "new" / "logs"))
    assert done.stdout.text == (tmp_path / "new/logs/stdout.log").read_text() == "one\ntwo\n"
    assert done.stderr.text == (tmp_path / "new/logs/stderr.log").read_text() == "three\nfour\n"


def test_signals_are_reset_to_their_defaults() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        done = run(shell("", argv=("grep", "-E", "SigBlk|SigIgn", "/proc/self/status")))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    blocked, ignored = (int(line.split()[1], 16) for line in done.stdout.text.splitlines())
    assert blocked == 0
    assert not ignored & 1 << (signal.SIGPIPE - 1)


def test_no_file_descriptor_is_inherited() -> None:
    reading, writing = os.pipe()
    done = run(shell("ls /proc/self/fd", stdin=b"x"))
    os.close(reading)
    os.close(writing)
    assert done.stdout.text.split() == ["0", "1", "2", "3"]  # 3 is what ls reads


def test_output_is_passed_on_as_it_is_printed(tmp_path: Path) -> None:
    printed: list[bytes] = []

    def look(data: bytes) -> None:
        printed.append(data)
        (tmp_path / "seen").touch()

    waits = "echo a; until test -e seen; do sleep 0.01; done; echo b"
    done = run(shell(waits, cwd=tmp_path, timeout_s=60), on_stdout=look)
    assert done.exit_code == 0
    assert printed == [b"a\n", b"b\n"]


def test_a_callback_that_raises_leaves_no_process() -> None:
    number = token()

    def refuse(_: bytes) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(shell(f"echo x; sleep {number}"), on_stdout=refuse)
    assert alive(number) == []


class Recorder:
    """What a watch hears, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []
        self.lines: list[str] = []
        self.most = self.now = 0

    def started(self, index: int) -> None:
        self.heard.append(("started", index))
        self.now += 1
        self.most = max(self.most, self.now)

    def progress(self, index: int, last_line: str, elapsed_s: float) -> None:
        self.heard.append(("progress", index))
        assert elapsed_s > 0
        self.lines.append(last_line)

    def ended(self, index: int, completed: Completed) -> None:
        assert completed.exit_code is not None
        self.heard.append(("ended", index))
        self.now -= 1


def test_commands_start_in_order_and_at_most_jobs_at_once() -> None:
    watch = Recorder()
    ends = run_all([shell(f"sleep 0.05; exit {n}") for n in range(6)], jobs=2, watch=watch)
    assert [end and end.exit_code for end in ends] == [0, 1, 2, 3, 4, 5]
    assert [index for what, index in watch.heard if what == "started"] == list(range(6))
    assert watch.most == 2


def test_as_many_commands_as_jobs_run_concurrently(tmp_path: Path) -> None:
    wait_for_all = "touch {}; until [ $(ls | wc -l) = 4 ]; do sleep 0.02; done"
    lines = [wait_for_all.format(n) for n in range(4)]
    ends = run_all([shell(line, cwd=tmp_path, timeout_s=30) for line in lines], jobs=4)
    assert [end and end.exit_code for end in ends] == [0] * 4


def test_after_a_failure_no_command_starts() -> None:
    def failed(end: Completed) -> bool:
        return end.exit_code != 0

    lines = ["sleep 0.2", "exit 1", "true", "true"]
    ends = run_all([shell(line) for line in lines], jobs=2, stop_when=failed)
    assert [end and end.exit_code for end in ends] == [0, 1, None, None]


def test_a_command_that_cannot_start_counts_as_ended() -> None:
    watch = Recorder()
    heard: list[Ended] = []
    watch.ended = lambda index, completed: heard.append(completed.ended)  # type: ignore[method-assign] # noqa: ARG005
    run_all([Command(argv=("nope-nope",), cwd=Path("/"), env=ENV)], jobs=1, watch=watch)
    assert heard == [Ended.NOT_STARTED]


def test_progress_reports_the_last_line_a_few_times_a_second() -> None:
    watch = Recorder()
    run_all([shell("printf '10%%\\r20%%\\r'; echo; echo; sleep 0.35")], jobs=1, watch=watch)
    assert 1 <= len(watch.lines) <= 4
    assert set(watch.lines) == {"20%"}


def test_no_commands_give_no_results() -> None:
    assert run_all([], jobs=3) == ()


def test_concurrent_threads_get_their_own_results() -> None:
    ends: dict[int, list[int | None]] = {}

    def several(thread: int) -> None:
        ends[thread] = [run(shell(f"(sleep 0.01 &) ; exit {thread}")).exit_code for _ in range(5)]

    threads = [threading.Thread(target=several, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends == {n: [n] * 5 for n in range(4)}


@pytest.mark.parametrize("own_session", [False, True])
def test_children_of_the_caller_keep_their_exit_status(*, own_session: bool) -> None:
    dead = subprocess.Popen(["/bin/sh", "-c", "exit 7"], env=ENV, start_new_session=own_session)
    number = token()
    living = subprocess.Popen(["/bin/sleep", number], env=ENV, start_new_session=own_session)
    until(lambda: Path(f"/proc/{dead.pid}/stat").read_text().rpartition(") ")[2][0] == "Z")
    for _ in range(3):
        run(shell("sleep 0.3 & sleep 0.05; exit 1"))
    assert dead.wait() == 7
    assert living.poll() is None
    living.kill()
    assert living.wait() == -signal.SIGKILL


def test_a_lost_exit_status_is_not_a_success() -> None:
    code = """
import signal
from pathlib import Path
from atlas_retry.process import Command, handle_signals, run
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
command = Command(argv=("true",), cwd=Path("/"), env={"PATH": "/usr/bin:/bin"})
print(run(command).exit_code, run(command).error)
with handle_signals():
    print(run(command).exit_code)
"""
    lost = "None its exit status was lost: another process waited for it"
    assert run_python(code) == (0, f"{lost}\n0\n")


def test_closed_standard_streams_do_not_become_logs(tmp_path: Path) -> None:
    code = """
import os
from pathlib import Path
from atlas_retry.process import Command, run
folder = Path(sys.argv[1])
command = Command(argv=("sh", "-c", "echo hello; cat"), cwd=folder, env={"PATH": "/usr/bin:/bin"},
                  log_dir=folder)
done = run(command)
files = [os.readlink(f"/proc/self/fd/{n}") for n in range(3)]
(folder / "result").write_text(f"{done.stdout.text}{files}")
"""
    line = 'exec "$@" <&- >&- 2>&-'
    closed = ["/bin/sh", "-c", line, "sh", *python(code, str(tmp_path))]
    subprocess.run(closed, env=ENV, check=True, timeout=10)
    assert (tmp_path / "result").read_text() == f"hello\n{['/dev/null'] * 3}"
    assert (tmp_path / "stdout.log").read_text() == "hello\n"


def test_too_few_file_descriptors_are_reported() -> None:
    code = """
import resource
from pathlib import Path
from atlas_retry.process import Command, run_all
command = Command(argv=("sleep", "0.2"), cwd=Path("/"), env={"PATH": "/usr/bin:/bin"})
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
ends = run_all([command] * 12, jobs=12)
print({end.ended.value for end in ends}, {end.error for end in ends if end.error})
"""
    _, out = run_python(code)
    assert "exited" in out
    assert "`sleep` cannot be started: Too many open files" in out


def test_capture_returns_all_output() -> None:
    done = capture(("sh", "-c", "cat; head -c 500000 /dev/zero"), Path("/"), ENV, b"in\n")
    assert (done.exit_code, done.stderr) == (0, b"")
    assert done.stdout == b"in\n" + bytes(500_000)


@pytest.mark.parametrize(
    ("argv", "code", "stderr"),
    [
        (("sh", "-c", "echo bad >&2; exit 4"), 4, b"bad\n"),
        (("no-such-git",), None, b"`no-such-git` cannot be started"),
        (("sleep", "9"), None, b"it did not end within 0.1 s"),
    ],
)
def test_capture_reports_why_it_failed(
    argv: tuple[str, ...], code: int | None, stderr: bytes
) -> None:
    done = capture(argv, Path("/"), ENV, timeout_s=0.1 if argv[0] == "sleep" else 60.0)
    assert done.exit_code == code
    assert done.stderr.startswith(stderr)


def busy_share(action: Callable[[], object]) -> float:
    """Which share of the time of an action this process spent computing."""
    start, cpu = time.monotonic(), time.process_time()
    action()
    return (time.process_time() - cpu) / (time.monotonic() - start)


def test_waiting_uses_no_processor_time() -> None:
    assert busy_share(lambda: run(shell("echo; sleep 0.6"))) < 0.1


def test_waiting_commands_do_not_count_as_jobs(tmp_path: Path) -> None:
    until_both = "touch {0}; until test -e {1}; do sleep 0.01; done"
    lines = (until_both.format("a", "b"), until_both.format("b", "a"))
    commands = [replace(shell(line, cwd=tmp_path, timeout_s=60), waits=True) for line in lines]
    ends = run_all(commands, jobs=1)
    assert [end and end.exit_code for end in ends] == [0, 0]


def test_processor_time_includes_child_processes() -> None:
    busy = run(shell("sh -c 'i=0; while test $i -lt 50000; do i=$((i+1)); done'; true"))
    assert busy.cpu_s > 0.01
    assert run(shell("sleep 0.2")).cpu_s < 0.1


def test_a_process_that_has_ended_is_not_named() -> None:
    number = token()
    child = subprocess.Popen(("/bin/sleep", number), env=ENV)
    seen = proc.member(child.pid)
    assert seen is not None
    until(lambda: proc.names([seen]) == (f"/bin/sleep {number} (pid {child.pid})",))
    child.kill()
    until(lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2][0] == "Z")
    assert proc.names([seen]) == ()
    child.wait()
    assert proc.names([seen]) == ()
