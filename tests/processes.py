"""What the tests of processes share: commands from nothing, and a look at what is left of them."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from atlas_retry.process import Command
from tests.tools import tools

ROOT = Path(__file__).parent.parent
PYTHON = shlex.quote(str(tools() / "python"))
"""This Python as a word of a shell line; no environment is around it."""
ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

STUBBORN = "setsid env -i sh -c 'trap \"\" TERM INT HUP; while :; do sleep {}; done' {}"
"""Leaves group and session, clears its environment, ignores requests, holds the output."""


def shell(line: str, **changes: Any) -> Command:  # noqa: ANN401 - the fields of a command
    """A command that /bin/sh runs."""
    command = Command(argv=("/bin/sh", "-c", line), cwd=Path("/"), env=ENV, grace_s=0.2)
    return replace(command, **changes)


def python(code: str, *arguments: str) -> list[str]:
    """The command line of a Python that finds this package and nothing else of ours."""
    return [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}",
        *arguments,
    ]


def token() -> str:
    """A number that `sleep` takes for hours and that tells these processes from all others."""
    return f"9{int.from_bytes(os.urandom(6), 'big'):015d}"


def alive(mark: str) -> list[str]:
    """The command lines of living processes that have `mark` among their arguments."""
    running = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            state = (path.parent / "stat").read_text().rpartition(") ")[2][:1]
        except OSError:
            continue
        if mark in line and state != "Z" and path.parent.name != str(os.getpid()):
            running.append(f"{path.parent.name} {line}")
    return running


def states(pids: Iterable[str]) -> set[str]:
    """The letters that /proc has for the states of these processes, as T for stopped."""
    return {Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] for pid in pids}


def until(condition: Callable[[], bool], *, within_s: float = 60.0) -> None:
    """Wait for something that has to become true; the time is a bound on hangs."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.01)


@contextmanager
def start_python(code: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python in a group, not a session, of its own, as a shell would start it; ended after."""
    with subprocess.Popen(
        python(code, *arguments),
        env=ENV,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(process: subprocess.Popen[bytes], *, within_s: float = 60.0) -> tuple[int, str]:
    """Wait for its end; exit code and output."""
    out, _ = process.communicate(timeout=within_s)
    return process.returncode, out.decode()


def run_python(code: str, *arguments: str) -> tuple[int, str]:
    """Exit code and output of a Python that ends by itself."""
    with start_python(code, *arguments) as process:
        return finish(process)
