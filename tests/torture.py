"""Runs over a rich work tree that are signalled twice, or killed, and what is there afterwards.

`bench/torture.py` does the same many times.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import yaml
from msgspec import Struct, field

from tests.repositories import ODD_NAMES, commit, entries, git, git_bytes, repository, write

All = tuple[Mapping[str, object], Mapping[str, object]]
"""Every byte and mode of a work tree, and of git's directory."""

PACKAGE = Path(__file__).parent.parent
LIMIT_S = 120.0
"""A bound on hangs."""
PACE_S = 0.3
"""So long the agent waits before and after it has changed everything."""
TURN_S = PACE_S * 4
"""By then it has surely ended, and what it did is being restored."""
AGENT = f"""
import os, time
from pathlib import Path
open("../asked", "a").write("x")
time.sleep({PACE_S})
for name in sorted(os.listdir("many")):
    Path("many", name).write_bytes(b"the agent was here\\n" * 20)
for name in sorted(os.listdir("many"))[::10]:
    os.unlink(f"many/{{name}}")
for path in ("both.txt", "mine.txt", "small.env", "dos.txt", "big.bin", "inner/src/a.py", "-rf"):
    Path(path).write_bytes(b"the agent was here\\n")
os.unlink("link")
os.symlink("elsewhere", "dangling.new")
os.chmod("private", 0o644)
os.makedirs("hollow/made")
Path("hollow/made/file").touch()
time.sleep({PACE_S})
"""
"""It changes every kind of file, and fixes nothing."""
TRUSTED = ("-c", "safe.directory=*")
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
CODES = {0, 1, 2, 3, -signal.SIGKILL, *(128 + n for n in ENDING), *(-n for n in ENDING)}
"""Before Python has begun, and once it has ended, a signal does what it does by itself."""
RETRY = ("retry", ".", "--ai-fix")
SAID = "the changes of attempt 1 are reverted"


class Rig(Struct, frozen=True, kw_only=True):
    """A work tree of every kind, with a state directory of its own."""

    folder: Path
    place: str = "project"
    """Of the work tree, in the folder."""
    python: str = sys.executable
    user: int | None = None
    """Who runs the commands; None: whoever runs this."""
    variables: Mapping[str, str] = {}
    command: tuple[str, ...] = RETRY
    """What is tried."""

    @property
    def root(self) -> Path:
        return self.folder / self.place

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "ATLAS_HOME": str(self.folder / "state"),
            "PYTHONPATH": str(PACKAGE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            **self.variables,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            (self.python, "-m", "atlas_retry", *arguments),
            cwd=self.root,
            env=self.environ,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else (),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def atlas(self, *arguments: str) -> tuple[int, str]:
        """One command to its end: its exit code and what it said."""
        child = self.start(*arguments)
        output, _ = child.communicate(timeout=LIMIT_S)
        return child.returncode, output

    def signalled(self, *arguments: str, plan: "Plan", in_turn: bool = False) -> tuple[int, str]:
        """One command that gets these signals, as far as it is still there.

        `in_turn` counts from the beginning of the agent's turn.
        """
        child = self.start(*arguments)
        while in_turn and not self.was_asked and child.poll() is None:
            time.sleep(0.01)
        for wait_s, signum in plan:
            try:
                child.wait(timeout=wait_s)
            except subprocess.TimeoutExpired:
                child.send_signal(signum)
        output, _ = child.communicate(timeout=LIMIT_S)
        return child.returncode, output

    @property
    def was_asked(self) -> bool:
        """Whether the agent has begun."""
        return (self.folder / "asked").exists()

    def all_there(self) -> All:
        common = os.fsdecode(git(self.root, *TRUSTED, "rev-parse", "--git-common-dir").strip())
        return entries(self.root), git_bytes(self.root / common)


Plan = tuple[tuple[float, signal.Signals], ...]
"""Signals, and the seconds to wait before each."""


def make_rig(folder: Path, files: int) -> Rig:
    """A new one below `folder`, which is made, with so many files beside those of every kind."""
    rig = Rig(folder=folder)
    root = repository(rig.root)
    (folder / "home").mkdir()
    (folder / "agent.py").write_text(AGENT)
    git(root, "config", "core.autocrlf", "true")
    git(root, "config", "core.safecrlf", "false")
    git(root, "config", "filter.lfs.clean", "sed s/SECRET/pointer/")
    git(root, "config", "filter.lfs.smudge", "sed s/pointer/SECRET/")
    git(root, "config", "filter.lfs.required", "true")
    write(root, ".gitattributes", "*.bin filter=lfs -text ident\n*.py text eol=crlf\n")
    write(root, ".gitignore", "*.env\n")
    configure(root)
    write(root, "dos.txt", "one\r\ntwo\nthree\r")
    write(root, "big.bin", b"SECRET \0\1\2 $Id$\n")
    write(root, "both.txt", "tracked\n")
    for number in range(files):
        write(root, f"many/{number}.txt", f"{number}\n" * 50)
    write(root, "private", "0600\n", 0o600)
    (root / "link").symlink_to("src/a.py")
    (root / "dangling").symlink_to("nowhere")
    commit(root)
    git(root, "repack", "-adq")
    for name in ODD_NAMES:
        write(root, name, name)
        write(root, b"folder\n\xff/" + name, name[::-1])
    inner = repository(root / "inner")
    write(inner, "untracked.txt", "u\n")
    write(root, "staged.txt", "staged\n")
    write(root, "both.txt", "staged\n")
    git(root, "add", "--", "staged.txt", "both.txt", "-rf")
    write(root, "both.txt", "unstaged\n")
    write(root, "mine.txt", "untracked\n")
    write(root, "small.env", "ignored\n", 0o600)
    (root / "hollow/inner").mkdir(parents=True)
    return rig


def configure(root: Path, **sections: object) -> None:
    """One gate that always fails and one attempt of the agent beside the work tree, or as given."""
    own = {
        "validation": {"test": ["test -e never"]},
        "retry": {"flake_reruns": 0, "max_ai_retry_attempts": 1},
        "agent": {"backend": "command", "command": "python3 -S ../agent.py"},
    }
    write(root, ".atlas/config.yaml", yaml.safe_dump({"version": 1, **own, **sections}))


class Tally(Struct, kw_only=True):
    """What many moments came to."""

    trials: int = 0
    hit: int = 0
    """Trials in which the agent had begun and the command had not ended by itself."""
    announced: int = 0
    """Trials in which it was said that all is back."""
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was measured, or why nothing was tried."""


class Torture(Struct, frozen=True, kw_only=True):
    """Trials on copies of one rig, each at a random moment that a seed repeats."""

    folder: Path
    rig: Rig
    length_s: float
    """Of a run that is left alone."""

    @classmethod
    def prepared(cls, folder: Path, files: int) -> "Torture":
        rig = make_rig(folder / "rig", files)
        whole = Rig(folder=folder / "whole")
        shutil.copytree(rig.folder, whole.folder, symlinks=True)
        started_s = time.monotonic()
        before = whole.all_there()
        code, output = whole.atlas(*RETRY)
        assert code == 1, output
        length_s = time.monotonic() - started_s
        assert whole.all_there() == before, output
        return cls(folder=folder, rig=rig, length_s=length_s)

    def copied(self, there: Path) -> Rig:
        """The rig as it was made, somewhere else."""
        shutil.copytree(self.rig.folder, there, symlinks=True)
        return Rig(folder=there)

    def signals(self, trials: int, seed: int) -> Tally:
        """Two to four signals to a run; nothing of it is there afterwards, nor after `undo`.

        In three of four trials the first comes while the agent works, or soon after.
        """
        dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
        for number in range(trials):
            in_turn = number % 4 != 3
            first_s = dice.uniform(0, TURN_S) if in_turn else dice.uniform(0.2, self.length_s)
            rig = self.copied(self.folder / f"signals-{number}")
            trial(rig, signals_after(first_s, dice), tally, in_turn=in_turn)
        return tally

    def kills(self, trials: int, seed: int) -> Tally:
        """A run is killed, and now and then the first `undo` after it; `undo` has the last word."""
        dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
        for number in range(trials):
            in_turn = number % 4 != 3
            first_s = dice.uniform(0, TURN_S * 2) if in_turn else dice.uniform(0.2, self.length_s)
            undo_s = dice.uniform(0.2, 1.5)
            undo: Plan = ((undo_s, signal.SIGKILL),) if dice.random() < 1 / 2 else ()
            rig = self.copied(self.folder / f"kills-{number}")
            trial(rig, ((first_s, signal.SIGKILL),), tally, undo, in_turn=in_turn)
        return tally

    def undo_signals(self, trials: int, seed: int) -> Tally:
        """Two to four signals to the `undo` of a run that was killed in the agent's turn."""
        dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
        for number in range(trials):
            rig = self.copied(self.folder / f"undo-{number}")
            kill = ((dice.uniform(PACE_S * 2, TURN_S), signal.SIGKILL),)
            trial(rig, kill, tally, signals_after(dice.uniform(0.1, 1.5), dice), in_turn=True)
        return tally


def signals_after(first_s: float, dice: random.Random) -> Plan:
    """Two to four of those that end a command, the first after so many seconds."""
    more = [dice.uniform(0.02, 0.9) for _ in range(dice.choice((1, 1, 1, 2, 3)))]
    return tuple((wait_s, dice.choice(ENDING)) for wait_s in (first_s, *more))


def trial(rig: Rig, plan: Plan, tally: Tally, undo: Plan = (), *, in_turn: bool) -> None:
    """One command that gets the signals of `plan`, an `undo` with those of `undo`, and another.

    Where all is as it was the rig is removed.
    """
    before = rig.all_there()
    code, output = rig.signalled(*rig.command, plan=plan, in_turn=in_turn)
    tally.trials += 1
    tally.hit += code != 1 and rig.was_asked
    tally.announced += SAID in output
    faults = unsound(code, output)
    if code != -signal.SIGKILL and rig.command == RETRY:
        faults += unlike(rig, before, "after the run")
    if undo:
        faults += unsound(*rig.signalled("undo", plan=undo))
    undone, heard = rig.atlas("undo")
    faults += unsound(undone, heard) + unlike(rig, before, "after undo") + left_running(rig)
    if undone and "no run is recorded" not in heard:
        faults.append(f"undo ended with {undone}")
    moments = ", ".join(f"{signum.name} after {wait_s:.3f} s" for wait_s, signum in (*plan, *undo))
    tell(tally, rig, faults, f"{moments}; exit {code}; {output}{heard}")


def tell(tally: Tally, rig: Rig, faults: list[str], more: str) -> None:
    """Count the faults of a trial; the rig of one without any is removed."""
    if faults:
        tally.failures.append(f"{rig.folder.name}: {'; '.join(faults)}; {more}")
    else:
        shutil.rmtree(rig.folder)


class Measured(Struct, frozen=True, kw_only=True):
    """What a command said and took, and what of its end is no good."""

    code: int
    output: str
    took_s: float
    cpu_s: float
    """Of atlas and all that it started and waited for."""
    peak_mb: int
    """Of atlas, or of the biggest process that it started."""
    faults: list[str]


def measured(rig: Rig, *arguments: str) -> Measured:
    """One command to its end."""
    started_s = time.monotonic()
    child = rig.start(*arguments)
    assert child.stdout
    with child.stdout:
        output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Measured(
        code=child.returncode,
        output=output,
        took_s=time.monotonic() - started_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss >> 10,
        faults=unsound(child.returncode, output),
    )


def unsound(code: int, output: str) -> list[str]:
    """What no end of a command may be like, whatever was done to it."""
    faults = [] if code in CODES else [f"exit code {code}"]
    if "this is a bug in atlas" in output or f'File "{PACKAGE}/atlas_retry' in output:
        faults.append("a traceback")
    if "\x1b" in output:
        faults.append("a control character where there is no terminal")
    return faults


def working_in(rig: Rig, *, program: bytes = b"") -> list[int]:
    """Processes that work in the project: those of one program, or all but atlas."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes()
            if (entry / "cwd").resolve() == rig.root and b"atlas_retry" not in line:
                pids += [int(entry.name)] * (program in line[:300])
        except OSError:
            continue
    return pids


def left_running(rig: Rig) -> list[str]:
    """Whether processes of the project are left."""
    left = working_in(rig)
    return [f"{len(left)} processes are left"] if left else []


def unlike(rig: Rig, before: All, when: str) -> list[str]:
    """What is not as it was before."""
    names = [
        name
        for was, now in zip(before, rig.all_there(), strict=True)
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    ]
    return [f"{when} {len(names)} differ: {', '.join(names[:5])}"] if names else []
