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
from atlas_retry.run.cascade import detect
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
