"""Reports written for machines: hostile, broken and odd ones."""

import pytest

from atlas_retry.diagnostics import REPORT_FORMATS, ToolOutput, diagnose
from atlas_retry.model import Kind

BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<testsuite><testcase name="t"><failure message="&c;"/></testcase></testsuite>"""
EXTERNAL = b"""<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>
<testsuite><testcase name="t"><failure message="m">&e;</failure></testcase></testsuite>"""


def reported(name: str, content: bytes, stdout: str = "") -> ToolOutput:
    return ToolOutput(
        command="./check",
        kind=Kind.TEST,
        exit_code=1,
        stdout=stdout,
        report=(name, content),
        root="/w",
    )


@pytest.mark.parametrize("content", [BOMB, EXTERNAL, BOMB.decode().encode("utf-16")])
def test_xml_entities_are_refused(content: bytes) -> None:
    assert diagnose(reported("junit", content)).diagnostics == ()


@pytest.mark.parametrize("name", sorted(REPORT_FORMATS))
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"[1]",
        b"\xff\xfe\x00",
        b"<a",
        b"<a/>",
        b"[" * 100_000,
        b'{"runs": [null]}',
    ],
)
def test_a_file_of_another_format_gives_no_problems(name: str, content: bytes) -> None:
    assert diagnose(reported(name, content)).diagnostics == ()


def test_an_unreadable_report_falls_back_to_printed_output() -> None:
    findings = diagnose(reported("sarif", b"oops", stdout="a.c:1:2: error: no\n"))
    assert [d.message for d in findings.diagnostics] == ["no"]


def test_an_unknown_format_falls_back_to_printed_output() -> None:
    findings = diagnose(reported("nothing", b"{}", stdout="a.c:1:2: error: no\n"))
    assert [d.message for d in findings.diagnostics] == ["no"]


def test_a_report_replaces_printed_output() -> None:
    content = b'[{"filePath": "/w/a.js", "messages": [{"message": "m", "line": 3, "column": 1}]}]'
    findings = diagnose(reported("eslint-json", content, stdout="b.c:1:2: error: no\n"))
    assert [(d.path, d.message) for d in findings.diagnostics] == [("a.js", "m")]


def test_suppressed_and_passed_sarif_results_are_left_out() -> None:
    content = b"""{"runs": [{"tool": {"driver": {"name": "X"}}, "results": [
        {"message": {"text": "one"}, "suppressions": [{"kind": "inSource"}]},
        {"message": {"text": "two"}, "kind": "pass"},
        {"message": {"text": "three"}, "level": "note", "suppressions": []}]}]}"""
    findings = diagnose(reported("sarif", content))
    assert [(d.tool, d.message, d.level.value) for d in findings.diagnostics] == [
        ("x", "three", "note")
    ]


def test_a_byte_order_mark_is_ignored() -> None:
    content = b'\xef\xbb\xbf[{"filePath": "a.js", "messages": [{"message": "m"}]}]'
    assert [d.message for d in diagnose(reported("eslint-json", content)).diagnostics] == ["m"]


def test_junit_records_whether_a_test_ran() -> None:
    content = b"""<testsuites><testsuite><testcase name="a"/>
        <testcase name="b"><skipped/></testcase>
        <testcase name="c" file="t.rb" line="4"><error message="m" type="X::Y"/></testcase>
        </testsuite></testsuites>"""
    findings = diagnose(reported("junit", content))
    (problem,) = findings.diagnostics
    assert findings.ran
    assert (problem.path, problem.message, problem.test_id) == ("t.rb", "m", "c")
    assert problem.region
    assert problem.region.start_line == 4


def test_a_diagnostic_without_a_message_is_named_by_its_rule() -> None:
    content = b'[{"code": "F401", "message": " ", "filename": "a.py"}]'
    assert [d.message for d in diagnose(reported("ruff-json", content)).diagnostics] == ["F401"]
