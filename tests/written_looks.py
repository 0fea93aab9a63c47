"""Changes a work tree at random, and compares looks at it with walks over all of it.

python -m tests.written_looks ROOT STATE UPPER SEED, from within an overlay whose upper layer
is there, prints how many looks took no walk.
"""

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest import mock

from msgspec.structs import replace

from atlas_retry.workspace import walking
from atlas_retry.workspace.discovery import Workspace, open_workspace
from atlas_retry.workspace.scan import Scan
from atlas_retry.workspace.walking import look_again, look_over

STEPS = 40
NAMES = ("a", "b", "c.txt", "d", "x.log", "build", "node_modules")
SELDOM = (".gitignore", ".cache", "target")
COMPARED = (
    "files",
    "ignored",
    "folders",
    "left_out",
    "unheld",
    "ignored_bytes",
    "top",
    "upper",
    "rules",
)


def prepare(root: Path) -> None:
    """A work tree with folders of every kind: tracked, ignored, empty, a tracked cache."""
    for number in range(30):
        file = root / f"a/{number % 5}/b/{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}")
    for name in ("node_modules/m/i.js", "build/o", "k.log", "target/t"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "a/0/empty").mkdir()
    (root / ".gitignore").write_text("node_modules\nbuild/\n*.log\n")


def _write(path: Path, _: Path, dice: random.Random) -> None:
    path.write_text("*.log\n" if path.name == ".gitignore" else f"{dice.random()}")


def _make(path: Path, _: Path, __: random.Random) -> None:
    path.mkdir()


def _rewrite(_: Path, there: Path, dice: random.Random) -> None:
    _write(there, there, dice)


def _remove(_: Path, there: Path, __: random.Random) -> None:
    shutil.rmtree(there) if there.is_dir() and not there.is_symlink() else there.unlink()


def _move(path: Path, there: Path, _: random.Random) -> None:
    shutil.move(there, path)


def _copy(path: Path, there: Path, _: random.Random) -> None:
    if not path.is_relative_to(there.parent):
        shutil.copytree(there.parent, path, symlinks=True)


def _mode(_: Path, there: Path, dice: random.Random) -> None:
    there.chmod(dice.choice((0o700, 0o755) if there.is_dir() else (0o644, 0o755)))


def _link(path: Path, _: Path, __: random.Random) -> None:
    path.symlink_to("a")


ACTS: tuple[Callable[[Path, Path, random.Random], None], ...] = (
    *(_write, _write, _make, _rewrite, _rewrite, _remove, _move, _copy, _mode, _link),
)


def change(root: Path, dice: random.Random) -> None:
    """One change somewhere; one that the file system refuses is none."""
    there = [p for p in sorted(root.rglob("*")) if ".git" not in p.relative_to(root).parts]
    folders = [p for p in there if p.is_dir() and not p.is_symlink()] or [root]
    name = dice.choice(SELDOM if dice.random() < 1 / 20 else NAMES)
    with suppress(OSError, shutil.Error):
        dice.choice(ACTS)(dice.choice(folders) / name, dice.choice(there or [root]), dice)


def _unlike(looked: Scan, walked: Scan) -> Iterator[str]:
    for name in COMPARED:
        one, other = getattr(looked, name), getattr(walked, name)
        if one != other:
            yield f"{name}: {one!r} is not {other!r}"
    if sorted(looked.empty) != sorted(walked.empty):
        yield f"empty: {looked.empty} is not {walked.empty}"


def spared_walks(ws: Workspace, act: Callable[[random.Random], object], dice: random.Random) -> int:
    """How many looks took no walk. Raises AssertionError where one is not as a walk finds it."""
    last, spared = look_over(ws), 0
    for number in range(STEPS):
        for _ in range(dice.randint(0, 3)):
            act(dice)
        with mock.patch.object(walking, "look_over", wraps=look_over) as walked:
            last = look_again(ws, last)
        spared += not walked.called
        if unlike := [*_unlike(last, look_over(ws))]:
            raise AssertionError(f"step {number}\n" + "\n".join(unlike))
    return spared


def main(root: Path, state: Path, upper: Path, seed: int) -> None:
    """From within the overlay."""
    ws = replace(open_workspace(root, state, environ=os.environ), upper=upper)
    dice = random.Random(seed)  # noqa: S311 - a seed that can be repeated
    sys.stdout.write(f"{spared_walks(ws, partial(change, ws.root), dice)}\n")


if __name__ == "__main__":
    root, state, upper = map(Path, sys.argv[1:4])
    main(root, state, upper, int(sys.argv[4]))
