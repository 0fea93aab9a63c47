"""Snapshots of a repository of many files against `git add -A` and `git status`, in one run.

python bench/snapshot.py [FILES] [ROUNDS]
"""

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.snapshot.look import Tracker
from atlas_retry.workspace.snapshot.restoring import restore
from atlas_retry.workspace.snapshot.snapshots import snapshot

GIT = shutil.which("git") or "git"
ENVIRON = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def make(root: Path, files: int) -> None:
    """Write so many files of 20 to 200 lines, in 500 folders."""
    dice = random.Random(1)  # noqa: S311 - the same files every time
    for number in range(files):
        folder = root / f"p{number % 50:02}" / f"m{number // 50 % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (f"line {n} = {dice.random()}\n" for n in range(dice.randint(20, 200)))
        (folder / f"f{number}.py").write_text("".join(lines), encoding="utf-8")


def timed(act: Callable[[], object]) -> float:
    """How long it takes, in seconds."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def git(root: Path, *arguments: str) -> None:
    """Run git and drop what it says."""
    env = {**ENVIRON, "HOME": str(root)}
    subprocess.run((GIT, *arguments), cwd=root, env=env, check=True, capture_output=True)


def measure(root: Path, state: Path) -> dict[str, float]:
    """One round: a fresh repository, a fresh state directory."""
    shutil.rmtree(root / ".git", ignore_errors=True)
    shutil.rmtree(state, ignore_errors=True)
    git(root, "init", "-q")
    added = timed(lambda: git(root, "add", "-A"))
    shutil.rmtree(root / ".git")
    git(root, "init", "-q")
    ws = open_workspace(root, state, environ={**ENVIRON, "HOME": str(root)})
    found = {"git add -A": added, "first": timed(lambda: snapshot(ws))}
    found["nothing changed"] = timed(lambda: snapshot(ws))
    file = root / "p00/m0/f0.py"
    content = file.read_bytes()
    file.write_bytes(content + b"more = 1\n")
    found["one file changed"] = timed(lambda: snapshot(ws))
    file.write_bytes(content)
    held = snapshot(ws)
    file.write_bytes(b"")
    found["restore of one file"] = timed(lambda: restore(ws, held.id))
    return found | _warm(root, Tracker(ws))


def _warm(root: Path, tracker: Tracker) -> dict[str, float]:
    """What a run pays for each snapshot after its first, beside `git status`; least of five."""
    git(root, "add", "-A")
    git(root, "status")
    tracker.take()
    return {
        "warm, within a run": min(timed(tracker.take) for _ in range(5)),
        "git status": min(timed(lambda: git(root, "status")) for _ in range(5)),
    }


def main(files: int, rounds: int) -> None:
    """Print the median of the rounds, and what it is of `git add -A`."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made, "work")
        make(root, files)
        found = [measure(root, Path(made, "state")) for _ in range(rounds)]
    print(f"{files} files, median of {rounds} rounds")
    for name in found[0]:
        seconds = statistics.median(one[name] for one in found)
        ratio = statistics.median(one[name] / one["git add -A"] for one in found)
        print(f"{name:20} {seconds:7.3f} s   {ratio:5.2f} x git add -A")


if __name__ == "__main__":
    main(*(int(arg) for arg in (*sys.argv[1:], "20000", "5")[:2]))
