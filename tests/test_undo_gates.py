"""What gates write is held before, and `atlas undo` brings it back."""

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from atlas_retry.events import now, seconds_of
from atlas_retry.history.rescue import unrecorded
from atlas_retry.history.validated import holding
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.snapshot.restoring import AFTERMATH_S
from atlas_retry.workspace.snapshot.snapshots import snapshot
from tests.commands import run_atlas
from tests.crashes import PACKAGE
from tests.projects import CALC, FIXED, Project, atlas, git
from tests.repositories import entries, git_bytes

WRITE = "printf 'x = 1\\n' > made.py; printf 'changed\\n' >> calc.py"


def writing(project: Project, *lines: str, **rest: object) -> None:
    project.configure(validation={"format": list(lines or [WRITE])} | rest)
    project.commit()


def ended(project: Project, *arguments: str) -> int:
    """As `atlas`, of a command that may be killed."""
    environ = {**project.environ, "PYTHONPATH": str(PACKAGE)}
    return run_atlas(arguments, cwd=project.root, environ=environ).returncode


def there(project: Project) -> Sequence[object]:
    return entries(project.root), git_bytes(project.root / ".git")


@pytest.mark.parametrize("command", [("format",), ("validate",), ("validate", "--check")])
def test_undo_reverts_changes_of_a_writer(project: Project, command: Sequence[str]) -> None:
    writing(project)
    (project.root / "calc.py").write_text("mine, and not committed\n")
    before = there(project)
    done = atlas(project, *command)
    assert "undo:\n  atlas undo " in done.out
    assert there(project) != before
    undone = atlas(project, "undo")
    assert (undone.code, undone.out.split(" of 2")[0]) == (0, "undone: the gates")
    assert there(project) == before


def test_undo_reverts_changes_of_a_fixer(project: Project) -> None:
    gate = {"name": "style", "run": "grep -q changed calc.py", "fix": WRITE}
    project.configure(validation={"lint": [gate]})
    before = there(project)
    assert atlas(project, "validate", "--fix").code == 0
    assert atlas(project, "undo").code == 0
    assert there(project) == before


@pytest.mark.parametrize("name", ["TERM", "KILL"])
def test_undo_reverts_changes_of_an_interrupted_writer(project: Project, name: str) -> None:
    writing(project, f"{WRITE}; kill -{name} $PPID; sleep 9")
    before = there(project)
    assert ended(project, "format") in (143, -9)
    assert there(project) != before
    assert atlas(project, "undo").code == 0
    assert there(project) == before


def test_undo_after_gates_were_killed_keeps_later_edits_and_commits(project: Project) -> None:
    (project.root / "mine.py").write_text("x = 1\n")
    writing(project, f"{WRITE}; echo more >> mine.py; kill -KILL $PPID; sleep 9")
    before = (project.root / "calc.py").read_text()
    assert ended(project, "format") == -9
    time.sleep(AFTERMATH_S + 1)
    (project.root / "mine.py").write_text("x = 2\n")
    git(project.root, "commit", "-qm", "mine", "mine.py", environ=project.environ)
    head = git(project.root, "rev-parse", "HEAD", environ=project.environ)
    done = atlas(project, "undo")
    assert "edited since, so not changed: " in done.out
    assert (project.root / "mine.py").read_text() == "x = 2\n"
    assert git(project.root, "rev-parse", "HEAD", environ=project.environ) == head
    assert (project.root / "calc.py").read_text() == before
    assert not (project.root / "made.py").exists()


def test_gates_without_changes_leave_nothing_to_undo(project: Project) -> None:
    writing(project, "true")
    assert "atlas undo" not in atlas(project, "format").out
    assert atlas(project, "undo").code == 2


def test_readers_take_no_snapshot(project: Project) -> None:
    atlas(project, "validate")
    assert not [*Path(project.environ["ATLAS_HOME"]).glob("workspaces/*/shadow")]


def test_a_broken_repository_does_not_stop_a_writer(project: Project) -> None:
    writing(project, "touch made")
    (project.root / ".git/HEAD").unlink()
    assert atlas(project, "format").code == 0
    assert (project.root / "made").exists()


def test_undone_gate_changes_can_be_picked_and_undone_again(project: Project) -> None:
    writing(project)
    output = atlas(project, "format").out
    name = output.split("\n  atlas undo ")[1].split()[0]
    after = entries(project.root)
    atlas(project, "undo")
    assert atlas(project, "undo").code == 2
    assert atlas(project, "pick", name, "undone").code == 0
    assert entries(project.root) == after
    assert atlas(project, "undo", name).code == 0
    assert (project.root / "calc.py").read_text() == CALC


def test_undo_keeps_edits_made_after_the_gates_and_names_them(project: Project) -> None:
    writing(project)
    atlas(project, "format")
    (project.root / "calc.py").write_text("mine\n")
    done = atlas(project, "undo")
    assert done.code == 1
    assert re.match(
        r"partly undone: the gates of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; still different: calc.py",
        done.out,
    )
    assert (project.root / "calc.py").read_text() == "mine\n"
    assert not (project.root / "made.py").exists()
    command = done.out.partition("to restore what was edited as well:\n  atlas ")[2]
    assert command.endswith(" start --path calc.py\n")
    assert atlas(project, *command.split()).code == 0
    assert (project.root / "calc.py").read_text() == CALC


def test_undo_keeps_a_commit_made_after_the_gates(project: Project) -> None:
    writing(project)
    atlas(project, "format")
    git(project.root, "commit", "-qam", "mine", environ=project.environ)
    head = git(project.root, "rev-parse", "HEAD", environ=project.environ)
    done = atlas(project, "undo")
    assert "edited since, so not changed: refs/heads/main" in done.out
    assert git(project.root, "rev-parse", "HEAD", environ=project.environ) == head
    assert (project.root / "calc.py").read_text() == CALC


def test_the_start_of_gates_is_recorded_to_the_millisecond(project: Project) -> None:
    ws = open_workspace(project.root, project.root.parent / "state", environ=project.environ)
    before = now()
    with holding(ws, lambda: snapshot(ws)):
        (project.root / "calc.py").write_text("changed\n")
    run = unrecorded(ws, None)
    assert run
    assert seconds_of(before) <= seconds_of(run.started_at) <= time.time()


def test_undo_reverts_the_newer_of_run_and_gates(project: Project) -> None:
    project.configure(validation={"format": ["printf x >> formatted.txt"], "test": ["test -e go"]})
    project.attempt(1, {"go": "", "calc.py": FIXED})
    before = entries(project.root)
    project.retry()
    assert (project.root / "calc.py").read_text() == FIXED
    between = entries(project.root)
    atlas(project, "format")
    assert entries(project.root) != between
    assert atlas(project, "undo").code == 0
    assert entries(project.root) == between
    assert atlas(project, "undo").code == 0
    assert entries(project.root) == before


def test_a_report_names_files_changed_by_gates(project: Project) -> None:
    lines = ["printf x > by_the_gate.txt"]
    project.configure(validation={"format": lines, "test": ["python3 -S -m unittest -q"]})
    project.attempt(1, {"calc.py": FIXED})
    done = atlas(project, "retry", "--ai-fix", "--report", "json=../run.json")
    assert done.code == 0
    run = json.loads((project.root.parent / "run.json").read_text())
    assert run["gates_changed"] == ["by_the_gate.txt"]


def test_files_changed_by_a_reader_are_named_with_their_git_state(project: Project) -> None:
    move = "printf 'y\\n' > made.py; rm -f calc.py"
    project.configure(validation={"lint": [move]})
    project.commit()
    output = atlas(project, "validate").out
    assert "by a gate or by someone else" in output
    assert "git diff -- calc.py; not known to git: made.py" in output
    assert "git checkout" not in output
    assert "no gate that ran is configured with `writes: true`" in output
    project.configure(validation={"lint": [{"run": move, "writes": True}]})
    git(project.root, "checkout", "--", "calc.py", environ=project.environ)
    assert "undo:\n  atlas undo " in atlas(project, "validate").out
    assert atlas(project, "undo").code == 0
    assert (project.root / "calc.py").read_text() == CALC


def test_an_undo_of_nothing_names_the_earlier_run_that_changed_files(project: Project) -> None:
    fixes = {"name": "style", "run": "false", "fix": "printf 'x = 1\\n' > made.py"}
    project.configure(validation={"lint": [fixes]})
    before = there(project)
    first = atlas(project, "retry")
    assert "changed by gates: " in first.out
    (undo,) = [line for line in first.out.splitlines() if "atlas undo" in line]
    assert "atlas undo" not in atlas(project, "retry").out
    named = atlas(project, "undo")
    assert f"  nothing to restore\nan earlier run changed files:\n{undo}\n" in named.out
    assert atlas(project, *undo.split()[1:]).code == 0
    assert there(project) == before


def test_a_run_and_its_undo_name_a_repository_that_stays(project: Project) -> None:
    project.configure(
        validation={"lint": ["grep -q 'a + b' calc.py"]},
        agent={"backend": "command", "command": "git init -q sub"},
    )
    done = atlas(project, "retry", "--ai-fix", "--max-attempts", "1")
    assert (done.code, done.out.count("made repositories, which stay: sub/.git")) == (1, 1)
    undone = atlas(project, "undo")
    assert undone.code == 1
    assert undone.out.startswith("not undone: run ")
    assert "sub/.git" in undone.out.splitlines()[0]
