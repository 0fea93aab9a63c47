"""What may come in by `--from`, and how the rest is refused."""

import json

import pytest

from atlas_retry.errors import UsageError
from atlas_retry.model import Kind, Status
from atlas_retry.reports.reading import kind_of, read_report

LEAST = {"command": "pytest", "kind": "test", "exit_code": 1, "stdout": "1 failed", "stderr": ""}


def written(**more: object) -> bytes:
    return json.dumps({"results": [LEAST | more]}).encode()


def test_a_report_with_five_fields_is_read() -> None:
    (result,) = read_report(written()).validation.results
    assert (result.name, result.kind, result.command) == ("test", Kind.TEST, "pytest")
    assert (result.status, result.success, result.stdout) == (Status.FAILED, False, "1 failed")
    assert result.required


@pytest.mark.parametrize(
    ("exit_code", "status"),
    [(0, Status.PASSED), (1, Status.FAILED), (-9, Status.FAILED), (None, Status.FAILED)],
)
def test_the_exit_code_decides_when_no_status_is_given(
    exit_code: int | None, status: Status
) -> None:
    (result,) = read_report(written(exit_code=exit_code)).validation.results
    assert result.status is status


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("test", Kind.TEST),
        ("Tests", Kind.TEST),
        ("unit_tests", Kind.TEST),
        ("pre_commit", Kind.PRE_COMMIT),
        ("pre commit", Kind.PRE_COMMIT),
        ("PreCommit", Kind.PRE_COMMIT),
        ("linting", Kind.LINT),
        ("type-check", Kind.LINT),
        ("fmt", Kind.FORMAT),
        ("compile", Kind.BUILD),
        ("lint_results", Kind.LINT),
        ("security", Kind.CUSTOM),
        ("", Kind.CUSTOM),
    ],
)
def test_kind_names_are_read_loosely(word: str, kind: Kind) -> None:
    assert kind_of(word) is kind


@pytest.mark.parametrize(
    "more",
    [
        {"duration": "1.2s", "extra": {"deep": [1]}},
        {"diagnostics": "theirs", "duration_ms": 1.5, "error": {"code": 1}},
        {"status": "FAILED", "success": "no", "changed": 3},
        {"stdout": None, "stderr": None},
    ],
)
def test_unknown_values_in_known_fields_are_ignored(more: dict[str, object]) -> None:
    (result,) = read_report(written(**more)).validation.results
    assert result.status is Status.FAILED


def test_sloppy_json_of_other_runners_is_read() -> None:
    content = (
        b'\xef\xbb\xbf{"results": [%s], "load": NaN}\r\n'
        % json.dumps(LEAST | {"stdout": "\udc80\x00"}).encode()
    )
    (result,) = read_report(content).validation.results
    assert result.stdout == "\udc80\x00"


def test_gates_are_read_along_with_the_results() -> None:
    gates = [{"kind": "lint", "command": "ruff check"}, {"kind": "Tests", "run": "pytest"}]
    recorded = read_report(json.dumps({"results": [], "gates": gates}).encode())
    assert [(gate.name, gate.kind, gate.run) for gate in recorded.gates] == [
        ("lint", Kind.LINT, "ruff check"),
        ("test", Kind.TEST, "pytest"),
    ]


WITHOUT_CODE = {key: value for key, value in LEAST.items() if key != "exit_code"}


@pytest.mark.parametrize(
    ("content", "place", "why"),
    [
        (b"", "ci.json:1:1", "Expecting value"),
        (b'{"results": [\n  {"kind": }]}', "ci.json:2:12", "Expecting value"),
        (b'{"\xff', "ci.json", "byte 2 is not UTF-8"),
        (b"[" * 100_000, "ci.json", "JSON"),
        (b'{"results": [], "n": 1' + b"0" * 5000 + b"}", "ci.json", "JSON"),
        (b"[]", "ci.json", "is an empty list"),
        (b"{}", "ci.json", 'neither "results"'),
        (b'{"results": {}}', "ci.json: $.results", "Expected `array`"),
        (b'{"results": [1]}', "ci.json: $.results[0]", "Expected `object`"),
        (b'{"results": [], "gates": 1}', "ci.json: $.gates", "Expected `array`"),
        (b'{"results": [], "gates": [{}]}', "ci.json: $.gates[0]", "`kind`"),
        (json.dumps({"results": [WITHOUT_CODE]}).encode(), "ci.json: $.results[0]", "`exit_code`"),
        (written(exit_code="1"), "ci.json: $.results[0].exit_code", "Expected `int | null`"),
        (written(stdout=["a"]), "ci.json: $.results[0].stdout", "Expected `str | null`"),
        (b'{"schema": "atlas.run/1"}', "ci.json: $.final", "last report"),
        (b'{"schema": "atlas.batch/1", "runs": []}', "ci.json", "one of them"),
    ],
)
def test_an_invalid_report_is_refused_with_the_place(content: bytes, place: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_report(content, source="ci.json")
    assert refused.value.message.startswith(f"{place}: ")
    assert why in refused.value.message
    assert refused.value.remedy
