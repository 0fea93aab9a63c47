"""What an attempt that changes one line costs beside gates and agent, by size of the repository.

python bench/growth.py [FILES ...]

CPU time (user and system, children included) of `atlas retry . --ai-fix --json`, least of five,
and the memory of the largest process of them;
a `command` agent writes one word and the gate is one `grep`. The last line is the fit through all
sizes: milliseconds, and milliseconds a file.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from snapshot import ENVIRON, git, make

SIZES = (100, 2_000, 20_000)
ROUNDS = 5
CONFIGURATION = """version: 1
validation:
  lint: ["grep -q good calc.txt"]
agent: {backend: command, command: "echo good > calc.txt"}
"""
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "gc.auto=0")


def prepared(root: Path, files: int) -> None:
    """A repository of so many files, all of them committed."""
    make(root, files)
    (root / ".atlas").mkdir()
    (root / ".atlas/config.yaml").write_text(CONFIGURATION, encoding="utf-8")
    (root / "calc.txt").write_text("bad\n", encoding="utf-8")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, *IDENTITY, "commit", "-qm", "start")


def attempt(root: Path, state: Path) -> tuple[float, float]:
    """CPU time in ms, and memory in MB, of one run that fixes the one line."""
    git(root, "checkout", "-q", "calc.txt")
    call = (sys.executable, "-m", "atlas_retry", "retry", ".", "--ai-fix", "--json")
    env = {**ENVIRON, "HOME": str(state), "ATLAS_HOME": str(state)}
    null = subprocess.DEVNULL
    run = subprocess.Popen(call, cwd=root, env=env, stdout=null, stderr=null)
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        sys.exit(f"the run ended with {run.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000, used.ru_maxrss / 1000


def main() -> None:
    """Measure every size, and fit."""
    sizes = [int(word) for word in sys.argv[1:]] or list(SIZES)
    least: list[float] = []
    for files in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root, state = Path(folder, "project"), Path(folder, "state")
            state.mkdir()
            prepared(root, files)
            runs = [attempt(root, state) for _ in range(ROUNDS)]
            shutil.rmtree(state)
        spent = [cpu_ms for cpu_ms, _ in runs]
        least.append(min(spent))
        found = f"{min(spent):8.0f} ms least {statistics.median(spent):8.0f} ms median"
        print(f"{files:>8} files {found} {max(mb for _, mb in runs):5.0f} MB", flush=True)
    if len(sizes) > 1:
        slope, base = statistics.linear_regression(sizes, least)
        print(f"fit: {base:.0f} ms + {slope:.4f} ms x files ({os.cpu_count()} processors)")


if __name__ == "__main__":
    main()
