"""The recipes of docs/ci.md, each run end to end: a bare remote, checkouts of it, no network."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct

from atlas_retry import __version__
from tests.projects import CALC, FIXED, UNITTEST, Project, git
from tests.test_action import step
from tests.test_deliver import GH
from tests.test_docs import blocks
from tests.tools import tools

PAGE = Path(__file__).parents[1] / "docs" / "ci.md"
LIMIT_S = 120.0
RUNNER = {"github.ref_name": "main"}
"""What a job is told by GitHub."""
DEFAULTS = {"STEP_BRANCH": "main", "STEP_REPORT": "atlas-report.json"}
PLUS = {"calc.py": "import helper\n\n\ndef add(a, b):\n    return helper.plus(a, b)\n"}
HELPER = {"helper.py": "def plus(a, b):\n    return a + b\n"}


def recipes(language: str) -> Iterator[tuple[str, Any]]:
    """Every block of the page in a language, with the heading that it stands under."""
    text = PAGE.read_text(encoding="utf-8")
    for body in blocks(PAGE, language):
        heading = re.findall(r"^#+ (.+)$", text[: text.index(body)], re.MULTILINE)[-1]
        yield heading, yaml.safe_load(body) if language == "yaml" else body


RECIPES = dict(recipes("yaml"))


@pytest.fixture
def remote(project: Project) -> Path:
    """A bare repository with the project, whose agent adds a file and uses it."""
    project.attempt(1, PLUS | HELPER)
    bare = project.root.parent / "remote.git"
    git(project.root, "clone", "-q", "--bare", ".", str(bare), environ=project.environ)
    return bare


def checkout(remote: Path, name: str, project: Project, *, branch: str = "main") -> Project:
    """A clone of one branch, as a job gets it."""
    root = remote.with_name(name)
    asked = ("clone", "-q", "--branch", branch, str(remote), str(root))
    git(remote, *asked, environ=project.environ)
    for key, value in (("user.name", "dev"), ("user.email", "dev@example.invalid")):
        git(root, "config", key, value, environ=project.environ)
    return Project(root=root, script=project.script, environ=project.environ)


def sh(
    project: Project, line: str, variables: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Lines of a recipe as a job runs them; pip is there and installs nothing."""
    own = project.root.parent / "tools"
    own.mkdir(exist_ok=True)
    (own / "pip").write_text(f'#!/bin/sh\necho "$@" >> {own}/installed\n')
    (own / "pip").chmod(0o755)
    path = (str(own), str(tools()), project.environ["PATH"])
    return subprocess.run(
        ("/bin/sh", "-e", "-c", line),
        cwd=project.root,
        env={**project.environ, "CI": "true", "PATH": os.pathsep.join(path), **(variables or {})},
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def job(recipe: Mapping[str, Any], project: Project, name: str = "", path: str = "") -> "Job":
    """A job of GitHub, run in the checkout; the first step that fails ends it.

    `uses` of this repository is its action's own step, that of an artifact moves `path` into the
    checkout, any other one is the checkout.
    """
    steps = recipe["jobs"][name or next(iter(recipe["jobs"]))]["steps"]
    done = Job(codes=[], outputs={})
    for each in steps:
        if "OWNER" in each.get("uses", ""):
            known = done.outputs | RUNNER
            given = {f"STEP_{k.upper()}": _filled(str(v), known) for k, v in each["with"].items()}
            ended = step(project, "Run atlas", **DEFAULTS | given)
            prefix = f"steps.{each.get('id')}.outputs."
            done.outputs.update({prefix + key: value for key, value in ended.outputs.items()})
            done.codes.append(ended.code)
        elif "download-artifact" in each.get("uses", ""):
            folder = project.root / each["with"]["path"]
            folder.mkdir()
            shutil.copy(path, folder)
        elif "run" in each and _holds(each.get("if"), done.outputs):
            given = {k: _filled(value, done.outputs) for k, value in each.get("env", {}).items()}
            code = sh(project, each["run"], given).returncode
            done.codes.append(code)
        if done.codes and done.codes[-1]:
            break
    return done


class Job(Struct, frozen=True):
    """How the steps of a job ended, and what they gave."""

    codes: list[int]
    outputs: dict[str, str]


def _filled(text: str, outputs: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ (\S+) \}\}", lambda match: outputs[match[1]], text)


def _holds(condition: str | None, outputs: Mapping[str, str]) -> bool:
    return condition is None or bool(outputs[condition])


def gates_of_a_clone(remote: Path, project: Project, branch: str) -> int:
    """The exit code of `atlas validate` where nothing is but what has been pushed."""
    fresh = checkout(remote, "fresh", project, branch=branch)
    return sh(fresh, "atlas validate").returncode


def test_every_recipe_of_the_page_has_a_test() -> None:
    assert list(RECIPES) == [
        "GitHub Actions",
        "Fix a branch",
        "Pull requests from forks",
        "GitLab CI",
        "Fix a branch on GitLab",
        "Before a push",
    ]
    assert [heading for heading, _ in recipes("groovy")] == ["Jenkins"]
    assert [heading for heading, _ in recipes("console")] == ["Before a push"]


@pytest.mark.parametrize(("fix", "code"), [("", 1), ("a + b", 0)])
def test_github_recipe_validates_and_writes_reports(
    fix: str, code: int, remote: Path, project: Project
) -> None:
    here = checkout(remote, "job", project)
    if fix:
        (here.root / "calc.py").write_text(FIXED)
    assert job(RECIPES["GitHub Actions"], here).codes == [code]
    assert {"atlas.sarif", "atlas.html"} <= {path.name for path in here.root.iterdir()}


def names(remote: Path, branch: str, project: Project) -> list[str]:
    return git(remote, "ls-tree", "--name-only", branch, environ=project.environ).split()


def fixed_patch(remote: Path, project: Project) -> str:
    """What the first job of the recipe hands on."""
    recipe = RECIPES["Fix a branch"]
    fixed = job(recipe, checkout(remote, "job", project), "fix")
    assert fixed.codes == [0]
    return _filled(recipe["jobs"]["fix"]["outputs"]["patch"], fixed.outputs)


def desk(project: Project, *, label: str = "") -> Path:
    """A folder with a `gh` that knows a pull request with one comment of ours and its labels."""
    folder = project.root.with_name("gh")
    folder.mkdir()
    labels = [{"name": label}] if label else []
    answer = {"number": 7, "url": "u", "labels": labels, "state": "OPEN"}
    files = {name: folder / name for name in ("log", "answer", "body", "comments")}
    files["answer"].write_text(json.dumps(answer))
    files["comments"].write_text("[3]\n")
    (folder / "gh").write_text(GH.format(**files))
    (folder / "gh").chmod(0o755)
    project.environ["PATH"] = f"{folder}:{project.environ['PATH']}"
    return folder


def test_a_fix_of_one_job_is_pushed_by_another(remote: Path, project: Project) -> None:
    patch = fixed_patch(remote, project)
    gh = desk(project)
    pushing = checkout(remote, "writer", project)
    assert job(RECIPES["Fix a branch"], pushing, "push", patch).codes == [0]
    assert names(remote, "main", project) == [
        *(".atlas", ".gitignore", "calc.py", "helper.py", "test_calc.py")
    ]
    assert "--method PATCH repos/{owner}/{repo}/issues/comments/3" in (gh / "log").read_text()
    assert "failed -> passed" in (gh / "body").read_text()
    assert gates_of_a_clone(remote, project, "main") == 0


def test_a_label_stops_the_second_job_from_pushing(remote: Path, project: Project) -> None:
    patch = fixed_patch(remote, project)
    desk(project, label="no-auto-fix")
    pushing = checkout(remote, "writer", project)
    assert job(RECIPES["Fix a branch"], pushing, "push", patch).codes == [1]
    assert "helper.py" not in names(remote, "main", project)


def test_no_job_has_both_the_key_and_write_permission() -> None:
    for each in RECIPES["Fix a branch"]["jobs"].values():
        writes = "write" in each["permissions"].values()
        assert writes != ("secrets." in str(each))
    places = {
        RECIPES["Fix a branch on GitLab"][name]["environment"]["name"] for name in ("fix", "push")
    }
    assert len(places) == 2


def test_no_patch_is_passed_on_unless_fixed(remote: Path, project: Project) -> None:
    project.script.joinpath("1/files/helper.py").write_text("def plus(a, b):\n    return a * b\n")
    here = checkout(remote, "job", project)
    done = job(RECIPES["Fix a branch"], here, "fix")
    assert done.codes == [1]
    assert done.outputs["steps.atlas.outputs.patch"] == ""


def test_gitlab_recipe_pushes_the_fix_of_another_job(remote: Path, project: Project) -> None:
    recipe = RECIPES["Fix a branch on GitLab"]
    here, writer = (checkout(remote, name, project) for name in ("job", "writer"))
    home = str(project.root.parent / "state-of-the-job")
    done = sh(here, "\n".join(recipe["fix"]["script"]), {"ATLAS_HOME": home})
    assert done.returncode == 0, done.stdout + done.stderr
    (artifact,) = recipe["fix"]["artifacts"]["paths"]
    shutil.copy(here.root / artifact, writer.root)
    git(remote, "config", "receive.advertisePushOptions", "true", environ=project.environ)
    given = {"PUSH_URL": str(remote), "CI_PIPELINE_ID": "7"}
    done = sh(writer, "\n".join(recipe["push"]["script"]), given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "helper.py" in names(remote, "atlas/7", project)
    assert gates_of_a_clone(remote, project, "atlas/7") == 0


def test_the_guard_recipe_refuses_a_removed_test(remote: Path, project: Project) -> None:
    here = checkout(remote, "job", project)
    (here.root / "test_calc.py").unlink()
    here.commit()
    recipe = {"jobs": {"guard": {"steps": [each | {"id": "guard"} for each in GUARD]}}}
    given = {"with": {**GUARD[0]["with"], "base": "HEAD~1"}}
    recipe["jobs"]["guard"]["steps"][0] |= given
    assert job(recipe, here).codes == [1]


GUARD = RECIPES["Pull requests from forks"]


@pytest.mark.parametrize(("fix", "code"), [("", 1), ("a + b", 0)])
def test_gitlab_recipe_validates_and_writes_reports(
    fix: str, code: int, remote: Path, project: Project
) -> None:
    here = checkout(remote, "job", project)
    if fix:
        (here.root / "calc.py").write_text(FIXED)
    recipe = RECIPES["GitLab CI"]["checks"]
    home = recipe["variables"]["ATLAS_HOME"].replace("$CI_PROJECT_DIR", str(here.root))
    done = sh(here, "\n".join(recipe["script"]), {"ATLAS_HOME": home})
    assert done.returncode == code, done.stdout + done.stderr
    for report in recipe["artifacts"]["reports"].values():
        assert (here.root / report).stat().st_size
    installed = (here.root.parent / "tools/installed").read_text()
    assert installed == f"install atlas-retry=={__version__}\n"


@pytest.mark.parametrize(("change", "code"), [("calc.py", 0), ("test_calc.py", 1)])
def test_gitlab_recipe_judges_a_merge_request(
    change: str, code: int, remote: Path, project: Project
) -> None:
    here = checkout(remote, "job", project)
    (here.root / change).write_text("")
    here.commit()
    base = git(here.root, "rev-parse", "HEAD~1", environ=project.environ).strip()
    variables = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base}
    script = "\n".join(RECIPES["GitLab CI"]["guard"]["script"])
    assert sh(here, script, variables).returncode == code


def test_jenkins_recipe_validates_and_writes_reports(remote: Path, project: Project) -> None:
    here = checkout(remote, "job", project)
    (here.root / "calc.py").write_text(FIXED)
    ((_, recipe),) = recipes("groovy")
    (line,) = re.findall(r"sh '(.+)'", recipe)
    home = re.findall(r'ATLAS_HOME = "(.+)"', recipe)[0].replace("${WORKSPACE_TMP}", "{tmp}")
    variables = {"ATLAS_HOME": home.format(tmp=here.root.parent / "tmp")}
    assert sh(here, line, variables).returncode == 0
    for report in re.findall(r"(?:junit|artifacts:) '(.+)'", recipe):
        assert (here.root / report).stat().st_size


def test_the_push_recipe_runs_the_gates_first(remote: Path, project: Project) -> None:
    here = checkout(remote, "mine", project)
    ((_, recipe),) = recipes("console")
    typed = re.findall(r"^\$ (.+)$", recipe, re.MULTILINE)
    assert sh(here, "\n".join(typed)).returncode == 1
    (here.root / "calc.py").write_text(CALC + "# more\n")
    here.commit()
    assert sh(here, "git push -q origin HEAD:next").returncode == 1
    (here.root / "calc.py").write_text(FIXED)
    here.commit()
    pushed = sh(here, "git push -q origin HEAD:next")
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    assert gates_of_a_clone(remote, project, "next") == 0


def test_pre_commit_runs_the_hooks_of_the_recipe(remote: Path, project: Project) -> None:
    (wanted,) = RECIPES["Before a push"]["repos"]
    hooks = yaml.safe_load((PAGE.parents[1] / ".pre-commit-hooks.yaml").read_text())
    known = {hook["id"]: hook for hook in hooks}
    named = [known[hook["id"]] | {"language": "system"} for hook in wanted["hooks"]]
    here = checkout(remote, "mine", project)
    local = {"repos": [{"repo": "local", "hooks": named}]}
    (here.root / ".pre-commit-config.yaml").write_text(yaml.safe_dump(local))
    stage = "git add -A; pre-commit run --all-files"
    assert sh(here, f"{stage} --hook-stage pre-push").returncode == 1
    assert sh(here, f"{stage} --hook-stage pre-commit").returncode == 0
    (here.root / "calc.py").write_text(CALC + 'AWARE = "PYTEST_CURRENT_TEST"\n')
    assert sh(here, f"{stage} --hook-stage pre-commit").returncode == 1
    (here.root / "calc.py").write_text(FIXED)
    assert sh(here, f"{stage} --hook-stage pre-push").returncode == 0


def test_the_commands_for_agents_in_ci_work(remote: Path, project: Project) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Agents that work in CI")[2]
    guard, validate, retry = re.findall(r"`(atlas [^`]+)`", section)
    here = checkout(remote, "job", project)
    assert sh(here, f"{validate} --json > report.json").returncode == 1
    assert sh(here, retry).returncode == 0
    assert sh(here, guard).returncode == 0
    assert sh(here, validate).returncode == 0
    assert UNITTEST in (here.root / ".atlas/config.yaml").read_text()
