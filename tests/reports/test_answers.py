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
from atlas_retry.reports.github import annotations
from atlas_retry.reports.markdown import guard_summary
from atlas_retry.reports.subject import of_run
from tests.reports.samples import FIXED, GREEN, HELD, RED

FORMATS = ("junit", "sarif", "gitlab", "markdown", "github", "html")


def said(format_: str, run: Outcome) -> str:
    """A report as a person reads it: no markup, no escapes."""
    text = unquote(unescape(REPORTS[format_](of_run(run))).replace("\\/", "/"))
    return re.sub(r"<[^>]*>", "", text) if format_ in {"markdown", "html"} else text


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("tool-replaced", "refused and restored"),
        ("test-changed", "held and restored, and the gates pass only with it"),
        ("lock-changed", "held and restored, and the gates fail with it as well"),
        ("special-cased", "left in place for review"),
        ("emptied", "noted"),
    ],
)
def test_every_report_says_which_it_was_and_whether_it_is_needed(
    format_: str, rule: str, words: str
) -> None:
    text = said(format_, HELD)
    assert rule in text
    assert words in text.lower()


@pytest.mark.parametrize("format_", FORMATS)
def test_every_report_says_what_to_type(format_: str) -> None:
    text = said(format_, HELD)
    assert "atlas pick r-3 1 --held" in text
    assert "atlas diff r-3 1" in text


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("verdict", Verdict)
def test_no_report_says_that_an_attempt_changed_nothing_whose_change_was_restored(
    format_: str, verdict: Verdict
) -> None:
    text = said(format_, replace(HELD, verdict=verdict))
    assert "changed nothing" not in text
    assert "0 changed files" not in text


def sarif(run: Outcome) -> dict[str, dict[str, Any]]:
    runs = json.loads(REPORTS["sarif"](of_run(run)))["runs"]
    (told,) = [each for each in runs if each["tool"]["driver"]["name"] == TOOL]
    return {result["ruleId"]: result for result in told["results"]}


def test_in_sarif_only_what_was_refused_is_an_error() -> None:
    told = {rule: (one["level"], one["properties"]["answer"]) for rule, one in sarif(HELD).items()}
    assert told == {
        "tool-replaced": ("error", "refused"),
        "test-changed": ("note", "held"),
        "lock-changed": ("note", "held"),
        "special-cased": ("note", "review"),
        "emptied": ("note", "noted"),
    }


def test_sarif_carries_need_and_command_for_programs() -> None:
    needed, unneeded = sarif(HELD)["test-changed"], sarif(HELD)["lock-changed"]
    assert needed["properties"]["needed"] is True
    assert needed["properties"]["next"] == "atlas pick r-3 1 --held"
    assert unneeded["properties"]["needed"] is False
    assert "needed" not in sarif(HELD)["emptied"]["properties"]


def test_a_run_without_answers_closes_earlier_alerts() -> None:
    assert sarif(replace(HELD, attempts=())) == {}


def levels(told: str) -> dict[str, str]:
    found = re.findall(r"^::(\w+) .*title=atlas guard ([\w-]+)::", told, re.MULTILINE)
    return {rule: command for command, rule in found}


def test_annotations_are_as_grave_as_what_was_answered() -> None:
    assert levels(REPORTS["github"](of_run(HELD))) == {
        "tool-replaced": "error",
        "test-changed": "warning",
        "lock-changed": "notice",
        "special-cased": "warning",
        "emptied": "notice",
    }


def test_what_was_refused_on_the_way_to_a_green_is_no_error() -> None:
    assert levels(REPORTS["github"](of_run(FIXED))) == {"test-removed": "warning"}
    assert [one["level"] for one in sarif(FIXED).values()] == ["warning"]
    issues = json.loads(REPORTS["gitlab"](of_run(FIXED)))
    assert [one["severity"] for one in issues if TOOL in one["check_name"]] == ["minor"]


def test_gitlab_grades_and_knows_an_answer_again_in_the_next_run() -> None:
    first, second = (
        json.loads(REPORTS["gitlab"](of_run(run))) for run in (HELD, replace(HELD, run_id="r-4"))
    )
    guard = [one for one in first if one["check_name"].startswith(TOOL)]
    assert [one["severity"] for one in guard] == ["major", "minor", "info", "minor", "info"]
    assert [one["fingerprint"] for one in first] == [one["fingerprint"] for one in second]


def test_an_attempt_that_is_not_what_is_left_is_not_offered_over_a_green() -> None:
    held = (Held(rule="test-changed", path="t.py", needed=False),)
    first = Attempt(number=1, agent="a", held=held, validation=RED)
    run = replace(FIXED, attempts=(first, Attempt(number=2, agent="a", kept=True)))
    (found,) = findings.of_run(run)
    assert found.command == "atlas diff r-1 1"
    kept = replace(first, kept=True, validation=GREEN)
    (found,) = findings.of_run(replace(run, attempts=(kept,)))
    assert found.fate == "held and restored, and the gates pass without it"
    assert found.command == "atlas pick r-1 1 --held"


def test_the_same_answer_to_two_attempts_is_reported_once_of_the_last() -> None:
    held = (Held(rule="test-changed", path="t.py"),)
    attempts = tuple(Attempt(number=n, agent="a", held=held) for n in (1, 2))
    (found,) = findings.of_run(replace(HELD, attempts=attempts))
    assert found.command == "atlas pick r-3 2 --held"
    assert found.fate == "held and restored, and the gates were not tried with it"


@pytest.mark.parametrize(
    ("attempt", "fate"),
    [
        (Attempt(number=1, agent="a", rolled_back=True), "refused, all of the attempt restored"),
        (Attempt(number=1, agent="a", snapshot="a", result="b"), "refused and restored"),
        (Attempt(number=1, agent="a", snapshot="a", result="a"), "refused"),
        (Attempt(number=1, agent="a", result="b", ends=Verdict.REJECTED), "refused"),
    ],
)
def test_nothing_is_said_to_be_restored_that_was_not(attempt: Attempt, fate: str) -> None:
    refused = replace(attempt, violations=(Violation(rule="tool-replaced", path="a"),))
    assert [one.fate for one in findings.of_attempt(HELD, refused)] == [fate]


CHANGE = findings.of_change(
    (Violation(rule="git-state", path=".git/config", detail="pipe | and <b>"),),
    (
        Held(rule="test-changed", path="test_a.py", line=3, needed=True),
        Held(rule="special-cased", path="a.py", in_place=True),
    ),
    (Violation(rule="emptied", path="b.py"),),
)


def test_the_summary_of_a_judged_change_is_a_table() -> None:
    heading, _, *table = guard_summary(CHANGE).splitlines()
    assert heading == "## ❌ atlas guard: 1 refused, 1 held, 1 review, 1 noted"
    assert [row.count("|") for row in table] == [5] * 6
    assert "held for a person, and the gates pass only with it" in table[3]
    assert guard_summary(()) == "## ✅ atlas guard: nothing is refused, held or noted\n"


def test_a_judged_change_is_annotated_on_its_lines() -> None:
    told = annotations(one.diagnostic for one in CHANGE).splitlines()
    assert [line.partition(" ")[0] for line in told] == ["::error"] + ["::warning"] * 2 + [
        "::notice"
    ]
    assert "file=test_a.py,line=3," in told[1]


def test_what_fails_all_the_same_is_not_offered() -> None:
    commands = {one.seen.rule: one.command for one in findings.of_run(HELD)}
    assert commands["test-changed"] == "atlas pick r-3 1 --held"
    assert commands["lock-changed"] == "atlas diff r-3 1"
