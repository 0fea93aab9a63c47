"""Runs that start from a failure which another runner recorded."""

from msgspec.structs import replace

from atlas_retry.model import Status, Validation, Verdict
from atlas_retry.reports.subject import Recorded
from atlas_retry.run.one import Asked, opened_with, run_one
from atlas_retry.run.triage import aligned
from tests.projects import UNITTEST, Project
from tests.values import gate, result, validation


def recorded(status: Status) -> Recorded:
    told = replace(result("test", status), command=UNITTEST)
    return Recorded(validation=validation(told), gates=())


def retried(project: Project, record: Recorded) -> Verdict:
    asked = Asked(recorded=record)
    opened = opened_with(project.root, asked, project.environ)
    return run_one(opened, asked, lambda _: None).verdict


def test_a_recorded_success_proves_nothing_about_what_is_there(project: Project) -> None:
    assert retried(project, recorded(Status.PASSED)) is Verdict.FAILED


def test_a_recorded_failure_stands_for_a_baseline(project: Project) -> None:
    project.configure(validation={"test": [{"run": UNITTEST, "fix": "touch fixer-ran"}]})
    retried(project, recorded(Status.FAILED))
    assert (project.root / "fixer-ran").exists()


def test_what_another_run_has_paid_is_not_this_ones() -> None:
    told = replace(result("tests", Status.FAILED), cost_usd=3.0)
    known: Validation = aligned(validation(told), [gate("tests", run=told.command)])
    assert known.cost_usd == 0.0
