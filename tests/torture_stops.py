"""Torture of gates that put unstaged work aside while they check, and are stopped then.

Each row takes a folder, a number of trials and a seed, and says what it came to.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import yaml
from msgspec import Struct

from tests.crashes import environ_below
from tests.programs import found, path_of
from tests.repositories import write
from tests.torture import LIMIT_S, Tally
from tests.torture_git import ME, shell

SLOW = "echo > ../mark; sleep 0.$(cat ../tenths); test -e ../quick || sleep 60"
"""The check: short if `../quick` is there."""
HOOKS = f"""repos: [{{repo: local, hooks: [
{{id: slow, name: slow, language: system, entry: 'sh -c "{SLOW}"',
pass_filenames: false, always_run: true}}]}}]
"""
FILES = {
    ".pre-commit-config.yaml": HOOKS,
    "lefthook.yml": f"no_auto_install: true\npre-commit: {{jobs: [{{run: '{SLOW}'}}]}}\n",
    ".lintstagedrc.json": '{"*.txt": "sh ./slow.sh"}\n',
    "slow.sh": SLOW + "\n",
    ".gitignore": ".atlas/\n",
    "a.txt": "one\n",
    "b.txt": "two\n",
}
GATES = {
    "pre-commit": "pre-commit run",
    "prek": "prek run",
    "lint-staged": "lint-staged",
    "lefthook": "lefthook run pre-commit",
    "stash": f"git stash push -q -k && {{ {SLOW}; git stash pop -q; }}",
    "stash-untracked": f"git stash -q -u -k && {{ {SLOW}; git stash pop -q; }}",
    "checkout": f"git diff > ../kept; git checkout -q -- .; {SLOW}; git apply ../kept",
}
"""By the program that they need; the others need git only."""
PROGRAMS = ("pre-commit", "prek", "lint-staged", "lefthook")
STAGED = "one\nstaged\n"
BEGUN = {"a.txt": "one\nstaged\nunstaged\n", "b.txt": "unstaged\n", "new.txt": "new\n"}
ENDS = ("INT", "TERM", "HUP", "INT INT", "INT TERM", "limit", "agent")
"""Signals to atlas; a time limit; a time limit before an agent is asked."""
PARTLY = ("lint-staged", "lefthook")
"""They put aside only what is partly staged."""


class Stop(Struct, frozen=True, kw_only=True):
    """A gate, how it is stopped, and how long after its check began (or atlas, if `early`)."""

    gate: str
    end: str
    wait_s: float
    early: bool
    quick: bool


def gates() -> tuple[str, ...]:
    """Those whose program this machine has."""
    return tuple(gate for gate in GATES if gate not in PROGRAMS or found(gate))


def begun(folder: Path, stop: Stop) -> Path:
    """A project with staged, unstaged and untracked work."""
    root = folder / "project"
    (folder / "home").mkdir(parents=True)
    limit = "3s" if stop.end in ("limit", "agent") else "60s"
    gate = {"run": GATES[stop.gate], "name": "slow", "timeout": limit}
    sections = {
        "version": 1,
        "validation": {"pre_commit": [gate]},
        "agent": {"backend": "command", "command": "cp a.txt b.txt ..; echo x > agents.txt"},
        "retry": {"flake_reruns": 0, "max_ai_retry_attempts": 1},
    }
    for path, text in FILES.items():
        write(root, path, text)
    shell(root, f"git init -q -b main; git add -A; {ME} commit -qm start")
    write(root, ".atlas/config.yaml", yaml.safe_dump(sections))
    write(root, "a.txt", STAGED)
    shell(
        root, "git add a.txt; git config user.name dev; git config user.email dev@example.invalid"
    )
    for path, text in BEGUN.items():
        write(root, path, text)
    (folder / "tenths").write_text("3" if stop.quick else "0")
    if stop.quick:
        (folder / "quick").touch()
    return root


def state(root: Path) -> Mapping[str, str]:
    """The work, and what is staged and stashed."""
    texts = {name: (root / name).read_text() if (root / name).exists() else "" for name in BEGUN}
    return texts | {"index": shell(root, "git ls-files -s; git stash list")}


def is_aside(root: Path) -> bool:
    try:
        return "unstaged" not in (root / "a.txt").read_text()
    except OSError:
        return True


def stopped(root: Path, stop: Stop) -> tuple[int, str, bool]:
    """How atlas ended, what it printed, and whether the work was aside when the stop came."""
    asked = ("retry", ".", "--ai-fix") if stop.end == "agent" else ("validate",)
    environ = environ_below(root.parent)
    path = f"{environ['PATH']}{os.pathsep}{path_of(*PROGRAMS, 'node')}"
    log = root.parent / "output"
    with log.open("wb") as output:
        child = subprocess.Popen(
            (sys.executable, "-m", "atlas_retry", *asked, "--plain"),
            cwd=root,
            env={**environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    mark = root.parent / "mark"
    while not (stop.early or mark.exists()) and child.poll() is None:
        time.sleep(0.005)
    time.sleep(stop.wait_s)
    aside = is_aside(root) and child.poll() is None
    for name in stop.end.split() if stop.end.isupper() else ():
        child.send_signal(signal.Signals[f"SIG{name}"])
        time.sleep(stop.wait_s / 2)
    try:
        child.wait(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
    return child.returncode, log.read_text(errors="replace"), aside


def faults(root: Path, before: Mapping[str, str], output: str) -> list[str]:
    """What is neither as before nor named with the command that brings it back."""
    said, now = [], state(root)
    seen = [root.parent / name for name in ("a.txt", "b.txt")]
    if any(file.exists() and "unstaged" not in file.read_text() for file in seen):
        said.append("an agent was asked about the stripped tree")
    if "Traceback" in output or "this is a bug" in output:
        said.append("a traceback")
    gone = [name for name in BEGUN if now[name] != before[name]]
    if gone:
        shell(root, f"{sys.executable} -m atlas_retry undo")
        named = all(name in output for name in gone) and "atlas undo" in output
        left = [name for name in BEGUN if state(root)[name] != before[name]]
        if not named or left:
            said.append(f"gone: {', '.join(gone)}; named: {named}; left after undo: {left}")
    if now["index"] != before["index"] and "git stash" not in output:
        said.append(f"the index or the stash is not as before: {now['index']}")
    return said


def stops(folder: Path, trials: int, seed: int) -> Tally:
    """A gate that put work aside is stopped; the work is back, or named with the command.

    A hit is a trial in which the work was aside at the moment of the stop. In one of four trials
    the stop comes at a random moment since atlas started, also while work is put aside or back.
    """
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    known = gates()
    missing = sorted(GATES.keys() - set(known))
    tally.notes += [f"not on this machine: {', '.join(missing)}"] if missing else []
    counts = dict.fromkeys(known, (0, 0))
    for number in range(trials):
        early = number % 4 == 3
        stop = Stop(
            gate=known[number % len(known)],
            end=dice.choice(ENDS[:5] if early else ENDS),
            wait_s=dice.uniform(0.3, 2.2) if early else dice.uniform(0, 0.4),
            early=early,
            quick=early and dice.random() < 1 / 2,
        )
        root = begun(folder / f"stop-{number}", stop)
        before = state(root)
        code, output, aside = stopped(root, stop)
        tally.trials, tally.hit = tally.trials + 1, tally.hit + aside
        tried, hit = counts[stop.gate]
        counts[stop.gate] = (tried + 1, hit + aside)
        if found_faults := faults(root, before, output):
            said = f"{stop}: {'; '.join(found_faults)}; exit {code}; {output[-900:]}"
            tally.failures.append(f"stop-{number}: {said}")
    tally.notes += [f"{gate}: {tried}, hits {hit}" for gate, (tried, hit) in counts.items()]
    return tally
