"""What a gate prints and no parser reads: it reaches the prompt, and it counts."""

import json
from pathlib import Path

import pytest

from atlas_retry.diagnostics import ToolOutput, diagnose
from atlas_retry.diagnostics.unread import UNREAD, meaningful
from tests.processes import PYTHON
from tests.projects import Project, atlas, make_project

GATE = (
    f"{PYTHON} -m ruff check --isolated --output-format concise calc.py || rc=1; "
    "grep -q Copyright b.py || { echo 'b.py: licence header is missing'; rc=1; }; "
    "[ -f CHANGES.md ] || { echo 'CHANGES.md does not exist' >&2; rc=1; }; exit $rc"
)
PROBLEMS = (
    "calc.py:1:8: F401",
    "b.py: licence header is missing",
    "CHANGES.md does not exist",
)


@pytest.fixture
def project(tmp_path: Path, environ: dict[str, str]) -> Project:
    made = make_project(tmp_path, environ)
    (made.root / "calc.py").write_text("import os\n")
    (made.root / "b.py").write_text("b = 1\n")
    made.configure(validation={"lint": [GATE]})
    made.commit()
    return made


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_unparsed_problem_is_in_the_prompt(project: Project, problem: str) -> None:
    assert problem in atlas(project, "prompt", "--max-chars", "4000").out


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_unparsed_problem_of_a_report_is_in_the_prompt(
    project: Project, problem: str
) -> None:
    report = project.root.parent / "report.json"
    report.write_text(atlas(project, "validate", "--json").out)
    results = json.loads(report.read_text())["lint_results"]
    kept = ("command", "kind", "exit_code", "stdout", "stderr")
    bare = [{key: result[key] for key in kept} for result in results]
    report.write_text(json.dumps({"results": bare}))
    assert problem in atlas(project, "prompt", "--from", str(report)).out


def test_fixing_one_of_several_unparsed_problems_is_kept(project: Project) -> None:
    project.attempt(1, {"calc.py": "fixed = 1\n"})
    attempt = project.retry(retry__max_ai_retry_attempts=1).attempts[0]
    assert (len(attempt.fixed), len(attempt.remaining), len(attempt.introduced)) == (1, 2, 0)
    assert (project.root / "calc.py").read_text() == "fixed = 1\n"


@pytest.mark.parametrize(
    ("command", "printed", "unread"),
    [
        ("ruff check . ; ./licence", "a.py:1:1: F401 x\nb.py: no licence\nFound 1 error.", 1),
        ("make lint", "a.py:1:1: F401 x\nruff check .\nmake: *** [lint] Error 1", 0),
        ("ruff check .", "a.py:1:1: F401 x\nb.py: no licence", 0),
        ("make lint", "b.py: no licence", 0),
    ],
)
def test_unparsed_output_counts_in_addition_to_parsed_problems(
    command: str, printed: str, unread: int
) -> None:
    diagnostics = diagnose(ToolOutput(command=command, exit_code=1, stdout=printed)).diagnostics
    assert sum(d.count for d in diagnostics if d.tool == UNREAD) == unread


@pytest.mark.parametrize(
    "line",
    [
        "",
        "    a line of code",
        "-----",
        "src/cart.py:",
        "$ make lint",
        "=== lint ===",
        "make[1]: Leaving directory '/w'",
        "npm WARN deprecated x@1",
        "npm ERR! a line of a log",
        "warning: this is deprecated",
        "Found 3 errors",
        "\u2716 3 problems (2 errors, 1 warning)",
        "[*] 27 fixable with the `--fix` option.",
        "[warn] Code style issues found in 2 files.",
        "Your code has been rated at 5.00/10",
        "error: could not compile `shop` (lib) due to 1 previous error",
        "ruff.....................................................Failed",
        "In file included from a.h",
        "For more information see the manual",
        "Success: no issues found",
        "error Command failed with exit code 1.",
        "exit status 1",
        "3 files would be reformatted",
        "./deploy.sh In line 3:",
    ],
)
def test_headings_counts_warnings_and_echoes_are_not_problems(line: str) -> None:
    assert list(meaningful([line])) == []
