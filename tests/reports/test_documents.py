"""What other programs may rely on in our JSON."""

import json

import jsonschema
import pytest

from atlas_retry.model import Outcome
from atlas_retry.reports.documents import Cascade, batch_document, encode, schema
from atlas_retry.reports.formats import REPORTS
from atlas_retry.reports.reading import read_report
from atlas_retry.reports.subject import Subject
from tests.reports.samples import (
    FIXED,
    GAVE_UP,
    HALF,
    SUBJECTS,
    WORKSPACE,
    of_run,
)


@pytest.fixture(scope="module", params=list(SUBJECTS.values()), ids=list(SUBJECTS))
def subject(request: pytest.FixtureRequest) -> Subject:
    assert isinstance(request.param, Subject)
    return request.param


def test_every_document_is_valid_json_by_its_own_schema(subject: Subject) -> None:
    document = json.loads(REPORTS["json"](subject), parse_constant=pytest.fail)
    jsonschema.validate(document, schema())


def test_no_surrogate_reaches_the_json_report(subject: Subject) -> None:
    text = REPORTS["json"](subject)
    text.encode()
    json.dumps(json.loads(text), ensure_ascii=False).encode()


def test_results_are_listed_under_their_kind() -> None:
    document = json.loads(REPORTS["json"](SUBJECTS["red validation"]))
    assert document["schema"] == "atlas.report/1"
    assert document["failed_step"] == "lint"
    assert document["success"] is False
    assert {key: len(value) for key, value in document.items() if key.endswith("_results")} == {
        "format_results": 1,
        "lint_results": 1,
        "test_results": 1,
        "pre_commit_results": 1,
        "other_results": 1,
    }


def test_a_run_holds_its_reports_and_attempts() -> None:
    document = json.loads(REPORTS["json"](SUBJECTS["fixed run"]))
    assert document["schema"] == "atlas.run/1"
    assert (document["verdict"], document["success"]) == ("fixed", True)
    assert document["baseline"]["success"] is False
    assert document["final"]["schema"] == "atlas.report/1"
    assert [attempt["report"]["success"] for attempt in document["attempts"]] == [False, True]
    assert document["attempts"][0]["tokens"]["cache_read"] == 8000


def test_a_cost_that_is_not_a_number_is_written_as_null() -> None:
    assert json.loads(REPORTS["json"](SUBJECTS["given up"]))["cost_usd"] is None


def test_a_batch_document_lists_runs_and_waiting_workspaces() -> None:
    batch = batch_document([FIXED], not_started=["web"], cascade=Cascade(cascade_detected=True))
    document = json.loads(encode(batch))
    jsonschema.validate(document, schema())
    assert document["schema"] == "atlas.batch/1"
    assert document["not_started"] == ["web"]
    assert document["cascade"]["cascade_detected"] is True
    assert document["cost_usd"] == FIXED.cost_usd


def test_a_validation_survives_writing_and_reading() -> None:
    subject = Subject(result=HALF, workspace=WORKSPACE)
    recorded = read_report(REPORTS["json"](subject).encode())
    assert recorded.validation == HALF
    assert recorded.workspace == WORKSPACE


@pytest.mark.parametrize("outcome", [FIXED, GAVE_UP], ids=lambda outcome: outcome.verdict)
def test_the_report_of_a_run_is_read_as_its_final_validation(outcome: Outcome) -> None:
    read = read_report(REPORTS["json"](of_run(outcome)).encode()).validation
    assert [(r.name, r.status) for r in read.results] == [
        (r.name, r.status) for r in outcome.final.results
    ]
