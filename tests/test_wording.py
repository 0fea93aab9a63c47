"""What a person reads when an attempt has ended, and of what failed."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from atlas_retry.events import AttemptFinished, EventScope, GateFinished, ViolationsFound
from atlas_retry.model import (
    Attempt,
    Change,
    ChangeStatus,
    Diagnostic,
    GateResult,
    Held,
    Kind,
    Outcome,
    Region,
    Status,
    Validation,
    Verdict,
    Violation,
)
from atlas_retry.reports.screen.event_lines import lines_of
from atlas_retry.reports.screen.gate_lines import failure_lines
from atlas_retry.reports.screen.run_lines import outcome_summary
from atlas_retry.text.units import changed
from tests.reports.samples import HELD, big_run
from tests.values import GREEN, attempt


def test_denied_calls_are_reported_once() -> None:
    event = AttemptFinished(result=attempt(denials=("Bash: curl", "Bash: curl", "Edit: ci.yml")))
    assert ("  not permitted: Bash: curl, Edit: ci.yml", "warn") in list(lines_of(event))


@pytest.mark.parametrize(
    ("status", "lines", "shown"),
    [
        (ChangeStatus.MODIFIED, (1, 1), "a (+1 -1)"),
        (ChangeStatus.MODIFIED, (None, None), "a (modified)"),
        (ChangeStatus.ADDED, (2, 0), "a (+2 -0)"),
        (ChangeStatus.ADDED, (0, 0), "a (added)"),
        (ChangeStatus.DELETED, (0, 1), "a (deleted)"),
        (ChangeStatus.MODE, (0, 0), "a (mode)"),
    ],
)
def test_a_change_is_shown_as_lines_only_where_these_say_what_happened(
    status: ChangeStatus, lines: tuple[int | None, int | None], shown: str
) -> None:
    change = Change(path="a", status=status, added=lines[0], removed=lines[1])
    assert changed(change) == shown


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (attempt(2, None, changes=()), "attempt 2 changed nothing"),
        (attempt(1, None), "attempt 1 left nothing to validate: its changes were reverted"),
        (
            attempt(1, None, ends=Verdict.REJECTED),
            "attempt 1 was not validated: the guard ended the run",
        ),
    ],
)
def test_an_attempt_without_a_validation_says_why(result: Attempt, message: str) -> None:
    assert AttemptFinished(result=result).message == message


@pytest.mark.parametrize(("step", "subject"), [("test", "Tests"), ("lint", "All checks")])
def test_a_green_attempt_names_what_had_failed(step: str, subject: str) -> None:
    event = AttemptFinished(result=attempt(1, GREEN), scope=EventScope(failed_step=step))
    assert event.message == f"{subject} passed on attempt 1"


def test_an_attempt_of_which_nothing_is_left_is_not_in_the_workspace() -> None:
    outcome = replace(big_run(), attempts=(attempt(1, kept=True, since_start=()),))
    lines = [line for line, _ in outcome_summary(outcome)]
    assert "  attempt 1 left no change in the workspace" in lines


def test_an_exception_that_starts_its_message_is_named_once() -> None:
    diagnostic = Diagnostic(
        tool="pytest", rule_id="AssertionError", message="AssertionError: 1 != 2"
    )
    failed = GateResult(
        name="unit",
        kind=Kind.TEST,
        command="pytest",
        status=Status.FAILED,
        success=False,
        diagnostics=(diagnostic,),
    )
    text = "\n".join(line for line, _ in failure_lines(Validation(results=(failed,)), verbosity=0))
    assert "pytest: AssertionError: 1 != 2" in text


def test_a_long_message_ends_with_an_ellipsis() -> None:
    diagnostic = Diagnostic(tool="x", message="m" * 5000)
    failed = GateResult(
        name="unit",
        kind=Kind.TEST,
        command="x",
        status=Status.FAILED,
        success=False,
        error="e" * 5000,
        diagnostics=(diagnostic,),
    )
    lines = [line for line, _ in failure_lines(Validation(results=(failed,)))]
    lines += [line for line, _ in lines_of(GateFinished(result=failed))]
    assert max(map(len, lines)) < 300
    assert sum(line.endswith("...") for line in lines) == len([line for line in lines if line]) - 1


def test_refused_held_and_left_for_review_are_distinguished() -> None:
    event = ViolationsFound(
        violations=(Violation(rule="hook-added", path="evil"),),
        held=(
            Held(rule="tests-changed", path="test_a.py"),
            Held(rule="special-case", path="a.py", line=3, in_place=True),
        ),
        rolled_back=False,
    )
    assert event.message == "1 violations: hook-added in evil, 2 held: tests-changed in test_a.py"
    heads = [line for line, _ in lines_of(event) if line.endswith(":")]
    assert heads == [
        "  the guard refuses 1 change; these files are reverted:",
        "  1 change for a person to accept, reverted until then:",
        "  1 change for a person to look at, left in place:",
    ]


def test_what_cannot_be_restored_is_not_said_to_be() -> None:
    home, own = Violation(rule="outside-workspace", path="/h/.npmrc"), Violation(rule="r", path="a")
    event = ViolationsFound(violations=(home,), left=("/h/.npmrc",), rolled_back=True)
    heads = [line for line, _ in lines_of(event) if line.endswith(":")]
    assert heads == [
        "  the guard refuses 1 change that atlas cannot restore; the rest is reverted:"
    ]
    heads = [
        line for line, _ in lines_of(replace(event, violations=(home, own))) if line.endswith(":")
    ]
    assert heads == [
        "  the guard refuses 1 change; all of the attempt is reverted:",
        "  the guard refuses 1 change that atlas cannot restore:",
    ]


def test_an_attempt_that_passes_only_with_held_changes_is_reported() -> None:
    held = (Held(rule="tests-changed", path="test_a.py", needed=True),)
    event = AttemptFinished(result=attempt(held=held))
    assert ("  passes only with held changes: test_a.py", "warn") in list(lines_of(event))


def test_failing_tests_are_listed_first_by_id_and_place() -> None:
    lint = Diagnostic(tool="ruff", message="unused", path="a.py", region=Region(start_line=1))
    test = Diagnostic(
        tool="pytest",
        message="1 != 2",
        path="tests/test_a.py",
        region=Region(start_line=7),
        test_id="tests/test_a.py::test_b",
    )
    failed = GateResult(
        name="all",
        kind=Kind.TEST,
        command="make",
        status=Status.FAILED,
        success=False,
        diagnostics=(lint, test),
    )
    lines = [line.strip() for line, _ in failure_lines(Validation(results=(failed,)))]
    first = lines.index("tests/test_a.py::test_b: 1 != 2 (tests/test_a.py:7)")
    assert lines[first + 1] == "a.py:1: unused"


def summary(run: Outcome) -> list[str]:
    return [line for line, _ in outcome_summary(run)]


def test_a_failed_run_shows_its_problem_counts() -> None:
    lines = summary(big_run(attempts=2))
    assert "  problems: 311 -> 233 -> 155  █▇▅" in lines
    assert "  gates: ruff ✗✗✗, test ✗✗✗" in lines


def test_the_summary_shows_the_result_of_each_change() -> None:
    lines = summary(HELD)
    assert "  refused and restored: bin/ruff (tool-replaced)" in lines
    fate = "  held and restored, and the gates pass only with it: tests/test_sum.py (test-changed)"
    assert fate in lines
    assert "  left in place for review: src/sums.py (special-cased)" in lines
    assert "  noted: src/b.py (emptied)" in lines
    assert lines.count("  atlas pick r-3 1 --held") == 1
    assert "accept:" not in lines


def test_a_fixed_run_names_the_command_that_accepts_the_rest() -> None:
    lines = summary(replace(HELD, verdict=Verdict.FIXED, remedy=None))
    assert lines[lines.index("accept:") + 1] == "  atlas pick r-3 1 --held"


def test_each_command_is_on_its_own_line_below_its_label() -> None:
    lines = list(outcome_summary(HELD))
    below = [(a[0], b[0]) for a, b in pairwise(lines) if b[1] == "code"]
    assert below == [
        ("next:", "  atlas pick r-3 1 --held"),
        ("show what attempt 1 changed:", "  atlas diff r-3 1"),
        ("undo:", "  atlas undo r-3"),
    ]
