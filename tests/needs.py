"""What not every machine has, asked once per process by what the product itself asks.

A test names what it needs: `@needs("overlay")`, `@needs("go")`. Where that is missing, the test is
skipped with the product's words, and with the command that brings it.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from atlas_retry.agents.presets import PRESETS
from atlas_retry.process import Command, capture
from atlas_retry.workspace.isolation.layers import offline
from tests.asides import NOBODY, print_why_not
from tests.commands import run_forked
from tests.programs import found

ELSEWHERE = "run the tests where user namespaces are allowed: outside a chroot and most containers"
INSTALL = {
    "cc": "apt install gcc",
    "cargo": "https://rustup.rs",
    "chattr": "apt install e2fsprogs",
    "chromium": "apt install chromium",
    "copilot": "npm install -g @github/copilot",
    "go": "https://go.dev/dl",
    "husky": "npm install --global husky",
    "make": "apt install make",
    "node": "https://nodejs.org",
    "npm": "https://nodejs.org",
    "npx": "https://nodejs.org",
    "perl": "apt install perl",
    "prove": "apt install perl",
    "qwen": "npm install -g @qwen-code/qwen-code",
    "rustc": "https://rustup.rs",
    "ssh-keygen": "apt install openssh-client",
    **{row.program: row.install for row in PRESETS.values()},
}
"""How a program comes onto a machine."""

needs = pytest.mark.needs


def needed(item: pytest.Item) -> tuple[str, ...]:
    """What a test names."""
    return tuple(name for mark in item.iter_markers("needs") for name in mark.args)


def unavailable(name: str) -> str:
    """Why this machine has no such ability or program, and what brings it; empty if it has."""
    if ask := ABILITIES.get(name):
        why = ask()
        return why and f"{why}: {ELSEWHERE}"
    how = INSTALL[name]
    return "" if found(name) else f"{name} is not on PATH: {how}"


def require(name: str) -> None:
    """Skip the test whose fixture needs this, if it is missing."""
    if why := unavailable(name):
        pytest.skip(why)


@cache
def _overlay(uid: int) -> str:
    with tempfile.TemporaryDirectory(prefix="atlas-tests-needs-") as name:
        if uid != os.geteuid():
            os.chown(name, uid, uid)
        environ = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        return run_forked(
            print_why_not, f"{uid}", name, cwd=Path("/"), environ=environ
        ).stdout.strip()


@cache
def _offline() -> str:
    command = offline(Command(argv=("true",), cwd=Path("/"), env={}), Path("/nonexistent"))
    done = capture(command.argv, cwd=command.cwd, env=command.env)
    return done.stderr.decode(errors="replace").strip() if done.exit_code else ""


@cache
def _mounts() -> str:
    done = subprocess.run((*MOUNTING, "true"), check=False, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


MOUNTING = ("unshare", "--user", "--map-root-user", "--mount")
"""Starts a command that may mount what only it sees."""
ABILITIES: dict[str, Callable[[], str]] = {
    "overlay": lambda: _overlay(os.geteuid()),
    "overlay of nobody": lambda: _overlay(NOBODY),
    "offline": _offline,
    "mounts": _mounts,
}
"""Each answers why it cannot be had, empty if it can."""
