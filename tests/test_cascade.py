"""When many failures are one: over finished outcomes, by shared fingerprints."""

import pytest
from msgspec.structs import replace

from atlas_retry.model import (
    Diagnostic,
    GateResult,
    Kind,
    Outcome,
    Status,
    Validation,
    Verdict,
    WorkspaceFacts,
)
from atlas_retry.run.cascade import MAX_CAUSES, detect
from atlas_retry.settings import CascadeSettings

RULE = CascadeSettings()


def failure(*messages: str, kind: Kind = Kind.TEST, error: str = "exit code 1") -> Validation:
    diagnostics = tuple(
        Diagnostic(tool="pytest", message=message, fingerprint=f"f:{message}")
        for message in messages
    )
    result = GateResult(
        name=kind.value,
        kind=kind,
        command="check",
        status=Status.FAILED,
        success=False,
        error=error,
        diagnostics=diagnostics,
    )
    return Validation(results=(result,))


def outcome(name: str, final: Validation | None, error: str | None = None) -> Outcome:
    """Green without a final validation; with an empty one it never came to a validation."""
    verdict = Verdict.FIXED if final is None else Verdict.EXHAUSTED
    return Outcome(
        run_id=name,
        verdict=verdict,
        workspace=WorkspaceFacts(name=name, root=f"/{name}"),
        baseline=Validation(),
        final=final or Validation(),
        final_error=error,
    )


def sequence(pattern: str) -> list[Outcome]:
    """`F` failed, `.` green."""
    return [
        outcome(f"w{n}", failure(f"m{n}") if mark == "F" else None)
        for n, mark in enumerate(pattern)
    ]


@pytest.mark.parametrize(
    ("pattern", "count", "detected"),
    [
        ("", 0, False),
        ("FF", 2, False),
        ("FFF", 3, True),
        ("F.F.F", 3, True),
        ("F.F..F", 2, False),
        ("FFF..", 3, True),
        ("FFF...", 2, False),
        ("....FFFFF", 5, True),
    ],
)
def test_a_cascade_needs_threshold_failures_within_the_window(
    pattern: str, count: int, *, detected: bool
) -> None:
    cascade = detect(sequence(pattern), RULE)
    assert (cascade.failures_in_window, cascade.cascade_detected) == (count, detected)
    assert cascade.threshold == 3
    assert (cascade.action == "pause_and_alert") is detected


def test_a_cascade_is_detected_as_soon_as_the_threshold_is_reached() -> None:
    outcomes = sequence("." * 100 + "F" * 20 + "." * 80)
    first = next(n for n in range(200) if detect(outcomes[:n], RULE).cascade_detected)
    assert first == 103


@pytest.mark.parametrize(
    ("rule", "detected"),
    [
        (replace(RULE, enabled=False), False),
        (replace(RULE, threshold=4), False),
        (replace(RULE, threshold=2, window_size=2), True),
        (replace(RULE, on_cascade="alert"), True),
    ],
)
def test_every_cascade_setting_has_its_effect(rule: CascadeSettings, *, detected: bool) -> None:
    cascade = detect(sequence(".FFF"), rule)
    assert cascade.cascade_detected is detected
    if detected:
        assert cascade.action == rule.on_cascade


def test_a_broken_workspace_counts_towards_a_cascade() -> None:
    outcomes = [replace(one, verdict=Verdict.BROKEN) for one in sequence("FFF")]
    assert detect(outcomes, RULE).cascade_detected


def test_the_most_shared_problem_is_named_as_cause() -> None:
    outcomes = [
        outcome("api", failure("connection refused", "only here")),
        outcome("web", failure("no module named x", "connection refused")),
        outcome("ui", failure("connection refused")),
        outcome("db", failure("no module named x")),
    ]
    cascade = detect(outcomes, RULE)
    assert cascade.diagnosis == (
        "Multiple test failures detected. Possible root cause: "
        "pytest: connection refused (in api, web, ui)"
    )
    assert "Review architecture or dependencies before continuing" in str(cascade.recommendation)


def test_a_few_shared_problems_are_quoted_and_the_rest_counted() -> None:
    outcomes = [outcome(name, failure("a", "b", "c", "d", "e")) for name in ("x", "y", "z")]
    shown = "; ".join(f"pytest: {message}" for message in "abcde"[:MAX_CAUSES])
    assert str(detect(outcomes, RULE).diagnosis).endswith(
        f"{shown} and {5 - MAX_CAUSES} more (in x, y, z)"
    )


def test_a_problem_shared_by_two_is_the_cause() -> None:
    outcomes = [outcome("x", failure("a")), outcome("y", failure("a")), outcome("z", failure("b"))]
    assert str(detect(outcomes, RULE).diagnosis).endswith("pytest: a (in x, y)")


def test_without_a_shared_problem_the_cause_is_unknown() -> None:
    outcomes = [
        outcome("api", failure("one")),
        outcome("web", failure("two", kind=Kind.LINT)),
        outcome("ui", failure("three")),
    ]
    assert detect(outcomes, RULE).diagnosis == (
        "Multiple (test, lint) failures detected. Possible root cause: "
        "unknown, because no two of api, web, ui share a problem"
    )


def test_startup_errors_are_compared_without_folder_names() -> None:
    outcomes = [
        outcome(name, Validation(), error=f"/srv/{name}/.git is locked") for name in ("a", "b", "c")
    ]
    assert "is locked (in a, b, c)" in str(detect(outcomes, RULE).diagnosis)


def test_a_failure_without_output_is_compared_by_gate_and_error() -> None:
    outcomes = [outcome(name, failure(error="timed out")) for name in ("a", "b", "c")]
    assert "test: timed out (in a, b, c)" in str(detect(outcomes, RULE).diagnosis)


def test_the_quoted_cause_is_short() -> None:
    outcomes = [outcome(name, failure("x\n" * 5000)) for name in ("a", "b", "c")]
    assert len(str(detect(outcomes, RULE).diagnosis)) < 400
