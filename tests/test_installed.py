"""What is installed: held before a turn, compared and put back after it."""

from pathlib import Path

import pytest

from atlas_retry.workspace.installed import MAX_FILE_BYTES, Holding, Stats, hold
from atlas_retry.workspace.scan import stat_of

BIG = "node_modules/esbuild/bin/esbuild"
SMALL = "node_modules/dep/index.js"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    written(root, BIG, b"x" * (MAX_FILE_BYTES + 1))
    written(root, SMALL, b"y")
    return root


def written(root: Path, path: str, content: bytes) -> None:
    """A file made anew, as installers do."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name("fresh")
    fresh.write_bytes(content)
    fresh.replace(target)


def seen(root: Path, *paths: str) -> Stats:
    return {path: stat_of((root / path).lstat()) for path in paths}


def held(root: Path, *paths: str) -> tuple[Holding, Stats]:
    was = seen(root, *(paths or (BIG, SMALL)))
    return hold(root, root.parent / "held", was, ()), was


@pytest.mark.parametrize("path", [BIG, SMALL])
def test_a_file_rewritten_with_the_same_bytes_is_the_same(root: Path, path: str) -> None:
    holding, was = held(root)
    written(root, path, (root / path).read_bytes())
    assert seen(root, path) != {path: was[path]}
    assert holding.is_same(path, was[path])


@pytest.mark.parametrize("path", [BIG, SMALL])
def test_a_file_of_the_same_size_with_another_byte_differs(root: Path, path: str) -> None:
    holding, was = held(root)
    written(root, path, b"z" + (root / path).read_bytes()[1:])
    assert not holding.is_same(path, was[path])


def test_a_big_file_is_known_and_cannot_be_put_back(root: Path) -> None:
    holding, was = held(root)
    assert not holding.holds(BIG, was[BIG])
    assert not holding.put_back(BIG)
    assert holding.holds(SMALL, was[SMALL])


def test_what_is_big_is_read_once(root: Path) -> None:
    held(root)
    was = seen(root, BIG)
    # whoever reads it would notice: it cannot be read any more, and its stat data are as before
    contents = root.parent / "held/contents"
    before = contents.stat().st_size
    holding, _ = held(root)
    assert holding.files[BIG].digest
    assert contents.stat().st_size == before == 1
    assert seen(root, BIG) == was


def test_a_big_file_becomes_held_when_a_gate_starts_it(root: Path) -> None:
    held(root)
    was = seen(root, BIG, SMALL)
    holding = hold(root, root.parent / "held", was, (BIG,))
    written(root, BIG, b"other")
    assert holding.put_back(BIG)
    assert (root / BIG).stat().st_size == MAX_FILE_BYTES + 1
