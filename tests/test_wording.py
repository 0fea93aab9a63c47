"""What a person reads when an attempt has ended, and of what failed."""

from itertools import pairwise

from msgspec.structs import replace

from atlas_retry.events import AttemptFinished, GateFinished, ViolationsFound
from atlas_retry.model import (
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
from tests.reports.samples import HELD, big_run
from tests.values import attempt


def test_calls_that_were_refused_are_reported_once() -> None:
    event = AttemptFinished(result=attempt(denials=("Bash: curl", "Bash: curl", "Edit: ci.yml")))
    assert ("  not permitted: Bash: curl, Edit: ci.yml", "warn") in list(lines_of(event))


def test_an_exception_that_begins_its_message_is_named_once() -> None:
    told = Diagnostic(tool="pytest", rule_id="AssertionError", message="AssertionError: 1 != 2")
    failed = GateResult(
        name="unit",
        kind=Kind.TEST,
        command="pytest",
        status=Status.FAILED,
        success=False,
        diagnostics=(told,),
    )
    text = "\n".join(line for line, _ in failure_lines(Validation(results=(failed,)), verbosity=0))
    assert "pytest: AssertionError: 1 != 2" in text


def test_a_long_message_ends_with_dots() -> None:
    told = Diagnostic(tool="x", message="m" * 5000)
    failed = GateResult(
        name="unit",
        kind=Kind.TEST,
        command="x",
        status=Status.FAILED,
        success=False,
        error="e" * 5000,
        diagnostics=(told,),
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
        "  1 change for a person to accept, reverted meanwhile:",
        "  1 change for a person to look at, left in place:",
    ]


def test_an_attempt_that_passes_only_with_what_was_held_says_so() -> None:
    held = (Held(rule="tests-changed", path="test_a.py", needed=True),)
    event = AttemptFinished(result=attempt(held=held))
    assert ("  green only with what was held: test_a.py", "warn") in list(lines_of(event))


def test_failing_tests_come_first_by_their_id_and_then_their_place() -> None:
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
    told = [line.strip() for line, _ in failure_lines(Validation(results=(failed,)))]
    first = told.index("tests/test_a.py::test_b: 1 != 2 (tests/test_a.py:7)")
    assert told[first + 1] == "a.py:1: unused"


def summary(run: Outcome) -> list[str]:
    return [line for line, _ in outcome_summary(run)]


def test_a_run_that_fell_short_shows_its_course() -> None:
    said = summary(big_run(attempts=2))
    assert "  problems: 311 -> 233 -> 155  █▇▅" in said
    assert "  gates: ruff ✗✗✗, test ✗✗✗" in said


def test_the_last_lines_say_what_became_of_each_change() -> None:
    said = summary(HELD)
    assert "  refused and restored: bin/ruff (tool-replaced)" in said
    fate = "  held and restored, and the gates pass only with it: tests/test_sum.py (test-changed)"
    assert fate in said
    assert "  left in place for review: src/sums.py (special-cased)" in said
    assert "  noted: src/b.py (emptied)" in said
    assert said.count("  atlas pick r-3 1 --held") == 1
    assert "accept:" not in said


def test_a_green_names_what_accepts_the_rest() -> None:
    lines = summary(replace(HELD, verdict=Verdict.FIXED, remedy=None))
    assert lines[lines.index("accept:") + 1] == "  atlas pick r-3 1 --held"


def test_each_command_to_copy_is_whole_on_a_line_below_its_label() -> None:
    lines = list(outcome_summary(HELD))
    below = [(a[0], b[0]) for a, b in pairwise(lines) if b[1] == "code"]
    assert below == [
        ("next:", "  atlas pick r-3 1 --held"),
        ("show the changes:", "  atlas diff r-3"),
        ("undo:", "  atlas undo r-3"),
    ]
