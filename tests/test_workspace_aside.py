"""Commands that run on the workspace and leave it as it was."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from atlas_retry.errors import WorkspaceError
from atlas_retry.process import handle_signals, run, run_all, stop_requested
from atlas_retry.workspace.discovery import Workspace, open_workspace
from atlas_retry.workspace.isolation import overlay
from atlas_retry.workspace.isolation.isolated import beside, changed_in_place, lock, put_back_aside
from atlas_retry.workspace.snapshot import trees
from atlas_retry.workspace.snapshot.store import kept
from tests.asides import CASES, LARGE, NOBODY, aside, check, check_full
from tests.commands import run_forked
from tests.needs import needs, require
from tests.processes import ENV, alive, finish, shell, start_python, token, until
from tests.repositories import commit, entries, git, opened, repository, write

USERS = {"root": 0, "ordinary": NOBODY} if os.geteuid() == 0 else {"ordinary": os.geteuid()}
OVERLAY = {
    user: "overlay" if uid == os.geteuid() else "overlay of nobody" for user, uid in USERS.items()
}
"""What a test needs for an overlay of a user."""


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder of the user's own; nobody else gets into pytest's."""
    at = Path(tempfile.mkdtemp(prefix="atlas-test-"))
    uid = USERS[request.getfixturevalue("user")]
    os.chown(at, uid, uid or -1)
    yield at
    overlay.remove_layers(at)


def _cases() -> Iterator[Any]:
    """Every case in both ways as each user; the large one, a minute of work, as one user."""
    for name, way, user in product(CASES, ("overlay", "in place"), USERS):
        if name != LARGE or user == next(iter(USERS)):
            marks = [pytest.mark.slow] if name == LARGE else []
            mounts = [needs(OVERLAY[user])] if way == "overlay" else []
            yield pytest.param(name, way, user, marks=[*marks, *mounts])


@pytest.mark.parametrize(("name", "way", "user"), [*_cases()])
def test_a_command_sees_the_changes_and_leaves_the_workspace_unchanged(
    name: str, way: str, user: str, folder: Path
) -> None:
    arguments = (str(USERS[user]), name, way, str(folder))
    done = run_forked(check, *arguments, cwd=folder, environ=ENV)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("user", [pytest.param(u, marks=needs(OVERLAY[u])) for u in USERS])
def test_a_full_layer_fails_the_command_and_changes_nothing_else(user: str, folder: Path) -> None:
    arguments = (str(USERS[user]), str(folder))
    done = run_forked(check_full, *arguments, cwd=folder, environ=ENV)
    assert done.returncode == 0, done.stderr


A_3 = {"src/a.py": ("100644", b"a = 3\n")}


@pytest.fixture
def over(ws: Workspace) -> Workspace:
    """A workspace over which an overlay can be mounted."""
    require("overlay")
    return ws


def test_processes_left_running_end_with_the_overlay(over: Workspace) -> None:
    number = token()
    line = f"setsid nohup sleep {number} >/dev/null 2>&1 & sleep 0.1"
    done = aside(over, shell(line, cwd=over.root, keep_daemons=True), {})
    assert done.completed.exit_code == 0
    until(lambda: not alive(number))


def test_concurrent_commands_see_the_changes_but_not_each_other(over: Workspace) -> None:
    with beside(over, A_3) as there:
        lines = [f"cat src/a.py; echo {n} >>src/a.py; sleep 0.2; tail -1 src/a.py" for n in "xyz"]
        ends = run_all([there.wrap(shell(line, cwd=over.root)) for line in lines], jobs=3)
        assert [end.stdout.text for end in ends if end] == [f"a = 3\n{n}\n" for n in "xyz"]


def test_in_place_commands_see_files_of_earlier_ones(ws: Workspace) -> None:
    with beside(ws, A_3, in_place=True) as there:
        run(there.wrap(shell("echo made >made", cwd=ws.root)))
        assert run(there.wrap(shell("cat made", cwd=ws.root))).stdout.text == "made\n"
    assert not (ws.root / "made").exists()


@pytest.mark.parametrize("in_place", [False, True])
def test_files_left_by_a_command_can_be_read_afterwards(ws: Workspace, in_place: bool) -> None:
    with beside(ws, A_3, in_place=in_place) as there:
        run(there.wrap(shell("echo '<junit/>' >report.xml; rm run.sh", cwd=ws.root)))
        files = {path: there.file(path) for path in ("report.xml", "src/a.py", "src/b.py")}
        texts = {path: file.read_text() for path, file in files.items() if file}
        assert there.file("run.sh") is None
    assert texts == {"report.xml": "<junit/>\n", "src/a.py": "a = 3\n", "src/b.py": "b = 2\n"}


def test_a_command_can_run_in_a_folder_added_by_the_changes(over: Workspace) -> None:
    changes = {"new/file": ("100644", b"there\n")}
    done = aside(over, shell("cat file", cwd=over.root / "new"), changes)
    assert done.completed.stdout.text == "there\n"


def test_unreadable_folders_are_removed_with_the_overlay(over: Workspace) -> None:
    done = aside(over, shell("mkdir c; echo x >c/x; chmod 0 c", cwd=over.root), {})
    assert done.completed.exit_code == 0
    assert not [*over.home.glob("atlas-aside-*")]


def test_a_commit_in_a_linked_worktree_is_dropped(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    ws = opened(tmp_path / "linked")
    line = "git -c user.name=n -c user.email=e commit -q --allow-empty -m x && git rev-parse HEAD"
    before = git(main, "rev-parse", "side")
    done = aside(ws, shell(line, cwd=ws.root, env=ws.environ), {})
    assert done.completed.stdout.text.encode() != before
    assert git(main, "rev-parse", "side") == before


@pytest.mark.parametrize(
    ("line", "is_in_place"),
    [
        ("docker run -v $PWD:/w image make", True),
        ("cd sub && ./gradlew test", True),
        ("/usr/bin/podman build .", True),
        ("pytest tests/test_docker.py -k docker_", False),
    ],
)
def test_commands_that_talk_to_a_daemon_run_in_place(
    line: str, is_in_place: bool, over: Workspace
) -> None:
    with beside(over, {}, [line]) as there:
        assert bool(there.reason) == is_in_place


def test_a_mount_inside_the_folder_is_detected() -> None:
    root = Path("/dev")
    assert overlay.mounts_inside(root.resolve())


def test_layers_of_a_killed_process_are_removed_by_the_next(over: Workspace) -> None:
    left = over.home / "atlas-aside-999999999-x"
    left.mkdir()
    aside(over, shell("true", cwd=over.root), {})
    assert not left.exists()


@pytest.mark.parametrize("path", ["../out", "/etc/x", ".git/config", "a//b", "inner/.git/HEAD"])
def test_a_path_outside_the_work_tree_is_refused(path: str, ws: Workspace) -> None:
    with pytest.raises(ValueError, match="not a file path"):
        aside(ws, shell("true", cwd=ws.root), {path: None})


def test_bytecode_made_with_the_changes_is_not_used_afterwards(ws: Workspace) -> None:
    """Of two files of one size and second, Python takes the one's bytecode for the other's."""
    write(ws.root, "src/__init__.py")
    see = shell("python3 -c 'from src import a; print(a.a)'", cwd=ws.root, env=ENV)
    run(see)
    for in_place in (False, True):
        assert aside(ws, see, A_3, in_place=in_place).completed.stdout.text == "3\n"
        assert run(see).stdout.text == "1\n"


def test_ignored_files_are_restored_after_in_place_commands(ws: Workspace) -> None:
    write(ws.root, ".gitignore", "node_modules/\n")
    write(ws.root, "node_modules/x/index.js", "old\n")
    before = entries(ws.root)
    changes = {
        "node_modules/x/index.js": ("100644", b"new\n"),
        "node_modules/x/more.js": ("100644", b"more\n"),
    }
    done = aside(ws, shell("cat node_modules/x/*", cwd=ws.root), changes, in_place=True)
    assert done.completed.stdout.text == "new\nmore\n"
    assert entries(ws.root) == before


@pytest.mark.parametrize("kind", ["big", "pipe", "cached"])
def test_what_no_snapshot_holds_is_moved_aside_and_moved_back(kind: str, ws: Workspace) -> None:
    write(ws.root, ".gitignore", "own/\n.cache/\n")
    path = ".cache/mine" if kind == "cached" else "own/mine"
    file = ws.root / path
    write(ws.root, path, b"x" * (2 << 20 if kind == "big" else 10))
    if kind == "pipe":
        file.unlink()
        os.mkfifo(file)
    file.chmod(0o640)
    was = file.stat()
    with changed_in_place(ws, {path: ("100644", b"other\n")}, ""):
        assert file.read_bytes() == b"other\n"
    assert (file.stat().st_ino, file.stat().st_mode) == (was.st_ino, was.st_mode)
    with changed_in_place(ws, {path: None}, ""):
        assert not file.exists()
    assert file.stat().st_ino == was.st_ino


def test_what_commands_wrote_in_place_is_held_when_it_is_reverted(ws: Workspace) -> None:
    with changed_in_place(ws, {}, ""):
        write(ws.root, "src/a.py", "written meanwhile\n")
    left = trees.tree(ws, kept(ws)["aside/left"])
    assert left.read("src/a.py") == b"written meanwhile\n"


def _with_a_pipe_in_the_way(ws: Workspace) -> None:
    with changed_in_place(ws, {".cache/mine": None}, ""):
        (ws.root / "src/a.py").unlink()
        (ws.root / "src/a.py").mkdir()
        os.mkfifo(ws.root / "src/a.py/pipe")


def test_what_was_moved_aside_returns_though_restoring_fails(ws: Workspace) -> None:
    write(ws.root, ".gitignore", ".cache/\n")
    write(ws.root, ".cache/mine", "mine\n")
    with pytest.raises(WorkspaceError):
        _with_a_pipe_in_the_way(ws)
    assert (ws.root / ".cache/mine").read_text() == "mine\n"
    (ws.root / "src/a.py/pipe").unlink()
    put_back_aside(ws)
    assert (ws.root / "src/a.py").read_text() == "a = 1\n"


def test_a_file_moved_aside_stands_beside_one_written_after_a_kill(ws: Workspace) -> None:
    write(ws.root, ".gitignore", ".cache/\n")
    write(ws.root, ".cache/mine", "mine\n")
    with start_python(LEAVING, str(ws.root), str(ws.state)) as atlas:
        finish(atlas)
    note = ws.home / "aside.note"
    os.utime(note, (0, note.stat().st_mtime - 60))
    write(ws.root, ".cache/mine", "later\n")
    put_back_aside(ws)
    assert (ws.root / ".cache/mine").read_text() == "later\n"
    assert (ws.root / ".cache/mine.before-atlas").read_text() == "mine\n"


LEAVING = """
import os
from pathlib import Path
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.isolation.isolated import changed_in_place
ws = open_workspace(Path(sys.argv[1]), Path(sys.argv[2]), environ=os.environ)
with changed_in_place(ws, {".cache/mine": None}, ""):
    os._exit(0)
"""
DRIVER = """
import os
from pathlib import Path
from atlas_retry.errors import Interrupted
from atlas_retry.process import Command, handle_signals, run
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.isolation.isolated import beside
root, state, line = sys.argv[1:]
ws = open_workspace(Path(root), Path(state), environ=os.environ)
command = Command(argv=("/bin/sh", "-c", line), cwd=ws.root, env=ws.environ, grace_s=0.2)
changes = {f"many/{n}": ("100644", b"changed") for n in range(1500)}
try:
    with handle_signals(), beside(ws, changes | {"src/a.py": None}, in_place=True) as there:
        run(there.wrap(command))
except Interrupted as interrupted:
    sys.exit(interrupted.exit_code)
"""


def _many(root: Path) -> dict[str, tuple[str, bytes]]:
    for number in range(1500):
        write(root, f"many/{number}", f"{number}")
    commit(root)
    return entries(root)


@pytest.mark.parametrize("pause_s", [0.0, 0.05, 0.15, 0.3, 0.6])
def test_a_second_signal_does_not_interrupt_the_restore(pause_s: float, root: Path) -> None:
    before = _many(root)
    state = root.parent / "state"
    with start_python(DRIVER, str(root), str(state), "touch ready; sleep 100") as atlas:
        until((root / "ready").exists, within_s=30)
        for _ in range(3):
            atlas.terminate()
            signal.sigtimedwait([], pause_s)
        code, _ = finish(atlas)
    # one that comes when all is restored may end Python itself as it exits
    assert code in (128 + signal.SIGTERM, -signal.SIGTERM)
    assert entries(root) == before
    assert not [*state.rglob("aside.note")]


def _killed(root: Path) -> Workspace:
    """Where an atlas was killed while the workspace was changed."""
    state = root.parent / "state"
    line = "touch ready; echo x >src/b.py; sleep 100"
    with start_python(DRIVER, str(root), str(state), line) as atlas:
        until((root / "ready").exists, within_s=30)
        atlas.kill()
        finish(atlas)
    assert not (root / "src/a.py").exists()
    return open_workspace(root, state, environ=ENV)


def test_the_next_lock_after_a_kill_restores_the_workspace(root: Path) -> None:
    before = _many(root)
    with lock(_killed(root)):
        assert entries(root) == before
    assert not (opened(root).home / "aside.note").exists()


def test_edits_made_after_a_kill_are_kept(root: Path) -> None:
    _many(root)
    ws = _killed(root)
    note = ws.home / "aside.note"
    os.utime(note, (0, note.stat().st_mtime - 60))
    late = entries(root)
    put_back_aside(ws)
    assert (root / "src/a.py").exists()
    assert {path: what for path, what in entries(root).items() if path != "src/a.py"} == late


def test_a_workspace_in_use_is_not_restored(ws: Workspace) -> None:
    with beside(ws, A_3, in_place=True):
        put_back_aside(ws)
        with (
            pytest.raises(WorkspaceError, match="temporarily changed"),
            beside(ws, {}, in_place=True),
        ):
            pass
        assert (ws.root / "src/a.py").read_text() == "a = 3\n"
    assert (ws.root / "src/a.py").read_text() == "a = 1\n"


def test_signals_just_before_a_restore_do_not_prevent_it(ws: Workspace) -> None:
    def signalled(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "being restored" in str(frame.f_locals.get("what", "")):
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    before = entries(ws.root)
    with handle_signals():
        sys.setprofile(signalled)
        try:
            with beside(ws, A_3, in_place=True):
                pass
        finally:
            sys.setprofile(None)
        assert stop_requested() == signal.SIGINT
    assert entries(ws.root) == before


def test_a_commit_of_a_person_while_commands_run_in_place_stays(ws: Workspace) -> None:
    write(ws.root, "src/a.py", "a = 'mine'\n")
    with changed_in_place(ws, {"src/new.py": ("100644", b"x = 1\n")}, "asked") as there:
        traced = there.wrap(shell("git tag gates; echo > made", cwd=ws.root, env=ws.environ))
        assert run(traced).exit_code == 0
        git(ws.root, "commit", "-q", "-m", "mine", "src/a.py")
    assert git(ws.root, "log", "-1", "--format=%s").strip() == b"mine"
    assert git(ws.root, "tag") == b""
    assert git(ws.root, "status", "--porcelain") == b""
    assert (ws.root / "src/a.py").read_text() == "a = 'mine'\n"
