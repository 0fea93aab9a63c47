"""Only if nothing came between: later edits, earlier kills and second tries of an undo."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.history import rescue
from atlas_retry.history.states import RunState
from atlas_retry.history.values import RunRow
from atlas_retry.state_dir import TURN, exact_id
from atlas_retry.workspace import gitmoves, installed, place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import stat_of
from atlas_retry.workspace.gitfacts import git_facts
from atlas_retry.workspace.gitunder import committed_since
from atlas_retry.workspace.isolation import isolated
from atlas_retry.workspace.isolation.isolated import changed_in_place
from atlas_retry.workspace.snapshot import pins
from atlas_retry.workspace.snapshot.restoring import edited_after, restore
from atlas_retry.workspace.snapshot.snapshots import HeldTree, snapshot, take
from atlas_retry.workspace.snapshot.store import keep
from tests.repositories import git, opened, write

LATER = "2100-01-01T00:00:00Z"
OLD_S, LATER_S = 1e9, 9e9


def test_what_failed_is_tried_again_once_there_is_room(ws: Workspace) -> None:
    start, pipe = snapshot(ws), ws.root / "src/a.py/pipe"
    write(ws.root, "src/b.py", "of the agent\n")
    (ws.root / "src/a.py").unlink()
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    looks = list[HeldTree]()

    def look() -> HeldTree:
        if looks and pipe.is_fifo():
            pipe.unlink()
        looks.append(take(ws))
        return looks[-1]

    restore(ws, start.id, look=look)
    assert (ws.root / "src/a.py").read_text() == "a = 1\n"


def test_a_file_that_was_too_big_to_be_held_is_not_taken_for_new(ws: Workspace) -> None:
    write(ws.root, ".gitignore", "*.bin\n")
    write(ws.root, "data.bin", b"x" * (2 << 20))
    start = snapshot(ws)
    write(ws.root, "data.bin", b"small now")
    restore(ws, start.id)
    assert (ws.root / "data.bin").read_bytes() == b"small now"


@pytest.mark.parametrize(("after_s", "edited"), [(0.0, {"a", "a/b"}), (9e9, set[str]())])
def test_a_folder_in_place_of_a_file_is_edited_with_what_is_in_it(
    after_s: float, edited: set[str], ws: Workspace
) -> None:
    write(ws.root, "a/b", "of a person\n")
    assert edited_after(ws, ["a", "a/b"], after_s) == edited


def test_an_older_file_put_in_place_now_is_a_later_edit(ws: Workspace) -> None:
    write(ws.root, "older", "of a person\n")
    os.utime(ws.root / "older", (OLD_S, OLD_S))
    before_s = time.time() - 60
    assert place.is_later(ws.root / "older", before_s)
    assert edited_after(ws, ["older"], before_s) == {"older"}


def test_what_a_person_edits_and_commits_while_files_are_changed_stays(ws: Workspace) -> None:
    with changed_in_place(ws, {"src/new.py": ("100644", b"x = 1\n")}, "asked"):
        write(ws.root, "src/a.py", "a = 'mine'\n")
        git(ws.root, "commit", "-q", "-m", "mine", "src/a.py")
    assert (ws.root / "src/a.py").read_text() == "a = 'mine'\n"
    assert not (ws.root / "src/new.py").exists()


def _run(ws: Workspace, **rest: object) -> RunRow:
    start = snapshot(ws).id
    keep(ws, "runs/r/start", start)
    run = RunRow.of_snapshots("r", str(ws.root), LATER, start=start)
    return replace(run, **rest)


def test_an_undo_that_is_tried_again_keeps_the_state_in_which_it_began(ws: Workspace) -> None:
    run, folder = _run(ws), ws.root.parent / "run"
    write(ws.root, "src/a.py", "of the agent\n")
    began = snapshot(ws).id
    keep(ws, "runs/r/undoing", began)
    keep(ws, "runs/r/undone", began)
    write(ws.root, "src/a.py", "half restored\n")
    rescue.undo(ws, run, folder, None)
    assert rescue.snapshots(ws, run)["undone"] == began


@pytest.mark.parametrize("state", [RunState.UNDONE, RunState.ABANDONED])
def test_what_a_run_left_is_kept_by_its_first_undo_only(state: RunState, ws: Workspace) -> None:
    run = _run(ws, state=state)
    write(ws.root, "src/a.py", "now\n")
    keep(ws, "runs/r/end", run.start)
    rescue.undo(ws, run, ws.root.parent / "run", None)
    is_kept = rescue.snapshots(ws, run)["end"] == run.start
    assert is_kept is (state is RunState.UNDONE)


EVENT, LOG, ENDED = 1_000.0, 2_000.0, 3_000.0


@pytest.mark.parametrize(
    ("ended", "all_ended_s", "alive_s", "end_s"),
    [
        (True, None, EVENT, EVENT),
        (False, None, LOG, LOG + 4),
        (False, ENDED, LOG, ENDED),
        (False, LOG - 1, LOG, LOG + 4),
    ],
    ids=["it said so", "killed", "its processes were ended", "of an earlier kill"],
)
def test_when_a_run_lived_last_and_had_surely_ended(
    ended: bool, all_ended_s: float | None, alive_s: float, end_s: float, tmp_path: Path
) -> None:
    at = datetime.fromtimestamp(EVENT, UTC).isoformat()
    run = RunRow.of_snapshots("r", "/w", at, start="0", ended_at=at if ended else None)
    for name, seconds in (("events.jsonl", LOG), (rescue.ALL_ENDED, all_ended_s)):
        if seconds:
            (tmp_path / name).touch()
            os.utime(tmp_path / name, (seconds, seconds))
    assert rescue.last_sign_of_life_s(run, tmp_path) == alive_s
    assert rescue.end_of_run_s(run, tmp_path) == end_s


@pytest.mark.parametrize("is_open", [True, False])
def test_what_git_would_run_is_restored_only_while_a_run_is_open(
    is_open: bool, ws: Workspace
) -> None:
    attempt = ws.root.parent / "run/attempts/1"
    attempt.mkdir(parents=True)
    facts = git_facts(ws.root, environ=ws.environ)
    gitmoves.note_before(ws, attempt, facts, snapshot(ws).id)
    write(ws.root, ".git/hooks/pre-commit", "#!/bin/sh\n")
    done = rescue.undo_agents_git(ws, attempt.parent.parent, is_open=is_open)
    assert done == (("hooks/pre-commit",) if is_open else ())
    assert (ws.git_dir / "hooks/pre-commit").exists() is not is_open


@pytest.mark.parametrize(("ended_s", "stays"), [(0.0, True), (LATER_S, False)])
def test_a_new_file_goes_after_a_kill_unless_someone_wrote_it_since(
    ended_s: float, stays: bool, ws: Workspace
) -> None:
    write(ws.root, "src/new.py", "x = 1\n")
    moved = ws.home / "moved"
    isolated._move_back(ws, "src/new.py", moved, ended_s, was_there=False)
    assert (ws.root / "src/new.py").exists() is stays


def test_of_what_was_committed_since_only_what_is_still_so_stays(ws: Workspace) -> None:
    start = snapshot(ws)
    for path in ("src/a.py", "src/b.py"):
        write(ws.root, path, "committed\n")
    git(ws.root, "commit", "-q", "-m", "mine", "src/a.py", "src/b.py")
    write(ws.root, "src/a.py", "written over it\n")
    assert committed_since(ws, start.id) == {"src/b.py"}


def test_a_restored_file_is_of_a_later_second_than_the_one_before(tmp_path: Path) -> None:
    write(tmp_path, "old", "x")
    write(tmp_path, "new", "x")
    for name, seconds in (("old", OLD_S + 0.1), ("new", OLD_S + 0.9)):
        os.utime(tmp_path / name, (seconds, seconds))
    place.date_after(tmp_path, "new", (tmp_path / "old").stat())
    assert (tmp_path / "new").stat().st_mtime >= OLD_S + 1


def test_a_branch_made_again_since_its_commits_were_destroyed_stays(root: Path) -> None:
    ws = opened(root)
    git(root, "checkout", "-q", "-b", "gone")
    git(root, "commit", "-q", "--allow-empty", "-m", "gone")
    git(root, "checkout", "-q", "-")
    run = _run(ws)
    assert pins.pin(ws, run.start) == ()
    git(root, "branch", "-q", "-D", "gone")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "-q", "--prune=now")
    git(root, "branch", "gone")
    rescue.undo(opened(root), run, root.parent / "run", None)
    assert git(root, "rev-parse", "gone") == git(root, "rev-parse", "HEAD")


def test_only_what_shares_a_file_with_the_repository_is_let_go_when_it_dropped_that(
    ws: Workspace,
) -> None:
    held = ws.home / "pins/own"
    for name in ("ab/dropped", "pack/pack-1.pack", "pack/pack-1.keep"):
        write(held, name, "x")
    pins.sweep(ws, LATER_S)
    assert sorted(path.name for path in held.rglob("*.*")) == ["pack-1.keep", "pack-1.pack"]
    assert not (held / "ab/dropped").exists()


@pytest.mark.parametrize("in_the_turn", ["", "node_modules/dep/new.js"], ids=["alone", "beside"])
def test_what_is_installed_after_a_turn_of_the_hook_stays(in_the_turn: str, root: Path) -> None:
    ws, path = opened(root), "node_modules/dep/index.js"
    write(root, ".gitignore", "node_modules/\n")
    write(root, path, "one\n")
    installed.hold(root, ws.installed, {path: stat_of((root / path).lstat())}, ())
    time.sleep(0.05)
    began, run_id = datetime.now(UTC).isoformat(), exact_id(TURN)
    start = snapshot(ws).id
    keep(ws, rescue.held_under(run_id, "start"), start)
    if in_the_turn:  # which changes the folder around both
        write(root, in_the_turn, "of the agent\n")
    installed.note_end(ws.installed)
    time.sleep(0.05)
    write(root, path, "two, of a person\n")
    ended = datetime.now(UTC).isoformat()
    run = RunRow.of_snapshots(run_id, str(root), began, start=start, ended_at=ended)
    rescue.undo(ws, run, root.parent / "run", None)
    assert (root / path).read_text() == "two, of a person\n"
