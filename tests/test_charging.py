"""What gates write is theirs: it is never charged to an agent, whoever tracks it."""

import pytest

from atlas_retry.events import Event
from atlas_retry.guard import Judgement
from atlas_retry.model import Verdict
from tests.judged import Seen, acts, judged
from tests.projects import FIXED, TEST, Project

LONGER = FIXED + "# fixed\n"
"""CPython takes bytecode as current if the source has its second and its size."""
WRITES = (
    TEST
    + """
    def test_log(self):
        import pathlib, time
        log = pathlib.Path("tests/run.log")
        log.parent.mkdir(exist_ok=True)
        log.write_text(str(time.time_ns()))
"""
)


@pytest.mark.parametrize("kind", ["untracked", "tracked", "ignored"])
def test_a_log_written_by_tests_is_not_a_violation(kind: str, project: Project) -> None:
    (project.root / "test_calc.py").write_text(WRITES)
    if kind == "tracked":
        (project.root / "tests").mkdir()
        (project.root / "tests" / "run.log").write_text("0")
    if kind == "ignored":
        (project.root / ".gitignore").write_text("__pycache__/\ntests/run.log\n")
    project.attempt(1, {"calc.py": FIXED})
    project.commit()
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert outcome.attempts[0].violations == ()
    assert [change.path for change in outcome.attempts[0].changes] == ["calc.py"]


def test_bytecode_of_a_first_run_without_gitignore_is_not_a_violation(project: Project) -> None:
    (project.root / ".gitignore").unlink()
    project.environ.pop("PYTHONDONTWRITEBYTECODE")
    project.commit()
    project.attempt(1, {"calc.py": LONGER})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert outcome.attempts[0].violations == ()


def test_a_test_edited_by_hand_after_its_bytecode_is_the_users_change(
    project: Project,
) -> None:
    project.environ.pop("PYTHONDONTWRITEBYTECODE")
    second = TEST.replace("AddTest", "MoreTest")
    (project.root / "test_more.py").write_text(second)
    project.retry(ai_fix=False)
    (project.root / "test_more.py").write_text(second + "# looked at\n")
    project.attempt(1, {"calc.py": LONGER})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert outcome.attempts[0].violations == ()


def test_the_guard_judges_the_agents_turn_only(project: Project) -> None:
    (project.root / "test_calc.py").write_text(WRITES)
    acts(project, {"calc.py": FIXED})
    project.commit()
    seen: list[Seen] = []

    def guard(shown: Seen) -> Judgement:
        seen.append(shown)
        return Judgement()

    events: list[Event] = []
    assert judged(project, guard, events).verdict is Verdict.FIXED
    assert [shown.changed for shown in seen] == [{"calc.py"}]
