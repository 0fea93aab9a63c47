"""What an attempt that changes one line costs beside gates and agent, by size of the repository.

python bench/growth.py [FILES ...]

CPU time (user and system, children included) of `atlas retry . --ai-fix --json`, least of five;
a `command` agent writes one word and the gate is one `grep`. The last line is the fit through all
sizes: milliseconds, and milliseconds a file.
"""

import os
import resource
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


def attempt_ms(root: Path, state: Path) -> float:
    """CPU time of one run that fixes the one line."""
    git(root, "checkout", "-q", "calc.txt")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        (sys.executable, "-m", "atlas_retry", "retry", ".", "--ai-fix", "--json"),
        cwd=root,
        env={**ENVIRON, "HOME": str(state), "ATLAS_HOME": str(state)},
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return spent * 1000


def main() -> None:
    """Measure every size, and fit."""
    sizes = [int(word) for word in sys.argv[1:]] or list(SIZES)
    least: list[float] = []
    for files in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root, state = Path(folder, "project"), Path(folder, "state")
            state.mkdir()
            prepared(root, files)
            spent = [attempt_ms(root, state) for _ in range(ROUNDS)]
            shutil.rmtree(state)
        least.append(min(spent))
        median = statistics.median(spent)
        print(f"{files:>8} files {min(spent):8.0f} ms least {median:8.0f} ms median", flush=True)
    if len(sizes) > 1:
        slope, base = statistics.linear_regression(sizes, least)
        print(f"fit: {base:.0f} ms + {slope:.4f} ms x files ({os.cpu_count()} processors)")


if __name__ == "__main__":
    main()
