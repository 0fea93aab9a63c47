"""The hand-off: what a person is told who goes on where a run gave up."""

import pytest
from msgspec.structs import replace

from atlas_retry.model import (
    Attempt,
    Diagnostic,
    GateResult,
    Kind,
    Outcome,
    Region,
    Status,
    Validation,
    Verdict,
    WorkspaceFacts,
)
from atlas_retry.reports.handoff import handoff


def failing(command: str, *diagnostics: Diagnostic, log_path: str | None = None) -> GateResult:
    return GateResult(
        name="unit",
        kind=Kind.TEST,
        command=command,
        status=Status.FAILED,
        success=False,
        exit_code=1,
        error="exit code 1",
        diagnostics=diagnostics,
        log_path=log_path,
    )


def problem(test_id: str | None = "tests/test_a.py::test_x[it's]") -> Diagnostic:
    return Diagnostic(
        tool="pytest",
        message="assert `1` == <b>2</b>\nmore",
        path="tests/test_a.py",
        region=Region(start_line=3),
        test_id=test_id,
    )


def ended(*results: GateResult, attempts: tuple[Attempt, ...] = ()) -> str:
    return handoff(outcome_of(*results, attempts=attempts))


def outcome_of(*results: GateResult, attempts: tuple[Attempt, ...] = ()) -> Outcome:
    validation = Validation(results=results)
    return Outcome(
        run_id="r-1",
        verdict=Verdict.EXHAUSTED,
        workspace=WorkspaceFacts(name="api", root="/w/my api"),
        baseline=validation,
        final=validation,
        attempts=attempts,
        final_error="test failed after 3 attempts",
        remedy="atlas log shows what was tried",
        cost_usd=1.25,
        escalation_required=True,
    )


@pytest.mark.parametrize(
    ("command", "start"),
    [
        ("pytest -q", "pytest"),
        ("python -m pytest -q tests", "python -m pytest"),
        ("/opt/bin/pytest -x", "/opt/bin/pytest"),
        ("cd src && pytest", "cd src && pytest"),
        (".venv/bin/poe test", ".venv/bin/python -m pytest"),
    ],
)
def test_the_handoff_names_the_smallest_failing_command(command: str, start: str) -> None:
    text = ended(failing(command, problem()))
    test = "'tests/test_a.py::test_x[it'\"'\"'s]'"
    assert f"cd '/w/my api'\n{start} {test}  # only the first one\n{command}" in text


def test_a_problem_outside_tests_has_no_smaller_command() -> None:
    assert "# only the first one" not in ended(failing("ruff check", problem(None)))


@pytest.mark.parametrize(
    ("costs", "found", "said"),
    [
        (
            (0.5, 1.5),
            5,
            "cost $1.00 here; 3 of 5 problems took $2.00, so the other 2 may take $1.33)",
        ),
        ((0.5, 1.5), 2, "5` (an attempt cost $1.00 here)"),
        ((0.5, None), 5, "--max-attempts 5`\n"),
        ((), 5, "--max-attempts 5`\n"),
    ],
)
def test_a_next_run_is_priced_by_the_figures_of_this_one(
    costs: tuple[float | None, ...], found: int, said: str
) -> None:
    attempts = tuple(
        Attempt(number=number, agent="anthropic", cost_usd=cost)
        for number, cost in enumerate(costs, 1)
    )
    outcome = outcome_of(failing("pytest", problem(), problem()), attempts=attempts)
    baseline = Validation(results=(failing("pytest", *[problem()] * found),))
    assert said in handoff(replace(outcome, baseline=baseline, cost_usd=2.0))
