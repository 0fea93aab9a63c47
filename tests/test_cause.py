"""Why a run ended, everywhere that it is said: what is left, and what was no answer."""

import json
from pathlib import Path

import pytest

from atlas_retry.events import Event, GateRanAgain
from atlas_retry.model import Attempt, Budget, Outcome, Verdict
from atlas_retry.reports import markdown, page
from atlas_retry.reports.formats import REPORTS
from atlas_retry.reports.screen.event_lines import lines_of
from atlas_retry.reports.screen.run_lines import outcome_summary
from atlas_retry.reports.subject import Subject
from atlas_retry.run.decide import End, decide, permitting
from atlas_retry.run.progress import Limits, Progress
from tests.projects import CALC, FIXED, WORSE, Project, atlas
from tests.values import RED, attempt, gate

LEFT = "1 problem: test_calc.AddTest.test_add: AssertionError: "
NO_ANSWER = "calc.py failed its checks in 3 tries, so nothing was written: line 1: invalid syntax"


def after(*attempts: Attempt, allowed: int) -> str:
    progress = Progress(
        baseline=RED,
        settled=RED,
        latest=RED,
        start="start",
        origin="origin",
        current="current",
        trees=("origin",),
        attempts=attempts,
    )
    end = decide(
        progress, Limits(budget=Budget(attempts=allowed), gates=(gate(),), with_agent=True)
    )
    assert end is not None
    return end.reason or ""


@pytest.mark.parametrize("allowed", [1, 3])
def test_a_refused_answer_is_named_as_the_cause(allowed: int) -> None:
    reason = after(attempt(1, None, changes=(), error=NO_ANSWER), allowed=allowed)
    assert f"attempt failed: {NO_ANSWER}" in reason
    assert "changed nothing" not in reason


def test_a_refused_command_is_not_the_cause_of_an_end() -> None:
    reason = after(attempt(1, None, changes=(), denials=("Bash: rm", "Bash: rm")), allowed=3)
    assert reason == "the attempt changed nothing"


@pytest.mark.parametrize(
    ("denials", "reason", "remedy"),
    [
        (
            ("Edit: node_modules/a b.js", "Bash: rm"),
            "the agent is not permitted to edit node_modules/a b.js",
            "atlas retry '/my project' --ai-fix --allow 'node_modules/a b.js'",
        ),
        (
            ("Write: .git/config", "Edit: node_modules/a.js"),
            "the agent is not permitted to edit .git/config, node_modules/a.js: change it by hand",
            None,
        ),
        (("Edit: /a/node_modules/b.js",), "/a/node_modules/b.js: change it by hand", None),
    ],
)
def test_a_denied_edit_is_named_with_what_permits_it(
    denials: tuple[str, ...], reason: str, remedy: str | None
) -> None:
    attempts = (attempt(1, denials=denials), attempt(2, None, changes=()))
    assert after(*attempts, allowed=2).endswith(reason)
    end = End(verdict=Verdict.EXHAUSTED)
    assert permitting(end, attempts, "/my project") == remedy
    assert permitting(End(verdict=Verdict.NEEDS_REVIEW), attempts, "/p") is None


def test_the_error_of_an_attempt_with_changes_is_not_the_cause() -> None:
    assert after(attempt(1, error="turn limit"), allowed=1) == "test failed after 1 attempt"


def everywhere(outcome: Outcome) -> dict[str, str]:
    subject = Subject(result=outcome, workspace=outcome.workspace)
    assert outcome.handoff_path
    return {
        "last lines": "\n".join(line for line, _ in outcome_summary(outcome)),
        "markdown": markdown.report(subject).replace("&#95;", "_").replace("&#58;", ":"),
        "page": page.report(subject),
        "handoff": Path(outcome.handoff_path).read_text(),
    }


def test_every_report_names_the_remaining_problem(project: Project) -> None:
    project.attempt(1, {"calc.py": WORSE})
    outcome = project.retry(retry__max_ai_retry_attempts=1)
    assert (outcome.final_error or "").endswith(f"{LEFT}-1 != 3")  # of the tree that was kept
    for place, text in everywhere(outcome).items():
        assert LEFT in text.replace("&#33;", "!"), place


def test_on_failure_receives_the_cause(project: Project, tmp_path: Path) -> None:
    project.configure(retry={"on_failure": f"cat > {tmp_path}/run.json"})
    project.retry(ai_fix=False)
    document = json.loads((tmp_path / "run.json").read_text())
    assert document["final_error"] == f"still failing: unittest; {LEFT}-1 != 3"


def test_the_cause_counts_problems_of_the_tree_that_is_kept(project: Project) -> None:
    project.attempt(1, {"calc.py": WORSE})
    outcome = project.retry(retry__max_ai_retry_attempts=1, retry__on_exhausted="keep")
    assert outcome.verdict is Verdict.EXHAUSTED
    assert (outcome.final_error or "").endswith(f"{LEFT}2 != 3")


def test_the_last_lines_of_output_name_the_cause(project: Project) -> None:
    ended = atlas(project, "retry", ".", "--plain")
    assert LEFT in "\n".join(ended.out.splitlines()[-3:])
    assert (project.root / "calc.py").read_text() == CALC


def test_every_run_of_a_gate_besides_the_validations_is_reported_with_its_reason(
    project: Project,
) -> None:
    project.attempt(1, {"calc.py": FIXED})
    events: list[Event] = []
    outcome = project.retry(events)
    assert outcome.verdict is Verdict.FIXED
    extra = outcome.extra_runs[-1]
    assert (extra.gate, extra.reason, extra.attempt) == ("unittest", "it may be flaky", None)
    subject = Subject(result=outcome, workspace=outcome.workspace)
    document = json.loads(REPORTS["json"](subject))
    assert document["extra_runs"][-1]["duration_ms"] == extra.duration_ms
    assert document["baseline"]["extra_runs"] == document["extra_runs"][-1:]
    assert "it may be flaky" in page.report(subject)


@pytest.mark.parametrize(
    ("duration_ms", "verbosity", "is_shown"), [(2_500, 0, True), (500, 0, False), (500, 1, True)]
)
def test_a_short_run_of_a_gate_besides_the_validations_is_shown_only_with_v(
    duration_ms: int, verbosity: int, *, is_shown: bool
) -> None:
    event = GateRanAgain(gate="unit", reason="it may be flaky", duration_ms=duration_ms)
    lines = [line for line, _ in lines_of(event, verbosity=verbosity)]
    assert any(line.endswith(" s: it may be flaky") for line in lines) is is_shown
