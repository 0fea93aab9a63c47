"""New files are listed by git while gates run, and the index is as before afterwards."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import git, split
from atlas_retry.workspace.listing import end_listing, listed
from atlas_retry.workspace.locking import lock
from tests.repositories import opened, write

ODD = ("new.py", "src/ü b.py", "*.py", "-n.py")


@pytest.fixture
def ws(root: Path) -> Workspace:
    return opened(root)


def tracked(ws: Workspace) -> list[str]:
    return split(git("ls-files", "-z", cwd=ws.root, env=ws.environ))


def staged(ws: Workspace) -> bytes:
    return git("ls-files", "-z", "--stage", cwd=ws.root, env=ws.environ)


def test_new_files_are_tracked_meanwhile_and_not_afterwards(ws: Workspace) -> None:
    for path in ODD:
        write(ws.root, path, "new\n")
    before = staged(ws)
    with listed(ws, ODD):
        assert {*ODD} <= {*tracked(ws)}
    assert staged(ws) == before


def test_a_new_file_that_somebody_stages_meanwhile_stays_staged(ws: Workspace) -> None:
    for path in ODD:
        write(ws.root, path, "new\n")
    with listed(ws, ODD):
        git("add", "--", "new.py", cwd=ws.root, env=ws.environ)
    assert {*tracked(ws)} & {*ODD} == {"new.py"}


@pytest.mark.parametrize("path", ["gone.py", "../outside.py"])
def test_what_git_cannot_add_stops_nothing(ws: Workspace, path: str) -> None:
    before = staged(ws)
    with listed(ws, [path]):
        pass
    assert staged(ws) == before


def test_a_locked_index_is_left_until_the_next_time(ws: Workspace) -> None:
    write(ws.root, "new.py", "new\n")
    before, held = staged(ws), ws.git_dir / "index.lock"
    with listed(ws, ["new.py"]):
        held.touch()
    assert "new.py" in tracked(ws)
    held.unlink()
    end_listing(ws)
    assert staged(ws) == before


def test_after_a_kill_the_next_run_takes_them_from_the_index(ws: Workspace) -> None:
    write(ws.root, "new.py", "new\n")
    before = staged(ws)
    code = (
        "import sys, time, pathlib as p\n"
        "from tests.repositories import opened\n"
        "from atlas_retry.workspace.listing import listed\n"
        "with listed(opened(p.Path(sys.argv[1])), ['new.py']):\n"
        "    print(flush=True)\n"
        "    time.sleep(60)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(ws.root)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.PIPE,
    )
    assert child.stdout
    child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert "new.py" in tracked(ws)
    with lock(ws):
        assert staged(ws) == before
