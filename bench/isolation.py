"""What a run in layers costs: processor time against in place and `git worktree add`.

A run with one attempt, and each attempt more: what is left of that is what grows with the tree.

.venv/bin/python bench/isolation.py 100 2000 20000
"""

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROUNDS = 3
MORE = 3
SET_CHILD_SUBREAPER = 36
"""Of prctl(2)."""
PACKAGE = Path(__file__).parent.parent
CONFIG = """\
version: 1
validation:
  test:
    - 'echo "code.txt:1:1: error: `tail -n 1 code.txt`"; [ `wc -l <code.txt` -gt `cat ../wanted` ]'
retry: {flake_reruns: 0, max_ai_retry_attempts: 9}
agent: {backend: command, command: "cat >/dev/null; tail -n 1 code.txt | tr a-y b-z >> code.txt"}
"""
"""Each attempt adds a line that the gate has not shown before; so many are wanted."""


def project(folder: Path, count: int, environ: Mapping[str, str]) -> Path:
    """A repository of so many small files whose one gate fails."""
    root = folder / f"files-{count}"
    for number in range(count):
        (root / f"src/{number // 100}").mkdir(parents=True, exist_ok=True)
        (root / f"src/{number // 100}/{number}.txt").write_text(f"{number}\n" * 100)
    (root / ".atlas").mkdir()
    (root / ".atlas/config.yaml").write_text(CONFIG)
    (root / "code.txt").write_text("an error\n")
    for line in ("git init -q", "git add -A", "git -c user.name=a -c user.email=a@b commit -qm x"):
        subprocess.run(line.split(), cwd=root, env=environ, check=True)
    return root


def cpu_s(argv: Sequence[str], root: Path, environ: Mapping[str, str]) -> float:
    """User and system seconds of a command and all that it started, in a namespace or not."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=root, env=environ, check=True, stdout=subprocess.DEVNULL)
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0):  # the first process of a namespace is waited for by nobody else
            pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """For each number of files: seconds of processor time, the least of all rounds."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="atlas-isolation-") as name:
        folder = Path(name)
        (folder / "home").mkdir()
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "ATLAS_HOME": str(folder / "state"),
            "PYTHONPATH": str(PACKAGE),
        }
        atlas = (sys.executable, "-m", "atlas_retry", "retry", ".", "--ai-fix", "-q")
        for count in map(int, sys.argv[1:]):
            root = project(folder, count, environ)
            took: dict[str, list[float]] = {}
            for number in range(ROUNDS):
                for way, flag in (("in place", "--no-isolate"), ("in layers", "--isolate")):
                    for attempts in (1, 1 + MORE):
                        (root / "code.txt").write_text("an error\n")
                        (folder / "wanted").write_text(f"{attempts}\n")
                        spent_s = cpu_s((*atlas, flag), root, environ)
                        took.setdefault(f"{way}, {attempts}", []).append(spent_s)
                added = ("git", "worktree", "add", "-q", "--detach", str(folder / f"w{number}"))
                spent_s = cpu_s(added, root, environ)
                removed = ("git", "worktree", "remove", "--force", str(folder / f"w{number}"))
                took.setdefault("worktree", []).append(spent_s + cpu_s(removed, root, environ))
            least = {what: min(all_s) for what, all_s in took.items()}
            for way in ("in place", "in layers"):
                one_s = least[f"{way}, 1"]
                more_s = (least.pop(f"{way}, {1 + MORE}") - one_s) / MORE
                print(f"{count} files, {way}: {one_s:.2f}, each attempt more {more_s:.2f}")
            print(
                f"{count} files, git worktree add and remove: {least['worktree']:.2f}", flush=True
            )


if __name__ == "__main__":
    main()
