"""What fails is told apart from what failed before the change; real git, real gates."""

from atlas_retry.events import Event, Notice
from atlas_retry.model import Diagnostic
from tests.projects import CALC, UNITTEST, WORSE, Project, git

COMPLAIN = "grep -n 'return a [-*] b' calc.py | sed 's/^/calc.py:/'; exit 1"


def complaints(project: Project, events: list[Event]) -> tuple[Diagnostic, ...]:
    outcome = project.retry(events, ai_fix=False)
    return tuple(d for result in outcome.baseline.failures for d in result.diagnostics)


def test_a_failure_that_was_there_before_is_marked(project: Project) -> None:
    project.configure(validation={"test": [UNITTEST]}, triage={"baseline": "HEAD"})
    events: list[Event] = []
    (told,) = complaints(project, events)
    assert told.preexisting
    assert "1 of 1 complaints are there at HEAD too" in " ".join(
        event.text for event in events if isinstance(event, Notice)
    )


def test_a_failure_of_the_change_is_not_marked(project: Project) -> None:
    git(project.root, "tag", "before", environ=project.environ)
    (project.root / "calc.py").write_text(WORSE)
    project.configure(validation={"lint": [COMPLAIN]}, triage={"baseline": "before"})
    assert [told.preexisting for told in complaints(project, [])] == [False]


def test_without_a_baseline_nothing_is_run_twice_and_nothing_marked(project: Project) -> None:
    project.configure(validation={"lint": [f"echo >> ../runs; {COMPLAIN}"]})
    assert [told.preexisting for told in complaints(project, [])] == [False]
    assert (project.root.parent / "runs").read_text() == "\n"


def test_the_workspace_is_as_it_was(project: Project) -> None:
    project.configure(validation={"test": [UNITTEST]}, triage={"baseline": "HEAD"})
    before = git(project.root, "status", "--porcelain", environ=project.environ)
    complaints(project, [])
    assert git(project.root, "status", "--porcelain", environ=project.environ) == before
    assert (project.root / "calc.py").read_text() == CALC
