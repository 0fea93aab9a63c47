"""A look that is made from the last one finds what a walk over all of the work tree finds."""

import random
from contextlib import suppress
from functools import partial
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from atlas_retry.workspace.discovery import Workspace
from tests.repositories import git
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
    assert spared_walks(ws, partial(_or_git, ws.root), dice) > STEPS / 4
