"""Lines that are new, compared with a commit: what somebody has just changed."""

from pathlib import Path

import pytest

from atlas_retry.workspace.changed import changed_lines
from tests.repositories import ENVIRON, git, write


def changed(root: Path, base: str | None = None) -> dict[str, list[int]]:
    line_ranges = changed_lines(root, base, environ=ENVIRON)
    return {
        path: [line for lines in ranges for line in lines] for path, ranges in line_ranges.items()
    }


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", [2]),
        ("a\nb\nc\n", "a\nb\nx\ny\nc\n", [3, 4]),
        ("a\nb\nc\n", "a\nc\n", [1, 2]),
        ("a\r\nb\r\n", "a\nB\n", [2]),
    ],
    ids=["replaced", "added", "taken out", "with other line ends"],
)
def test_uncommitted_lines_are_new(root: Path, before: str, after: str, lines: list[int]) -> None:
    write(root, "src/new.py", before)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "before")
    write(root, "src/new.py", after)
    assert changed(root) == {"src/new.py": lines}


def test_every_line_of_an_untracked_file_is_new(root: Path) -> None:
    write(root, "src/new.py", "a\nb\n")
    assert changed(root) == {"src/new.py": [1, 2]}


def test_with_everything_committed_the_last_commit_is_new(root: Path) -> None:
    write(root, "src/new.py", "a\nb\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "new")
    assert changed(root) == {"src/new.py": [1, 2]}
    assert changed(root, "HEAD") == {}


def test_without_git_or_a_commit_no_lines_are_new(tmp_path: Path, root: Path) -> None:
    assert changed(tmp_path) == {}
    assert changed(root, "no-such-commit") == {}
    git(tmp_path, "init", "-q", "empty")
    assert changed(tmp_path / "empty") == {}


def test_files_that_are_not_sources_are_not_read(root: Path) -> None:
    with (root / "core.dump").open("wb") as file:
        file.truncate(1 << 40)
    write(root, "new.py", "n\n")
    assert changed_lines(root, None, environ=ENVIRON) == {"new.py": (range(1, 2),)}
