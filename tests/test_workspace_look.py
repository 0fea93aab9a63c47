"""Looks at a work tree: what counts as moved between two, and who knows what was there before."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.snapshot.look import FEW_FILES, Look, Tracker, moved
from tests.repositories import git

FILE, TOOL, LINK = 0o100644, 0o100755, 0o120777
OLD_NS, NOW_NS = 10_000_000_001, 100_000_000_001


def at(mode: int = FILE, size: int = 1, ns: int = OLD_NS) -> tuple[int, int, int, int, int]:
    return (mode, size, ns, ns, 1)


def look(file: tuple[int, int, int, int, int] | None, content: str | None = None) -> Look:
    files = {} if file is None else {"a": file}
    unsettled = [path for path, seen in files.items() if seen[2] == NOW_NS]
    ids = {} if content is None else {"a": content}
    return Look(files=files, taken_ns=NOW_NS, ids=ids, unsettled=unsettled)


@pytest.mark.parametrize(
    ("before", "after", "has_moved"),
    [
        (look(at()), look(at()), False),
        (look(at()), look(None), True),
        (look(None), look(at()), True),
        (look(at(size=1)), look(at(size=2, ns=NOW_NS)), True),
        (look(at()), look(at(mode=TOOL)), True),
        (look(at(), "x"), look(at(mode=0o100600, ns=NOW_NS), "x"), False),
        (look(at(mode=LINK)), look(at()), True),
        (look(at()), look(at(ns=NOW_NS)), True),
        (look(at()), look(at(ns=NOW_NS), "x"), True),
        (look(at(), "x"), look(at(ns=NOW_NS)), True),
        (look(at(), "x"), look(at(ns=NOW_NS), "x"), False),
        (look(at(), "y"), look(at(ns=NOW_NS), "x"), True),
        (look(at(ns=NOW_NS), "x"), look(at(ns=NOW_NS), "x"), False),
        (look(at(ns=NOW_NS), "x"), look(at(ns=NOW_NS), "y"), True),
        (look(at(ns=NOW_NS)), look(at(ns=NOW_NS), "y"), False),
    ],
)
def test_changes_are_decided_by_content_mode_or_the_stat_of_unread_files(
    before: Look, after: Look, *, has_moved: bool
) -> None:
    assert moved(before, after) == (("a",) if has_moved else ())


def between(ws: Workspace, happens: Callable[[], object]) -> tuple[str, ...]:
    tracker = Tracker(ws)
    before = tracker.look()
    with tracker.elsewhere():
        happens()
    return moved(before, tracker.look())


def aged(root: Path, *names: str) -> None:
    """So old that nobody has to read them for fear of a coarse clock."""
    for name in names:
        os.utime(root / name, ns=(OLD_NS, OLD_NS))


def rewrite(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["tracked", "dirty", "untracked"])
def test_a_file_rewritten_with_the_same_content_has_not_changed(name: str, ws: Workspace) -> None:
    for each in ("tracked", "dirty"):
        (ws.root / each).write_text("first\n")
    git(ws.root, "add", "tracked", "dirty")
    git(ws.root, "commit", "-q", "-m", "more")
    (ws.root / "dirty").write_text("second\n")
    (ws.root / "untracked").write_text("first\n")
    assert between(ws, lambda: rewrite(ws.root / name)) == ()


@pytest.mark.parametrize("is_held", [False, True])
def test_content_that_no_look_read_is_known_from_the_index_or_a_snapshot(
    ws: Workspace, *, is_held: bool
) -> None:
    for number in range(FEW_FILES):
        (ws.root / f"{number}").write_text("as it was\n")
        aged(ws.root, f"{number}")
    if not is_held:
        git(ws.root, "add", "-A")
    time.sleep(0.2)  # or nobody could be sure that no write follows at the same time
    tracker = Tracker(ws)
    if is_held:
        tracker.snapshot()
    before = tracker.look()
    rewrite(ws.root / "7")
    tracker.moved()
    assert moved(before, tracker.look()) == ()
    (ws.root / "8").write_text("as it is!\n")
    tracker.moved()
    assert moved(before, tracker.look()) == ("8",)


def test_content_is_known_from_the_snapshot_of_the_first_look_after_later_ones(
    ws: Workspace,
) -> None:
    path = ws.root / "data"
    path.write_text("as it was\n")
    aged(ws.root, "data")
    time.sleep(0.2)  # or a snapshot could not be sure
    tracker = Tracker(ws)
    tracker.snapshot()
    before = tracker.look()
    for text, moved_paths in (("written by a gate\n", ("data",)), ("as it was\n", ())):
        path.write_text(text)
        tracker.take()
        assert moved(before, tracker.look()) == moved_paths


def test_a_change_with_a_restored_timestamp_is_detected(ws: Workspace) -> None:
    path = ws.root / "kept"
    path.write_text("one\n")
    aged(ws.root, "kept")

    def hide() -> None:
        path.write_text("two\n")
        aged(ws.root, "kept")

    assert between(ws, hide) == ("kept",)


def test_ignored_files_are_skipped_except_in_nested_repositories(ws: Workspace) -> None:
    (ws.root / ".gitignore").write_text("*.log\n")
    nested = ws.root / "nested"
    for folder in (nested, nested / "deep"):
        folder.mkdir()
        git(folder, "init", "-q")

    def write() -> None:
        (ws.root / "a.log").write_text("1\n")
        (nested / "a.log").write_text("1\n")
        (nested / "deep" / "b.py").write_text("1\n")

    assert between(ws, write) == ("nested/a.log", "nested/deep/b.py")


def test_with_an_unreadable_repository_all_files_count(ws: Workspace) -> None:
    (ws.root / ".gitignore").write_text("*.log\n")
    (ws.root / ".git" / "HEAD").write_text("broken\n")
    assert between(ws, lambda: (ws.root / "a.log").write_text("1\n")) == ("a.log",)


def test_filters_of_the_repository_are_not_run(ws: Workspace) -> None:
    (ws.root / ".gitattributes").write_text("*.txt filter=spy\n")
    git(ws.root, "config", "filter.spy.clean", "touch ran; cat")
    (ws.root / "a.txt").write_text("1\n")
    subprocess.run(("rm", "-f", ws.root / "ran"), check=True)
    (ws.root / "a.txt").write_text("2\n")
    Tracker(ws).look()
    assert not (ws.root / "ran").exists()


def test_the_state_directory_is_skipped(ws: Workspace) -> None:
    def write() -> None:
        (ws.root / "state").mkdir()
        (ws.root / "state" / "a.py").write_text("1\n")

    assert between(replace(ws, state=ws.root / "state"), write) == ()
