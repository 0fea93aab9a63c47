"""Torture of what waits when it is opened: a FIFO, where git or atlas expects a file.

The row takes a folder, a number of trials and a seed, and says what it came to.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.repositories import entries
from tests.torture import Tally
from tests.torture_git import REPAIR, project, shell, start

OF_GIT = (
    *(".gitignore", ".gitattributes", ".gitmodules", "sub/.gitignore", "sub/in/.gitattributes"),
    *("sub/in/.gitignore", ".git/info/exclude", ".git/info/attributes", ".git/config"),
    *(".git/HEAD", ".git/index", ".git/packed-refs", ".git/logs/HEAD", ".git/refs/heads/main"),
    *(".git/hooks/pre-commit", ".git/FETCH_HEAD", ".git/info/grafts", ".git/shallow"),
    *(".git/objects/info/alternates", ".git/config.worktree", ".git/refs/stash"),
)
OF_PROJECT = (
    *("go.sum", "Cargo.lock", "package.json", "pyproject.toml", "setup.cfg", "tox.ini"),
    *("CLAUDE.md", "AGENTS.md", ".claude/settings.json", ".pre-commit-config.yaml", "Makefile"),
    *(".venv/lib/python3.11/site-packages/a.pth", ".venv/pyvenv.cfg", ".venv/bin/check"),
    *("node_modules/dep/package.json", "calc.py", "other.txt", "sub/new.py", "conftest.py"),
    *(".atlas/config.yaml", "report.xml", ".github/workflows/ci.yml", "../home/.gitconfig"),
    *("../home/.config/git/ignore", "../home/.config/atlas/config.yaml", "sub/go.mod"),
)
COMMANDS = (("validate",), ("retry", ".", "--ai-fix"), ("status",), ("init", "--print"))
HANGS_S = 45.0
ENDS_S = 8.0
"""Within which a command that gets TERM ends."""


def fifos(folder: Path, trials: int, seed: int) -> Tally:
    """A FIFO is there before a command, or a turn makes one and may kill atlas.

    A failure: a command that hangs, a traceback, what `undo` leaves of a turn's FIFO.
    """
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        path = dice.choice(OF_GIT if number % 2 else OF_PROJECT)
        make = f"mkdir -p $(dirname {path}); rm -rf {path}; mkfifo {path}"
        how = dice.choice(("before", "turn", "killed"))
        kill = "; kill -KILL $PPID; sleep 5" if how == "killed" else ""
        turn = "true" if how == "before" else f"{make}; touch ../made; {REPAIR}{kill}"
        root = project(folder / f"fifo-{number}", turn)
        shell(root, "mkdir -p sub/in; echo a > sub/in/a.txt; echo '*.o' > sub/.gitignore")
        before = entries(root)
        if how == "before":
            shell(root, f"{make}; touch ../made")
            faults, output = _ended(root, dice.choice(COMMANDS))
        else:
            faults, output = _ended(root, ("retry", ".", "--ai-fix"))
            wrong, heard = _ended(root, ("undo",))
            faults, output = faults + wrong, output + heard
            if not path.startswith((".git/", "..", ".venv", "node_modules")):
                after = entries(root)
                faults += [f"{p} is not as before" for p in before if before[p] != after.get(p)]
        tally.trials += 1
        tally.hit += (root.parent / "made").exists()
        if faults:
            said = f"{path} {how}: {'; '.join(faults)}; {output[-900:]}"
            tally.failures.append(f"fifo-{number}: {said}")
        else:
            shutil.rmtree(root.parent)
    return tally


def _ended(root: Path, arguments: tuple[str, ...]) -> tuple[list[str], str]:
    """What is wrong with the end of a command, and what it printed."""
    child, began_s = start(root, *arguments), time.monotonic()
    faults = []
    try:
        output = child.communicate(timeout=HANGS_S)[0]
    except subprocess.TimeoutExpired:
        faults.append(f"{arguments[0]} hangs")
        child.send_signal(signal.SIGTERM)
        try:
            output = child.communicate(timeout=ENDS_S)[0]
        except subprocess.TimeoutExpired:
            faults.append("TERM does not end it")
            os.kill(child.pid, signal.SIGKILL)
            output = child.communicate()[0]
    if "this is a bug" in output:
        faults.append("a traceback")
    took = f"[{arguments[0]} {child.returncode} {time.monotonic() - began_s:.1f} s] "
    return faults, took + output
