import pytest
from msgspec.structs import replace

from atlas_retry.model import (
    AgentReply,
    Budget,
    Change,
    ChangeStatus,
    Held,
    Kind,
    OpenReview,
    ReplyStatus,
    Status,
    Validation,
    Verdict,
)
from atlas_retry.run.decide import End, decide
from atlas_retry.run.progress import Limits, Progress, best, is_worse
from tests.values import (
    CHEAT,
    GREEN,
    LIMITS,
    OTHER_RED,
    RED,
    attempt,
    gate,
    holding,
    progress,
    result,
    validation,
)

BROKEN = validation(result("tests", Status.BROKEN))
GONE = validation(replace(result("tests", Status.BROKEN), error="no daemon"))
REFUSED = AgentReply(status=ReplyStatus.UNAVAILABLE, error="no key", remedy="export KEY")
ASKED = (OpenReview(rule="special-case", path="a.py", run_id="RUN", attempt=1),)
LOOKED_AT = (Held(rule="special-case", path="a.py", in_place=True),)
SKIPPED = validation(result("sense", Status.SKIPPED, kind=Kind.REVIEW))
OPTIONAL = validation(result("lint", kind=Kind.LINT, required=False))


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
        (progress(attempt(1, after=GONE), attempt(2, after=GONE)), Verdict.BROKEN),
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
        (progress(baseline=SKIPPED), Verdict.FAILED),
        (progress(baseline=OPTIONAL), Verdict.FAILED),
        (progress(baseline=validation()), Verdict.FAILED),
        (progress(attempt(ends=Verdict.REJECTED)), Verdict.REJECTED),
        (progress(attempt(after=GREEN, ends=Verdict.NEEDS_REVIEW)), Verdict.NEEDS_REVIEW),
        (progress(holding(1, "t"), holding(2, "t")), Verdict.NEEDS_REVIEW),
        (progress(holding(1, "t"), holding(2, "t", "u")), Verdict.NEEDS_REVIEW),
        (progress(holding(1, "t", cost_usd=5.0)), Verdict.NEEDS_REVIEW),
        (progress(holding(1, "t"), elapsed_s=600.0), Verdict.NEEDS_REVIEW),
        (progress(attempt(1), holding(2, "t"), holding(3, "u")), Verdict.NEEDS_REVIEW),
        (progress(holding(1, "t"), attempt(2, None, changes=())), Verdict.NEEDS_REVIEW),
        (
            progress(
                attempt(1, OTHER_RED),
                holding(2, "t"),
                attempt(3, None, rolled_back=True, violations=CHEAT),
            ),
            Verdict.NEEDS_REVIEW,
        ),
        (
            progress(attempt(1, None, rolled_back=True, held=LOOKED_AT), attempt(2, GREEN)),
            Verdict.FIXED,
        ),
        (
            progress(attempt(1, held=LOOKED_AT), attempt(2, GREEN), open_reviews=ASKED),
            Verdict.NEEDS_REVIEW,
        ),
        (progress(attempt(1, held=LOOKED_AT), attempt(2, GREEN)), Verdict.FIXED),
        (progress(baseline=GREEN, open_reviews=ASKED), Verdict.NEEDS_REVIEW),
        (
            progress(attempt(1, GREEN, held=LOOKED_AT), attempt(2, worse=True), latest=RED),
            Verdict.NEEDS_REVIEW,
        ),
        (
            progress(attempt(1, GREEN, held=LOOKED_AT, cost_usd=5.0), open_reviews=ASKED),
            Verdict.NEEDS_REVIEW,
        ),
        (progress(holding(1, "t", needed=False), holding(3, "t", needed=False)), Verdict.STALLED),
        (progress(holding(1, "t"), attempt(2, OTHER_RED), attempt(3)), Verdict.EXHAUSTED),
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
        progress(attempt(cost_usd=2.5)),
        progress(attempt(1, None, rolled_back=True, violations=CHEAT)),
        progress(attempt(1), attempt(2, OTHER_RED)),
        progress(elapsed_s=599.0),
        progress(holding(1, "t")),
        progress(holding(1, "t"), trees=("x", "x")),
        progress(attempt(1), holding(3, "t")),
        progress(holding(1, "t"), holding(2, "u")),
        progress(holding(1, "t", "u"), holding(2, "t")),
        progress(holding(1, "t", needed=False), trees=("x", "x")),
        progress(holding(1, "t"), attempt(2, None, rolled_back=True, violations=CHEAT)),
    ],
)
def test_a_run_continues_while_no_stop_rule_applies(so_far: Progress) -> None:
    assert ended(so_far) is None


@pytest.mark.parametrize("budget", [Budget(attempts=0), Budget(cost_usd=0.0), Budget(wall_s=0.0)])
def test_an_empty_budget_allows_no_attempt(budget: Budget) -> None:
    end = ended(progress(), replace(LIMITS, budget=budget))
    assert end is not None
    assert end.verdict is Verdict.EXHAUSTED


REVIEWED = validation(replace(result("taste", kind=Kind.REVIEW), cost_usd=0.5))


@pytest.mark.parametrize(
    ("so_far", "cost_usd"),
    [
        (progress(), 0.0),
        (progress(refused=replace(REFUSED, cost_usd=0.5)), 0.5),
        (progress(begun_usd=0.25, begun_reviews_usd=0.5), 0.75),
        (progress(baseline=REVIEWED), 0.5),
        (replace(progress(), settled=REVIEWED), 0.5),
        (progress(attempt(1, REVIEWED, cost_usd=1.0, reviews_usd=0.25)), 1.75),
    ],
)
def test_the_cost_of_a_run_includes_all_turns_and_reviews(
    so_far: Progress, cost_usd: float
) -> None:
    assert so_far.cost_usd == cost_usd


MANY = replace(LIMITS, budget=Budget(attempts=9), gates=(gate(max_retries=9),))


@pytest.mark.parametrize(
    ("so_far", "reason"),
    [
        (
            progress(attempt(1, RED), attempt(2, OTHER_RED), attempt(3, OTHER_RED)),
            "two attempts in a row ended with the same diagnostics",
        ),
        (progress(attempt(1, None, changes=())), "the attempt changed nothing"),
        (
            progress(attempt(1, None, changes=(), error="cut off")),
            "the attempt failed: cut off",
        ),
        (
            progress(attempt(), trees=("x", "x")),
            "the attempt reproduced an earlier state of the files",
        ),
        (
            progress(attempt(after=GREEN), trees=("x", "x")),
            "the gates now pass without any change: probably flaky, or a gate undoes the fix",
        ),
    ],
)
def test_a_stalled_run_names_the_unchanged_problem(so_far: Progress, reason: str) -> None:
    end = ended(so_far, MANY)
    assert end is not None
    assert (end.verdict, end.reason) == (Verdict.STALLED, reason)


@pytest.mark.parametrize(
    ("before", "after", "stalls"),
    [
        ({"stdout": "remove beta\nremove gamma"}, {"stdout": "remove gamma"}, False),
        ({"stdout": "remove gamma"}, {"stdout": "remove gamma"}, True),
        ({"stdout": "1 failed in 0.12s"}, {"stdout": "1 failed in 0.34s"}, True),
        ({"stderr": "remove beta"}, {"stderr": "remove gamma"}, False),
        ({"status": Status.TIMED_OUT}, {"status": Status.FAILED}, False),
    ],
)
def test_an_unread_failure_that_differs_is_progress(
    before: dict[str, object], after: dict[str, object], stalls: bool
) -> None:
    shown = [
        validation(replace(result("lint", Status.FAILED), diagnostics=(), **seen))
        for seen in (before, after)
    ]
    end = ended(progress(attempt(1, shown[0]), attempt(2, shown[1])), MANY)
    assert (end is not None) == stalls


def test_without_limits_a_run_does_not_end() -> None:
    unlimited = Limits(
        budget=Budget(attempts=None, cost_usd=None, wall_s=None),
        gates=(gate(max_retries=100),),
        with_agent=True,
    )
    many = [attempt(n, RED if n % 2 else OTHER_RED, cost_usd=9.0) for n in range(1, 20)]
    assert ended(progress(*many, elapsed_s=1e9), unlimited) is None


def test_attempts_do_not_count_for_a_gate_that_was_passing() -> None:
    lint, tests = gate("lint", Kind.LINT, max_retries=1), gate("tests")
    limits = replace(LIMITS, gates=(lint, tests))
    lint_green = validation(result("lint", kind=Kind.LINT), result("tests", Status.FAILED, "a"))
    lint_red = validation(
        result("lint", Status.FAILED, "l", kind=Kind.LINT), result("tests", Status.FAILED, "b")
    )
    assert ended(progress(attempt(1, lint_red), baseline=lint_green), limits) is None
    assert ended(progress(attempt(1, lint_red), baseline=lint_red), limits) is not None


def test_an_attempt_that_started_with_a_gate_passing_does_not_count_for_it() -> None:
    limits = replace(LIMITS, gates=(gate("lint", Kind.LINT, max_retries=2), gate("tests")))
    red = validation(result("lint", Status.FAILED, "l", kind=Kind.LINT), *OTHER_RED.results)
    green = validation(result("lint", kind=Kind.LINT), *RED.results)
    assert ended(progress(attempt(1, green), attempt(2, red), baseline=red), limits) is None


@pytest.mark.parametrize("is_worse", [True, False])
def test_what_a_reverted_worse_attempt_left_failing_does_not_count_for_a_gate(
    *, is_worse: bool
) -> None:
    limits = replace(LIMITS, gates=(gate("lint", Kind.LINT, max_retries=1), gate("tests")))
    passing, failing = result("lint", kind=Kind.LINT), result("lint", Status.FAILED, "l")
    start = validation(passing, *RED.results)
    first = attempt(1, validation(failing, *OTHER_RED.results), worse=is_worse)
    second = attempt(2, validation(failing, result("tests", Status.FAILED, "c")))
    end = ended(progress(first, second, baseline=start), limits)
    is_spent = end is not None and end.reason == "lint failed after 1 attempt, its limit"
    assert is_spent == (not is_worse)


@pytest.mark.parametrize("change", [{"message": "expected 3, got 2"}, {"fingerprint": "b"}])
def test_a_changed_problem_is_progress(change: dict[str, str]) -> None:
    first = result("tests", Status.FAILED, "a")
    moved = replace(first, diagnostics=(replace(first.diagnostics[0], **change),))
    attempts = attempt(1, validation(first)), attempt(2, validation(moved))
    assert ended(progress(*attempts)) is None


def test_the_best_attempt_passes_most_gates_then_has_fewest_problems() -> None:
    two = validation(result("lint", kind=Kind.LINT), result("tests", Status.FAILED, "a"))
    worse = validation(result("lint", Status.FAILED, "n", kind=Kind.LINT), RED.results[0])
    start = validation(result("lint", Status.FAILED, "l", kind=Kind.LINT), RED.results[0])
    chosen = best(progress(attempt(1, worse), attempt(2, two), attempt(3, worse), baseline=start))
    assert chosen is not None
    assert chosen.number == 2


def test_the_smaller_change_is_better_between_equals() -> None:
    less = validation(result("tests", Status.FAILED, "a"))
    small, large = (
        attempt(n, less, since_start=(Change(path="a", status=ChangeStatus.MODIFIED, added=n),))
        for n in (1, 2)
    )
    assert best(progress(large, small)) is small


def test_lines_of_binary_files_are_not_counted() -> None:
    less = validation(result("tests", Status.FAILED, "a"))
    binary = Change(path="a.png", status=ChangeStatus.MODIFIED, added=None, removed=None)
    text = Change(path="a.py", status=ChangeStatus.MODIFIED, added=1, removed=0)
    one, other = (attempt(n, less, since_start=(c,)) for n, c in enumerate((text, binary), 1))
    assert best(progress(one, other)) is other


@pytest.mark.parametrize(
    "after",
    [
        RED,
        validation(result("tests", Status.FAILED, "a", "c")),
        validation(result("tests", Status.FAILED, "a", "b", "c")),
        validation(*RED.results, result("lint", Status.FAILED, "c")),
    ],
)
def test_an_attempt_no_better_than_the_start_is_not_kept(after: Validation) -> None:
    assert best(progress(attempt(1, after))) is None


def test_a_rolled_back_attempt_is_never_the_best() -> None:
    assert best(progress(attempt(1, GREEN, rolled_back=True))) is None


def test_fewer_problems_are_better_even_with_a_new_one() -> None:
    chosen = best(progress(attempt(1, OTHER_RED)))
    assert chosen is not None


def test_a_gate_that_timed_out_is_worse_than_any_number_of_failures() -> None:
    late = validation(result("tests", Status.TIMED_OUT))
    many = validation(result("tests", Status.FAILED, *"abcdefgh", kind=Kind.LINT))
    assert best(progress(attempt(1, late), baseline=many)) is None
    assert best(progress(attempt(1, many), baseline=late)) is not None


def test_passing_tests_with_a_failing_review_is_not_worse() -> None:
    remarks = result("taste", Status.FAILED, *"xyz", kind=Kind.REVIEW)
    before = validation(*RED.results, result("taste", Status.SKIPPED, kind=Kind.REVIEW))
    after = validation(result(), remarks)
    assert not is_worse(after, than=before)
    assert is_worse(before, than=after)


def test_the_next_attempt_does_not_start_from_a_worse_one() -> None:
    better, worse = attempt(1, OTHER_RED), attempt(2, RED, worse=True)
    assert progress(better, worse).base == (OTHER_RED, "snapshot-1")
    assert progress(attempt(1, RED, worse=True)).base == (RED, "origin")


def test_a_gate_broken_only_by_a_worse_attempt_costs_no_attempt() -> None:
    lint = result("lint", Status.FAILED, "l", kind=Kind.LINT)
    start = validation(result("lint", kind=Kind.LINT), *RED.results)
    after = validation(lint, *RED.results)
    limits = replace(LIMITS, gates=(gate("lint", Kind.LINT, max_retries=0), gate()))
    assert ended(progress(attempt(1, after, worse=True), baseline=start), limits) is None


def test_a_skipped_gate_beside_a_passing_one_is_clean() -> None:
    end = ended(progress(baseline=validation(result(), *SKIPPED.results)))
    assert end == End(verdict=Verdict.CLEAN)


def test_what_a_person_must_review_gives_the_agent_one_more_attempt() -> None:
    one_gate = replace(LIMITS, gates=(gate(max_retries=1),), attempts_flag=None)
    so_far = progress(attempt(1, GREEN, held=LOOKED_AT), open_reviews=ASKED)
    assert ended(so_far, one_gate) is None
    assert ended(so_far, replace(LIMITS, with_agent=False)) is not None
