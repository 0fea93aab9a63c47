"""Calls in processes of their own that need not import the package again: command lines of atlas.

Starting Python and importing atlas and YAML takes longer than most commands do. So each
process of tests has one server that has imported them, and every command line is a fork of it.
What a test is about where starting itself counts (time, memory, imports, signals) is started as
people start it.
"""

import atexit
import io
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

IMPORTED = [
    "anthropic",
    "atlas_retry.cli.app",
    "atlas_retry.cli.checks",
    "atlas_retry.cli.runs",
    "atlas_retry.cli.hook.ending",
    "atlas_retry.config.translation",
    "atlas_retry.reports.screen.console",
    "atlas_retry.run.one",
    "tests.commands",
]
"""What a command line finds imported; nothing here may read the environment when imported."""
LEFT_OPEN = 99
"""Exit code of a call that did not close what it opened; its standard error says what."""
STREAMS = {0: "in", 1: "out", 2: "err"}
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(IMPORTED)


def run_atlas(
    arguments: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    stdin: str = "",
    limit_s: float = 120.0,
) -> "subprocess.CompletedProcess[str]":
    """How a command line ended. Raises `subprocess.TimeoutExpired` as `subprocess.run` does."""
    return run_forked(_atlas, *arguments, cwd=cwd, environ=environ, stdin=stdin, limit_s=limit_s)


def run_forked(
    call: Callable[..., None],
    *arguments: str,
    cwd: Path,
    environ: Mapping[str, str],
    stdin: str = "",
    limit_s: float = 120.0,
) -> "subprocess.CompletedProcess[str]":
    """How a call of a module's function ended in a process of its own. TimeoutExpired."""
    with tempfile.TemporaryDirectory(prefix="atlas-command-") as name:
        folder = Path(name)
        (folder / "in").write_text(stdin)
        process = _SERVER.Process(target=_run, args=(folder, call, arguments, cwd, dict(environ)))
        process.start()
        process.join(limit_s)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([*arguments], limit_s)
        out, err = ((folder / STREAMS[number]).read_bytes().decode() for number in (1, 2))
        return subprocess.CompletedProcess([*arguments], process.exitcode, out, err)


def _run(
    folder: Path,
    call: Callable[..., None],
    arguments: Sequence[str],
    cwd: Path,
    environ: dict[str, str],
) -> None:
    for number, name in STREAMS.items():
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(folder / name, flags), number)
    encoding, _, errors = environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(os.fdopen(number, mode, closefd=False), encoding, errors or "strict")
        for number, mode in enumerate(("rb", "wb", "wb"))
    )
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    left_open: list[str] = []
    warnings.simplefilter("error", ResourceWarning)
    sys.unraisablehook = lambda what: left_open.append(f"{what.exc_value!r} in {what.object!r}\n")
    try:
        call(*arguments)
    finally:
        atexit._run_exitfuncs()  # a process of multiprocessing ends without them
        if left_open:
            sys.stderr.writelines(left_open)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(LEFT_OPEN)


def _atlas(*arguments: str) -> None:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    sys.argv = ["atlas", *arguments]
    runpy.run_module("atlas_retry", run_name="__main__", alter_sys=True)
