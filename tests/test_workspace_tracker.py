"""A run's snapshots are made from the last one, and are what a fresh one would be."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from atlas_retry.process import Command, run
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.snapshot.look import Tracker
from atlas_retry.workspace.snapshot.restoring import restore
from atlas_retry.workspace.snapshot.snapshots import load, snapshot
from atlas_retry.workspace.snapshot.trees import tree
from tests.repositories import entries, git, opened, write


def _remove(root: Path) -> None:
    (root / "src/a.py").unlink()


def _folder_for_file(root: Path) -> None:
    (root / "src/a.py").unlink()
    write(root, "src/a.py/inner", "deep\n")


def _file_for_folder(root: Path) -> None:
    shutil.rmtree(root / "src")
    write(root, "src", "a file\n")


def _link(root: Path) -> None:
    (root / "src/a.py").unlink()
    (root / "src/a.py").symlink_to("elsewhere")


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "an edit": lambda root: write(root, "src/a.py", "a = 3\n"),
    "a new file": lambda root: write(root, "deep/er/new.py", "new\n"),
    "an odd name": lambda root: write(root, 'odd "name\\\nof two lines', "odd\n"),
    "a deletion": _remove,
    "a mode": lambda root: (root / "src/a.py").chmod(0o755),
    "permissions": lambda root: (root / "src/a.py").chmod(0o600),
    "a link": _link,
    "a folder in a file's place": _folder_for_file,
    "a file in a folder's place": _file_for_folder,
    "an empty folder": lambda root: (root / "empty").mkdir(),
    "an ignore rule": lambda root: write(root, ".gitignore", "*.new\n"),
    "what is staged": lambda root: git(root, "rm", "-q", "--cached", "src/a.py"),
    "a branch": lambda root: git(root, "branch", "other"),
    "no index": lambda root: (root / ".git/index").unlink(),
}


@pytest.fixture
def tracker(root: Path, ws: Workspace) -> Tracker:
    write(root, "some.new", "not ignored yet\n")
    made = Tracker(ws)
    made.snapshot()
    return made


@pytest.mark.parametrize("what", CHANGES)
def test_the_next_snapshot_equals_a_fresh_one(
    root: Path, ws: Workspace, tracker: Tracker, what: str
) -> None:
    CHANGES[what](root)
    tracker.moved()
    assert tracker.snapshot() == snapshot(ws)


@pytest.mark.parametrize("seed", range(4))
def test_snapshots_equal_fresh_ones_after_any_sequence_of_changes(
    root: Path, ws: Workspace, tracker: Tracker, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    held = [tracker.snapshot().id]
    for _ in range(12):
        with suppress(OSError, subprocess.CalledProcessError):  # what is to change may be gone
            dice.choice(list(CHANGES.values()))(root)
        with suppress(OSError):
            write(root, dice.choice(("src/a.py", "some.new", "b.new")), f"a = {dice.random()}\n")
        if dice.random() < 0.5:
            tracker = Tracker(ws) if dice.random() < 0.5 else tracker  # as the next process does
            tracker.moved()
            held.append(tracker.snapshot().id)
            fresh = opened(root, root.parent / f"fresh-{len(held)}")
            assert tracker.snapshot() == snapshot(ws) == snapshot(fresh)
        elif dice.random() < 0.3:
            restore(ws, dice.choice(held))
        if dice.random() < 0.3:
            write(root, ".gitignore", dice.choice(("*.new\n", "src/\n", "", "deep/\n!b.new\n")))


@pytest.mark.parametrize(
    "act",
    [
        lambda home: write(home, ".config/git/ignore", "some.new\n"),
        lambda home: (
            write(home, "mine", "some.new\n"),
            write(home, ".gitconfig", "[core]\n\texcludesFile = ~/mine\n"),
        ),
    ],
)
def test_the_next_process_goes_by_the_users_own_ignore_rules(
    root: Path, ws: Workspace, tracker: Tracker, act: Callable[[Path], object]
) -> None:
    assert tracker.scan().is_visible("some.new")
    act(root.parent)
    assert not Tracker(ws).scan().is_visible("some.new")


def test_an_incremental_snapshot_restores_everything(
    root: Path, ws: Workspace, tracker: Tracker
) -> None:
    for what in ("an edit", "a new file", "a link", "an odd name"):
        CHANGES[what](root)
        tracker.moved()
        tracker.snapshot()
    there, held = entries(root), tracker.snapshot()
    shutil.rmtree(root / "deep")
    write(root, "src/a.py.txt", "later\n")
    restore(ws, held.id)
    assert entries(root) == there


def test_without_a_command_the_last_scan_is_used_again(tracker: Tracker) -> None:
    seen = tracker.scan()
    assert tracker.scan() is seen
    assert tracker.snapshot() == tracker.snapshot()


def test_changes_of_a_command_are_detected(root: Path, tracker: Tracker) -> None:
    before = tracker.snapshot()
    line = f"from pathlib import Path; Path({str(root / 'ran.txt')!r}).write_text('ran')"
    run(Command(argv=(sys.executable, "-c", line), cwd=root, env=dict(os.environ)))
    assert tracker.snapshot().tree != before.tree


def test_objects_lost_from_the_shadow_are_stored_again(
    root: Path, ws: Workspace, tracker: Tracker
) -> None:
    shutil.rmtree(ws.shadow)
    write(root, "src/a.py", "a = 4\n")
    tracker.moved()
    held = tracker.snapshot()
    assert load(ws, held.id) == held
    assert tree(ws, held.id).read("src/a.py") == b"a = 4\n"
