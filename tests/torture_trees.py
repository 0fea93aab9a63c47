"""Torture of what a work tree can be, and of where it lies: shapes, sizes, users, full disks.

Each row takes a folder, a number of trials and a seed, and says what it came to.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.repositories import SHAPES, commit, git, repository, write
from tests.torture import (
    PACE_S,
    PACKAGE,
    RETRY,
    TURN_S,
    Rig,
    Tally,
    Torture,
    configure,
    left_running,
    make_rig,
    measured,
    signals_after,
    tell,
    trial,
    unlike,
    unsound,
)

NOBODY = 65534
DUMP_BYTES = 2 << 30
KILLS = 5
TREE_AGENT = f"""
import os, time
open("../asked", "a").write("x")
time.sleep({PACE_S})
for folder, folders, files in os.walk(b"."):
    folders[:] = [name for name in folders if name not in (b".git", b".atlas")]
    for number, name in enumerate(sorted(files)):
        path = os.path.join(folder, name)
        if os.path.islink(path) or number % 3 == 2:
            os.unlink(path)
        elif name != b".git":
            os.chmod(path, 0o644)
            open(path, "wb").write(b"the agent was here\\n" * 20)
    open(os.path.join(folder, b"made by the agent"), "wb").close()
time.sleep({PACE_S})
"""
"""It overwrites, deletes and adds in every folder but git's."""
FEW_AGENT = """
import os
from pathlib import Path
open("../asked", "a").write("x")
for number in range(0, 100):
    Path(f"many/{number % 10}/{number}.txt").write_text("the agent was here")
for path in Path(".").glob("*.dump"):
    os.truncate(path, 10)
"""


def shapes(folder: Path, trials: int, seed: int) -> Tally:
    """A kill or signals while the agent changes everything in a work tree of every shape."""
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        shape, at = SHAPES[number % len(SHAPES)], folder / f"{number}"
        (at / "home").mkdir(parents=True)
        rig = Rig(folder=at, place=str(shape.make(at).relative_to(at)))
        (at / "agent.py").write_text(TREE_AGENT)
        configure(rig.root)
        first_s = dice.uniform(0, TURN_S)
        is_kill = (number // len(SHAPES) + number) % 2 == 0
        plan = ((first_s, signal.SIGKILL),) if is_kill else signals_after(first_s, dice)
        trial(rig, plan, tally, in_turn=True)
    return tally


def several(folder: Path, trials: int, seed: int) -> Tally:
    """A kill or signals while one command works in three workspaces."""
    torture = Torture.prepared(folder, files=60)
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        here = folder / f"several-{number}"
        here.mkdir()
        state = {"ATLAS_HOME": str(here / "state")}
        rigs = [Rig(folder=torture.copied(here / n).folder, variables=state) for n in "abc"]
        before = [rig.all_there() for rig in rigs]
        first_s = dice.uniform(0, TURN_S * 2)
        is_kill = number % 2 == 0
        plan = ((first_s, signal.SIGKILL),) if is_kill else signals_after(first_s, dice)
        roots = [str(rig.root) for rig in rigs]
        asked = ("retry", *roots, "--ai-fix", "--jobs", "2")
        code, output = rigs[0].signalled(*asked, plan=plan, in_turn=number % 4 != 3)
        tally.trials += 1
        tally.hit += code != 1 and any(rig.was_asked for rig in rigs)
        faults = unsound(code, output)
        for rig, was in zip(rigs, before, strict=True):
            faults += [] if is_kill else unlike(rig, was, f"{rig.folder.name} after the run")
            undone, heard = rig.atlas("undo")
            faults += unsound(undone, heard) + unlike(rig, was, f"{rig.folder.name} after undo")
            faults += left_running(rig)
        tell(tally, Rig(folder=here), faults, f"{plan}; exit {code}; {output}")
    return tally


def nobody(folder: Path, trials: int, seed: int) -> Tally:
    """Kills and signals as a user whom file modes bind, who cannot read all of the tree."""
    python = _python_of_nobody()
    if os.geteuid() or not python:
        return Tally(notes=["not tried: to become another user takes root, and a Python for all"])
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="atlas-nobody-") as open_to_all:
        Path(open_to_all).chmod(0o755)
        made = make_rig(folder / "rig", files=100)
        write(made.root, "locked/file", "l\n")
        write(made.root, "unreadable", "u\n")
        _as_nobody(made, Path(open_to_all), python, (trials, seed), tally)
    return tally


def _as_nobody(made: Rig, folder: Path, python: str, chosen: tuple[int, int], tally: Tally) -> None:
    trials, seed = chosen
    dice = random.Random(seed)  # noqa: S311 - a seed that can be repeated
    packages = os.pathsep.join((str(PACKAGE), *filter(None, sys.path)))
    for number in range(trials):
        there = folder / f"nobody-{number}"
        shutil.copytree(made.folder, there, symlinks=True)
        subprocess.run(("chown", "-Rh", f"{NOBODY}:{NOBODY}", there), check=True)
        variables = {"PYTHONPATH": packages}
        rig = Rig(folder=there, user=NOBODY, python=python, variables=variables)
        (rig.root / "unreadable").chmod(0)
        (rig.root / "locked").chmod(0o500)
        first_s = dice.uniform(0, TURN_S)
        is_kill = number % 2 == 0
        plan = ((first_s, signal.SIGKILL),) if is_kill else signals_after(first_s, dice)
        trial(rig, plan, tally, in_turn=True)


def _python_of_nobody() -> str | None:
    """A Python that another user may start and that finds our dependencies."""
    environ = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.environ["PATH"]}
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            subprocess.run(
                (python, "-c", "import msgspec, typer, yaml"),
                env=environ, user=NOBODY, group=NOBODY, check=True, capture_output=True, cwd="/",
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            continue
        return python
    return None


def full_disk(folder: Path, trials: int, seed: int) -> Tally:
    """A run on a disk that is full after so many bytes; with room again `undo` has the last word.

    By turns the state directory, and the work tree with it, has no room.
    """
    try:
        subprocess.run(("unshare", "-m", "true"), check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Tally(notes=[f"not tried: no mount namespace here ({error})"])
    tally = Tally()
    make_rig(folder / "rig", files=60)
    for number in range(trials):
        where, room_kib = _room(number, seed)
        there = folder / f"full-{number}"
        there.mkdir()
        done = subprocess.run(
            ("unshare", "-m", sys.executable, "-m", "tests.torture_trees",
             str(folder / "rig"), str(there), where, str(room_kib)),
            cwd=PACKAGE, check=False, capture_output=True, text=True,
        )  # fmt: skip
        tally.trials += 1
        hit, _, rest = done.stdout.partition("\n")
        tally.hit += hit == "hit"
        faults = [rest] if rest.strip() or done.returncode else []
        tell(tally, Rig(folder=there), faults, f"{where} with {room_kib} KiB; {done.stderr}")
    return tally


def _room(number: int, seed: int) -> tuple[str, int]:
    """What is full in a trial, and the KiB that it has: the same for a trial tried again alone."""
    where = ("state", ".")[number % 2]
    dice = random.Random(f"{seed} {number}")  # noqa: S311 - a seed that can be repeated
    return where, round(dice.uniform(8, 450) if where == "state" else dice.uniform(0, 700))


def _on_a_full_disk(made: Path, there: Path, where: str, room_kib: int) -> None:
    """One trial, in a mount namespace of its own; prints whether it hit, and the faults."""
    at = there / where if where != "." else there / "disk"
    rig = Rig(folder=there / "disk" if where == "." else there)
    mount = ("mount", "-t", "tmpfs", "-o")
    at.mkdir(parents=True, exist_ok=True)
    subprocess.run((*mount, "size=1g", "none", at), check=True)
    shutil.copytree(made, rig.folder, symlinks=True, dirs_exist_ok=True)
    used = sum(b.st_blocks // 2 for f in rig.folder.rglob("*") if (b := f.lstat()))
    size = room_kib + (used + 64 if where == "." else 0)
    before = rig.all_there()
    subprocess.run(("mount", "-o", f"remount,size={size}k", at), check=True)
    code, output = rig.atlas(*RETRY)
    faults = unsound(code, output)
    was_full = "No space left" in output or code != 1
    undone, heard = rig.atlas("undo")
    faults += unsound(undone, heard)
    if heard.startswith("undone: "):
        faults += unlike(rig, before, "said to be as it was, with no room,")
    subprocess.run(("mount", "-o", "remount,size=1g", at), check=True)
    undone, last = rig.atlas("undo")
    faults += unsound(undone, last) + unlike(rig, before, "after undo with room")
    sys.stdout.write("hit\n" if was_full else "\n")
    if faults:
        sys.stdout.write("\n".join((*faults, f"exit {code}", output, heard, last)))


def sizes(folder: Path, trials: int, seed: int) -> Tally:
    """A tree of 20,000 files, one of 100,000, and one with files of 2 GB; `trials` is 1 to 3."""
    tally = Tally()
    dumps = ("free.dump", "ignored.dump")
    rows = (("2GB", 1000, dumps), ("20000", 20_000, ()), ("100000", 100_000, ()))
    for name, files, big in rows[:trials]:
        _sized(_many(folder / name, files, big), seed, big, tally)
    return tally


def _many(folder: Path, files: int, dumps: tuple[str, ...]) -> Rig:
    """A work tree of so many small files, and some of 2 GB."""
    rig = Rig(folder=folder)
    root = repository(rig.root)
    (folder / "home").mkdir()
    (folder / "agent.py").write_text(FEW_AGENT)
    configure(root, retry={"flake_reruns": 0, "max_ai_retry_attempts": 1, "on_exhausted": "keep"})
    for number in range(files):
        write(root, f"many/{number % 10}/{number}.txt", f"{number}\n")
    write(root, ".gitignore", "ignored.dump\n")
    git(root, "config", "gc.auto", "0")
    commit(root)
    for name in dumps:
        _dump(rig, name)
    return rig


def _dump(rig: Rig, name: str) -> None:
    """Make it anew; what is not held is known by its size and time."""
    with (rig.root / name).open("ab") as file:
        file.truncate(DUMP_BYTES)
    os.utime(rig.root / name, (0, 0))


def _sized(rig: Rig, seed: int, dumps: tuple[str, ...], tally: Tally) -> None:
    """A run that ends, runs that are killed, the `undo` of each; and what they took."""
    before, faults, took = _small(rig), [], []
    run_s = 0.0
    for arguments in (("validate",), RETRY, ("undo",)):
        done = measured(rig, *arguments)
        faults += done.faults
        took.append(f"{arguments[0]} {done.cpu_s:.1f} s CPU, {done.peak_mb} MB")
        run_s = max(run_s, done.took_s)
    faults += _undone(rig, before, dumps, done.code, done.output)
    dice = random.Random(seed)  # noqa: S311 - a seed that can be repeated
    for number in range(KILLS):
        (rig.folder / "asked").unlink(missing_ok=True)
        in_turn = number % 2 == 0
        kill = ((dice.uniform(0, 1.0 if in_turn else run_s), signal.SIGKILL),)
        code, _ = rig.signalled(*RETRY, plan=kill, in_turn=in_turn)
        done = measured(rig, "undo")
        faults += done.faults + _undone(rig, before, dumps, done.code, done.output)
        took.append(f"undo of a kill {done.cpu_s:.1f} s CPU, {done.peak_mb} MB")
        tally.hit += code == -signal.SIGKILL
    state = sum(f.lstat().st_blocks * 512 for f in (rig.folder / "state").rglob("*")) >> 20
    tally.trials += 1 + KILLS
    tally.hit += 1
    tally.notes.append(f"{rig.folder.name}: {'; '.join(took)}; state {state} MB")
    tell(tally, rig, faults, done.output)


def _undone(
    rig: Rig, before: dict[str, bytes], dumps: tuple[str, ...], code: int, output: str
) -> list[str]:
    """What is not as promised: small files are as before, of those too big to be held it is said.

    The big ones are made anew.
    """
    faults = left_running(rig)
    if _small(rig) != before:
        faults.append("after undo not as before")
    faults += [f"{name} was removed" for name in dumps if not (rig.root / name).exists()]
    gone = [name for name in dumps if f"{name} was removed" not in faults and _is_cut(rig, name)]
    for name in dumps:
        _dump(rig, name)
    is_lost = any(not name.startswith("ignored") for name in gone)
    if any(name not in output for name in gone) or is_lost != (code == 1):
        faults.append(f"{gone} cannot be restored; undo ended with {code}: {output}")
    return faults


def _is_cut(rig: Rig, name: str) -> bool:
    return (rig.root / name).stat().st_size != DUMP_BYTES


def _small(rig: Rig) -> dict[str, bytes]:
    """Every file that is worth reading."""
    files = (path for path in rig.root.rglob("*") if path.suffix != ".dump" and path.is_file())
    return {str(path): path.read_bytes() for path in files if ".git" not in path.parts}


if __name__ == "__main__":
    _on_a_full_disk(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
