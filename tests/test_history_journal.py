"""What a run leaves in the journal, and what it does where it cannot write one."""

from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.errors import StateError
from atlas_retry.events import (
    AgentActivity,
    AttemptStarted,
    Event,
    GateStarted,
    Notice,
    RunStarted,
    ValidationFinished,
    unseen,
)
from atlas_retry.history import archive
from atlas_retry.history.database import path_of, reading
from atlas_retry.history.journal import opened_journal
from atlas_retry.history.states import TRANSITIONS, RunState, follows
from atlas_retry.history.values import Opening, Order, RunRow, Transition
from atlas_retry.model import Kind, Status, Validation, Verdict, WorkspaceFacts
from tests.projects import FIXED, WORSE, Project
from tests.values import result


def home(project: Project) -> Path:
    return Path(project.environ["ATLAS_HOME"])


def newest(project: Project) -> RunRow:
    with reading(home(project)) as connection:
        return archive.find(connection, None, str(project.root))


def steps(project: Project) -> tuple[Transition, ...]:
    with reading(home(project)) as connection:
        return archive.transitions(connection, newest(project).id)


def test_failed_fixes_return_to_validation_failed_and_passing_ones_end(
    project: Project,
) -> None:
    project.attempt(1, {"calc.py": WORSE}, cost_usd=0.25)
    project.attempt(2, {"calc.py": FIXED}, cost_usd=0.5)
    project.retry()
    assert [step.to_state.value for step in steps(project)] == [
        *("pending", "validating", "validation_failed"),
        *("fixing", "validating", "validation_failed"),
        *("fixing", "validating", "passed", "passed"),
    ]
    assert steps(project)[5].reason == "test failed (attempt 1/3)"
    row = newest(project)
    assert (row.verdict, row.attempts, row.cost_usd) == (Verdict.FIXED, 2, 0.75)


def test_every_recorded_transition_is_allowed(project: Project) -> None:
    project.attempt(1, {"calc.py": WORSE})
    project.retry()
    states = [None, *(step.to_state for step in steps(project))]
    assert all(follows(before, after) for before, after in pairwise(states) if after)


def test_every_state_is_reachable_and_has_its_transitions() -> None:
    reached = set().union(*TRANSITIONS.values())
    assert reached == set(RunState)
    assert set(TRANSITIONS) == {None, *RunState}


def test_the_slowest_gate_of_the_last_run_starts_first(project: Project) -> None:
    gates = [{"name": "quick", "run": "true"}, {"name": "slow", "run": "sleep 0.3"}]
    project.configure(validation={"lint": gates, "jobs": 1})

    def order() -> list[str]:
        events: list[Event] = []
        project.retry(events)
        return [event.gate for event in events if isinstance(event, GateStarted)]

    assert order() == ["quick", "slow"]
    assert order() == ["slow", "quick"]


def test_an_attempt_is_recorded_before_the_agent_starts(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    seen: list[int] = []

    class Looking(list[Event]):
        def append(self, event: Event) -> None:
            if isinstance(event, AttemptStarted):
                with reading(home(project)) as connection:
                    query = "SELECT number FROM attempts WHERE ended_at IS NULL"
                    seen.extend(number for (number,) in connection.execute(query))

    project.retry(Looking())
    assert seen == [1]


def test_without_an_agent_a_damaged_journal_does_not_stop_the_run(project: Project) -> None:
    home(project).mkdir()
    path_of(home(project)).write_bytes(b"no database" * 100)
    events: list[Event] = []
    assert project.retry(events, ai_fix=False).verdict is Verdict.FAILED
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert any("not recorded" in text for text in notices)


def test_no_attempt_starts_if_it_cannot_be_recorded(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    home(project).mkdir()
    path_of(home(project)).write_bytes(b"no database" * 100)
    with pytest.raises(StateError, match="no attempt can be started") as refused:
        project.retry()
    assert refused.value.remedy
    assert "a - b" in (project.root / "calc.py").read_text()


def test_a_journal_that_breaks_during_a_run_stops_the_next_attempt(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})

    class Breaking(list[Event]):
        def append(self, event: Event) -> None:
            if event.kind == "validation_finished":
                path_of(home(project)).with_name("atlas.db-wal").unlink(missing_ok=True)
                path_of(home(project)).write_bytes(b"\0" * 8192)

    with pytest.raises(StateError, match="attempt 1 is not started"):
        project.retry(Breaking())
    assert "a - b" in (project.root / "calc.py").read_text()


def test_paths_that_are_not_utf8_survive_recording(project: Project) -> None:
    project.attempt(1, {"calc.py": WORSE, "odd\udcff.txt": "x"})
    events: list[Event] = []
    outcome = project.retry(events, retry__max_ai_retry_attempts=1)
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert notices == ["  unittest failed; running it again, because it may be flaky"]
    with reading(home(project)) as connection:
        (attempt,) = archive.attempts(connection, outcome.run_id)
    assert attempt.changes == outcome.attempts[0].changes


def test_an_interrupted_run_reports_the_cost_of_turns_and_reviews(tmp_path: Path) -> None:
    review = replace(result("sense", Status.FAILED, kind=Kind.REVIEW), cost_usd=0.25)
    validated = ValidationFinished(validation=Validation(results=(review,)))
    facts = WorkspaceFacts(name="w", root="/w")
    opening = Opening(run_id="r", order=Order(batch="b"), repository="w", mark="m")
    with opened_journal(tmp_path, opening, unseen) as kept:
        for event in (
            RunStarted(facts=facts, start_snapshot="s", left_out=()),
            validated,
            AttemptStarted(
                number=1,
                agent="x",
                model=None,
                session_id=None,
                snapshot="s",
                prompt_chars=0,
                prompt_path="",
            ),
            AgentActivity(text="reading", cost_usd=0.5),
            validated,
        ):
            kept(event)
    with reading(tmp_path) as connection:
        assert archive.batch_usd(connection, "b", but="") == (1.0, 0.5)
        remains = archive.remains(connection, "r")
    assert remains.reviews_usd == 0.5
    assert remains.open_attempt is not None
    assert remains.open_attempt.lost_usd == 0.5
