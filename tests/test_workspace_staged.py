"""What is staged is read from git, in every form in which git writes an index."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_retry.workspace.git import GitError, as_staged, staged, tracked
from tests.repositories import git, write

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def _sparse(root: Path) -> None:
    write(root, "aside/c.py", "c = 1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    git(root, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(root, "sparse-checkout", "set", "src")  # before git 2.35 it has no --cone


FORMS: dict[str, Callable[[Path], object]] = {
    "version 4": lambda root: git(root, "update-index", "--index-version", "4"),
    "split": lambda root: git(root, "update-index", "--split-index"),
    "sparse": _sparse,
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_an_index_makes_no_difference(root: Path, form: str) -> None:
    write(root, "odd\nname", "1")
    git(root, "add", "-A")
    before = staged(root, ENV)
    FORMS[form](root)
    after = staged(root, ENV)
    assert before.ids.items() <= after.ids.items()
    assert form == "sparse" or before.digest == after.digest


@pytest.mark.parametrize(
    ("flag", "name"),
    [("--skip-worktree", "skip-worktree"), ("--assume-unchanged", "assume-unchanged")],
)
def test_flags_by_which_git_overlooks_a_file_are_seen(root: Path, flag: str, name: str) -> None:
    before = staged(root, ENV)
    git(root, "update-index", flag, "src/a.py")
    assert staged(root, ENV).flags == {"src/a.py": name}
    assert staged(root, ENV).digest != before.digest
    assert "src/a.py" not in staged(root, ENV).ids


def test_content_is_known_only_of_files_that_are_as_staged(root: Path) -> None:
    write(root, "src/a.py", "a = 2\n")
    assert as_staged(root, ENV).keys() == {"src/b.py", "run.sh"}


def test_the_ids_of_another_kind_of_repository_are_not_mixed_with_ours(tmp_path: Path) -> None:
    root = tmp_path / "of-sha256"
    git(tmp_path, "init", "-q", "--object-format=sha256", str(root))
    write(root, "a.py", "a = 1\n")
    git(root, "add", "-A")
    assert staged(root, ENV).ids.keys() == {"a.py"}
    assert as_staged(root, ENV) == {}


def test_only_files_of_the_index_are_tracked(root: Path) -> None:
    write(root, "new.py", "n\n")
    assert tracked(root, ENV, ["new.py", "src/a.py", "gone.py"]) == {"src/a.py"}
    assert tracked(root, ENV, [*map(str, range(300)), "run.sh"]) == {"run.sh"}


@pytest.mark.parametrize("content", [b"DIRC", b"no index"])
def test_a_broken_index_is_an_error(root: Path, content: bytes) -> None:
    (root / ".git/index").write_bytes(content)
    with pytest.raises(GitError):
        staged(root, ENV)
