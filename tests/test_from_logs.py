"""`--from` with what CI has saved: logs, JUnit, SARIF."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_retry.errors import UsageError
from atlas_retry.model import Kind, Status
from atlas_retry.reports.reading import read_report
from tests.ci_logs import (
    Ran,
    act,
    azure,
    gh_view,
    github,
    gitlab,
    gitlab_page,
    jenkins,
    jenkins_freestyle,
    ran,
)
from tests.projects import UNITTEST, Project, atlas
from tests.tools import with_tools

SAVED: dict[str, Callable[..., str]] = {
    "github": github,
    "gh": gh_view,
    "gh without step names": lambda *steps: gh_view(*steps, step="UNKNOWN STEP"),
    "gitlab": gitlab,
    "gitlab with times": lambda *steps: gitlab(*steps, stamped=True),
    "gitlab page": gitlab_page,
    "azure": azure,
    "azure page": lambda *steps: azure(*steps, page=True),
    "jenkins": jenkins,
    "jenkins with times": lambda *steps: jenkins(*steps, stamped=True),
    "jenkins freestyle": jenkins_freestyle,
    "act": act,
    "act on a terminal": lambda *steps: act(*steps, terminal=True),
    "raw": lambda *steps: steps[-1].output,
    "crlf": lambda *steps: github(*steps).replace("\n", "\r\n"),
}


@pytest.fixture
def tools(project: Project) -> Project:
    """The project, whose commands find ruff and pytest."""
    project.environ.update(with_tools(project.environ))
    (project.root / "calc.py").write_text("import os\n\n\ndef add(a, b):\n    return a - b\n")
    return project


@pytest.mark.parametrize("form", SAVED)
def test_a_run_starts_from_a_saved_log(form: str, project: Project) -> None:
    project.attempt(1, {"calc.py": "def add(a, b):\n    return a + b\n"})
    step = ran(UNITTEST, project.root, project.environ)
    ended = atlas(
        project,
        "retry",
        ".",
        "--ai-fix",
        "--from",
        "-",
        stdin=SAVED[form](Ran("true", 0, ""), step),
    )
    assert ended.code == 0, ended.err
    assert "fixed" in ended.out


@pytest.mark.parametrize("form", SAVED)
def test_the_prompt_holds_the_failure_without_noise_of_the_runner(
    form: str, project: Project, tmp_path: Path
) -> None:
    step = ran(UNITTEST, project.root, project.environ)
    empty = tmp_path / "empty"
    empty.mkdir()
    saved = SAVED[form](Ran("true", 0, "installed\n"), step)
    ended = atlas(project, "prompt", str(empty), "--from", "-", stdin=saved)
    assert ended.code == 0, ended.err
    assert "AssertionError: -1 != 3" in ended.out
    assert (form == "raw") != (UNITTEST in ended.out)
    for noise in ("##[", "2026-11-22T", "section_", "Run tests", "UNKNOWN", "\x1b"):
        assert noise not in ended.out


@pytest.mark.parametrize(
    ("wrap", "place"),
    [
        (github, "/home/runner/work/app/app"),
        (gitlab, "/builds/dev/app"),
        (gitlab_page, "/builds/dev/app"),
        (azure, "/home/vsts/work/1/s"),
        (jenkins, "/home/jenkins/agent/workspace/app_main"),
        (jenkins_freestyle, "/home/jenkins/agent/workspace/app_main"),
    ],
)
def test_paths_of_the_ci_checkout_become_project_paths(
    wrap: Callable[..., str], place: str, tools: Project
) -> None:
    tools.configure(validation={"lint": ["ruff check ."]})
    line = f"ruff check --output-format=concise {tools.root}/calc.py"
    step = ran(line, tools.root, tools.environ, checkout=place)
    log = wrap(Ran("ruff check .", step.code, step.output.replace("calc.py", f"{place}/calc.py")))
    failure = read_report(log.encode()).validation.failures[0]
    assert "calc.py:1:8: F401" in failure.stdout
    assert place not in failure.stdout


def test_each_gate_gets_its_own_output_of_a_shared_step(tools: Project) -> None:
    tools.configure(validation={"lint": ["ruff check -q ."], "test": ["pytest -q"]})
    script = "ruff check .\npytest -q -p no:cacheprovider"
    both = ran(script, tools.root, tools.environ)
    ended = atlas(tools, "retry", ".", "--dry-run", "--from", "-", stdin=github(both))
    assert ended.code == 0, ended.err
    lint, test = ended.out.index("### ruff check failed"), ended.out.index("### pytest failed")
    assert "F401" in ended.out[lint:test]
    assert "test_add" in ended.out[test:]


@pytest.mark.parametrize(
    ("line", "report", "gate"),
    [
        ("pytest -q -p no:cacheprovider --junitxml=r.xml", "r.xml", "### pytest failed: pytest -q"),
        (
            "ruff check . --output-format sarif -o r.sarif",
            "r.sarif",
            "### ruff check failed: ruff check .",
        ),
    ],
)
def test_a_run_starts_from_a_machine_readable_report(
    line: str, report: str, gate: str, tools: Project
) -> None:
    tools.configure(validation={"lint": ["ruff check ."], "test": ["pytest -q"]})
    assert ran(line, tools.root, tools.environ).code == 1
    saved = shutil.move(tools.root / report, tools.root.parent / report)
    ended = atlas(tools, "retry", ".", "--dry-run", "--from", str(saved))
    assert ended.code == 0, ended.err
    assert gate in ended.out
    assert ended.out.count(" failed: ") == 1
    assert "calc.py" in ended.out


def test_a_log_of_another_project_is_refused(project: Project) -> None:
    log = github(Ran("cargo build", 101, "error[E0425]: cannot find value\n"))
    project.configure(validation={"test": [UNITTEST], "lint": ["ruff check ."]})
    ended = atlas(project, "retry", ".", "--from", "-", stdin=log)
    assert ended.code == 2
    assert "no gate of this configuration" in ended.err


def test_a_step_that_timed_out_is_reported_as_timed_out() -> None:
    log = github(Ran("make test", 1, "...\n")).replace(
        "Process completed with exit code 1.",
        "The action 'Run make test' has timed out after 5 minutes.",
    )
    (result,) = read_report(log.encode()).validation.failures
    assert (result.status, result.exit_code) == (Status.TIMED_OUT, None)
    assert result.error == "The action 'Run make test' has timed out after 5 minutes."


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"PK\x03\x04\0\0", "is not a text file"),
        (b"<html></html", "cannot be read"),
        (b"<html></html>", "is <html>, a format that atlas does not read"),
        (b'{"runs": 1}', "is JSON with runs, a format that atlas does not read"),
        (github(Ran("true", 0, "")).encode(), "no command failed"),
    ],
)
def test_a_log_without_a_failure_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_report(content)


@pytest.mark.parametrize("first", ['{"Action":"run"}\n{"Action":"fail"}\n', "[INFO] Scanning\n"])
def test_a_log_may_start_like_json(first: str) -> None:
    (result,) = read_report(first.encode()).validation.failures
    assert result.stdout == first


ACTION = """##[group]Run golangci/golangci-lint-action@v8
with:
  version: v2.1
##[endgroup]
##[error]pkg/cart.go:12:5: Error return value of `f.Close` is not checked (errcheck)
##[error]issues found
Post job cleanup.
"""


def test_a_failing_action_is_a_failure_with_its_output() -> None:
    (result,) = read_report(ACTION.encode()).validation.failures
    assert "pkg/cart.go:12:5" in result.stdout
    assert result.error == "the action golangci/golangci-lint-action@v8 failed"


def test_a_silent_failing_step_has_the_output_of_those_before() -> None:
    log = github(Ran("pytest || EXIT=$?", 0, "tests/a.py:3: bad\n"), Ran("exit $EXIT", 1, ""))
    (result,) = read_report(log.encode()).validation.failures
    assert "tests/a.py:3: bad" in result.stdout


def test_results_without_a_kind_have_that_of_their_list() -> None:
    entry = '{"command": "make lint", "exit_code": 1, "stdout": "x", "stderr": ""}'
    (result,) = read_report(f'{{"lint_results": [{entry}]}}'.encode()).validation.failures
    assert result.kind is Kind.LINT
