"""One budget for several runs: never more than it, however many attempts are under way."""

import threading

import pytest
from msgspec.structs import replace

from atlas_retry.model import (
    Attempt,
    Budget,
    Change,
    ChangeStatus,
    GateResult,
    Kind,
    Status,
    Validation,
    Verdict,
)
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.decide import decide
from atlas_retry.run.progress import Limits, Progress

FAILING = Validation(
    results=(
        GateResult(name="test", kind=Kind.TEST, command="t", status=Status.FAILED, success=False),
    )
)
FRESH = Progress(
    baseline=FAILING, settled=FAILING, latest=FAILING, start="s", origin="o", current="o"
)
LIMITS = Limits(budget=Budget(attempts=99, cost_usd=10.0), gates=(), with_agent=True)


def after(*costs: float) -> Progress:
    """A run whose attempts have cost this, each with another problem and another tree."""
    change = Change(path="a", status=ChangeStatus.MODIFIED)
    attempts = tuple(
        Attempt(number=n, agent="x", cost_usd=cost, changes=(change,))
        for n, cost in enumerate(costs, start=1)
    )
    trees = tuple(f"t{n}" for n in range(len(costs) + 1))
    return replace(FRESH, attempts=attempts, trees=trees)


def test_a_single_run_may_spend_all_that_is_left() -> None:
    budget = SharedBudget()
    assert budget.draw("a", FRESH, 10.0).promised_usd == 10.0
    assert budget.draw("a", after(3.0), 10.0).promised_usd == 7.0
    assert budget.draw("a", after(3.0), None).promised_usd is None


def test_a_resumed_run_counts_its_dearest_attempt_before_the_interruption() -> None:
    drawn = SharedBudget(runs=2, jobs=2).draw("resumed", after(4.0), 10.0)
    assert (drawn.dearest_usd, drawn.promised_usd) == (4.0, 4.0)


def test_concurrent_attempts_are_promised_no_more_than_the_budget() -> None:
    budget = SharedBudget(runs=5, jobs=2)
    first, second = budget.draw("a", FRESH, 10.0), budget.draw("b", FRESH, 10.0)
    assert (first.promised_usd, second.promised_usd) == (5.0, 5.0)
    assert second.cost_usd == 5.0
    budget.settle("a", 1.0)
    assert budget.draw("a", after(1.0), 10.0).promised_usd == 4.0


def test_concurrent_reviews_are_promised_no_more_than_the_budget() -> None:
    budget = SharedBudget(runs=2, jobs=2)
    assert [budget.promise("a", 4.0), budget.promise("b", 4.0)] == [2.0, 2.0]
    budget.settle("a", 0.5)
    assert budget.promise("a", 4.0) == 1.5
    assert budget.promise("a", None) is None


def test_a_small_review_is_promised_only_its_share() -> None:
    budget = SharedBudget(runs=2, jobs=2)
    assert budget.promise("a", 1.0) == 0.5


@pytest.mark.parametrize("budget", [SharedBudget(jobs=4), SharedBudget(runs=3)])
def test_one_run_at_a_time_is_promised_the_whole_budget(budget: SharedBudget) -> None:
    assert budget.draw("a", FRESH, 10.0).promised_usd == 10.0


def test_before_any_attempt_no_cost_is_expected() -> None:
    assert SharedBudget().draw("a", FRESH, 10.0).dearest_usd == 0.0


def test_an_overspent_budget_promises_zero() -> None:
    assert SharedBudget(spent_usd=12.0).draw("a", FRESH, 10.0).promised_usd == 0.0


def test_a_run_that_ends_unpaid_releases_its_promise() -> None:
    budget = SharedBudget(runs=2, jobs=2)
    budget.draw("a", FRESH, 10.0)
    budget.leave("a")
    assert budget.draw("b", FRESH, 10.0).promised_usd == 10.0


def test_a_run_that_ends_leaves_its_share_to_the_others() -> None:
    budget = SharedBudget(runs=3, jobs=3)
    budget.leave("a")
    assert budget.draw("b", FRESH, 10.0).promised_usd == 5.0


def test_the_last_run_may_spend_what_others_left() -> None:
    budget = SharedBudget(runs=3, jobs=3)
    for key, cost in (("a", 2.0), ("b", 1.0)):
        budget.draw(key, FRESH, 10.0)
        budget.settle(key, cost)
        budget.leave(key)
    assert budget.draw("c", FRESH, 10.0).promised_usd == 7.0


def test_what_all_attempts_of_ended_runs_have_cost_is_not_spent_again() -> None:
    budget = SharedBudget(runs=2)
    for progress in (FRESH, after(1.25)):
        budget.draw("a", progress, 3.0)
        budget.settle("a", 1.0)
        budget.settle("a", 0.25)  # its review
    budget.leave("a")
    assert budget.draw("b", FRESH, 3.0).promised_usd == 0.5


def test_an_attempt_is_promised_at_least_the_highest_known_cost() -> None:
    budget = SharedBudget(runs=8, jobs=4)
    budget.draw("a", FRESH, 10.0)
    budget.settle("a", 4.0)
    assert budget.draw("b", FRESH, 10.0).promised_usd == 4.0
    assert budget.draw("c", FRESH, 10.0).promised_usd == 2.0


@pytest.mark.parametrize(
    ("spent", "own", "reason"),
    [
        (10.0, (), "the budget of $10.00 is spent by all workspaces together"),
        (6.0, (), "the next attempt would exceed the budget: $6.00 of $10.00 are spent by all"),
        (4.0, (3.0,), "the next attempt would exceed the budget: $7.00 of $10.00 are spent by all"),
        (4.0, (), None),
    ],
)
def test_spending_of_other_runs_ends_a_run(
    spent: float, own: tuple[float, ...], reason: str | None
) -> None:
    budget = SharedBudget(runs=2, jobs=1)
    budget.draw("other", FRESH, 10.0)
    budget.settle("other", spent)
    progress = after(*own)
    progress = replace(progress, elsewhere=budget.draw("mine", progress, 10.0))
    end = decide(progress, LIMITS)
    if reason is None:
        assert end is None
    else:
        assert end is not None
        assert end.verdict is Verdict.EXHAUSTED
        assert reason in str(end.reason)


def test_many_threads_never_spend_more_than_the_budget() -> None:
    budget = SharedBudget(runs=40, jobs=8)
    spent: list[float] = []
    slots = threading.Semaphore(8)

    def run(key: str) -> None:
        with slots:
            progress = FRESH
            while True:
                elsewhere = budget.draw(key, progress, 10.0)
                if decide(replace(progress, elsewhere=elsewhere), LIMITS):
                    break
                cost = min(0.37, elsewhere.promised_usd or 0.0)
                spent.append(cost)
                budget.settle(key, cost)
                progress = after(*(a.cost_usd or 0.0 for a in progress.attempts), cost)
            budget.leave(key)

    threads = [threading.Thread(target=run, args=(f"w{n}",)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert 9.0 < sum(spent) <= 10.0 + 1e-9
