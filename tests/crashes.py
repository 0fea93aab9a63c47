"""Runs that are killed at random moments, and what is there after the recovery.

`bench/torture.py` does the same many times.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import yaml
from msgspec import Struct, field

from atlas_retry.settings import Isolation
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.isolation.isolated import lock
from atlas_retry.workspace.isolation.overlay import remove_layers
from tests.commands import run_atlas
from tests.processes import PYTHON
from tests.projects import CALC, TEST, git
from tests.repositories import entries, git_bytes

_CONFIG = ".atlas/config.yaml"
PACKAGE = Path(__file__).parent.parent
AGENT = """
import os, re, sys, time
number = int(re.search(r"Attempt (\\d+) of", sys.stdin.read()).group(1))
ledger = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
os.write(ledger, b"%d begins\\n" % number)
body = {1: "a * b", 2: "b - a", 3: "a + b"}[number]
for text in ("def add(a, b):\\n", f"def add(a, b):\\n    return {body}\\n"):
    open("calc.py", "w").write(text)
    time.sleep(0.1)
open(f"made-{number}.txt", "w").write("made")
open("mine.txt", "a").write("the agent was here")
open("small.env", "a").write("and here")
time.sleep(0.1)
if number == 1:
    os.unlink("gone.txt")
os.write(ledger, b"%d ends\\n" % number)
"""
FORMAT = "printf x >> formatted.txt; [ $(wc -c < formatted.txt) -gt 1 ] || exit 1"
ACCEPTED_S = 0.2
"""By then what a run in layers kept has surely arrived, but on a busy machine."""
PYTEST_FREE = f"{PYTHON} -S -m unittest -q"


class Crash(Struct, frozen=True, kw_only=True):
    """A project that holds every kind of a user's work, with a state directory of its own."""

    root: Path
    state: Path
    ledger: Path
    environ: dict[str, str]

    def atlas(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command of the command line, to its end."""
        return run_atlas(arguments, cwd=self.root, environ=self.environ, limit_s=120.0)

    def killed(self, *arguments: str, after_s: float, once: str = "") -> bool:
        """One command that is killed after a while; whether it had not ended by itself.

        The while begins when the state directory has a file that matches `once`.
        """
        child = subprocess.Popen(
            (sys.executable, "-m", "atlas_retry", *arguments),
            cwd=self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while once and child.poll() is None and not [*self.state.glob(once)]:
            time.sleep(0.001)
        try:
            child.wait(timeout=after_s)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            return True
        return False

    def all_there(self) -> tuple[Mapping[str, object], Mapping[str, object]]:
        """Every byte and mode of the work tree, and of git's directory."""
        return entries(self.root), git_bytes(self.root / ".git")

    def asked(self) -> list[str]:
        """What the agent was asked and what came to its end, in order."""
        return self.ledger.read_text().splitlines()

    def finished(self) -> set[int]:
        """The attempts that the journal holds as finished."""
        file = self.state / "atlas.db"
        if not file.exists():
            return set()
        with closing(sqlite3.connect(file)) as connection:
            query = "SELECT number FROM attempts WHERE ended_at NOT NULL"
            return {number for (number,) in connection.execute(query)}

    def query(self, sql: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.state / "atlas.db")) as connection:
            return connection.execute(sql).fetchall()


def environ_below(folder: Path) -> dict[str, str]:
    """The environment of an atlas whose home and state are in this folder."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "ATLAS_HOME": str(folder / "state"),
        "PYTHONPATH": str(PACKAGE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def make_crash(folder: Path, isolation: Isolation = "none") -> Crash:
    """A new project below `folder`, which is made."""
    root, ledger, agent = folder / "project", folder / "ledger", folder / "agent.py"
    root.mkdir(parents=True)
    ledger.touch()
    agent.write_text(AGENT)
    (folder / "home").mkdir()
    environ = environ_below(folder)
    git(root, "init", "-q", "-b", "main", environ=environ)
    files = {
        "calc.py": CALC,
        "test_calc.py": TEST,
        "gone.txt": "tracked\n",
        "both.txt": "tracked\n",
        ".gitignore": "*.env\n",
        _CONFIG: yaml.safe_dump(_configuration(agent, ledger, isolation)),
    }
    for path, text in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    git(root, "add", "-A", environ=environ)
    git(root, "commit", "-q", "-m", "start", environ=environ)
    (root / "staged.txt").write_text("staged\n")
    (root / "both.txt").write_text("staged\n")
    git(root, "add", "staged.txt", "both.txt", environ=environ)
    (root / "both.txt").write_text("unstaged\n")
    (root / "mine.txt").write_text("untracked\n")
    (root / "small.env").write_text("ignored\n")
    (root / "small.env").chmod(0o600)
    return Crash(root=root, state=folder / "state", ledger=ledger, environ=environ)


def _configuration(agent: Path, ledger: Path, isolation: Isolation) -> dict[str, object]:
    settings = {"isolation": str(isolation), "writable": [str(ledger.parent)]}
    return {
        "version": 1,
        "validation": {"format": [FORMAT], "test": [PYTEST_FREE]},
        "retry": {"flake_reruns": 0},
        "agent": {"backend": "command", "command": f"{PYTHON} -S {agent} {ledger}"} | settings,
    }


class Tally(Struct, kw_only=True):
    """What many moments came to."""

    moments: int = 0
    killed: int = 0
    unlike: list[str] = field(default_factory=list)
    """What was not as before, by moment."""
    kills: int = 0
    paid_twice: list[str] = field(default_factory=list)
    turns_repeated: int = 0
    """Turns that had ended for the agent and not yet for the journal."""
    verdicts: dict[str, int] = field(default_factory=dict)


def undo_after_kills(folder: Path, moments: int, seed: int, isolation: Isolation = "none") -> Tally:
    """Kill a run at a random moment and undo it, so many times; what was not as before."""
    chance, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    length_s = _length_s(folder / "whole", isolation)
    for number in range(moments):
        crash = make_crash(folder / str(number), isolation)
        before = crash.all_there()
        moment_s = chance.uniform(0.2, length_s)
        tally.moments += 1
        tally.killed += crash.killed("retry", ".", "--ai-fix", after_s=moment_s)
        undone = crash.atlas("undo")
        if crash.all_there() != before:
            tally.unlike.append(f"{number} at {moment_s:.3f} s: {_difference(crash, before)}; "
                                f"{undone.stdout}{undone.stderr}")  # fmt: skip
        else:
            remove_layers(folder / str(number))
    return tally


def accept_after_kills(folder: Path, moments: int, seed: int) -> Tally:
    """Kill a run in layers, half of the times while it is accepted: it is as before or accepted.

    `verdicts` counts which. What was half accepted is brought to its end by who takes the lock.
    """
    chance, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    whole = make_crash(folder / "whole", "overlay")
    started_s = time.monotonic()
    assert whole.atlas("retry", ".", "--ai-fix").returncode == 0
    length_s, accepted = time.monotonic() - started_s, entries(whole.root)
    anywhere, accepting = ("", length_s), ("workspaces/*/accept.note", ACCEPTED_S)
    for number in range(moments):
        crash = make_crash(folder / str(number), "overlay")
        before = entries(crash.root) | {_CONFIG: accepted[_CONFIG]}
        once, latest_s = anywhere if number % 2 else accepting
        moment_s = chance.uniform(0, latest_s)
        tally.moments += 1
        tally.killed += crash.killed("retry", ".", "--ai-fix", after_s=moment_s, once=once)
        ws = open_workspace(crash.root, crash.state, environ=crash.environ)
        begun = "begun, " if [*ws.home.glob("*.note")] else ""
        with lock(ws):
            now = entries(crash.root) | {_CONFIG: accepted[_CONFIG]}  # it names its own folder
        end = {"before": now == before, "accepted": now == accepted}
        name = begun + next((name for name, is_so in end.items() if is_so), "neither")
        tally.verdicts[name] = tally.verdicts.get(name, 0) + 1
        if name.endswith("neither"):
            tally.unlike.append(f"{crash.root} at {moment_s:.3f} s")
        else:
            remove_layers(folder / str(number))
    return tally


def _length_s(folder: Path, isolation: Isolation) -> float:
    started_s = time.monotonic()
    crash = make_crash(folder, isolation)
    ended = crash.atlas("retry", ".", "--ai-fix")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return time.monotonic() - started_s


def _difference(crash: Crash, before: tuple[Mapping[str, object], Mapping[str, object]]) -> str:
    now = crash.all_there()
    return ", ".join(
        name
        for was, is_now in zip(before, now, strict=True)
        for name in sorted({*was, *is_now})
        if was.get(name) != is_now.get(name)
    )


def resume_after_kills(
    folder: Path, runs: int, seed: int, isolation: Isolation = "none", *, kills: int = 3
) -> Tally:
    """Kill a run up to `kills` times, resume it each time and let it come to its end."""
    chance, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    length_s = _length_s(folder / "whole", isolation)
    for number in range(runs):
        crash = make_crash(folder / str(number), isolation)
        tally.moments += 1
        for _ in range(kills):
            if not _step(crash, tally, after_s=chance.uniform(0.2, length_s)):
                break
            tally.kills += 1
        else:
            _step(crash, tally, after_s=None)
        turns = [line for line in crash.asked() if line.endswith("ends")]
        tally.turns_repeated += len(turns) - len({*turns})
        verdict = str(
            crash.query("SELECT verdict FROM runs ORDER BY started_at DESC LIMIT 1")[0][0]
        )
        tally.verdicts[verdict] = tally.verdicts.get(verdict, 0) + 1
        tally.unlike += [
            str(row) for row in crash.query("PRAGMA integrity_check") if row != ("ok",)
        ]
    return tally


def _step(crash: Crash, tally: Tally, *, after_s: float | None) -> bool:
    """Go on with the run, for a while or to its end; whether it was killed."""
    done, known = crash.finished(), len(crash.asked())
    is_known = (crash.state / "atlas.db").exists() and crash.query("SELECT 1 FROM runs")
    command = ("resume", ".", "--ai-fix") if is_known else ("retry", ".", "--ai-fix")
    was_killed = False
    if after_s is None:
        ended = crash.atlas(*command)
        if ended.returncode:
            tally.unlike.append(f"{crash.root}: {ended.stdout[-2000:]}{ended.stderr}")
    else:
        was_killed = crash.killed(*command, after_s=after_s)
    tally.paid_twice += [
        f"{crash.root}: {line}" for line in crash.asked()[known:] if int(line.split()[0]) in done
    ]
    return was_killed
