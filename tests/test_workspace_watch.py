"""What the kernel reports of writes, and that a validation does not rely on it alone."""

import os
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from msgspec.structs import replace

from atlas_retry.gates.validation import run_gates
from atlas_retry.run.open import open_configured, plan, validation_logs
from atlas_retry.workspace import look, walking
from atlas_retry.workspace.watch import FolderWatch
from tests.projects import Project


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "below/old").write_text("old")
    return tmp_path


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: (folder / "new").touch(),
        lambda folder: (folder / "below/old").write_text("new"),
        lambda folder: (folder / "below/old").chmod(0o755),
        lambda folder: (folder / "below/old").rename(folder / "below/new"),
        lambda folder: (folder / "below/old").unlink(),
        lambda folder: (folder / "below/new").symlink_to("old"),
        lambda folder: (folder / "below").rename(folder / "other"),
        lambda folder: os.utime(folder / "below/old", (1, 1)),
    ],
)
def test_a_write_ends_the_watch(folder: Path, write: Callable[[Path], object]) -> None:
    watch = FolderWatch(folder, ["below"])
    assert watch.is_quiet()
    write(folder)
    assert not watch.is_quiet()
    assert not watch.is_quiet()


def test_reading_is_no_write(folder: Path) -> None:
    watch = FolderWatch(folder, ["below"])
    assert (folder / "below/old").read_text() == "old"
    assert os.listdir(folder) == ["below"]  # noqa: PTH208 - read as a gate reads
    assert watch.is_quiet()


def test_a_watch_that_cannot_begin_is_never_quiet(folder: Path) -> None:
    assert not FolderWatch(folder, ["gone"]).is_quiet()


def test_a_watch_that_was_ended_is_never_quiet(folder: Path) -> None:
    watch = FolderWatch(folder, ["below"])
    watch.end()
    assert not watch.is_quiet()
    watch.end()


def test_more_writes_than_the_kernel_counts_end_the_watch(folder: Path) -> None:
    watch = FolderWatch(folder, ["below"])
    for number in range(20_000):
        os.utime(folder / "below/old", (number, number))
    assert not watch.is_quiet()


def _walks(project: Project, gates: list[str], *, check: bool = False) -> tuple[int, bool]:
    """How often a validation looked at all files, and whether it passed."""
    project.configure(validation={"format": gates})
    opened = open_configured(project.root, project.environ)
    how = replace(plan(opened, validation_logs(opened)), check=check)
    opened.tracker.take()
    with (
        mock.patch.object(look, "WATCHED_FILES", 1),
        mock.patch.object(look, "look_again", wraps=walking.look_again) as walked,
    ):
        validation = run_gates(opened.settings.gates, how)
    links = (str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink())
    assert "anon_inode:inotify" not in links
    return walked.call_count, validation.success


@pytest.mark.parametrize("writers", [1, 4])
def test_writers_that_write_nothing_cost_one_look_together(project: Project, writers: int) -> None:
    assert _walks(project, ["true"] * writers) == (1, True)


def test_a_write_that_no_folder_reports_is_found_at_the_end(project: Project) -> None:
    outside = project.root.parent / "link"
    outside.hardlink_to(project.root / "calc.py")
    os.utime(outside, (1, 1))  # one changed in the same second is dated, which is a further write
    once = "test -e ../done || { touch ../done; echo '# more' >> ../link; }"
    walks, passed = _walks(project, ["echo first >> ../runs", once])
    assert passed
    assert walks == 2
    assert (project.root.parent / "runs").read_text() == "first\n" * 2


def test_a_write_that_no_folder_reports_fails_a_check(project: Project) -> None:
    (project.root.parent / "link").hardlink_to(project.root / "calc.py")
    once = "test -e ../done || { touch ../done; echo '# more' >> ../link; }"
    _, passed = _walks(project, ["true", once], check=True)
    assert not passed
