"""A FIFO where git or atlas reads a file: commands end, and say what is in the way."""

import os
from pathlib import Path

import pytest

from tests.projects import Project, atlas
from tests.repositories import entries

READ = (
    *("go.sum", "Cargo.lock", "report.xml", ".venv/lib/python3.11/site-packages/a.pth"),
    *("CLAUDE.md", "package.json", "pyproject.toml", ".pre-commit-config.yaml"),
)
STEERS_GIT = (
    *(".gitignore", ".gitattributes", "sub/deep/.gitignore", ".git/info/exclude", ".git/index"),
    *(".git/HEAD", ".git/config"),
)


def fifo(project: Project, name: str) -> None:
    path = project.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("command", [("validate",), ("retry", ".", "--ai-fix")])
def test_a_fifo_where_a_file_is_read_is_passed_over(
    name: str, command: tuple[str, ...], project: Project
) -> None:
    gate = {"run": "true", "name": "t", "report": {"path": "report.xml", "format": "junit"}}
    project.configure(validation={"test": [gate]})
    project.commit()
    fifo(project, name)
    assert atlas(project, *command).code == 0


@pytest.mark.parametrize("name", STEERS_GIT)
@pytest.mark.parametrize("command", ["validate", "retry ."])
def test_a_fifo_that_git_would_read_is_named_before_git_waits_for_it(
    name: str, command: str, project: Project
) -> None:
    fifo(project, name)
    ended = atlas(project, *command.split())
    assert ended.code == 3
    assert f"{project.root / name} is no regular file" in ended.err + ended.out


@pytest.mark.parametrize("name", [".gitignore", "sub/.gitignore", "sub/new/.gitattributes"])
@pytest.mark.parametrize("after", ["", "; kill -KILL $PPID; sleep 5"], ids=["", "killed"])
def test_a_fifo_that_a_turn_made_of_an_ignore_file_is_removed_and_named(
    after: str, name: str, project: Project
) -> None:
    (project.root / "sub").mkdir()
    (project.root / "sub/.gitignore").write_text("*.log\n")
    line = f"rm -f {name}; mkdir -p {Path(name).parent}; mkfifo {name}{after}"
    project.configure(agent={"backend": "command", "command": line})
    project.commit()
    before = entries(project.root)
    ended = atlas(project, "retry", ".", "--ai-fix", "--max-attempts", "1")
    if after:
        ended = atlas(project, "undo")
        assert ended.code == 0
        assert name in ended.err + ended.out
    else:
        assert ended.code == 1
        assert f"removed, as git would wait for it: {name}" in ended.err + ended.out
    assert entries(project.root) == before


def test_a_killed_turn_that_left_a_fifo_is_resumed(project: Project) -> None:
    line = "mkdir -p sub; mkfifo sub/.gitignore && { kill -KILL $PPID; sleep 5; }"
    project.configure(agent={"backend": "command", "command": line})
    project.commit()
    atlas(project, "retry", ".", "--ai-fix", "--max-attempts", "1")
    ended = atlas(project, "resume", "--ai-fix")
    assert "removed, as git would wait for it: sub/.gitignore" in ended.err + ended.out
