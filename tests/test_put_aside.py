"""Unstaged work that a stopped gate had put aside is back: pre-commit, or a stash by hand."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.processes import PYTHON, until
from tests.projects import Project, atlas
from tests.repositories import git

SLOW = "touch {mark}; sleep 60"
GATES = {
    "pre-commit": f"{PYTHON} -m pre_commit run",
    "stash": "git stash push -q -k && { touch {mark}; sleep 60; git stash pop -q; }",
    "stash of untracked files": "git stash -q -u -k && { touch {mark}; sleep 60; git stash pop; }",
    "by hand": "git diff > ../kept; git checkout -q -- .; touch {mark}; sleep 60",
}
BEGUN = {"a.txt": "one\nstaged\nunstaged\n", "b.txt": "unstaged\n", "new.txt": "new\n"}


def begin(project: Project, gate: str) -> None:
    """Staged, unstaged and untracked work, and a gate that puts it aside."""
    mark = project.root.parent / "mark"
    entry = json.dumps(f'sh -c "{SLOW.format(mark=mark)}"')
    hook = f"{{id: slow, name: slow, language: system, entry: {entry}, always_run: true}}"
    (project.root / ".pre-commit-config.yaml").write_text(
        f"repos: [{{repo: local, hooks: [{hook}]}}]\n"
    )
    (project.root / "a.txt").write_text("one\n")
    (project.root / "b.txt").write_text("two\n")
    run = GATES[gate].replace("{mark}", str(mark))
    project.configure(validation={"pre_commit": [{"run": run, "name": "slow", "timeout": "60s"}]})
    project.commit()
    (project.root / "a.txt").write_text("one\nstaged\n")
    git(project.root, "add", "a.txt")
    for name, text in BEGUN.items():
        (project.root / name).write_text(text)


def work(project: Project) -> dict[str, str]:
    paths = [project.root / name for name in BEGUN]
    return {path.name: path.read_text() for path in paths if path.exists()}


def started(project: Project, *argv: str) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, cwd=project.root, env=project.environ, stdout=quiet, stderr=quiet)


def has_begun(project: Project) -> bool:
    return (project.root.parent / "mark").exists()


@pytest.mark.parametrize(
    ("gate", "signum"),
    [*((gate, signal.SIGINT) for gate in GATES), ("pre-commit", signal.SIGTERM)],
)
def test_unstaged_work_is_back_after_a_signal(gate: str, signum: int, project: Project) -> None:
    begin(begun := project, gate)
    with started(begun, sys.executable, "-m", "atlas_retry", "validate", "--plain") as child:
        until(lambda: has_begun(begun))
        child.send_signal(signum)
        assert child.wait(timeout=60) == 128 + signum
    assert work(begun) == BEGUN
    assert git(begun.root, "show", ":a.txt") == b"one\nstaged\n"


@pytest.mark.parametrize("pause_s", [0, 0.02, 0.2])
def test_unstaged_work_is_back_after_two_signals(pause_s: float, project: Project) -> None:
    begin(begun := project, "stash")
    with started(begun, sys.executable, "-m", "atlas_retry", "validate", "--plain") as child:
        until(lambda: has_begun(begun))
        child.send_signal(signal.SIGINT)
        time.sleep(pause_s)
        child.send_signal(signal.SIGTERM)
        child.wait(timeout=60)
    assert work(begun) == BEGUN


def test_unstaged_work_is_back_after_a_stop_of_a_fixer(project: Project) -> None:
    begin(begun := project, "stash")
    fix = GATES["stash"].replace("{mark}", str(begun.root.parent / "mark"))
    gate = {"run": "false", "fix": fix, "name": "slow", "max_retries": 1}
    begun.configure(validation={"custom": [gate]})
    argv = (sys.executable, "-m", "atlas_retry", "retry", ".", "--plain")
    with started(begun, *argv) as child:
        until(lambda: has_begun(begun))
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)
    assert work(begun) == BEGUN


@pytest.mark.parametrize("gate", ["pre-commit", "stash"])
def test_unstaged_work_is_back_after_a_time_limit(gate: str, project: Project) -> None:
    begin(project, gate)
    file = project.root / ".atlas" / "config.yaml"
    file.write_text(file.read_text().replace("60s", "6s"))
    done = atlas(project, "validate", "--plain")
    assert has_begun(project)
    assert work(project) == BEGUN
    assert done.code == 1


def test_an_interrupt_that_a_shell_ignores_for_its_background_jobs_still_stops(
    project: Project,
) -> None:
    begin(begun := project, "pre-commit")
    line = f"{sys.executable} -m atlas_retry validate --plain & echo $! > ../pid; wait"
    with started(begun, "/bin/sh", "-c", line) as shell:
        until(lambda: has_begun(begun))
        os.kill(int((begun.root.parent / "pid").read_text()), signal.SIGINT)
        shell.wait(timeout=60)
    assert work(begun) == BEGUN
