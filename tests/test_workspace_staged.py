"""The index file is read as git reads it, in every form in which git writes it."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_retry.workspace.discovery import uncommitted
from atlas_retry.workspace.git import GitError
from atlas_retry.workspace.staged import Index, compared, staged
from atlas_retry.workspace.walking import look_over
from tests.repositories import SHAPES, Shape, git, opened, repository, write


def _index(root: Path) -> Index:
    return staged(root, {"PATH": os.environ["PATH"]}, root / ".git/index")


def _listed(root: Path) -> dict[str, str]:
    lines = git(root, "ls-files", "-z", "--stage").split(b"\0")[:-1]
    entries = (os.fsdecode(line).partition("\t") for line in lines)
    return {path: facts.split(" ")[1] for facts, _, path in entries}


def _sparse(root: Path) -> None:
    write(root, "aside/c.py", "c = 1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "src")


FORMS: dict[str, Callable[[Path], object]] = {
    "as git makes it": lambda _: None,
    "without a file": lambda root: (root / ".git/index").unlink(),
    "version 4": lambda root: git(root, "update-index", "--index-version", "4"),
    "split": lambda root: git(root, "update-index", "--split-index"),
    "sparse": _sparse,
    "flags": lambda root: git(root, "update-index", "--skip-worktree", "src/a.py"),
    "a file to be added": lambda root: (write(root, "n\nm"), git(root, "add", "-N", "n\nm")),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_index_is_read_as_git_reads_it(root: Path, form: str) -> None:
    for length in range(1, 20):
        write(root, f"of/{'n' * length}", f"{length}")
    git(root, "add", "-A")
    FORMS[form](root)
    index, files = _index(root), look_over(opened(root)).files
    same = index.at.keys() - {*index.unlike(index.at, files)}
    ids = index.ids_when({path: files[path] for path in same})
    assert {**_listed(root), **ids} == _listed(root)
    assert index.at.keys() == _listed(root).keys()


def test_the_ids_of_another_kind_of_repository_are_not_mixed_with_ours(tmp_path: Path) -> None:
    root = tmp_path / "of-sha256"
    git(tmp_path, "init", "-q", "--object-format=sha256", str(root))
    write(root, "a.py", "a = 1\n")
    git(root, "add", "-A")
    assert _index(root).at.keys() == {"a.py"}
    assert _index(root).ids_when(look_over(opened(root)).files) == {}


@pytest.mark.parametrize("content", [b"DIRC", b"no index", b"DIRC\0\0\0\2\0\0\0\1" + b"\0" * 80])
def test_a_broken_index_is_an_error(root: Path, content: bytes) -> None:
    (root / ".git/index").write_bytes(content)
    with pytest.raises(GitError):
        _index(root)


def test_what_moved_while_the_index_was_written_counts_as_unlike(root: Path) -> None:
    index, files = _index(root), look_over(opened(root)).files
    moment_ns = files["src/a.py"][2]
    os.utime(root / ".git/index", ns=(moment_ns, moment_ns))
    assert "src/a.py" in {*_index(root).unlike(index.at, files)}


ACTS: tuple[Callable[[Path, random.Random], object], ...] = (
    lambda root, dice: write(root, f"src/{dice.choice('abn')}.py", dice.choice(["a = 1\n", "x"])),
    lambda root, _: shutil.rmtree(root / "src", ignore_errors=True),
    lambda root, dice: write(root, f"new/{dice.choice('xyz')}", "new\n"),
    lambda root, _: write(root, ".gitignore", "*.log\nnew/x\n"),
    lambda root, _: write(root, "ignored.log", "l"),
    lambda root, _: git(root, "add", "-A"),
    lambda root, _: git(root, "add", "-A", "-f"),
    lambda root, _: git(root, "commit", "-qm", "more", "--allow-empty"),
    lambda root, _: git(root, "reset", "-q"),
    lambda root, _: git(root, "rm", "-rq", "--cached", "--ignore-unmatch", "new"),
    lambda root, _: git(root, "update-index", "--assume-unchanged", "run.sh"),
    lambda root, _: (root / "run.sh").chmod(0o644),
    lambda root, _: os.utime(root / "run.sh", (1, 1)),
)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_uncommitted_is_what_git_says(root: Path, seed: int) -> None:
    ws, dice = opened(root), random.Random(seed)  # noqa: S311 - a seed that can be repeated
    for _ in range(12):
        dice.choice(ACTS)(root, dice)
        assert compared(ws, look_over(ws)) == uncommitted(root, ws.environ)


def test_before_the_first_commit_all_is_uncommitted(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    shutil.rmtree(root / ".git")
    git(root, "init", "-q")
    ws = opened(root)
    assert compared(ws, look_over(ws)) == uncommitted(root, ws.environ)
    git(root, "add", "-A")
    assert compared(ws, look_over(ws)) == uncommitted(root, ws.environ)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_in_every_kind_of_repository_git_says_the_same(shape: Shape, tmp_path: Path) -> None:
    ws = opened(shape.make(tmp_path))
    assert compared(ws, look_over(ws)) == uncommitted(ws.root, ws.environ)
