"""The opt-in evaluation with a real agent, shown on the scripted server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.messages_server import serving
from tests.projects import CALC, FIXED, UNITTEST, git, make_project
from tests.test_agents_anthropic import edit, submit

SCRIPT = Path(__file__).parents[1] / "bench" / "live.py"


@pytest.mark.slow
def test_cases_run_until_the_budget_is_spent_and_are_reported_by_model(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    project = make_project(tmp_path, environ)
    (project.root / "calc.py").write_text(FIXED)
    (project.root / "test_calc.py").write_text(
        f"{project.root.joinpath('test_calc.py').read_text()}\n"
    )
    project.commit()
    fix = git(project.root, "rev-parse", "HEAD", environ=environ).strip()
    case = {"repository": str(project.root), "fix": fix, "tests": ["test_calc.py"], "run": UNITTEST}
    (tmp_path / "cases.json").write_text(json.dumps([case, case, case]))
    wrong = submit(edit("calc.py", ("a - b", "a * b")))
    right = submit(edit("calc.py", ("a - b", "a + b")))
    second = submit(edit("calc.py", ("a * b", "a + b")))
    with serving(right, wrong, second) as server:
        done = subprocess.run(
            (
                *(sys.executable, str(SCRIPT), "cases.json", "--max-cost-usd", "0.0064"),
                *("--backend", "anthropic", "--json", "live.json", "--markdown", "live.md"),
            ),
            cwd=tmp_path,
            env={**environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "dummy-key"},
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "live.json").read_text())
    assert [(one["verdict"], one["attempts"]) for one in report["results"]] == [
        ("fixed", 1),
        ("fixed", 2),
    ]
    assert "| default | 2 of 3 | 2 | 1.00 |" in (tmp_path / "live.md").read_text()
    assert CALC != FIXED == (project.root / "calc.py").read_text()
