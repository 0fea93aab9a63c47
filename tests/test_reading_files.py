"""Reading files that atlas did not write: regular files only, nothing left open."""

import os
from pathlib import Path

import pytest

from atlas_retry.reading import read_file


def test_what_is_no_regular_file_is_refused_and_closed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    before = list(Path("/proc/self/fd").iterdir())
    for path in (tmp_path, tmp_path / "fifo", Path("/dev/null"), tmp_path / "gone"):
        with pytest.raises(OSError, match=r"regular|No such"):
            read_file(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_file(tmp_path / "a", 5) == b"12345"
    with pytest.raises(OSError, match="longer than 4 bytes"):
        read_file(tmp_path / "a", 4)
