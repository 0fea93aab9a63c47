"""Torture of commands beside `retry`: gates that write, deliveries, runs that are resumed.

Each row takes a folder, a number of trials and a seed, and says what it came to.
"""

import random
import signal
from pathlib import Path

from atlas_retry.settings import Isolation
from tests.crashes import accept_after_kills, resume_after_kills
from tests.repositories import entries, git, git_bytes
from tests.torture import (
    RETRY,
    TURN_S,
    Rig,
    Tally,
    Torture,
    configure,
    left_running,
    make_rig,
    signals_after,
    trial,
    unsound,
)

FIX = "touch fixed; echo changed >> many/1.txt; rm many/2.txt; chmod +x run.sh"
SLOWEST_S = 2.0
"""By then a delivery has surely ended, but on a busy machine."""


def validate(folder: Path, trials: int, seed: int) -> Tally:
    """Kills and signals while a gate that writes changes everything; `undo` has the last word."""
    torture = Torture.prepared(folder, files=300)
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        copy = torture.copied(folder / f"validate-{number}")
        rig = Rig(folder=copy.folder, command=("validate",))
        configure(rig.root, validation={"format": ["python3 -S ../agent.py"]})
        first_s = dice.uniform(0, TURN_S)
        is_kill = number % 2 == 0
        plan = ((first_s, signal.SIGKILL),) if is_kill else signals_after(first_s, dice)
        trial(rig, plan, tally, in_turn=number % 8 < 6)
    return tally


def deliver(folder: Path, trials: int, seed: int) -> Tally:
    """Kills of `deliver --push`; delivered again it is the one commit, and nothing else moved."""
    rig = make_rig(folder / "rig", files=300)
    configure(
        rig.root,
        validation={"test": ["test -e fixed"]},
        agent={"backend": "command", "command": f"sh -c '{FIX}'"},
    )
    git(rig.folder, "init", "-q", "--bare", "remote.git")
    git(rig.root, "remote", "add", "origin", "../remote.git")
    code, output = rig.atlas(*RETRY)
    assert code == 0, output
    expected, before = _delivered(rig, "expected", Tally()), _but_branches(rig)
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        branch = f"branch-{number}"
        kill = ((dice.uniform(0.1, SLOWEST_S), signal.SIGKILL),)
        code, output = rig.signalled("deliver", "--branch", branch, "--push", plan=kill)
        tally.hit += code == -signal.SIGKILL
        tally.trials += 1
        faults = unsound(code, output)
        if _delivered(rig, branch, tally) != expected:
            faults.append(f"{branch} is another commit")
        if _but_branches(rig) != before:
            faults.append("more than a branch has moved")
        faults += left_running(rig)
        tally.failures += [f"{branch}, killed after {kill[0][0]:.3f} s: {one}" for one in faults]
    git(rig.root, "fsck", "--connectivity-only", "--no-dangling")
    return tally


def _delivered(rig: Rig, branch: str, tally: Tally) -> set[bytes]:
    """What the branch is here and at the remote, once it has been delivered."""
    code, output = rig.atlas("deliver", "--branch", branch, "--push")
    if code:
        tally.failures.append(f"{branch}: exit {code}; {output}")
        return set()
    ref = f"refs/heads/{branch}"
    return {git(at, "rev-parse", ref) for at in (rig.root, rig.folder / "remote.git")}


def _but_branches(rig: Rig) -> object:
    kept = git_bytes(rig.root / ".git").items()
    return entries(rig.root), {k: v for k, v in kept if "refs/" not in k and "FETCH" not in k}


def layers(folder: Path, trials: int, seed: int) -> Tally:
    """Kills of runs in layers: the tree is as before, or what was kept of the run is in it."""
    seen = accept_after_kills(folder, trials, seed)
    ends = ", ".join(f"{count} {end}" for end, count in seen.verdicts.items())
    return Tally(trials=seen.moments, hit=seen.killed, failures=seen.unlike, notes=[ends])


def resumes_in_layers(folder: Path, trials: int, seed: int) -> Tally:
    """As `resumes`, in layers."""
    return resumes(folder, trials, seed, "overlay")


def resumes(folder: Path, trials: int, seed: int, isolation: Isolation = "none") -> Tally:
    """Runs of which each is killed three times and resumed: it ends, and pays no turn twice."""
    seen = resume_after_kills(folder, trials, seed, isolation)
    notes = [f"{seen.turns_repeated} turns had ended for the agent alone, and were asked again"]
    failures = [*seen.unlike, *(f"paid twice: {turn}" for turn in seen.paid_twice)]
    return Tally(trials=seen.moments, hit=seen.kills, failures=failures, notes=notes)
