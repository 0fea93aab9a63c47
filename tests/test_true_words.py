"""Nothing that is printed at the end of a run is untrue, however small."""

from pathlib import Path

import pytest

from atlas_retry.events import AttemptFinished, Event
from atlas_retry.model import (
    Attempt,
    Budget,
    Gate,
    Outcome,
    Status,
    Validation,
    Verdict,
    WorkspaceFacts,
)
from atlas_retry.reports.screen.run_lines import outcome_summary
from atlas_retry.run.cascade import detect
from atlas_retry.run.decide import decide, last_attempt
from atlas_retry.run.progress import Limits, Progress
from atlas_retry.settings import CascadeSettings
from tests.projects import CALC, FIXED, TEST, UNITTEST, WORSE, Project
from tests.values import attempt, gate, result, validation


def text(lines: object) -> str:
    return "\n".join(line for line, _ in lines)  # type: ignore[attr-defined]


def progress(latest: Validation, *attempts: Attempt) -> Progress:
    return Progress(
        baseline=latest,
        settled=latest,
        latest=latest,
        start="start",
        origin="origin",
        current="current",
        attempts=attempts,
    )


def limits(*gates: Gate, attempts: int = 2) -> Limits:
    return Limits(budget=Budget(attempts=attempts), gates=gates, with_agent=True)


ONCE, TWICE = gate("once", max_retries=1), gate("twice", max_retries=2)
RED_ONCE, RED_TWICE = result("once", Status.FAILED, "a"), result("twice", Status.FAILED, "b")


@pytest.mark.parametrize(
    ("latest", "made", "last"),
    [
        (validation(RED_ONCE, RED_TWICE), 0, 1),
        (validation(result("once"), RED_TWICE), 0, 2),
        (validation(result("once"), RED_TWICE), 1, 2),
    ],
)
def test_the_last_attempt_follows_the_strictest_failing_gate(
    latest: Validation, made: int, last: int
) -> None:
    so_far = progress(latest, *(attempt(n + 1, latest) for n in range(made)))
    assert last_attempt(so_far, limits(ONCE, TWICE)) == last


def test_attempts_are_counted_by_the_limit_of_the_failing_gate(project: Project) -> None:
    gates = [{"run": UNITTEST, "max_retries": 1}, {"run": "true", "max_retries": 2}]
    project.configure(validation={"test": gates})
    project.attempt(1, {"calc.py": WORSE})
    events: list[Event] = []
    project.retry(events)
    (ended,) = [event for event in events if isinstance(event, AttemptFinished)]
    assert ended.message == "test failed (attempt 1/1)"


@pytest.mark.parametrize("allowed", [limits(TWICE, attempts=0), limits(gate(max_retries=0))])
def test_no_message_says_0_attempts(allowed: Limits) -> None:
    end = decide(progress(validation(RED_TWICE)), allowed)
    assert end is not None
    assert "0 attempts" not in (end.reason or "")


def test_a_cascade_distinguishes_workspaces_of_the_same_name() -> None:
    red = validation(result("tests", Status.FAILED, "shared"))
    runs = [outcome(f"/{name}/work", red) for name in "abc"]
    diagnosis = detect(runs, CascadeSettings()).diagnosis or ""
    assert "(in /a/work, /b/work, /c/work)" in diagnosis


def outcome(root: str, final: Validation, *attempts: Attempt, remedy: str | None = None) -> Outcome:
    return Outcome(
        run_id=f"run-of{root}",
        verdict=Verdict.EXHAUSTED,
        workspace=WorkspaceFacts(name=Path(root).name, root=root),
        baseline=final,
        final=final,
        attempts=attempts,
        final_error="test failed after 1 attempt",
        remedy=remedy,
    )


def test_a_reverted_file_is_not_listed_as_in_the_workspace(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED, "test_calc.py": TEST.replace("3", "4")})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert [change.path for change in outcome.attempts[0].since_start] == ["calc.py"]


def test_changes_are_counted_from_the_start_of_the_run(project: Project) -> None:
    project.attempt(1, {"calc.py": CALC.replace("a - b", "a * b") + "one = 1\ntwo = 2\n"})
    project.attempt(2, {"calc.py": FIXED + "one = 1\ntwo = 2\n"})
    (change,) = project.retry().attempts[1].since_start
    assert (change.path, change.added, change.removed) == ("calc.py", 3, 1)


def test_bytecode_in_a_script_is_not_reported_as_change(project: Project) -> None:
    project.attempt(1, {"calc.py": CALC.replace("-", "+"), "__pycache__/calc.pyc": "x"})
    events: list[Event] = []
    run = project.retry(events)
    assert run.verdict is Verdict.FIXED
    assert not any("__pycache__" in event.message for event in events)


def test_the_last_lines_name_attempts_after_which_no_tests_ran(project: Project) -> None:
    skip = TEST.replace("    def test", "    @unittest.skip('x')\n    def test")
    project.attempt(1, {"test_calc.py": skip})
    project.attempt(2, {"calc.py": WORSE})
    outcome = project.retry(retry__max_ai_retry_attempts=2, guard__mode="warn")
    assert outcome.attempts[0].validation is not None
    (ran,) = outcome.attempts[0].validation.results
    said = "no tests ran after attempt 1" in text(outcome_summary(outcome))
    assert said is (ran.status is Status.VACUOUS) is True
