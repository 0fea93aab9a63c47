"""What the user edits while the agent works stays the user's."""

import pytest

from atlas_retry.events import Event, Notice
from atlas_retry.model import Outcome, Verdict
from tests.desk_sharing_agent import USERS_TEST
from tests.projects import CALC, FIXED, TEST, Project


def run(project: Project, agent: str) -> tuple[Outcome, str]:
    project.configure(agent={"backend": f"tests.desk_sharing_agent:{agent}"})
    events: list[Event] = []
    outcome = project.retry(events)
    return outcome, " ".join(event.text for event in events if isinstance(event, Notice))


@pytest.mark.in_place("in layers whoever writes within the turn is the agent")
def test_edits_the_agent_did_not_name_are_neither_judged_nor_reverted(project: Project) -> None:
    outcome, text = run(project, "naming")
    assert outcome.verdict is Verdict.FIXED
    (attempt,) = outcome.attempts
    assert [change.path for change in attempt.changes] == ["calc.py"]
    assert attempt.violations == ()
    assert (project.root / "test_calc.py").read_text() == USERS_TEST
    assert (project.root / "calc.py").read_text() == FIXED
    assert "during the attempt; atlas keeps that change: notes.txt, test_calc.py" in text


@pytest.mark.in_place("in layers whoever writes within the turn is the agent")
def test_an_idle_agent_gets_no_credit_for_the_users_edits(project: Project) -> None:
    outcome, _ = run(project, "idle")
    assert outcome.verdict is Verdict.STALLED
    assert outcome.attempts[0].changes == ()
    assert (project.root / "notes.txt").read_text() == "the user's\n"
    assert (project.root / "calc.py").read_text() == CALC


def test_all_edits_are_judged_if_the_agent_does_not_name_its_own(
    project: Project,
) -> None:
    outcome, text = run(project, "silent")
    assert {held.path for held in outcome.attempts[0].held} == {"test_calc.py"}
    assert (project.root / "test_calc.py").read_text() == TEST
    assert "edited by someone else" not in text
