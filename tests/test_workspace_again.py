"""A look that is made from the last one finds what a walk over all of the work tree finds."""

import random
from contextlib import suppress
from functools import partial
from pathlib import Path
from subprocess import CalledProcessError
from unittest import mock

import pytest

from atlas_retry.workspace import walking
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.walking import look_again, look_over
from tests.repositories import git, write
from tests.written_looks import STEPS, change, prepare, spared_walks

GIT = (
    *("add -A", "add -A -f", "reset -q", "commit -qm more", "checkout -q -- .", "stash -q"),
    *("rm -rq --cached --ignore-unmatch a k.log", "checkout -q --detach HEAD", "clean -qfd"),
    *("config core.ignoreCase false", "update-index --split-index"),
)


def _or_git(root: Path, dice: random.Random) -> None:
    if dice.random() < 0.75:
        change(root, dice)
        return
    with suppress(CalledProcessError):
        git(root, *dice.choice(GIT).split())


@pytest.mark.parametrize("seed", range(6))
def test_a_look_again_equals_a_full_walk(ws: Workspace, seed: int) -> None:
    prepare(ws.root)
    git(ws.root, "add", "-A", "-f", "a", "target", ".gitignore")
    git(ws.root, "commit", "-q", "-m", "start")
    dice = random.Random(seed)  # noqa: S311 - a seed that can be repeated
    assert spared_walks(ws, partial(_or_git, ws.root), dice) > STEPS / 8


@pytest.mark.parametrize(
    ("rules", "own", "is_spared"),
    [("target\n", None, True), ("", "*\n", True), ("", "*\n!seen\n", False), ("", None, False)],
)
def test_a_cache_folder_is_not_walked_if_git_ignores_all_of_it(
    ws: Workspace, rules: str, own: str | None, *, is_spared: bool
) -> None:
    write(ws.root, ".gitignore", rules)
    (ws.root / "target").mkdir()
    if own:
        write(ws.root, "target/.gitignore", own)
    first = look_over(ws)
    assert "target/" in first.left_out
    with mock.patch.object(walking, "look_over", wraps=look_over) as walked:
        again = look_again(ws, first)
        write(ws.root, "target/seen", "s")
        again = look_again(ws, again)
    assert walked.called is not is_spared
    assert again.files == look_over(ws).files
