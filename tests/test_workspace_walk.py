"""What a walk of a work tree records, and as what."""

import os
from pathlib import Path

import pytest

from atlas_retry.workspace.files import TEMPORARY
from atlas_retry.workspace.walk import scan
from tests.repositories import write


def test_a_folder_that_holds_only_what_a_killed_restore_left_is_empty(tmp_path: Path) -> None:
    write(tmp_path, f"empty/{TEMPORARY}", "half")
    seen = scan(tmp_path, None)
    assert (seen.empty, seen.leftovers) == (["empty"], [f"empty/{TEMPORARY}"])


@pytest.mark.parametrize("inner", ["sub", "sub/"], ids=["submodule", "nested repository"])
def test_git_is_asked_again_in_a_repository_inside(inner: str, tmp_path: Path) -> None:
    write(tmp_path, "sub/seen.py", "x")
    write(tmp_path, "sub/made.log", "x")
    listed = {"": ["top.py", inner], "sub/": ["seen.py"]}
    seen = scan(tmp_path, listed.__getitem__)
    assert set(seen.visible()) == {"sub/seen.py"}
    assert seen.ignored == {"sub/made.log"}


def test_a_folder_of_only_caches_is_not_empty(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path, f"target/{name}/made", "x")
    write(tmp_path, "target/tracked", "x")
    seen = scan(tmp_path, {"": ["target/tracked"]}.__getitem__)
    assert (seen.empty, [*seen.left_out]) == ([], ["target/"])


def test_two_walks_share_what_is_equal(tmp_path: Path) -> None:
    write(tmp_path, "same", "x")
    write(tmp_path, "other", "x")
    before = scan(tmp_path, None).files
    os.utime(tmp_path / "other", (1, 1))
    now = scan(tmp_path, None, last=before).files
    assert now["same"] is before["same"]
    assert now["other"][2] == 1_000_000_000
