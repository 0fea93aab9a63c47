"""What an attempt costs beside gates and agent, and a whole run, by size of the repository.

python bench/growth.py [FILES ...]

A `command` agent adds one line to a file, and the gate is one `test` of the number of lines. An
attempt is a quarter of what a run of five attempts takes beyond a run of one. Processor time (user
and system, children included) and time of `atlas retry . --ai-fix --json`, least of five, and the
memory of the largest process; the last lines are the fits through all sizes: milliseconds, and
milliseconds a file.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from snapshot import ENVIRON, git, make

SIZES = (100, 2_000, 20_000)
ROUNDS = 5
MANY = 5
"""Attempts of the longer run."""
CONFIGURATION = """version: 1
validation:
  lint: ["wc -l calc.txt; test $(wc -l < calc.txt) -gt {attempts}"]
retry: {{max_ai_retry_attempts: {attempts}}}
agent: {{backend: command, command: "echo good >> calc.txt"}}
"""
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "gc.auto=0")
Used = tuple[float, float, float]
"""Time and processor time in ms, memory in MB."""


def prepared(root: Path, files: int) -> None:
    """A repository of so many files, all of them committed."""
    make(root, files)
    (root / ".atlas").mkdir()
    (root / "calc.txt").write_text("bad\n", encoding="utf-8")
    configure(root, 1)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, *IDENTITY, "commit", "-qm", "start")


def configure(root: Path, attempts: int) -> None:
    """The gate passes after so many attempts."""
    text = CONFIGURATION.format(attempts=attempts)
    (root / ".atlas/config.yaml").write_text(text, encoding="utf-8")


def run(root: Path, state: Path, attempts: int) -> Used:
    """What one run of so many attempts takes."""
    git(root, "checkout", "-q", "calc.txt")
    configure(root, attempts)
    call = (sys.executable, "-m", "atlas_retry", "retry", ".", "--ai-fix", "--json")
    # an environment of Python on PATH is watched, which costs by its packages
    env = {**ENVIRON, "PATH": os.defpath, "HOME": str(state), "ATLAS_HOME": str(state)}
    null = subprocess.DEVNULL
    start = time.perf_counter()
    process = subprocess.Popen(call, cwd=root, env=env, stdout=null, stderr=null)
    _, status, used = os.wait4(process.pid, 0)
    took_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"the run ended with {process.returncode}")
    return took_s * 1000, (used.ru_utime + used.ru_stime) * 1000, used.ru_maxrss / 1000


def measured(files: int) -> tuple[Used, Used]:
    """An attempt, and a run of one attempt, in a repository of so many files."""
    with tempfile.TemporaryDirectory() as folder:
        root, state = Path(folder, "project"), Path(folder, "state")
        state.mkdir()
        prepared(root, files)
        runs: dict[int, list[Used]] = {1: [], MANY: []}
        for _ in range(ROUNDS):
            for attempts, taken in runs.items():
                taken.append(run(root, state, attempts))
        shutil.rmtree(state)
    few, many = (tuple(map(min, zip(*taken, strict=True))) for taken in runs.values())
    memory_mb = max(each[2] for taken in runs.values() for each in taken)
    one = [(more - less) / (MANY - 1) for less, more in zip(few, many, strict=True)]
    return (one[0], one[1], memory_mb), (few[0], few[1], memory_mb)


def main() -> None:
    """Measure every size, and fit."""
    sizes = [int(word) for word in sys.argv[1:]] or list(SIZES)
    found: dict[str, list[float]] = {"attempt": [], "run": []}
    print(f"{'files':>8} {'attempt':>9} {'cpu':>7} {'run':>9} {'cpu':>7} ms {'memory':>9} MB")
    for files in sizes:
        attempt, whole = measured(files)
        found["attempt"].append(attempt[1])
        found["run"].append(whole[1])
        figures = f"{attempt[0]:9.0f} {attempt[1]:7.0f} {whole[0]:9.0f} {whole[1]:7.0f}"
        print(f"{files:>8} {figures}    {whole[2]:9.0f}", flush=True)
    for name, least in found.items() if len(sizes) > 1 else ():
        slope, base = statistics.linear_regression(sizes, least)
        print(f"{name}, cpu: {base:.0f} ms + {slope:.4f} ms x files")


if __name__ == "__main__":
    main()
