"""What is held, kept and refused, in runs with real git, real gates and a real command."""

from pathlib import Path

import pytest

from atlas_retry.events import AttemptStarted, Event
from atlas_retry.guard import Judgement
from atlas_retry.history import archive
from atlas_retry.history.database import reading
from atlas_retry.model import Held, Verdict, Violation
from atlas_retry.run.confirm import NEEDED
from tests.judged import Seen, acts, judged, prompt_of
from tests.projects import CALC, FIXED, TEST, UNITTEST, WORSE, Project, atlas, git

WEAK = TEST.replace("calc.add(1, 2), 3", "1, 1")
MORE = TEST.replace("calc.add(1, 2), 3", "calc.add(2, 2), 4").replace("AddTest", "MoreTest")


def holds_tests(seen: Seen) -> Judgement:
    tests = tuple(sorted(path for path in seen.changed if path.startswith("test")))
    held = tuple(Held(rule="tests-changed", path=path) for path in tests)
    return Judgement(answers=held, restore=tests)


def keeps_tests(seen: Seen) -> Judgement:
    return Judgement(as_before={p: c for p, c in seen.origin.items() if p.startswith("test")})


def status(project: Project) -> str:
    return git(project.root, "status", "--porcelain", environ=project.environ)


def test_a_fix_that_passes_without_the_held_change_is_fixed(project: Project) -> None:
    acts(project, {"calc.py": FIXED, "test_calc.py": WEAK})
    project.commit()
    outcome = judged(project, holds_tests, [])
    assert outcome.verdict is Verdict.FIXED
    (attempt,) = outcome.attempts
    assert [(h.path, h.needed) for h in attempt.held] == [("test_calc.py", False)]
    assert status(project) == " M calc.py\n"


def test_a_fix_that_passes_only_with_a_held_change_needs_review(
    project: Project,
) -> None:
    acts(project, {"test_calc.py": WEAK}, {"calc.py": WORSE, "test_calc.py": WEAK}, {})
    project.commit()
    outcome = judged(project, holds_tests, [])
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert len(outcome.attempts) == 2
    assert outcome.remedy == f"atlas pick {outcome.run_id} 2 --held"
    assert status(project) == " M calc.py\n"
    second = " ".join(prompt_of(outcome, 2).split())
    assert "Your change to test_calc.py (tests-changed) was held back" in second
    assert "ATLAS-CANNOT-FIX" in second
    assert "held back" not in prompt_of(outcome, 1)


def test_an_agent_told_of_held_changes_can_fix_the_source(project: Project) -> None:
    acts(project, {"test_calc.py": WEAK}, {"calc.py": FIXED})
    project.commit()
    assert judged(project, holds_tests, []).verdict is Verdict.FIXED
    assert status(project) == " M calc.py\n"


def test_added_tests_are_kept_after_the_others_passed_without_them(project: Project) -> None:
    acts(project, {"calc.py": FIXED, "test_more.py": MORE})
    project.commit()
    outcome = judged(project, keeps_tests, [])
    assert outcome.verdict is Verdict.FIXED
    assert status(project) == " M calc.py\n?? test_more.py\n"


def test_a_change_that_passing_depends_on_is_not_kept(project: Project) -> None:
    project.configure()
    acts(project, {"test_calc.py": WEAK}, {"calc.py": FIXED})
    project.commit()
    outcome = judged(project, keeps_tests, [])
    assert outcome.verdict is Verdict.FIXED
    first = outcome.attempts[0]
    assert [(h.rule, h.path, h.needed) for h in first.held] == [(NEEDED.rule, "test_calc.py", True)]
    assert status(project) == " M calc.py\n"


def test_a_new_file_that_passing_depends_on_is_removed(project: Project) -> None:
    acts(project, {"test-is-off": ""})
    configuration = project.root / ".atlas" / "config.yaml"
    configuration.write_text(
        configuration.read_text().replace(UNITTEST, f"test -e test-is-off || {UNITTEST}")
    )
    project.commit()
    outcome = judged(project, keeps_tests, [], attempts=1)
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert status(project) == ""


def test_files_written_while_trying_held_changes_are_removed(project: Project) -> None:
    acts(project, {"calc.py": WORSE, "test_calc.py": WEAK + "open('ran', 'a').write('.')\n"})
    project.commit()
    outcome = judged(project, holds_tests, [], attempts=1)
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert status(project) == " M calc.py\n"


def test_an_edit_for_review_stays_and_the_run_needs_review(project: Project) -> None:
    acts(project, {"calc.py": FIXED})
    project.commit()
    seen = Held(rule="special-case", path="calc.py", in_place=True)
    outcome = judged(project, lambda _: Judgement(answers=(seen,)), [])
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert (project.root / "calc.py").read_text() == FIXED


def test_a_refused_change_that_cannot_be_restored_ends_the_run(project: Project) -> None:
    acts(project, {"calc.py": FIXED}, {"calc.py": FIXED})
    project.commit()
    refused = Violation(rule="dependency-edited", path="node_modules/dep/index.js")
    outcome = judged(
        project,
        lambda _: Judgement(answers=(refused,), ends=Verdict.REJECTED, remedy="npm ci"),
        [],
    )
    assert outcome.verdict is Verdict.REJECTED
    assert len(outcome.attempts) == 1
    assert "node_modules/dep/index.js" in (outcome.final_error or "")
    assert (project.root / "calc.py").read_text() == CALC


class Cut(Exception):  # noqa: N818 - as sudden as a power cut
    """The end of a run of which nobody hears."""


@pytest.mark.parametrize("guard", [holds_tests, keeps_tests])
def test_an_interrupted_run_remembers_held_changes_and_their_result(
    project: Project, guard: object
) -> None:
    acts(project, {"calc.py": WORSE, "test_calc.py": WEAK}, {"calc.py": FIXED})
    project.commit()

    class Told(list[Event]):
        def append(self, event: Event) -> None:
            if isinstance(event, AttemptStarted) and event.number == 2:
                raise Cut
            super().append(event)

    with pytest.raises(Cut):
        judged(project, guard, Told())  # type: ignore[arg-type]
    with reading(Path(project.environ["ATLAS_HOME"])) as connection:
        (row,) = archive.runs(connection)
        (attempt,) = archive.remains(connection, row.id).attempts
    assert [(h.path, h.needed) for h in attempt.held] == [("test_calc.py", True)]
    assert attempt.validation is not None
    assert not attempt.validation.success


def test_accepting_held_changes_does_not_accept_refused_ones(project: Project) -> None:
    def guard(seen: Seen) -> Judgement:
        refused = Violation(rule="hook-added", path="evil")
        there = holds_tests(seen)
        restore = ("evil", *(there.restore or ()))
        return Judgement(answers=(refused, *there.held), restore=restore)

    acts(project, {"calc.py": WORSE, "test_calc.py": WEAK, "evil": ""})
    project.commit()
    outcome = judged(project, guard, [], attempts=1)
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    remedy = outcome.remedy or ""
    assert status(project) == " M calc.py\n"
    assert atlas(project, *remedy.split()[1:]).code == 0
    assert status(project) == " M calc.py\n M test_calc.py\n"
    assert (project.root / "test_calc.py").read_text() == WEAK
    assert atlas(project, "undo", outcome.run_id).code == 0
    assert status(project) == ""


def test_an_attempt_without_held_changes_has_none_to_accept(project: Project) -> None:
    acts(project, {"calc.py": FIXED})
    project.commit()
    outcome = judged(project, holds_tests, [])
    ended = atlas(project, "pick", outcome.run_id, "1", "--held")
    assert ended.code == 2
    assert f"atlas log {outcome.run_id}" in ended.err
