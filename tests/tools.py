"""The programs beside the Python that runs the tests, without the environment around them.

atlas looks at every file of a virtual environment that PATH leads to, and ours holds 20,000.
"""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path


def remove_tools() -> None:
    """Remove the folder; pytest's workers end without the functions of `atexit`."""
    if tools.cache_info().currsize:
        shutil.rmtree(tools(), ignore_errors=True)


@cache
def tools() -> Path:
    """A folder of these programs, each a script that starts the one beside Python."""
    folder = Path(tempfile.mkdtemp(prefix="atlas-test-tools-"))
    folder.chmod(0o755)
    atexit.register(remove_tools)
    for program in Path(sys.executable).parent.iterdir():
        if program.is_file() and os.access(program, os.X_OK):
            tool = folder / program.name
            tool.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n')
            tool.chmod(0o755)
    return folder


def go_cache() -> str:
    """A build cache of Go that all tests and runs of one user share: a cold one takes 30 s."""
    return str(Path(tempfile.gettempdir(), f"atlas-tests-go-build-{os.getuid()}"))


def with_tools(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with these programs first on its PATH."""
    return {**environ, "PATH": f"{tools()}{os.pathsep}{environ['PATH']}"}
