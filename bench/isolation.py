"""What a run in layers costs: processor time of one attempt against in place and a worktree.

.venv/bin/python bench/isolation.py 100 2000 20000
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROUNDS = 3
PACKAGE = Path(__file__).parent.parent
CONFIG = """\
version: 1
validation: {test: ["grep -q right code.txt"]}
agent: {backend: command, command: "cat >/dev/null; echo right > code.txt"}
"""


def project(folder: Path, count: int, environ: Mapping[str, str]) -> Path:
    """A repository of so many small files whose one gate fails."""
    root = folder / f"files-{count}"
    for number in range(count):
        (root / f"src/{number // 100}").mkdir(parents=True, exist_ok=True)
        (root / f"src/{number // 100}/{number}.txt").write_text(f"{number}\n" * 100)
    (root / ".atlas").mkdir()
    (root / ".atlas/config.yaml").write_text(CONFIG)
    (root / "code.txt").write_text("wrong\n")
    for line in ("git init -q", "git add -A", "git -c user.name=a -c user.email=a@b commit -qm x"):
        subprocess.run(line.split(), cwd=root, env=environ, check=True)
    return root


def cpu_s(argv: Sequence[str], root: Path, environ: Mapping[str, str]) -> float:
    """User and system seconds of a command and all that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=root, env=environ, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """One line for each number of files: seconds of processor time, the least of all rounds."""
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
            took: dict[str, list[float]] = {"in place": [], "in layers": [], "worktree": []}
            for number in range(ROUNDS):
                for way, flag in (("in place", "--no-isolate"), ("in layers", "--isolate")):
                    took[way].append(cpu_s((*atlas, flag), root, environ))
                    (root / "code.txt").write_text("wrong\n")
                added = ("git", "worktree", "add", "-q", "--detach", str(folder / f"w{number}"))
                took["worktree"].append(cpu_s(added, root, environ))
                removed = ("git", "worktree", "remove", "--force", str(folder / f"w{number}"))
                took["worktree"][-1] += cpu_s(removed, root, environ)
            least = ", ".join(f"{way} {min(all_s):.2f}" for way, all_s in took.items())
            print(f"{count} files: {least}", flush=True)


if __name__ == "__main__":
    main()
