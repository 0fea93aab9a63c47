"""atlas beside prek, pre-commit and turbo on the same gates; interleaved, in one run.

python bench/compare.py [ROUNDS] [FILES]

Of each command the least and the median time and the least processor time, children included; the
ratios are of least times, to the first line of a block. Tools are taken from PATH, and what is not
there is named and left out. FILES is the size of the large repository; 0 leaves it out.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from snapshot import make

BESIDE = Path(sys.executable).parent
ATLAS = (str(BESIDE / "atlas"),)
OTHERS = ("prek", "pre-commit", "turbo")
LOUD = "seq -f %099.0f 2000000"
HEAD = f"{'first':>7} {'least':>7} {'median':>7} {'cpu':>7} ms"
Commands = dict[str, tuple[str, ...]]
Taken = list[tuple[float, float]]
"""Seconds, and seconds of processor time."""


def run(command: Sequence[str], root: Path, environ: dict[str, str]) -> tuple[float, float]:
    """What one command takes."""
    null, before = subprocess.DEVNULL, resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, cwd=root, env=environ, check=True, stdout=null, stderr=null)
    took_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def configure(root: Path, lines: Sequence[str], *, writers: int = 0, jobs: int | str = 4) -> None:
    """The same gates for every tool; the first ones may write."""
    gates = [
        {"name": f"g{n}", "run": line} | ({"writes": True} if n < writers else {})
        for n, line in enumerate(lines)
    ]
    hooks = [
        {"id": f"g{n}", "name": f"g{n}", "entry": f"sh -c '{line}'", "language": "system"}
        | {"always_run": True, "pass_filenames": False}
        for n, line in enumerate(lines)
    ]
    scripts = {f"g{n}": line for n, line in enumerate(lines)}
    files = {
        ".atlas/config.yaml": {"version": 1, "validation": {"lint": gates, "jobs": jobs}},
        ".pre-commit-config.yaml": {"repos": [{"repo": "local", "hooks": hooks}]},
        "package.json": {"name": "x", "packageManager": "npm@10.0.0", "scripts": scripts},
        "turbo.json": {"tasks": {name: {} for name in scripts}},
        "package-lock.json": {"name": "x", "lockfileVersion": 3, "packages": {}},
    }
    for name, content in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(json.dumps(content), encoding="utf-8")
    (root / ".gitignore").write_text(".turbo/\nnode_modules/\n", encoding="utf-8")


def beside(lines: Sequence[str]) -> Commands:
    """How the other tools run all gates."""
    names = tuple(f"g{n}" for n in range(len(lines)))
    return {
        "prek": ("prek", "run", "--all-files"),
        "pre-commit": ("pre-commit", "run", "--all-files"),
        "turbo": ("turbo", "run", *names, "--force"),
    }


def small(name: str, lines: Sequence[str], first: Commands, jobs: int | str = 4) -> "Block":
    """The same gates in a repository of next to no files."""
    commands = {**first, "atlas": (*ATLAS, "validate", "-q"), **beside(lines)}
    return name, lambda root: configure(root, lines, jobs=jobs), commands


Block = tuple[str, Callable[[Path], None], Commands]


def blocks(files: int) -> list[Block]:
    """What is measured: a name, what makes the repository, and commands by name."""
    sleeps = [f"sleep 0.3; : {n}" for n in range(4)]
    ideal = {"sh, side by side": ("sh", "-c", "for i in 1 2 3 4; do sleep 0.3 & done; wait")}
    again = {
        "turbo, cached": ("turbo", "run", *(f"g{n}" for n in range(4))),
        "atlas --reuse": (*ATLAS, "validate", "-q", "--reuse"),
    }
    plain = {"python -c pass": (sys.executable, "-c", "pass")}
    start = plain | {"atlas --version": (*ATLAS, "--version")}
    found: list[Block] = [
        ("start", lambda root: configure(root, ["true"]), start),
        small("4 gates of true", ["true"] * 4, {}),
        small("40 gates of true", ["true"] * 40, {}),
        small("4 x 0.3 s, jobs 4", sleeps, ideal),
        small("4 x 0.3 s, jobs auto", sleeps, ideal, "auto"),
        ("4 x 0.3 s again", lambda root: configure(root, sleeps), again),
        small("200 MB of output", [LOUD], {"sh > file": ("sh", "-c", f"{LOUD} > /dev/shm/loud")}),
    ]
    if files:

        def large(root: Path) -> None:
            make(root, files)
            configure(root, ["true"] * 3, writers=2)

        commands = {"atlas": (*ATLAS, "validate", "-q"), **beside(["true"] * 3)}
        found.append((f"{files} files, 2 of 3 gates write", large, commands))
    return found


def measured(block: Block, rounds: int, scratch: Path) -> dict[str, Taken]:
    """Every command of a block, one after the other, again and again; the first round apart."""
    _, prepare, commands = block
    root = Path(tempfile.mkdtemp(dir=scratch))
    prepare(root)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch),
        "LANG": "C.UTF-8",
        "TURBO_TELEMETRY_DISABLED": "1",
    }
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
    # git packs in the background, and would write beside what is measured
    unpacked = ("config", "gc.auto", "0")
    for step in (("init", "-q"), unpacked, ("add", "-A"), (*identity, "commit", "-qm", "start")):
        run(("git", *step), root, environ)
    there = {name: command for name, command in commands.items() if shutil.which(command[0])}
    taken: dict[str, Taken] = {name: [] for name in there}
    for _ in range(rounds + 1):
        for name, command in there.items():
            taken[name].append(run(command, root, environ))
    return taken


def main(rounds: int, files: int) -> None:
    """Print the table."""
    for name in OTHERS:
        if not shutil.which(name):
            print(f"not on PATH, and left out: {name}")
    with tempfile.TemporaryDirectory() as scratch:
        for block in blocks(files):
            print(
                f"{block[0]:34} {'first':>7} {'least':>7} {'median':>7} {'cpu':>7} ms", flush=True
            )
            taken = measured(block, rounds, Path(scratch))
            unit = min(min(times[1:])[0] for times in list(taken.values())[:1])
            for name, (first, *times) in taken.items():
                least, median = min(times)[0], statistics.median(one[0] for one in times)
                cpu = min(one[1] for one in times)
                figures = " ".join(f"{s * 1000:7.0f}" for s in (first[0], least, median, cpu))
                print(f"  {name:32} {figures}  {least / unit:6.2f} x", flush=True)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:3]]
    main(*(*numbers, *(7, 20_000)[len(numbers) :]))
