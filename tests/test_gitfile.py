"""A work tree whose `.git` is a file gets it back first, and no other repository is touched."""

import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from atlas_retry.model import Verdict
from tests.miniatures import ADD, REPAIR, miniature, named
from tests.projects import IDENTITY, LIMIT_S, Project, atlas, git
from tests.test_person_in_git import shell

Environ = dict[str, str]
CHECK = {"test": ["python -S -c 'from calc import add; assert add(1, 2) == 3'"]}
ME = " ".join(("git", *IDENTITY))
KINDS: Mapping[str, str] = {
    "worktree": "git worktree add -q nested/work -b work",
    "submodule": f"{ME} -c protocol.file.allow=always submodule add -q ./ nested/work;"
    f" {ME} commit -qam sub",
    "separate": "git clone -q --separate-git-dir ../store . nested/work",
}
"""Each makes a work tree inside another one, which git finds once the file is gone."""
TURNS: Mapping[str, str] = {
    "removed": "rm .git",
    "junk": "echo junk > .git",
    "repointed": 'echo "gitdir: $(cd ../..; pwd)/.git" > .git',
    "linked": "rm .git; ln -s ../../.git .git",
    "new": "rm .git; git init -q; git add -A; git -c user.name=a -c user.email=b commit -qm x",
    "committed": f"rm .git; {ME} add -A .; {ME} commit -qm x",
}


def inner(tmp_path: Path, environ: Environ, kind: str, turns: list[str]) -> tuple[Project, Path]:
    """A project inside the work tree of another repository, and that one's root."""
    outer = miniature(tmp_path, environ, {"calc.py": ADD}, turns, validation=CHECK)
    shell(outer.root, f"{KINDS[kind]}; git -C nested/work switch -qC mine", outer.environ)
    return Project(root=outer.root / "nested/work", script=outer.script, environ=outer.environ), (
        outer.root
    )


def heads(root: Path, environ: Environ) -> str:
    """HEAD and its branch, and what is staged."""
    asked = "git symbolic-ref HEAD; git rev-parse HEAD; git diff --cached --name-only; git branch"
    return shell(root, asked, environ)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_gitfile_that_an_agent_destroyed_is_restored_first(
    tmp_path: Path, environ: Environ, kind: str, turn: str
) -> None:
    project, outer = inner(tmp_path, environ, kind, [f"{REPAIR}\n{TURNS[turn]}"] * 2)
    before, content = heads(project.root, environ), (project.root / ".git").read_text()
    there = heads(outer, environ)
    outcome = project.retry()
    assert outcome.verdict is Verdict.REJECTED
    assert ".git" in named(outcome)["refused"]
    assert (project.root / ".git").read_text() == content
    assert (project.root / "calc.py").read_text() == ADD
    assert heads(project.root, environ) == before
    if turn != "committed":  # that the agent reached another repository is seen, not undone
        assert heads(outer, environ) == there
    undone = atlas(project, "undo")
    assert undone.code == 0, undone.out
    assert heads(project.root, environ) == before


@pytest.mark.parametrize("command", [("undo",), ("retry", "."), ("resume", ".", "--ai-fix")])
@pytest.mark.parametrize("turn", ["removed", "junk", "repointed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.in_place("in layers the file outside is never changed")
def test_after_a_kill_the_gitfile_is_restored_before_git_is_asked(
    tmp_path: Path, environ: Environ, kind: str, turn: str, command: tuple[str, ...]
) -> None:
    kill = f"{REPAIR}\n{TURNS[turn]}\nkill -KILL $PPID; sleep 5"
    project, outer = inner(tmp_path, environ, kind, [kill, REPAIR])
    content, there = (project.root / ".git").read_text(), heads(outer, environ)
    before = heads(project.root, environ)
    line = (
        (project.script / "1.sh")
        .read_text()
        .replace("$PPID", "$(awk '/^PPid/ {print $2}' /proc/$PPID/status)")
    )
    (project.script / "1.sh").write_text(line)
    killed = atlas(project, "retry", ".", "--ai-fix")
    assert killed.code in (-signal.SIGKILL, 137), killed
    until = time.monotonic() + LIMIT_S
    while not [*Path(environ["ATLAS_HOME"]).glob("runs/*/all-ended")]:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert (
        (project.root / ".git").is_symlink()
        or not (project.root / ".git").exists()
        or ((project.root / ".git").read_text() != content)
    )
    ended = atlas(project, *command)
    assert (project.root / ".git").read_text() == content, ended
    assert heads(outer, environ) == there
    assert heads(project.root, environ) == before
    if command == ("undo",):
        assert (project.root / "calc.py").read_text() == ADD


def test_a_gitfile_that_the_user_moves_after_a_run_is_not_restored(
    tmp_path: Path, environ: Environ
) -> None:
    project, _ = inner(tmp_path, environ, "separate", [REPAIR])
    assert project.retry().verdict is Verdict.FIXED
    store = tmp_path / "elsewhere"
    git(project.root, "init", "-q", "--separate-git-dir", str(store), environ=environ)
    assert atlas(project, "status").code == 0
    assert str(store) in (project.root / ".git").read_text()
