"""Start-up, parallel gates and loud output against others; ratios of medians, interleaved, one run.

python bench/startup.py [ROUNDS]
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

BESIDE = Path(sys.executable).parent
CONFIG = "version: 1\nvalidation:\n  lint: [{lint}]\n  test: [{test}]\n  jobs: 4\n"
HOOKS = """repos:
- repo: local
  hooks:
  - {id: t, name: t, entry: "true", language: system, always_run: true, pass_filenames: false}
"""
LOUD = "seq -f %099.0f 2000000"


def tool(name: str) -> str:
    """The path of a tool beside our interpreter, else on PATH, else nothing."""
    return shutil.which(name, path=f"{BESIDE}:{os.environ['PATH']}") or ""


def project(folder: Path, name: str, lint: str, test: str) -> Path:
    """A repository with these gates and one pre-commit hook."""
    root = folder / name
    (root / ".atlas").mkdir(parents=True)
    (root / ".atlas" / "config.yaml").write_text(CONFIG.format(lint=lint, test=test))
    (root / ".pre-commit-config.yaml").write_text(HOOKS)
    for step in (("init", "-q"), ("add", "-A")):
        subprocess.run((tool("git"), *step), cwd=root, check=True)
    return root


def seconds(command: Sequence[str], root: Path, environ: dict[str, str]) -> float:
    """How long one command takes."""
    start = time.perf_counter()
    null = subprocess.DEVNULL
    subprocess.run(command, cwd=root, env=environ, check=True, stdout=null, stderr=null)
    return time.perf_counter() - start


def rows(folder: Path) -> dict[str, tuple[Sequence[str], Path]]:
    """What is measured: a name, a command and where it runs."""
    atlas = (str(BESIDE / "atlas"),)
    one = project(folder, "one", "'true'", "")
    four = project(folder, "four", "'sleep 0.3', 'sleep 0.3 #'", "'sleep 0.3', 'sleep 0.3 #'")
    loud = project(folder, "loud", f'"{LOUD}"', "")
    found: dict[str, tuple[Sequence[str], Path]] = {
        "python -c pass": ((sys.executable, "-c", "pass"), one),
        "atlas --version": ((*atlas, "--version"), one),
        "atlas --help": ((*atlas, "--help"), one),
        "atlas validate: true": ((*atlas, "validate", "-q"), one),
        "4 x sleep 0.3 side by side": (
            ("/bin/sh", "-c", "for i in 1 2 3 4; do sleep 0.3 & done; wait"),
            four,
        ),
        "atlas validate: 4 x sleep 0.3": ((*atlas, "validate", "-q"), four),
        "200 MB into a file": (("/bin/sh", "-c", f"{LOUD} > {folder}/loud.txt"), loud),
        "atlas validate: 200 MB": ((*atlas, "validate", "-q"), loud),
    }
    for name in ("pre-commit", "prek"):
        if path := tool(name):
            found[f"{name} run: true"] = ((path, "run", "--all-files"), one)
    return found


def main(rounds: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        environ = {"PATH": f"{BESIDE}:{os.environ['PATH']}", "HOME": scratch, "LANG": "C.UTF-8"}
        measured = rows(folder)
        taken: dict[str, list[float]] = {name: [] for name in measured}
        for _ in range(rounds + 1):
            for name, (command, root) in measured.items():
                taken[name].append(seconds(command, root, environ))
        medians = {name: statistics.median(times[1:]) for name, times in taken.items()}
    unit = medians["python -c pass"]
    for name, median in medians.items():
        print(f"{name:32} {median * 1000:8.0f} ms {median / unit:7.1f} x python -c pass")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
