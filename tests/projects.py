"""Small projects under real git, and scripts that an agent replays on them."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml
from msgspec import Struct

from atlas_retry.events import Event
from atlas_retry.history.values import Order
from atlas_retry.model import Outcome
from atlas_retry.run.one import RunOptions, opened_with, run_one
from tests.commands import run_atlas

LIMIT_S = 120.0
"""A bound on hangs."""
IDENTITY = (
    "-c",
    "user.name=dev",
    "-c",
    "user.email=dev@example.invalid",
    "-c",
    "maintenance.auto=no",
)

CALC = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
WORSE = "def add(a, b):\n    return a * b\n"
TEST = """import unittest

import calc


class AddTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(1, 2), 3)
"""
UNITTEST = "python3 -S -m unittest -q"


def git(root: Path, *arguments: str, environ: Mapping[str, str]) -> str:
    return subprocess.run(
        ("git", *IDENTITY, *arguments),
        cwd=root,
        env=dict(environ),
        check=True,
        capture_output=True,
        text=True,
    ).stdout


class Project(Struct, frozen=True, kw_only=True):
    """A project with a bug, its script, and what happened."""

    root: Path
    script: Path
    environ: dict[str, str]

    def configure(self, **sections: object) -> None:
        """Write the configuration; `validation` has one test gate unless it is given."""
        settings = {"validation": {"test": [UNITTEST]}} | sections
        agent = {"backend": "scripted", "path": str(self.script)}
        settings["agent"] = agent | dict(sections.get("agent", {}))  # type: ignore[call-overload]
        folder = self.root / ".atlas"
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(yaml.safe_dump({"version": 1, **settings}))

    def attempt(
        self, number: int, files: Mapping[str, str], *, delete: str = "", **reply: object
    ) -> None:
        """What the agent does in its n-th attempt."""
        step = self.script / str(number)
        step.mkdir(parents=True)
        for path, text in files.items():
            target = step / "files" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        if delete:
            (step / "delete").write_text(delete)
        (step / "reply.json").write_text(json.dumps({"status": "done", **reply}))

    def commit(self) -> None:
        git(self.root, "add", "-A", environ=self.environ)
        git(self.root, "commit", "-q", "-m", "start", environ=self.environ)

    def retry(
        self,
        events: list[Event] | None = None,
        *,
        ai_fix: bool = True,
        force: bool = False,
        **overrides: object,
    ) -> Outcome:
        """One run in this process, as the command line would start it."""
        emitted = [] if events is None else events
        flags = {key.replace("__", "."): value for key, value in overrides.items()}
        asked = RunOptions(order=Order(ai_fix=ai_fix, overrides=flags, force=force))
        opened = opened_with(self.root, asked, self.environ)
        return run_one(opened, asked, emitted.append)


def make_project(folder: Path, environ: dict[str, str]) -> Project:
    """`calc.py` subtracts where it should add; its test fails."""
    root = folder / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main", environ=environ)
    (root / "calc.py").write_text(CALC)
    (root / "test_calc.py").write_text(TEST)
    (root / ".gitignore").write_text("__pycache__/\n")
    project = Project(root=root, script=folder / "script", environ=environ)
    project.script.mkdir()
    project.configure()
    project.commit()
    return project


class Ended(Struct, frozen=True):
    """How a command line ended, and what it said."""

    code: int
    out: str
    err: str


def atlas(
    project: Project, *arguments: str, stdin: str = "", cwd: Path | None = None, **variables: str
) -> Ended:
    """A command line as a person calls it; `stdin` is what stands on its standard input."""
    done = run_atlas(
        arguments,
        cwd=cwd or project.root,
        environ=project.environ | variables,
        stdin=stdin,
        limit_s=LIMIT_S,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def on_a_terminal(
    project: Project, *arguments: str, typed: bytes = b"", **variables: str
) -> tuple[int, str]:
    """Exit code and what a terminal gets; it is standard input as well where something is said."""
    primary, secondary = pty.openpty()
    os.write(primary, typed)
    child = subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", *arguments),
        cwd=project.root,
        env=project.environ | {"TERM": "xterm-256color"} | variables,
        stdin=secondary if typed else subprocess.DEVNULL,
        stdout=secondary,
        stderr=secondary,
    )
    os.close(secondary)
    shown = b""
    try:
        while chunk := os.read(primary, 4096):
            shown += chunk
    except OSError:
        pass  # Linux: EIO is how the end of a terminal is told
    os.close(primary)
    return child.wait(LIMIT_S), shown.decode(errors="replace")


def shell(project: Project, line: str) -> Ended:
    """A line of shell in the project, for what no argument can say: closed streams, a full disk."""
    done = subprocess.run(
        ("/bin/sh", "-c", line),
        cwd=project.root,
        env=project.environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def gates(project: Project, *lines: str) -> None:
    """Configure these as its lint gates."""
    project.configure(validation={"lint": list(lines)})
