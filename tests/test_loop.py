"""The loop with real git, real processes and the scripted agent; nothing is faked below it."""

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry import events
from atlas_retry.errors import WorkspaceError
from atlas_retry.events import Event, Notice, TransportRetried, ViolationsFound
from atlas_retry.model import Status, Verdict
from tests.projects import CALC, FIXED, TEST, UNITTEST, WORSE, Project, git


def test_a_passing_project_is_clean_and_starts_no_agent(project: Project) -> None:
    (project.root / "calc.py").write_text(FIXED)
    outcome = project.retry()
    assert outcome.verdict is Verdict.CLEAN
    assert outcome.attempts == ()


def test_without_ai_fix_a_failure_costs_nothing(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    outcome = project.retry(ai_fix=False)
    assert outcome.verdict is Verdict.FAILED
    assert (project.root / "calc.py").read_text() == CALC


def test_the_first_attempt_fixes_the_project(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, cost_usd=0.25, summary="plus, not minus")
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert outcome.cost_usd == 0.25
    assert [attempt.kept for attempt in outcome.attempts] == [True]
    assert [change.path for change in outcome.attempts[0].changes] == ["calc.py"]
    assert outcome.attempts[0].introduced == ()
    assert len(outcome.attempts[0].fixed) == 1


def test_the_second_prompt_explains_why_the_first_attempt_failed(project: Project) -> None:
    project.attempt(1, {"calc.py": WORSE})
    project.attempt(2, {"calc.py": FIXED})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    first, second = (Path(a.prompt_path or "").read_text() for a in outcome.attempts)
    assert "Previous Attempt" not in first
    assert "Previous Attempt" in second


def test_a_fixer_counts_no_attempt(project: Project) -> None:
    fix = f"printf '{FIXED}' > calc.py".replace("\n", "\\n")
    project.configure(validation={"test": [{"run": UNITTEST, "fix": fix}]})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert outcome.attempts == ()


def test_the_fixer_of_a_gate_that_only_warns_does_not_run(project: Project) -> None:
    optional = {"run": "test -e styled", "fix": "touch styled", "required": False}
    project.configure(validation={"lint": [optional], "test": [UNITTEST]})
    project.attempt(1, {"calc.py": FIXED})
    assert project.retry().verdict is Verdict.FIXED
    assert not (project.root / "styled").exists()


def test_a_flaky_test_counts_no_attempt(project: Project) -> None:
    project.configure(validation={"test": ["test -e ../seen || { touch ../seen; exit 1; }"]})
    assert project.retry().verdict is Verdict.CLEAN


def test_a_fix_is_not_undone_by_a_test_that_failed_once_for_another_reason(
    project: Project,
) -> None:
    late = "echo 'slow.py:1:1: E1 took too long'; exit 1"
    shaky = f"{UNITTEST} && {{ test -e ../seen || {{ touch ../seen; {late}; }}; }}"
    project.configure(validation={"test": [shaky]})
    project.attempt(1, {"calc.py": FIXED})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert [result.status for result in outcome.final.results] == [Status.FLAKY]


def test_an_attempt_without_changes_is_stalled(project: Project) -> None:
    project.attempt(1, {})
    outcome = project.retry()
    assert outcome.verdict is Verdict.STALLED
    assert outcome.attempts[0].validation is None


def test_the_same_problem_twice_is_stalled_and_useless_edits_are_reverted(
    project: Project,
) -> None:
    for number, text in enumerate((CALC + "# a\n", CALC + "# b\n", FIXED), start=1):
        project.attempt(number, {"calc.py": text})
    outcome = project.retry()
    assert outcome.verdict is Verdict.STALLED
    assert len(outcome.attempts) == 2
    assert (project.root / "calc.py").read_text() == CALC


def test_the_attempt_limit_ends_the_run(project: Project) -> None:
    for number in range(1, 5):
        project.attempt(number, {"calc.py": CALC.replace("-", "+ 1 +" * number)})
    outcome = project.retry(retry__max_ai_retry_attempts=2)
    assert outcome.verdict is Verdict.EXHAUSTED
    assert (outcome.final_error or "").startswith("test failed after 2 attempts; 1 problem: ")
    assert outcome.escalation_required


def test_no_attempt_starts_that_would_exceed_the_cost_limit(project: Project) -> None:
    project.attempt(1, {"calc.py": WORSE}, cost_usd=3.0)
    outcome = project.retry(retry__max_cost_usd=5.0)
    assert outcome.verdict is Verdict.EXHAUSTED
    assert "would exceed" in (outcome.final_error or "")


def test_a_negative_cost_counts_as_zero(project: Project) -> None:
    costs = (2.0, -9.0, 2.0, 2.0)
    for number, cost_usd in enumerate(costs, start=1):
        text = CALC.replace("-", "+ 1 +" * number)
        project.attempt(number, {"calc.py": text}, cost_usd=cost_usd)
    outcome = project.retry(retry__max_cost_usd=5.0, retry__max_ai_retry_attempts=4)
    assert [attempt.cost_usd for attempt in outcome.attempts] == [2.0, 0.0, 2.0]
    assert (outcome.verdict, outcome.cost_usd) == (Verdict.EXHAUSTED, 4.0)


def test_giving_up_ends_the_run(project: Project) -> None:
    project.attempt(1, {}, gave_up="the test contradicts the specification")
    outcome = project.retry()
    assert outcome.verdict is Verdict.GAVE_UP
    assert "contradicts" in (outcome.final_error or "")


def test_a_key_in_an_agents_reply_is_redacted(project: Project) -> None:
    key = "value-of-a-key-0123456789"
    with_key = replace(project, environ=project.environ | {"ANTHROPIC_API_KEY": key})
    with_key.attempt(1, {}, status="unavailable", error=f"401: {key} is not valid", summary=key)
    outcome = with_key.retry()
    assert outcome.verdict is Verdict.BROKEN
    assert "is not valid" in (outcome.final_error or "")
    assert key not in repr(outcome)


def test_during_a_merge_a_run_needs_force_and_keeps_the_merge_state(
    project: Project,
) -> None:
    head = git(project.root, "rev-parse", "HEAD", environ=project.environ)
    (project.root / ".git" / "MERGE_HEAD").write_text(head)
    project.attempt(1, {"calc.py": FIXED})
    with pytest.raises(WorkspaceError, match="in the middle of a merge"):
        project.retry()
    assert (project.root / "calc.py").read_text() == CALC
    assert project.retry(force=True).verdict is Verdict.FIXED
    assert (project.root / ".git" / "MERGE_HEAD").read_text() == head


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_workspace_is_refused_before_the_agent_starts(project: Project) -> None:
    project.root.chmod(0o555)
    with pytest.raises(WorkspaceError, match="cannot be written"):
        project.retry()


def test_changes_that_cannot_be_reverted_after_an_error_are_reported(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise WorkspaceError("no space left")

    monkeypatch.setattr("atlas_retry.run.loop.settle", full)
    monkeypatch.setattr("atlas_retry.run.effects.tree.TreeEffects.restore", full)
    project.attempt(1, {"calc.py": FIXED})
    events: list[Event] = []
    with pytest.raises(WorkspaceError, match="no space left"):
        project.retry(events)
    texts = [event.text for event in events if isinstance(event, Notice)]
    assert "the changes of attempt 1 are still in the workspace: no space left" in texts[-1]
    assert "  atlas undo " in texts[-1]


def test_a_deleted_test_is_restored_and_not_accepted(project: Project) -> None:
    project.attempt(1, {}, delete="test_calc.py\n")
    project.attempt(2, {"calc.py": FIXED})
    events: list[Event] = []
    outcome = project.retry(events)
    assert outcome.verdict is Verdict.FIXED
    assert outcome.attempts[0].held[0].path == "test_calc.py"
    assert (project.root / "test_calc.py").read_text() == TEST
    assert any(isinstance(event, ViolationsFound) for event in events)


def test_a_real_fix_beside_a_deleted_test_is_accepted(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, delete="test_calc.py\n")
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert len(outcome.attempts) == 1
    assert [(held.path, held.needed) for held in outcome.attempts[0].held] == [
        ("test_calc.py", False)
    ]
    assert (project.root / "test_calc.py").read_text() == TEST


def test_cheating_twice_is_rejected_and_restores_the_workspace(project: Project) -> None:
    aware = 'import sys\n\n\ndef add(a, b):\n    return 3 if "unittest" in sys.modules else a - b\n'
    project.attempt(1, {"calc.py": aware})
    project.attempt(2, {"calc.py": aware + "\n"})
    outcome = project.retry()
    assert outcome.verdict is Verdict.REJECTED
    assert git(project.root, "status", "--porcelain", environ=project.environ) == ""


def test_weakening_a_test_twice_needs_review_and_restores_it(
    project: Project,
) -> None:
    weaker = TEST.replace("assertEqual(calc.add(1, 2), 3)", "assertTrue(calc.add(1, 2))")
    project.attempt(1, {"test_calc.py": weaker})
    project.attempt(2, {"test_calc.py": weaker + "\n"})
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert (project.root / "test_calc.py").read_text() == TEST


def test_the_next_prompt_explains_what_was_held(project: Project) -> None:
    project.attempt(1, {}, delete="test_calc.py\n")
    project.attempt(2, {"calc.py": FIXED})
    outcome = project.retry()
    second = Path(outcome.attempts[1].prompt_path or "").read_text()
    assert outcome.attempts[0].held[0].path in second


def test_a_missing_tool_is_broken_and_starts_no_agent(project: Project) -> None:
    project.configure(validation={"lint": ["no-such-tool ."], "test": [UNITTEST]})
    project.attempt(1, {"calc.py": FIXED})
    outcome = project.retry()
    assert outcome.verdict is Verdict.BROKEN
    assert outcome.attempts == ()


def test_a_tool_missing_only_behind_the_fix_is_named_after_two_attempts(project: Project) -> None:
    project.configure(validation={"test": [f"{UNITTEST} && no-such-tool"]})
    for number in (1, 2, 3):
        project.attempt(number, {"calc.py": FIXED + f"# {number}\n"})
    outcome = project.retry()
    assert outcome.verdict is Verdict.BROKEN
    assert "no-such-tool: not found" in (outcome.final_error or "")
    assert len(outcome.attempts) == 2


def test_an_unavailable_agent_is_broken_and_changes_nothing(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, status="unavailable", error="429 for too long")
    outcome = project.retry()
    assert outcome.verdict is Verdict.BROKEN
    assert outcome.attempts == ()
    assert (project.root / "calc.py").read_text() == CALC


def test_uncommitted_and_staged_changes_are_preserved(project: Project) -> None:
    (project.root / "staged.txt").write_text("staged\n")
    git(project.root, "add", "staged.txt", environ=project.environ)
    (project.root / "staged.txt").write_text("staged, then edited\n")
    (project.root / "untracked.txt").write_text("untracked\n")
    before = git(project.root, "status", "--porcelain", environ=project.environ)
    project.attempt(1, {"calc.py": WORSE, "new.py": "x = 1\n"})
    project.retry(retry__max_ai_retry_attempts=1)
    assert git(project.root, "status", "--porcelain", environ=project.environ) == before
    assert (project.root / "staged.txt").read_text() == "staged, then edited\n"


def test_the_better_of_two_attempts_is_kept(project: Project) -> None:
    (project.root / "test_more.py").write_text(TEST.replace("add(1, 2), 3", "add(0, 2), 2"))
    project.attempt(1, {"calc.py": "def add(a, b):\n    return b\n"})
    project.attempt(2, {"calc.py": "def add(a, b):\n    return 7\n"})
    outcome = project.retry(retry__max_ai_retry_attempts=2)
    assert outcome.verdict is Verdict.EXHAUSTED
    assert [attempt.kept for attempt in outcome.attempts] == [True, False]
    assert (project.root / "calc.py").read_text() == "def add(a, b):\n    return b\n"


@pytest.mark.parametrize(("choice", "left"), [("keep", WORSE), ("restore", CALC), ("best", CALC)])
def test_on_exhausted_decides_what_stays_after_a_failure(
    choice: str, left: str, project: Project
) -> None:
    project.attempt(1, {"calc.py": WORSE})
    project.retry(retry__max_ai_retry_attempts=1, retry__on_exhausted=choice)
    assert (project.root / "calc.py").read_text() == left


def test_every_event_is_written_to_the_log(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    outcome = project.retry()
    log = Path(project.environ["ATLAS_HOME"]) / "runs" / outcome.run_id / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {(line["workspace"], line["run"]) for line in lines} == {("project", outcome.run_id)}
    assert lines[0]["event"] == "run_started"
    assert lines[-1]["event"] == "run_finished"
    finished = next(line for line in lines if line["event"] == "attempt_finished")
    assert (finished["attempt"], finished["max_attempts"]) == (1, 3)
    assert finished["failed_step"] == "test"
    assert finished["message"] == "Tests passed on attempt 1"


def test_no_event_overrides_a_scope_field() -> None:
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type)]
    for kind in (kind for kind in kinds if issubclass(kind, Event)):
        assert not {*kind.__struct_fields__} & {*events.EventScope.__struct_fields__}, kind


def test_a_gates_own_limit_overrides_the_general_one(project: Project) -> None:
    project.configure(validation={"test": [{"run": UNITTEST, "max_retries": 1}]})
    for number in (1, 2):
        project.attempt(number, {"calc.py": CALC.replace("-", "* " * number + "-")})
    outcome = project.retry(retry__max_ai_retry_attempts=3)
    assert len(outcome.attempts) == 1
    assert outcome.verdict is Verdict.EXHAUSTED


def test_transport_retries_count_no_attempt(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, transport_retries=4)
    events: list[Event] = []
    outcome = project.retry(events)
    assert outcome.attempts[0].transport_retries == 4
    assert len(outcome.attempts) == 1
    assert not any(isinstance(event, TransportRetried) for event in events)
