"""A red `validate` of a 3 s lint and a 6 s test, then `retry --ai-fix` that fixes it: wall time.

.venv/bin/python bench/red.py
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from growth import IDENTITY
from snapshot import ENVIRON, git

LOOK = "grep -q good state.txt || { echo 'state.txt:1:1: S001 it is bad'; exit 1; }"


def prepared(root: Path, recheck: str | None) -> None:
    """A project whose slow test fails; an agent that fixes it at once."""
    test = {"name": "test", "run": f"sleep 6; {LOOK}"} | ({"recheck": recheck} if recheck else {})
    settings = {
        "version": 1,
        "validation": {"lint": ["sleep 3"], "test": [test], "jobs": 2},
        "agent": {"backend": "command", "command": "echo good > state.txt"},
    }
    (root / ".atlas").mkdir(parents=True)
    (root / ".atlas/config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    (root / "state.txt").write_text("bad\n", encoding="utf-8")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, *IDENTITY, "commit", "-qm", "start")


def took_s(root: Path, *words: str, code: int) -> float:
    """How long a command took, whose exit code must be this one."""
    start = time.perf_counter()
    done = subprocess.run(
        (sys.executable, "-m", "atlas_retry", *words, "-q"),
        cwd=root,
        env={**ENVIRON, "HOME": str(root.parent), "ATLAS_HOME": str(root.parent / "state")},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != code:
        sys.exit(f"atlas {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - start


def main() -> None:
    """Both ways, each in a fresh repository."""
    for name, recheck in (("by itself", None), ("with a recheck", LOOK)):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "project")
            prepared(root, recheck)
            first = took_s(root, "validate", code=1)
            then = took_s(root, "retry", ".", "--ai-fix", code=0)
            print(f"{name:16} validate {first:5.1f} s, then retry {then:5.1f} s", flush=True)


if __name__ == "__main__":
    main()
