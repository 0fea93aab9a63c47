"""`--record` keeps a run so that the scripted agent replays it; the hand-off says how to go on."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.errors import UsageError
from atlas_retry.history.values import Order
from atlas_retry.model import Outcome, Verdict
from atlas_retry.run.one import RunOptions, opened_with, run_one
from tests.messages_server import call, serving
from tests.projects import CALC, FIXED, UNITTEST, WORSE, Project
from tests.test_review import answer


def recorded(project: Project, folder: Path) -> Outcome:
    asked = RunOptions(order=Order(ai_fix=True), record=folder)
    opened = opened_with(project.root, asked, project.environ)
    return run_one(opened, asked, lambda _: None)


def test_a_recorded_run_is_replayed_without_its_agent(project: Project, tmp_path: Path) -> None:
    (project.root / "old.py").write_text("x = 1\n")
    project.commit()
    project.attempt(1, {"calc.py": WORSE, "new/deep.py": "y = 2\n"}, cost_usd=0.5)
    project.attempt(2, {"calc.py": FIXED}, delete="old.py\n", summary="plus")
    first = recorded(project, tmp_path / "kept")
    assert first.verdict is Verdict.FIXED
    assert "Attempt 2 of 3" in (tmp_path / "kept" / "2" / "prompt.md").read_text()

    (project.root / "calc.py").write_text(CALC)
    (project.root / "old.py").write_text("x = 1\n")
    (project.root / "new" / "deep.py").unlink()
    again = replace(project, script=tmp_path / "kept")
    again.configure()
    second = again.retry()
    assert second.verdict is Verdict.FIXED
    assert [a.changes for a in second.attempts] == [a.changes for a in first.attempts]
    assert [a.summary for a in second.attempts] == [a.summary for a in first.attempts]
    assert second.cost_usd == first.cost_usd == 0.5


def test_reviews_are_replayed(project: Project, tmp_path: Path) -> None:
    review = {"name": "taste", "prompt": "Is it plain?"}
    agent = {"backend": "anthropic", "path": None}
    gates = {"test": [UNITTEST], "review": [review]}
    project.configure(validation=gates, agent=agent)
    file = {"path": "calc.py", "action": "modify", "content": FIXED}
    fix = call("submit_fix", success=True, diagnosis="minus", files=[file])
    with serving(fix, answer(passes=True)) as server:
        project.environ.update(ANTHROPIC_API_KEY="dummy-key", ANTHROPIC_BASE_URL=server.url)
        assert recorded(project, tmp_path / "kept").verdict is Verdict.FIXED

    (project.root / "calc.py").write_text(CALC)
    again = replace(project, script=tmp_path / "kept")
    again.configure(validation=gates)
    second = again.retry()
    assert second.verdict is Verdict.FIXED
    assert second.final.results[-1].success


@pytest.mark.parametrize("inside", [True, False])
def test_a_recording_never_overwrites_files(project: Project, tmp_path: Path, inside: bool) -> None:
    folder = project.root / "kept" if inside else tmp_path / "kept"
    folder.mkdir()
    (folder / "mine").write_text("x")
    project.attempt(1, {"calc.py": FIXED})
    with pytest.raises(UsageError, match="--record"):
        recorded(project, folder)


def test_a_failed_run_writes_a_handoff_with_the_next_steps(project: Project) -> None:
    project.attempt(1, {"calc.py": WORSE}, summary="times, not minus", cost_usd=0.1)
    project.attempt(2, {"calc.py": CALC + "\n"}, summary="a blank line")
    project.attempt(3, {"calc.py": CALC + "\n\n"})
    outcome = project.retry()
    assert not outcome.verdict.is_green
    handoff = Path(outcome.handoff_path or "").read_text()
    assert "test_add" in handoff
    assert "python3 -S -m unittest" in handoff
    assert "1. scripted" in handoff
    assert "times, not minus" in handoff
    assert f"atlas undo {outcome.run_id}" in handoff


def test_a_passing_run_writes_no_handoff(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    assert project.retry().handoff_path is None
