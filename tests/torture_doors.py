"""Torture of the doors: the state directory gone or junk, Ctrl-C at the start, odd input to a hook.

The row takes a folder, a number of trials and a seed, and says what it came to.
"""

import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tests.crashes import environ_below
from tests.torture import Tally
from tests.torture_git import BAD, REPAIR, project, shell

HANGS_S = 60.0
STATES = (
    "rm -rf ../state",
    "rm -rf ../state; echo junk > ../state",
    "rm -rf ../state; mkfifo ../state",
    "rm -rf ../state; ln -s state ../state",
    "rm -rf ../state; mkdir ../state; echo junk > ../state/state.sqlite3",
    "find ../state -type f -exec sh -c 'echo junk > \"$1\"' _ {} \\;",
    "find ../state -type f -exec truncate -s 0 {} \\;",
    "find ../state -type f -name '*.sqlite*' -delete",
    "find ../state -path '*/refs/*' -type f -exec sh -c 'echo junk > \"$1\"' _ {} \\;",
    "find ../state -name packed-refs -delete; find ../state -path '*/objects/*' -type f -delete",
    "find ../state -name 'runs*' -prune -exec rm -rf {} +",
    "head -c 5000 /dev/urandom | tee $(find ../state -type f | head -40) > /dev/null",
)
"""What happens to the state directory."""
PLACES = ("state", "./state", "../state", "", "~/state", "/dev/null", "/proc/self/none", "a\tb")
"""Values of ATLAS_HOME that are no folder of one's own."""
COMMANDS = (("status",), ("log",), ("validate",), ("diff",), ("why",), ("stats",), ("resume",))
INPUTS = (
    b"\xff\xfe\x00{",
    b"",
    b"null",
    b"[]",
    b"[" * 100_000,
    b'{"cwd": 3}',
    b'{"cwd": "/nonexistent", "session_id": "s", "hook_event_name": "Stop"}',
    b'{"cwd": ".", "session_id": "\\ud800", "hook_event_name": "Stop"}',
    '{"cwd": ".", "prompt": "\u00e9"}'.encode("latin-1"),
    b'{"cwd": "a\\u0000b", "session_id": "../../x", "hook_event_name": "UserPromptSubmit"}',
)
_PROMISE = re.compile(r"(?m)^\s*atlas undo (\S+)\s*$")

Door = Callable[[Path, Random], tuple[bool, list[str]]]
"""Tries one in a project; whether it was hit, and what was wrong."""


def doors(folder: Path, trials: int, seed: int) -> Tally:
    """One door a trial. A failure: a traceback, a hang, another exit code, a promise not kept."""
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        door = (_state, _interrupted, _state, _hook, _place, _linked)[number % 6]
        here = folder / f"door-{number}"
        hit, faults = door(here, dice)
        tally.trials += 1
        tally.hit += hit
        tally.failures += [f"{door.__name__[1:]} {number}: {fault}" for fault in faults]
        if not faults:
            shutil.rmtree(here)
    return tally


def _state(folder: Path, dice: Random) -> tuple[bool, list[str]]:
    """The state directory is damaged before, during or after a run; a printed undo works."""
    damage, when = dice.choice(STATES), dice.choice(("before", "turn", "after"))
    root = project(folder, f"{damage if when == 'turn' else 'true'}; {REPAIR}")
    if when == "before":
        _ended(root, "validate")
        shell(root, damage)
    faults, said = _ended(root, "retry", ".", "--ai-fix")
    if when == "after":
        shell(root, damage)
        said = ""
    for command in dice.sample(COMMANDS, 2):
        wrong, heard = _ended(root, *command)
        faults, said = faults + wrong, said + heard
    for run_id in dict.fromkeys(_PROMISE.findall(said)):
        wrong, heard = _ended(root, "undo", run_id)
        faults += wrong
        if (root / "calc.py").read_text() != BAD:
            faults.append(f"atlas undo {run_id} was promised: {heard}")
    faults += _ended(root, "undo")[0]
    return True, [f"{when}: {damage}: {fault}; {said[-700:]}" for fault in faults]


def _interrupted(folder: Path, dice: Random) -> tuple[bool, list[str]]:
    """INT in the first moments of a command ends it with 130."""
    root, command = project(folder, REPAIR), dice.choice([*COMMANDS, ("init", "--print")])
    child = _start(root, command, {})
    time.sleep(dice.uniform(0.02, 0.4))
    child.send_signal(signal.SIGINT)
    output = child.communicate(timeout=HANGS_S)[0].decode(errors="replace")
    hit = child.returncode in (130, -signal.SIGINT)
    is_odd = not hit and child.returncode not in (0, 1, 2, 3)
    has_begun = "atlas_retry" in output  # before that, Python ends as it does
    if is_odd or ("Traceback" in output and has_begun) or "this is a bug" in output:
        return hit, [f"{command}: {child.returncode}: {output[-900:]}"]
    return hit, []


def _hook(folder: Path, dice: Random) -> tuple[bool, list[str]]:
    """A hook is given what no host sends."""
    root, content = project(folder, REPAIR), dice.choice(INPUTS)
    wrong = []
    for event in ("start", "stop"):
        faults, said = _ended(root, "hook", event, content=content)
        wrong += [f"{content[:40]!r}: {fault}: {said}" for fault in faults]
    return True, wrong


def _place(folder: Path, dice: Random) -> tuple[bool, list[str]]:
    """ATLAS_HOME names no folder of one's own: it is refused, and nothing is written."""
    root, place = project(folder, REPAIR), dice.choice(PLACES)
    before = {*root.iterdir(), *folder.iterdir()}
    faults, said = _ended(root, *dice.choice(COMMANDS[:4]), variables={"ATLAS_HOME": place})
    if place and not place.startswith("/") and "a relative path" not in said:
        faults.append("it is not refused")
    came = {*root.iterdir(), *folder.iterdir()} - before - {root / "__pycache__"}
    faults += [f"written: {path.name}" for path in came]
    return True, [f"ATLAS_HOME={place!r}: {fault}; {said}" for fault in faults]


def _linked(folder: Path, dice: Random) -> tuple[bool, list[str]]:
    """The workspace is moved, and a link to it is left: runs of it are found, and undone."""
    moves = "mv ../project ../moved; ln -s moved ../project; cd ../project"
    when = dice.choice(("turn", "after"))
    root = project(folder, f"{moves}; {REPAIR}" if when == "turn" else REPAIR)
    faults, said = _ended(root, "retry", ".", "--ai-fix")
    if when == "after":
        shell(root, moves)
    for command in dice.sample(COMMANDS, 2):
        faults += _ended(root, *command)[0]
    wrong, heard = _ended(root, "undo")
    is_back = (folder / "moved/calc.py").read_text() == BAD
    faults += wrong + ([] if is_back else ["it is not undone"])
    return True, [f"{when}: {fault}; {said[-700:]} {heard}" for fault in faults]


def _start(
    root: Path, arguments: tuple[str, ...], variables: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", *arguments),
        cwd=root,
        env={**environ_below(root.parent), **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _ended(
    root: Path, *arguments: str, content: bytes = b"", variables: Mapping[str, str] = {}
) -> tuple[list[str], str]:
    """What is wrong with the end of a command, and what it printed."""
    child, faults = _start(root, arguments, variables), list[str]()
    try:
        output = child.communicate(content, timeout=HANGS_S)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        child.kill()
        output = child.communicate()[0].decode(errors="replace")
        faults.append("it hangs")
    if child.returncode not in (0, 1, 2, 3):
        faults.append(f"exit {child.returncode}")
    if "this is a bug" in output or "Traceback" in output:
        faults.append("a traceback")
    return faults, f"[{arguments[0]} {child.returncode}] {output}"
