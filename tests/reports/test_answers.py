"""What the guard answered stands in every report: which it was, whether needed, what to type."""

import json
import re
from html import unescape
from typing import Any
from urllib.parse import unquote

import pytest
from msgspec.structs import replace

from atlas_retry.model import Attempt, Held, Outcome, Verdict, Violation
from atlas_retry.reports import findings
from atlas_retry.reports.findings import TOOL
from atlas_retry.reports.formats import REPORTS
from tests.reports.samples import FIXED, GREEN, HELD, RED, of_run

FORMATS = ("junit", "sarif", "gitlab", "markdown", "github", "html")


def text_of(format_: str, run: Outcome) -> str:
    """A report as a person reads it: no markup, no escapes."""
    text = unquote(unescape(REPORTS[format_](of_run(run))).replace("\\/", "/"))
    return re.sub(r"<[^>]*>", "", text) if format_ in {"markdown", "html"} else text


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("tool-replaced", "refused and restored"),
        ("test-changed", "held and restored, and the gates pass only with it"),
        ("lock-changed", "held and restored, and the gates fail even with it"),
        ("special-cased", "left in place for review"),
        ("emptied", "noted"),
    ],
)
def test_every_report_names_the_guards_answer_and_whether_it_was_needed(
    format_: str, rule: str, words: str
) -> None:
    text = text_of(format_, HELD)
    assert rule in text
    assert words in text.lower()


@pytest.mark.parametrize("format_", FORMATS)
def test_every_report_gives_the_command_to_type_next(format_: str) -> None:
    text = text_of(format_, HELD)
    assert "atlas pick r-3 1 --held" in text
    assert "atlas diff r-3 1" in text


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("verdict", Verdict)
def test_no_report_says_nothing_changed_after_a_restored_change(
    format_: str, verdict: Verdict
) -> None:
    text = text_of(format_, replace(HELD, verdict=verdict))
    assert "changed nothing" not in text
    assert "0 changed files" not in text


def sarif(run: Outcome) -> dict[str, dict[str, Any]]:
    runs = json.loads(REPORTS["sarif"](of_run(run)))["runs"]
    (guard_run,) = [each for each in runs if each["tool"]["driver"]["name"] == TOOL]
    return {result["ruleId"]: result for result in guard_run["results"]}


def test_only_refused_findings_are_errors_in_sarif() -> None:
    answers = {
        rule: (one["level"], one["properties"]["answer"]) for rule, one in sarif(HELD).items()
    }
    assert answers == {
        "tool-replaced": ("error", "refused"),
        "test-changed": ("note", "held"),
        "lock-changed": ("note", "held"),
        "special-cased": ("note", "review"),
        "emptied": ("note", "noted"),
    }


def test_sarif_holds_need_and_next_command_as_properties() -> None:
    needed, unneeded = sarif(HELD)["test-changed"], sarif(HELD)["lock-changed"]
    assert needed["properties"]["needed"] is True
    assert needed["properties"]["next"] == "atlas pick r-3 1 --held"
    assert unneeded["properties"]["needed"] is False
    assert "needed" not in sarif(HELD)["emptied"]["properties"]


def test_a_run_without_answers_closes_earlier_alerts() -> None:
    assert sarif(replace(HELD, attempts=())) == {}


def levels(text: str) -> dict[str, str]:
    matches = re.findall(r"^::(\w+) .*title=atlas guard ([\w-]+)::", text, re.MULTILINE)
    return {rule: command for command, rule in matches}


def test_github_annotation_levels_follow_the_guards_answer() -> None:
    assert levels(REPORTS["github"](of_run(HELD))) == {
        "tool-replaced": "error",
        "test-changed": "warning",
        "lock-changed": "notice",
        "special-cased": "warning",
        "emptied": "notice",
    }


def test_findings_refused_before_the_fixing_attempt_are_warnings() -> None:
    assert levels(REPORTS["github"](of_run(FIXED))) == {"test-removed": "warning"}
    assert [one["level"] for one in sarif(FIXED).values()] == ["warning"]
    issues = json.loads(REPORTS["gitlab"](of_run(FIXED)))
    assert [one["severity"] for one in issues if TOOL in one["check_name"]] == ["minor"]


def test_gitlab_severities_and_fingerprints_are_stable_between_runs() -> None:
    first, second = (
        json.loads(REPORTS["gitlab"](of_run(run))) for run in (HELD, replace(HELD, run_id="r-4"))
    )
    guard = [one for one in first if one["check_name"].startswith(TOOL)]
    assert [one["severity"] for one in guard] == ["major", "minor", "info", "minor", "info"]
    assert [one["fingerprint"] for one in first] == [one["fingerprint"] for one in second]


def test_a_replaced_attempt_is_not_offered_over_a_passing_one() -> None:
    held = (Held(rule="test-changed", path="t.py", needed=False),)
    first = Attempt(number=1, agent="a", held=held, validation=RED)
    run = replace(FIXED, attempts=(first, Attempt(number=2, agent="a", kept=True)))
    (finding,) = findings.of_run(run)
    assert finding.command == "atlas diff r-1 1"
    kept = replace(first, kept=True, validation=GREEN)
    (finding,) = findings.of_run(replace(run, attempts=(kept,)))
    assert finding.fate == "held and restored, and the gates pass without it"
    assert finding.command == "atlas pick r-1 1 --held"


def test_the_same_answer_to_two_attempts_is_reported_for_the_last_only() -> None:
    held = (Held(rule="test-changed", path="t.py"),)
    attempts = tuple(Attempt(number=n, agent="a", held=held) for n in (1, 2))
    (finding,) = findings.of_run(replace(HELD, attempts=attempts))
    assert finding.command == "atlas pick r-3 2 --held"
    assert finding.fate == "held and restored, and the gates were not tried with it"


@pytest.mark.parametrize(
    ("attempt", "fate"),
    [
        (Attempt(number=1, agent="a", rolled_back=True), "refused, all of the attempt restored"),
        (Attempt(number=1, agent="a", snapshot="a", result="b"), "refused and restored"),
        (Attempt(number=1, agent="a", snapshot="a", result="a"), "refused"),
        (Attempt(number=1, agent="a", result="b", ends=Verdict.REJECTED), "refused"),
    ],
)
def test_a_refused_change_is_reported_as_restored_only_if_it_was(
    attempt: Attempt, fate: str
) -> None:
    refused = replace(attempt, violations=(Violation(rule="tool-replaced", path="a"),))
    assert [one.fate for one in findings.of_attempt(HELD, refused)] == [fate]
