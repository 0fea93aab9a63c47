"""What screens say is true, and complete enough to go on."""

import io
import json
from pathlib import Path

import pytest

from atlas_retry.events import GateProgress, GateStarted
from atlas_retry.reports.screen.console import Printer
from atlas_retry.settings import in_ci
from atlas_retry.text.units import NOT_REPORTED, usd
from tests.projects import FIXED, UNITTEST, Project, atlas


@pytest.mark.parametrize("value", ["", "0", "false", "False", "no", " off "])
def test_a_ci_variable_that_says_no_is_no_ci(value: str) -> None:
    assert not in_ci({"CI": value})


@pytest.mark.parametrize("value", ["1", "true", "woodpecker"])
def test_any_other_ci_variable_is_ci(value: str) -> None:
    assert in_ci({"CI": value})


def test_an_unreported_cost_is_not_zero() -> None:
    assert usd(0.0, at_least=True) == NOT_REPORTED
    assert usd(0.5, at_least=True) == "at least $0.50"


def test_statistics_have_a_table_by_gate(project: Project) -> None:
    project.configure(validation={"test": [{"name": "sums", "run": UNITTEST}]})
    project.commit()
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    (row,) = json.loads(atlas(project, "stats", "--json").out)["gates"]
    assert (row["name"], row["failed"], row["fixed"]) == ("sums", 1, 1)


def test_a_gate_that_accepts_the_baseline_is_not_called_failed(project: Project) -> None:
    project.configure(
        validation={"test": [{"name": "sums", "run": UNITTEST, "accept": "baseline"}]},
        triage={"baseline": "HEAD"},
    )
    project.commit()
    ended = atlas(project, "validate")
    assert ended.code == 0
    assert "FAILED" not in ended.out
    assert "ok        sums" in ended.out


def test_the_demo_without_an_agent_tries_nothing_and_says_so(
    project: Project, tmp_path: Path
) -> None:
    ended = atlas(project, "demo", "--agent", "claude-code", HOME=str(tmp_path))
    assert ended.code == 3
    assert "nothing was tried" in ended.err
    assert "fixed it" not in ended.out
    assert "next:" in ended.err


SECRET = "s3cr3t-Zk81jfPqa"


@pytest.mark.parametrize(
    "line",
    [
        ("validate", "-v", "--report", "html=-", "--report", "sarif=-", "--report", "markdown=-"),
        ("validate", "--json"),
        ("validate", "--list"),
        ("validate", "--list", "--json"),
        ("prompt",),
        ("retry", ".", "--ai-fix", "--json"),
    ],
)
def test_a_secret_in_the_command_of_a_gate_is_shown_nowhere(
    line: tuple[str, ...], project: Project
) -> None:
    run = f"API_TOKEN={SECRET} {UNITTEST}"
    project.configure(validation={"test": [{"run": run, "fix": f"API_TOKEN={SECRET} true"}]})
    project.commit()
    project.attempt(1, {"calc.py": FIXED})
    seen = project.root.parent / "reports"
    seen.mkdir()
    words = [word.replace("=-", f"={seen / str(n)}") for n, word in enumerate(line)]
    ended = atlas(project, *words)
    written = [file.read_text() for file in seen.iterdir()]
    events = [file.read_text() for file in project.root.parent.rglob("events.jsonl")]
    prompts = [file.read_text() for file in project.root.parent.rglob("prompt.md")]
    for text in (ended.out, ended.err, *written, *events, *prompts):
        assert SECRET not in text
    assert "[redacted:" in "".join((ended.out, *written))


def test_a_log_of_ci_names_gates_when_they_start_and_while_they_run() -> None:
    out = io.StringIO()
    log = Printer(stream=out, steady=True)
    log(GateStarted(gate="slow", command="sleep 130"))
    for elapsed_s in (1.0, 59.0, 61.0, 90.0, 121.0):
        log(GateProgress(gate="slow", last_line="still at it", elapsed_s=elapsed_s))
    assert out.getvalue().splitlines() == [
        "  started   slow",
        "  running   slow (1 min): still at it",
        "  running   slow (2 min): still at it",
    ]
