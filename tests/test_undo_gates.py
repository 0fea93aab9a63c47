"""What gates write is held before, and `atlas undo` brings it back."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from atlas_retry.events import now, seconds_of
from atlas_retry.history.validated import holding, run_of
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.snapshots import snapshot
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
def test_what_a_writer_changed_is_undone(project: Project, command: Sequence[str]) -> None:
    writing(project)
    (project.root / "calc.py").write_text("mine, and not committed\n")
    before = there(project)
    told = atlas(project, *command)
    assert "undo:\n  atlas undo " in told.out
    assert there(project) != before
    undone = atlas(project, "undo")
    assert (undone.code, undone.out.split(" of 2")[0]) == (0, "as it was before the gates")
    assert there(project) == before


def test_what_a_fixer_of_validate_changed_is_undone(project: Project) -> None:
    gate = {"name": "style", "run": "grep -q changed calc.py", "fix": WRITE}
    project.configure(validation={"lint": [gate]})
    before = there(project)
    assert atlas(project, "validate", "--fix").code == 0
    assert atlas(project, "undo").code == 0
    assert there(project) == before


@pytest.mark.parametrize("name", ["TERM", "KILL"])
def test_what_a_writer_had_changed_when_it_was_cut_off_is_undone(
    project: Project, name: str
) -> None:
    writing(project, f"{WRITE}; kill -{name} $PPID; sleep 9")
    before = there(project)
    assert ended(project, "format") in (143, -9)
    assert there(project) != before
    assert atlas(project, "undo").code == 0
    assert there(project) == before


def test_gates_that_change_nothing_leave_nothing_to_undo(project: Project) -> None:
    writing(project, "true")
    assert "atlas undo" not in atlas(project, "format").out
    assert "no run is recorded" in atlas(project, "undo").err


def test_readers_hold_nothing(project: Project) -> None:
    atlas(project, "validate")
    assert not [*Path(project.environ["ATLAS_HOME"]).glob("workspaces/*/shadow")]


def test_a_repository_that_cannot_be_read_keeps_no_writer_from_running(project: Project) -> None:
    writing(project, "touch made")
    (project.root / ".git/HEAD").unlink()
    assert atlas(project, "format").code == 0
    assert (project.root / "made").exists()


def test_what_was_undone_can_be_had_again_and_is_not_undone_twice(project: Project) -> None:
    writing(project)
    told = atlas(project, "format").out
    name = told.split("\n  atlas undo ")[1].split()[0]
    after = entries(project.root)
    atlas(project, "undo")
    assert "no run is recorded" in atlas(project, "undo").err
    assert atlas(project, "pick", name, "undone").code == 0
    assert entries(project.root) == after
    assert atlas(project, "undo", name).code == 0
    assert (project.root / "calc.py").read_text() == CALC


def test_what_was_edited_since_the_gates_stays_and_is_named(project: Project) -> None:
    writing(project)
    atlas(project, "format")
    (project.root / "calc.py").write_text("mine\n")
    done = atlas(project, "undo")
    assert done.code == 1
    assert done.out.startswith("not as it was before the gates")
    assert "edited since, so left as it is: calc.py" in done.out
    assert (project.root / "calc.py").read_text() == "mine\n"
    assert not (project.root / "made.py").exists()


def test_a_commit_after_the_gates_stays(project: Project) -> None:
    writing(project)
    atlas(project, "format")
    git(project.root, "commit", "-qam", "mine", environ=project.environ)
    head = git(project.root, "rev-parse", "HEAD", environ=project.environ)
    done = atlas(project, "undo")
    assert "edited since, so left as it is: .git/index, refs/heads/main" in done.out
    assert git(project.root, "rev-parse", "HEAD", environ=project.environ) == head
    assert (project.root / "calc.py").read_text() == CALC


def test_gates_are_known_to_have_begun_to_the_millisecond(project: Project) -> None:
    ws = open_workspace(project.root, project.root.parent / "state", environ=project.environ)
    before = now()
    with holding(ws, lambda: snapshot(ws)):
        (project.root / "calc.py").write_text("changed\n")
    run = run_of(ws, None)
    assert run
    assert seconds_of(before) <= seconds_of(run.started_at) <= time.time()


def test_the_newest_is_undone_first_be_it_a_run_or_gates(project: Project) -> None:
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


def test_the_summary_of_a_run_names_what_gates_changed_beside_the_agent(project: Project) -> None:
    lines = ["printf x > by_the_gate.txt"]
    project.configure(validation={"format": lines, "test": ["python3 -S -m unittest -q"]})
    project.attempt(1, {"calc.py": FIXED})
    told = atlas(project, "retry", "--ai-fix", "--report", "json=../run.json")
    assert told.code == 0
    run = json.loads((project.root.parent / "run.json").read_text())
    assert run["gates_changed"] == ["by_the_gate.txt"]
    assert "  changed by gates: by_the_gate.txt\n" in told.out
    assert "attempt 1 is in the workspace: calc.py (+1 -1)\n" in told.out


def test_what_a_reader_changed_is_named_with_what_git_has_of_it(project: Project) -> None:
    move = "printf 'y\\n' > made.py; rm -f calc.py"
    project.configure(validation={"lint": [move]})
    project.commit()
    told = atlas(project, "validate").out
    assert "git checkout -- calc.py; not known to git: made.py" in told
    assert "not configured with `writes: true`" in told
    project.configure(validation={"lint": [{"run": move, "writes": True}]})
    git(project.root, "checkout", "--", "calc.py", environ=project.environ)
    assert "undo:\n  atlas undo " in atlas(project, "validate").out
    assert atlas(project, "undo").code == 0
    assert (project.root / "calc.py").read_text() == CALC
