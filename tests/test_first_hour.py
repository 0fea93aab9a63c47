"""What somebody meets who has no configuration yet, or a project that is red already."""

import json
import os

import pytest

from atlas_retry.reports.screen.console import wants_colour
from tests.projects import FIXED, UNITTEST, Project, atlas, git


def without_configuration(project: Project) -> None:
    (project.root / ".atlas" / "config.yaml").unlink()
    (project.root / "Makefile").write_text(f"test:\n\t@{UNITTEST}\n")


def test_without_a_configuration_proposed_gates_run_and_nothing_is_written(
    project: Project,
) -> None:
    without_configuration(project)
    before = git(project.root, "status", "--porcelain", environ=project.environ)
    ended = atlas(project, "validate")
    assert ended.code == 1
    after = git(project.root, "status", "--porcelain", environ=project.environ)
    assert after.replace("?? __pycache__/\n", "") == before.replace("?? __pycache__/\n", "")


def in_ci(project: Project, *steps: dict[str, str]) -> None:
    workflow = project.root / ".github" / "workflows" / "ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(json.dumps({"on": "push", "jobs": {"a": {"steps": steps}}}))


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (
            {"run": "hadolint Dockerfile"},
            "hadolint Dockerfile: hadolint is not on PATH (install hadolint)",
        ),
        (
            {"run": "make test", "working-directory": "build"},
            "make test: build does not exist",
        ),
    ],
)
@pytest.mark.parametrize("passing", [False, True])
def test_a_ci_command_that_cannot_start_is_named_and_the_others_run(
    step: dict[str, str], why: str, *, passing: bool, project: Project
) -> None:
    without_configuration(project)
    in_ci(project, {"run": "make test"}, step)
    if passing:
        (project.root / "calc.py").write_text(FIXED)
    ended = atlas(project, "validate")
    assert ended.code == (0 if passing else 1)
    assert f"CI runs this gate, this machine did not: {why}" in ended.out
    assert "BROKEN" not in ended.out


def test_a_project_none_of_whose_gates_can_start_is_not_validated(project: Project) -> None:
    (project.root / ".atlas" / "config.yaml").unlink()
    in_ci(project, {"run": "hadolint Dockerfile"})
    ended = atlas(project, "validate")
    assert ended.code == 3
    assert "hadolint is not on PATH (install hadolint)" in ended.err


def test_init_without_results_suggests_lines_for_the_language(project: Project) -> None:
    for path in project.root.rglob("*.py"):
        path.unlink()
    (project.root / ".atlas" / "config.yaml").unlink()
    (project.root / "main.swift").write_text("")
    ended = atlas(project, "init")
    assert ended.code == 2
    assert ended.err.endswith('  version: 1\n  validation: {test: ["swift test"]}\n')


def test_with_since_only_new_problems_count(project: Project) -> None:
    complain = "grep -n 'return a [-*] b' calc.py | sed 's/^/calc.py:/'; exit 1"
    project.configure(
        validation={"lint": [{"run": complain, "parser": "calc"}]},
        parsers={"calc": r"^(?P<path>\S+?):(?P<line>\d+):(?P<message>.+)$"},
    )
    assert atlas(project, "retry", ".").code == 1
    assert atlas(project, "retry", ".", "--since", "HEAD").code == 0


def test_list_shows_the_gates_and_runs_none(project: Project) -> None:
    project.configure(validation={"lint": ["touch ran"]})
    ended = atlas(project, "validate", "--list")
    assert (ended.code, ended.out) == (0, "lint        touch ran  touch ran\n")
    (listed,) = json.loads(atlas(project, "validate", "--list", "--json").out)["gates"]
    assert listed["run"] == "touch ran"
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, None),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"CLICOLOR": "1"}, None),
        ({"FORCE_COLOR": "0"}, None),
        ({"FORCE_COLOR": "1"}, True),
        ({"CLICOLOR_FORCE": "1"}, True),
    ],
)
def test_colour_follows_the_environment(variables: dict[str, str], wanted: bool | None) -> None:
    assert wants_colour(variables) is wanted


def test_forced_colour_reaches_a_pipe(project: Project) -> None:
    project.configure(validation={"lint": ["true"]})
    assert "\x1b[32m" in atlas(project, "validate", FORCE_COLOR="1").out
    assert "\x1b" not in atlas(project, "validate").out


def test_diff_shows_the_newest_run_by_default(project: Project) -> None:
    project.configure(
        validation={"lint": [{"run": "grep -q x calc.py", "fix": "echo x >> calc.py"}]}
    )
    assert atlas(project, "retry", ".").code == 0
    assert "+x" in atlas(project, "diff").out


def test_prune_dry_run_lists_runs_and_keeps_them(project: Project) -> None:
    project.configure(validation={"lint": ["true"]})
    for _ in range(2):
        atlas(project, "retry", ".")
    dropped = atlas(project, "prune", "--dry-run", "--json", "--keep", "1", "--days", "0")
    runs = json.loads(atlas(project, "log", "--json").out)["runs"]
    assert len(json.loads(dropped.out)["runs"]) == len(runs) - 1


def test_shell_completion_offers_the_configured_gates(project: Project) -> None:
    project.configure(validation={"lint": ["ruff check ."], "test": ["pytest"]})
    offered = atlas(
        project,
        _ATLAS_COMPLETE="complete_bash",
        COMP_WORDS="atlas validate --only r",
        COMP_CWORD="3",
        PATH=os.environ["PATH"],
    )
    assert offered.out.split("\n") == ["ruff check", ""]


def test_help_names_a_number_n_and_shows_examples(project: Project) -> None:
    shown = atlas(project, "retry", "--help").out
    assert "--max-attempts N" in shown
    assert "range" not in shown
    assert "atlas retry . --ai-fix --since origin/main" in shown
