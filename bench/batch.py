"""Many scripted workspaces in one batch, 20 of them in a row beyond help: where it pauses.

.venv/bin/python bench/batch.py [WORKSPACES] [FIRST_BAD] [BAD] [JOBS]
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GIT = shutil.which("git") or "git"
PROGRAM = Path(__file__).parent.parent
GATE = "grep -q good state.txt || { echo 'state.txt:1:1: S001 it is bad'; exit 1; }"


def workspace(root: Path, script: Path, environ: dict[str, str]) -> None:
    """One file, one gate that it fails, and an agent that replays `script`."""
    (root / ".atlas").mkdir(parents=True)
    (root / "state.txt").write_text("bad\n")
    settings = {
        "version": 1,
        "validation": {"lint": [{"name": "state", "run": GATE}]},
        "agent": {"backend": "scripted", "path": str(script)},
    }
    (root / ".atlas" / "config.yaml").write_text(json.dumps(settings))
    who = ("-c", "user.name=dev", "-c", "user.email=dev@example.invalid")
    for step in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "start")):
        argv = (GIT, *who, *step)
        subprocess.run(argv, cwd=root, env=environ, check=True)


def scripts(folder: Path) -> tuple[Path, Path]:
    """What fixes a workspace at the first attempt, and what never does."""
    for name, texts in (("good", ["good\n"]), ("bad", ["worse\n", "worst\n", "hopeless\n"])):
        for number, text in enumerate(texts, start=1):
            files = folder / name / str(number) / "files"
            files.mkdir(parents=True)
            (files / "state.txt").write_text(text)
            (files.parent / "reply.json").write_text('{"cost_usd": 0.01}')
    return folder / "good", folder / "bad"


def main() -> int:
    """Print where the batch paused, how long it took and what it needed."""
    given = [int(argument) for argument in sys.argv[1:]]
    total, first, bad, jobs = [*given, *(200, 101, 20, 1)[len(given) :]]
    with tempfile.TemporaryDirectory(prefix="atlas-batch-") as name:
        folder = Path(name)
        environ = {
            # no environment of Python on it: all packages there would be watched
            "PATH": os.defpath,
            "HOME": name,
            "LANG": "C.UTF-8",
            "ATLAS_HOME": str(folder / "state"),
        }
        fixing, failing = scripts(folder / "scripts")
        roots = [f"./w{number:03d}" for number in range(1, total + 1)]
        for number, root in enumerate(roots, start=1):
            is_bad = first <= number < first + bad
            workspace(folder / root, failing if is_bad else fixing, environ)
        call = (sys.executable, "-m", "atlas_retry", "retry", *roots, "--ai-fix", "--json", "-q")
        since = time.monotonic()
        done = subprocess.run(
            (*call, "--jobs", str(jobs), "--max-cost-usd", "50"),
            cwd=folder,
            env=environ | {"PYTHONPATH": str(PROGRAM)},
            capture_output=True,
            check=False,
        )
        took_s = time.monotonic() - since
        document = json.loads(done.stdout)
        kept = sum(len(files) for _, _, files in os.walk(folder / "state"))
    verdicts = [run["verdict"] for run in document["runs"]]
    print(f"exit code {done.returncode}; {len(verdicts)} ended, {took_s:.0f} s, --jobs {jobs}")
    print({verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)})
    print(f"not started: {len(document['not_started'])}; cost ${document['cost_usd']:.2f}")
    print(json.dumps(document["cascade"], indent=2))
    print(f"{took_s / total * 1000:.0f} ms and {kept / total:.1f} files of state a workspace")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
