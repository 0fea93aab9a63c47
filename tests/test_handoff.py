"""The hand-off: what a person is told who goes on where a run gave up."""

import pytest
from msgspec.structs import replace

from atlas_retry.model import (
    Attempt,
    Change,
    ChangeStatus,
    Diagnostic,
    GateResult,
    Held,
    Kind,
    OpenReview,
    Outcome,
    Region,
    Status,
    Validation,
    Verdict,
    Violation,
    WorkspaceFacts,
)
from atlas_retry.reports.handoff import MAX_PROBLEMS, handoff


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


def test_problems_are_listed_without_markup() -> None:
    many = [problem(None)] * (MAX_PROBLEMS + 2)
    text = ended(failing("pytest", *many, log_path="/logs/0"))
    assert "- `tests/test_a.py:3` assert '1' == &lt;b>2&lt;/b> more" in text
    assert "- and 2 more" in text
    assert "`/logs/0`" in text


def test_a_failed_review_has_no_command() -> None:
    text = ended(failing("", problem(None)))
    assert "```" not in text


def test_attempts_are_listed_with_their_result() -> None:
    changes = tuple(Change(path=f"f{n}.py", status=ChangeStatus.MODIFIED) for n in range(12))
    tried = (
        Attempt(
            number=1,
            agent="anthropic",
            model="sonnet",
            cost_usd=0.5,
            summary="a plus\nfor a minus",
            changes=changes,
            fixed=("a",),
            introduced=("b", "c"),
            violations=(Violation(rule="tests/removed", path="t.py", detail="a test is gone"),),
        ),
        Attempt(
            number=2, agent="anthropic", error="calc.py failed its checks in 3 tries", kept=True
        ),
    )
    text = ended(failing("pytest", problem()), attempts=tried)
    assert "1. anthropic sonnet, $0.50: a plus for a minus" in text
    assert "and 2 more" in text
    assert "1 fixed, 0 remaining, 2 introduced" in text
    assert (
        "- `t.py` tests/removed: refused: a test is gone. To look at it: atlas diff r-1 1" in text
    )
    assert "it ended with: calc.py failed its checks" in text
    assert "its changes are in the workspace now" in text
    assert "No attempt improved the result" not in text


def test_the_next_commands_can_be_typed() -> None:
    text = ended(failing("pytest", problem()), attempts=(Attempt(number=1, agent="a"),))
    assert "- No attempt improved the result" in text
    assert "`atlas undo r-1`" in text
    assert "`atlas retry '/w/my api' --ai-fix --max-attempts 5`" in text
    assert text.startswith("# api: Not fixed: the budget is spent\n\ntest failed after 3 attempts.")


def test_what_a_person_must_review_is_listed_with_what_accepts_it() -> None:
    asked = OpenReview(rule="special-case", path="a.py", line=3, run_id="r-0", attempt=1)
    text = handoff(replace(outcome_of(failing("pytest")), open_reviews=(asked,)))
    assert "## What a person must review\n\n- `a.py:3 (special-case)`" in text
    assert "`atlas accept r-0`" in text


def test_held_changes_are_listed_with_whether_they_are_needed() -> None:
    held = (
        Held(rule="tests-changed", path="test_a.py", needed=True),
        Held(rule="special-case", path="a.py", in_place=True),
    )
    text = ended(attempts=(Attempt(number=1, agent="scripted", held=held),))
    fate = "held and restored, and the gates pass only with it"
    assert f"`test_a.py` tests-changed: {fate}. To accept it: atlas pick r-1 1 --held" in text
    assert "`a.py` special-case: left in place for review. To look" in text


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
