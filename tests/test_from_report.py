"""Runs that start from a failure which another runner recorded."""

from msgspec.structs import replace

from atlas_retry.model import Status, Validation, Verdict
from atlas_retry.reports.subject import Recorded
from atlas_retry.run.one import RunOptions, opened_with, run_one
from atlas_retry.run.triage import aligned
from tests.projects import UNITTEST, Project
from tests.values import gate, result, validation


def recorded(status: Status) -> Recorded:
    gate_result = replace(result("test", status), command=UNITTEST)
    return Recorded(validation=validation(gate_result), gates=())


def retried(project: Project, record: Recorded) -> Verdict:
    asked = RunOptions(recorded=record)
    opened = opened_with(project.root, asked, project.environ)
    return run_one(opened, asked, lambda _: None).verdict


def test_a_recorded_success_does_not_replace_the_baseline(project: Project) -> None:
    assert retried(project, recorded(Status.PASSED)) is Verdict.FAILED


def test_a_recorded_failure_replaces_the_baseline(project: Project) -> None:
    project.configure(validation={"test": [{"run": UNITTEST, "fix": "touch fixer-ran"}]})
    retried(project, recorded(Status.FAILED))
    assert (project.root / "fixer-ran").exists()


def test_costs_of_the_recorded_run_are_not_counted() -> None:
    paid = replace(result("tests", Status.FAILED), cost_usd=3.0)
    known: Validation = aligned(validation(paid), [gate("tests", run=paid.command)])
    assert known.cost_usd == 0.0
