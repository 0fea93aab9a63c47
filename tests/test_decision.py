import pytest
from msgspec.structs import replace

from atlas_retry.decision import End, Limits, Progress, best, compared, decide
from atlas_retry.model import (
    AgentReply,
    Attempt,
    Budget,
    Kind,
    ReplyStatus,
    Status,
    Validation,
    Verdict,
    Violation,
)
from tests.values import GREEN, RED, attempt, gate, result, validation

LIMITS = Limits(
    budget=Budget(attempts=3, cost_usd=5.0, wall_s=600.0), gates=(gate(),), with_agent=True
)
OTHER_RED = validation(result("tests", Status.FAILED, "c"))
BROKEN = validation(result("tests", Status.BROKEN))
REFUSED = AgentReply(status=ReplyStatus.UNAVAILABLE, error="no key", remedy="export KEY")
CHEAT = (Violation(rule="test-deleted", path="test_a.py"),)


def progress(
    *attempts: Attempt, baseline: Validation = RED, latest: Validation | None = None, **rest: object
) -> Progress:
    trees = tuple(f"tree-{number}" for number in range(len(attempts) + 1))
    validated = [a.validation for a in attempts if a.validation]
    return Progress(
        baseline=baseline,
        settled=baseline,
        latest=latest or (validated[-1] if validated else baseline),
        start="start",
        origin="origin",
        current="current",
        attempts=attempts,
        **({"trees": trees} | rest),  # type: ignore[arg-type]
    )


def ended(so_far: Progress, limits: Limits = LIMITS) -> End | None:
    return decide(so_far, limits)


@pytest.mark.parametrize(
    ("so_far", "verdict"),
    [
        (progress(baseline=GREEN), Verdict.CLEAN),
        (progress(latest=GREEN, fixers_changed=("a.py",)), Verdict.FIXED),
        (progress(attempt(after=GREEN)), Verdict.FIXED),
        (progress(baseline=BROKEN), Verdict.BROKEN),
        (progress(refused=REFUSED), Verdict.BROKEN),
        (progress(attempt(gave_up="the test is wrong")), Verdict.GAVE_UP),
        (
            progress(
                attempt(1, None, rolled_back=True, violations=CHEAT),
                attempt(2, None, rolled_back=True, violations=CHEAT),
            ),
            Verdict.REJECTED,
        ),
        (progress(attempt(1, OTHER_RED), attempt(2), attempt(3, OTHER_RED)), Verdict.EXHAUSTED),
        (progress(attempt(cost_usd=5.0)), Verdict.EXHAUSTED),
        (progress(attempt(cost_usd=3.0)), Verdict.EXHAUSTED),
        (progress(elapsed_s=600.0), Verdict.EXHAUSTED),
        (progress(attempt(1, None, changes=())), Verdict.STALLED),
        (progress(attempt(), trees=("x", "x")), Verdict.STALLED),
        (progress(attempt(1), attempt(2)), Verdict.STALLED),
    ],
    ids=lambda value: value.value if isinstance(value, Verdict) else "",
)
def test_every_stop_rule_has_its_verdict(so_far: Progress, verdict: Verdict) -> None:
    end = ended(so_far)
    assert end is not None
    assert end.verdict is verdict


@pytest.mark.parametrize(
    "so_far",
    [
        progress(),
        progress(attempt()),
        progress(attempt(cost_usd=2.0)),
        progress(attempt(1, None, rolled_back=True, violations=CHEAT)),
        progress(attempt(1), attempt(2, OTHER_RED)),
        progress(elapsed_s=599.0),
    ],
)
def test_a_run_goes_on_while_no_rule_speaks(so_far: Progress) -> None:
    assert ended(so_far) is None


def test_without_an_agent_a_failure_is_the_end() -> None:
    end = ended(progress(), replace(LIMITS, with_agent=False))
    assert end == End(verdict=Verdict.FAILED, reason="still failing: tests")


@pytest.mark.parametrize("budget", [Budget(attempts=0), Budget(cost_usd=0.0), Budget(wall_s=0.0)])
def test_a_budget_of_nothing_allows_no_attempt(budget: Budget) -> None:
    end = ended(progress(), replace(LIMITS, budget=budget))
    assert end is not None
    assert end.verdict is Verdict.EXHAUSTED


def test_no_limit_means_no_end() -> None:
    unlimited = Limits(
        budget=Budget(attempts=None, cost_usd=None, wall_s=None),
        gates=(gate(max_retries=100),),
        with_agent=True,
    )
    many = [attempt(n, RED if n % 2 else OTHER_RED, cost_usd=9.0) for n in range(1, 20)]
    assert ended(progress(*many, elapsed_s=1e9), unlimited) is None


def test_a_gates_own_limit_ends_the_run_before_the_runs_own() -> None:
    limits = replace(LIMITS, gates=(gate("build", Kind.BUILD, max_retries=1),))
    end = ended(progress(attempt(1, OTHER_RED)), limits)
    assert end is not None
    assert end.reason == "build failed after 1 attempt, all that it may cost"


def test_attempts_made_while_a_gate_was_green_do_not_count_against_it() -> None:
    lint, tests = gate("lint", Kind.LINT, max_retries=1), gate("tests")
    limits = replace(LIMITS, gates=(lint, tests))
    lint_green = validation(result("lint", kind=Kind.LINT), result("tests", Status.FAILED, "a"))
    lint_red = validation(
        result("lint", Status.FAILED, "l", kind=Kind.LINT), result("tests", Status.FAILED, "b")
    )
    assert ended(progress(attempt(1, lint_red), baseline=lint_green), limits) is None
    assert ended(progress(attempt(1, lint_red), baseline=lint_red), limits) is not None


def test_a_message_that_changes_is_progress() -> None:
    first = validation(result("tests", Status.FAILED, "a"))
    moved = replace(
        first,
        results=(
            replace(
                first.results[0],
                diagnostics=(
                    replace(first.results[0].diagnostics[0], message="expected 3, got 2"),
                ),
            ),
        ),
    )
    assert ended(progress(attempt(1, first), attempt(2, moved))) is None


def test_the_best_attempt_has_most_gates_green_then_least_introduced_then_least_left() -> None:
    two = validation(result("lint", kind=Kind.LINT), result("tests", Status.FAILED, "a"))
    worse = validation(result("lint", Status.FAILED, "n", kind=Kind.LINT), RED.results[0])
    start = validation(result("lint", Status.FAILED, "l", kind=Kind.LINT), RED.results[0])
    chosen = best(progress(attempt(1, worse), attempt(2, two), attempt(3, worse), baseline=start))
    assert chosen is not None
    assert chosen.number == 2


def test_the_smaller_change_wins_between_equals() -> None:
    less = validation(result("tests", Status.FAILED, "a"))
    chosen = best(progress(attempt(2, less), attempt(1, less)))
    assert chosen is not None
    assert chosen.number == 1


@pytest.mark.parametrize(
    "after", [RED, OTHER_RED, validation(result("tests", Status.FAILED, "a", "b", "c"))]
)
def test_an_attempt_that_is_no_better_than_the_start_is_not_kept(after: Validation) -> None:
    assert best(progress(attempt(1, after))) is None


def test_what_was_put_back_is_never_the_best() -> None:
    assert best(progress(attempt(1, GREEN, rolled_back=True))) is None


def test_progress_between_validations_is_set_arithmetic() -> None:
    after = validation(result("tests", Status.FAILED, "b", "c"))
    assert compared(RED, after) == (("a",), ("b",), ("c",))
