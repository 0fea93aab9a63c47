"""A folder that is under no git: what changes in it is seen."""

import os
import tracemalloc
from pathlib import Path

from atlas_retry.workspace.discovery import unopened
from atlas_retry.workspace.snapshot.look import Tracker, moved

MIB = 1 << 20


def tracker_of(root: Path) -> Tracker:
    return Tracker(unopened(root, root.parent / "state", environ=os.environ))


def test_files_differ_by_content_mode_and_link_target(tmp_path: Path) -> None:
    for name in ("content", "mode", "same"):
        (tmp_path / name).write_text("a\n")
    (tmp_path / "link").symlink_to("same")
    os.mkfifo(tmp_path / "pipe")
    tracker = tracker_of(tmp_path)
    before = tracker.look()
    (tmp_path / "content").write_text("b\n")
    (tmp_path / "mode").chmod(0o755)
    (tmp_path / "same").touch()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("nowhere")
    tracker.moved()
    assert moved(before, tracker.look()) == ("content", "link", "mode")


def test_a_big_file_is_not_loaded_into_memory(tmp_path: Path) -> None:
    with (tmp_path / "data.bin").open("wb") as file:
        file.truncate(32 * MIB)
    tracemalloc.start()
    try:
        tracker_of(tmp_path).look()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB
