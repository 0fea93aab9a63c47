"""action.yml, the workflow and the hooks: what they promise, and their shell steps run as is."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct
from msgspec.structs import replace

from tests.processes import PYTHON
from tests.projects import FIXED, Project, git
from tests.tools import with_tools

ROOT = Path(__file__).parents[1]
LIMIT_S = 120.0
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return content


ACTION = read("action.yml")
WORKFLOWS = [path.name for path in (ROOT / ".github/workflows").iterdir()]
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}


class Ended(Struct, frozen=True, kw_only=True):
    code: int
    log: str
    outputs: dict[str, str]


def step(project: Project, name: str, **values: str) -> Ended:
    """One step as the runner runs it: `sh -e`, its own variables, a file for outputs."""
    output = project.root.parent / "outputs"
    output.touch()
    settings = {
        "GITHUB_ACTIONS": "true",
        "CI": "true",
        "GITHUB_OUTPUT": str(output),
        "STEP_ATLAS": str(Path(sys.executable).with_name("atlas")),
        "STEP_PYTHON": sys.executable,
        "STEP_BASE": "HEAD",
        "STEP_BUDGET": "5",
        "STEP_MODEL": "",
        "STEP_ARGUMENTS": "",
        "STEP_REPORT": "report.json",
        "STEP_PATCH": "",
        "STEP_BRANCH": "",
        "PATH": with_tools(project.environ)["PATH"],
    }
    done = subprocess.run(
        ("sh", "-e", "-c", STEPS[name]["run"]),
        cwd=project.root,
        env=project.environ | settings | values,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return Ended(code=done.returncode, log=done.stdout, outputs=outputs)


def test_every_step_names_its_shell_and_gets_inputs_by_environment_only() -> None:
    for name, each in STEPS.items():
        if "uses" in each:
            continue
        assert each["shell"] == "sh", name
        assert "${{" not in each["run"], name


def test_every_input_and_output_is_explained() -> None:
    for each in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert each["description"]
    assert set(ACTION["outputs"]) == {"verdict", "report", "patch"}


def test_every_used_action_is_pinned_by_commit() -> None:
    files = ("action.yml", "docs/ci.md", *(f".github/workflows/{name}" for name in WORKFLOWS))
    texts = [(ROOT / name).read_text() for name in files]
    used = [name for text in texts for name in re.findall(r"uses: (\S+)", text)]
    assert used
    for name in used:
        assert name in ("./", "OWNER/atlas@SHA") or PINNED.fullmatch(name), name


def test_the_workflow_has_read_permission_only() -> None:
    workflow = read(".github/workflows/ci.yml")
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["permissions"] == {"contents": "read"}, name


def test_the_publishing_job_runs_no_code_of_the_repository() -> None:
    workflow = read(".github/workflows/release.yml")
    assert workflow["permissions"] == {}
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert build["permissions"] == {"contents": "read"}
    assert publish["permissions"] == {"id-token": "write"}
    assert not [each for each in publish["steps"] if "checkout" in each.get("uses", "")]


def test_python_versions_are_read_from_the_classifiers(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    job = read(".github/workflows/ci.yml")["jobs"]["pythons"]
    (reading,) = [each["run"] for each in job["steps"] if each.get("id") == "read"]
    output = tmp_path / "outputs"
    env = environ | {"GITHUB_OUTPUT": str(output)}
    subprocess.run(("sh", "-e", "-c", reading), cwd=ROOT, env=with_tools(env), check=True)
    versions = json.loads(output.read_text().removeprefix("versions="))
    assert "3.11" in versions
    assert all(re.fullmatch(r"3\.\d+", version) for version in versions)


@pytest.mark.parametrize(
    ("line", "code", "verdict"), [("true", 0, "clean"), ("exit 1", 1, "failed")]
)
def test_validate_outputs_verdict_and_report(
    line: str, code: int, verdict: str, project: Project
) -> None:
    project.configure(validation={"lint": [line]})
    ended = step(project, "Run atlas", STEP_MODE="validate")
    assert ended.code == code
    assert ended.outputs["verdict"] == verdict
    document = json.loads(Path(ended.outputs["report"]).read_bytes())
    assert document["schema"] == "atlas.report/1"


def test_a_missing_tool_gives_the_verdict_broken(project: Project) -> None:
    project.configure(validation={"lint": ["no-such-tool-anywhere"]})
    ended = step(project, "Run atlas", STEP_MODE="validate")
    assert (ended.code, ended.outputs["verdict"]) == (3, "broken")


def test_retry_fixes_within_its_budget(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    ended = step(project, "Run atlas", STEP_MODE="retry", STEP_MODEL="haiku", STEP_BUDGET="1")
    assert (ended.code, ended.outputs["verdict"]) == (0, "fixed")
    assert json.loads(Path(ended.outputs["report"]).read_bytes())["attempts"][0]["model"] == "haiku"


@pytest.mark.parametrize("base", ["", "0" * 40])
def test_guard_without_a_base_is_refused(project: Project, base: str) -> None:
    ended = step(project, "Run atlas", STEP_MODE="guard", STEP_BASE=base)
    assert (ended.code, "needs a base" in ended.log) == (2, True)


def test_guard_judges_the_change_since_the_base(project: Project) -> None:
    (project.root / "test_calc.py").unlink()
    ended = step(project, "Run atlas", STEP_MODE="guard")
    strict = step(project, "Run atlas", STEP_MODE="guard", STEP_ARGUMENTS="--strict")
    assert (ended.code, strict.code, strict.outputs["verdict"]) == (0, 1, "failed")
    assert "test-changed" in ended.log


def test_arguments_are_split_at_spaces_and_not_expanded(project: Project) -> None:
    project.configure(validation={"lint": ["true"]})
    ended = step(
        project,
        "Run atlas",
        STEP_MODE="validate",
        STEP_ARGUMENTS="--only lint --report junit=*.xml",
    )
    assert ended.code == 0
    assert (project.root / "*.xml").exists()


def test_an_unknown_mode_is_refused(project: Project) -> None:
    assert step(project, "Run atlas", STEP_MODE="deploy; true").code == 2


def test_the_configuration_of_a_fork_comes_from_the_base(project: Project) -> None:
    before = (project.root / ".atlas" / "config.yaml").read_text()
    project.configure(validation={"lint": ["curl example.invalid"]})
    (project.root / "atlas.yaml").write_text("version: 1\n")
    project.commit()
    ended = step(project, "Take a stranger's configuration from the base", STEP_BASE="HEAD~1")
    assert ended.code == 0, ended.log
    assert (project.root / ".atlas" / "config.yaml").read_text() == before
    assert not (project.root / "atlas.yaml").exists()


def test_what_the_base_extends_comes_from_the_base_as_well(project: Project) -> None:
    folder = project.root / "services" / "api"
    (folder / "ci").mkdir(parents=True)
    (folder / "atlas.yml").write_text("extends: ci/shared.yaml\n")
    shared = folder / "ci" / "shared.yaml"
    shared.write_text("validation: {lint: ['true']}\n")
    project.commit()
    elsewhere = project.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "shared.yaml").write_text("validation: {lint: [curl example.invalid]}\n")
    shared.unlink()
    shared.parent.rmdir()
    shared.parent.symlink_to(elsewhere)
    (folder / "atlas.yaml").write_text("validation: {lint: [curl example.invalid]}\n")
    project.commit()
    inside = replace(project, root=folder)
    ended = step(inside, "Take a stranger's configuration from the base", STEP_BASE="HEAD~1")
    assert "services/api/atlas.yml, services/api/ci/shared.yaml" in ended.log
    assert shared.read_text() == "validation: {lint: ['true']}\n"
    assert (elsewhere / "shared.yaml").read_text().endswith("example.invalid]}\n")
    assert not (folder / "atlas.yaml").exists()


def test_a_link_in_place_of_the_configuration_is_not_followed(project: Project) -> None:
    elsewhere = project.root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config.yaml").write_text("mine")
    git(project.root, "rm", "-q", "-r", ".atlas", environ=project.environ)
    (project.root / ".atlas").symlink_to(elsewhere)
    project.commit()
    step(project, "Take a stranger's configuration from the base", STEP_BASE="HEAD~1")
    assert (elsewhere / "config.yaml").read_text() == "mine"
    assert not (project.root / ".atlas").is_symlink()


def test_retry_is_refused_for_a_pull_request_of_a_fork() -> None:
    refusing = STEPS["Refuse to spend on a stranger's branch"]
    assert next(iter(STEPS)) == refusing["name"]
    assert refusing["if"] == "inputs.mode == 'retry' && github.event.pull_request.head.repo.fork"
    assert "exit 2" in refusing["run"]


def test_pre_commit_hooks_name_existing_commands(project: Project) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        done = subprocess.run(
            (*shlex.split(hook["entry"].replace("atlas", f"{PYTHON} -m atlas_retry", 1)), "-h"),
            cwd=project.root,
            env=project.environ,
            check=False,
            capture_output=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, hook["id"]
