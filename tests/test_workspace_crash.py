"""SIGKILL in the middle of a snapshot or a restore, at seeded random moments."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atlas_retry.workspace.snapshot.restoring import restore
from atlas_retry.workspace.snapshot.snapshots import snapshot
from atlas_retry.workspace.snapshot.store import keep, kept
from tests.repositories import entries, git, git_bytes, opened, repository, write

MOMENTS = int(os.environ.get("ATLAS_TEST_KILLS", "12"))
AGAIN_AND_AGAIN = """
import os
import sys
from pathlib import Path
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.snapshot.restoring import restore
from atlas_retry.workspace.snapshot.store import keep, kept
from atlas_retry.workspace.snapshot.snapshots import snapshot
root, state = Path(sys.argv[1]), Path(sys.argv[2])
ws = open_workspace(root, state, environ=os.environ)
start, end = kept(ws)["start"], kept(ws)["end"]
print("started", flush=True)
while True:
    restore(ws, start)
    (root / "fresh.txt").write_bytes(b"x" * 100_000)
    keep(ws, "fresh", snapshot(ws).id)
    restore(ws, end)
"""


@pytest.mark.parametrize("seed", range(2))
def test_a_kill_at_any_moment_loses_nothing_of_the_work_tree(seed: int, tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    for number in range(60):
        write(root, f"many/{number % 7}/{number}.txt", f"{number}\n" * 200)
    git(root, "add", "many/1")
    ws = opened(root)
    before, git_before = entries(root), git_bytes(ws.git_dir)
    keep(ws, "start", snapshot(ws).id)
    shutil.rmtree(root / "many/2")
    write(root, "many/2", "a file now\n")
    for number in range(0, 60, 2):
        write(root, f"many/{number % 7}x/{number}.txt", f"{number} changed\n" * 300)
    git(root, "add", "-A")
    keep(ws, "end", snapshot(ws).id)

    dice = random.Random(seed)  # noqa: S311 - seeded on purpose
    for _ in range(MOMENTS // 2):
        kill_after(dice.uniform(0, 0.5), root, tmp_path / "state")
        restore(ws, kept(ws)["start"])
        assert entries(root) == before
        assert git_bytes(ws.git_dir) == git_before


def test_what_a_killed_git_left_in_the_shadow_repository_is_removed(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    ws = opened(root)
    keep(ws, "first", snapshot(ws).id)
    left = ("work.lock", "refs/atlas/kept/first.lock", "objects/tmp_obj_1")
    for name in left:
        (ws.shadow / name).touch()
    (ws.home / "shadow.busy").touch()
    write(root, "src/a.py", "a = 2\n")
    keep(ws, "first", snapshot(ws).id)
    assert not [name for name in left if (ws.shadow / name).exists()]


def kill_after(seconds: float, root: Path, state: Path) -> None:
    package = str(Path(__file__).parents[1])
    child = subprocess.Popen(
        (sys.executable, "-c", AGAIN_AND_AGAIN, str(root), str(state)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(root.parent), "PYTHONPATH": package},
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"started\n"
    time.sleep(seconds)
    os.killpg(child.pid, signal.SIGKILL)
    _, error = child.communicate()
    assert error == b""
