"""What is printed as the next step works where it is printed; another workspace is not touched."""

import shlex
from pathlib import Path

import pytest

from atlas_retry.agents.claude_code import binary
from atlas_retry.text.own_environment import installing
from tests.projects import CALC, FIXED, WORSE, Ended, Project, atlas, git, make_project


def steps(text: str, label: str) -> list[str]:
    """The commands below a label."""
    lines = iter(text.splitlines())
    found: list[str] = []
    for line in lines:
        if line == f"{label}:":
            found += [step.strip() for step in _indented(lines)]
    return found


def _indented(lines: object) -> list[str]:
    taken = []
    for line in lines:  # type: ignore[attr-defined]
        if not line.startswith("  "):
            break
        taken.append(line)
    return taken


def typed(project: Project, command: str, cwd: Path | None = None) -> Ended:
    program, *words = shlex.split(command)
    assert program == "atlas"
    return atlas(project, *words, cwd=cwd)


def test_next_steps_work_from_another_folder(project: Project, tmp_path: Path) -> None:
    project.attempt(1, {"calc.py": FIXED})
    ended = atlas(project, "retry", str(project.root), "--ai-fix", cwd=tmp_path)
    assert ended.code == 0
    (show,) = steps(ended.out, "show the changes")
    assert "+    return a + b" in typed(project, show, tmp_path).out
    (undo,) = steps(ended.out, "undo")
    assert typed(project, undo, tmp_path).code == 0
    assert (project.root / "calc.py").read_text() == CALC


@pytest.mark.parametrize("words", [("diff", "RUN"), ("deliver", "RUN")])
def test_a_run_of_another_workspace_is_refused_with_the_command_that_works(
    words: tuple[str, ...], project: Project, tmp_path: Path
) -> None:
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    run = atlas(project, "log").out.split()[0]
    (tmp_path / "other").mkdir()
    other = make_project(tmp_path / "other", project.environ)
    line = [run if word == "RUN" else word for word in words]
    also = ("--patch", "fix.patch") if words[0] == "deliver" else ()
    refused = atlas(other, *line, *also)
    assert refused.code == 2
    assert f"run {run} is of another workspace, {project.root}" in refused.err
    assert (project.root / "calc.py").read_text() == FIXED
    (command,) = steps(refused.err, "next")
    assert typed(other, command.replace("FILE", str(tmp_path / "fix.patch"))).code == 0


def test_content_that_the_last_commit_has_is_no_edit(project: Project) -> None:
    (project.root / "calc.py").write_text(WORSE)
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    run = atlas(project, "log").out.split()[0]
    git(project.root, "checkout", "-q", ".", environ=project.environ)
    assert (project.root / "calc.py").read_text() == CALC
    assert atlas(project, "pick", run, "1").code == 0
    assert (project.root / "calc.py").read_text() == FIXED


def test_an_edit_of_a_person_still_prevents_a_pick(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    run = atlas(project, "log").out.split()[0]
    assert atlas(project, "undo").code == 0
    (project.root / "calc.py").write_text("# mine\n")
    assert atlas(project, "pick", run, "1").code == 1
    assert (project.root / "calc.py").read_text() == "# mine\n"


def test_a_command_works_in_another_directory(project: Project, tmp_path: Path) -> None:
    ended = atlas(
        project, "-C", str(project.root.parent), "-C", "project", "validate", cwd=tmp_path / "home"
    )
    assert ended.code == 1
    assert "test_add" in ended.out
    refused = atlas(project, "-C", "nowhere", "validate", cwd=tmp_path)
    assert (refused.code, refused.err) == (2, "atlas: -C nowhere: No such file or directory\n")


def test_hooks_without_gates_are_warned_of(project: Project) -> None:
    assert "no gates" not in atlas(project, "hook", "install").err
    (project.root / ".atlas" / "config.yaml").unlink()
    assert "no gates" in atlas(project, "hook", "install").err


@pytest.mark.parametrize(
    ("mark", "start"),
    [
        ("pipx_metadata.json", "pipx inject atlas-retry claude-agent-sdk"),
        ("uv-receipt.toml", "uv pip install --python "),
    ],
)
def test_packages_are_added_by_the_tool_that_made_the_environment(
    mark: str, start: str, tmp_path: Path
) -> None:
    (tmp_path / mark).touch()
    assert installing("claude-agent-sdk", prefix=str(tmp_path)).startswith(start)


def test_a_login_names_a_cli_that_is_not_on_the_path(tmp_path: Path) -> None:
    assert binary.log_in("/opt/claude", {"PATH": str(tmp_path)}).startswith("/opt/claude /login")
    (tmp_path / "claude").symlink_to("/bin/true")
    on_path = binary.log_in(str(tmp_path / "claude"), {"PATH": str(tmp_path)})
    assert on_path.startswith("claude /login")
