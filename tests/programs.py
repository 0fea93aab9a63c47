"""The PATH of the tests: links to programs that they name, and nothing else of the machine.

What somebody has installed beside them (a `gh`, another `python3`) decides no test.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

USUAL = tuple(
    """
    [ awk basename bash cat chgrp chmod chown cmp comm cp cut date dd df diff dirname du echo
    env expand expr false find fold git grep gunzip gzip head hostname id join kill ln ls make
    mkdir mkfifo mknod mktemp mount mv nice nl nohup nproc od paste patch perl printenv printf
    ps pwd python python3 readlink realpath rm rmdir script sed seq setpriv setsid sh sha256sum
    sleep sort split stat stdbuf stty sync tac tail tar tee test timeout touch tr true tty
    umount uname uniq unlink unshare wc which xargs yes
    """.split()  # noqa: SIM905 - one may read it
)
"""What a test may run without saying so: what comes with the system, with git, make and Python."""
_FOLDER = "atlas-tests-path-"
_MACHINE = "ATLAS_TEST_MACHINE"
"""The variable with the PATH of whoever started the tests."""
_BASE = f"{sysconfig.get_config_var('BINDIR')}/python3"
"""The Python below that of the tests, and no script that looks for one, such as pyenv's: that
takes longer than the gates of most tests."""


def keep_to_usual_programs() -> None:
    """Let this process and its children find the usual programs only."""
    if _FOLDER not in os.environ["PATH"]:
        os.environ[_MACHINE] = os.environ["PATH"]
        os.environ["PATH"] = path_of(*USUAL)


def machine_path() -> str:
    """The PATH of whoever started the tests."""
    return os.environ.get(_MACHINE, os.defpath)


def found(program: str) -> str | None:
    """Absolute path of a program of this machine, also of one that is not usual.

    What came with the tests' own environment is found first: pre-commit, lefthook.
    """
    if program in ("python", "python3"):
        return _python()
    places = (str(Path(sys.executable).parent), machine_path())
    return shutil.which(program, path=os.pathsep.join(places))


@cache
def _python() -> str:
    """A Python without packages, which all tests share.

    Runs of atlas hold what is installed around a gate's Python: with what somebody has installed
    beside theirs, a run of two seconds takes four.
    """
    key = sha256(f"{_BASE} {sys.version}".encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"atlas-tests-python-{os.getuid()}-{key}")
    if not folder.is_dir():
        made = Path(tempfile.mkdtemp(prefix="atlas-tests-python-"))
        made.chmod(0o755)
        subprocess.run((_BASE, "-m", "venv", "--copies", "--without-pip", made), check=True)
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return str(folder / "bin" / "python3")


def path_of(*programs: str) -> str:
    """A PATH of these programs, without those that the machine lacks.

    It is a folder of links, which all processes and runs with the same links share.
    """
    links = {name: path for name in programs if (path := found(name))}
    name = sha256(repr(sorted(links.items())).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"{_FOLDER}{os.getuid()}-{name}")
    if not folder.is_dir():
        made = Path(tempfile.mkdtemp(prefix=_FOLDER))
        made.chmod(0o755)
        for link, path in links.items():
            (made / link).symlink_to(path)
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return str(folder)


def with_programs(environ: Mapping[str, str], *programs: str) -> dict[str, str]:
    """The environment with these programs of the machine at the end of its PATH."""
    return {**environ, "PATH": f"{environ['PATH']}{os.pathsep}{path_of(*programs)}"}
