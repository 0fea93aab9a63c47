import pytest
from msgspec.structs import replace

from atlas_retry.model import (
    AgentReply,
    Attempt,
    Budget,
    Change,
    ChangeStatus,
    Held,
    Kind,
    LeftBehind,
    OpenReview,
    ReplyStatus,
    Status,
    Validation,
    Verdict,
    Violation,
)
from atlas_retry.run.decide import End, best, decide, is_worse
from atlas_retry.run.progress import Limits, Progress
from tests.values import GREEN, RED, attempt, gate, result, validation

LIMITS = Limits(
    budget=Budget(attempts=3, cost_usd=5.0, wall_s=600.0), gates=(gate(),), with_agent=True
)
OTHER_RED = validation(result("tests", Status.FAILED, "c"))
BROKEN = validation(result("tests", Status.BROKEN))
GONE = validation(replace(result("tests", Status.BROKEN), error="no daemon"))
REFUSED = AgentReply(status=ReplyStatus.UNAVAILABLE, error="no key", remedy="export KEY")
CHEAT = (Violation(rule="test-deleted", path="test_a.py"),)
ASKED = (OpenReview(rule="special-case", path="a.py", run_id="RUN", attempt=1),)
LOOKED_AT = (Held(rule="special-case", path="a.py", in_place=True),)
SKIPPED = validation(result("sense", Status.SKIPPED, kind=Kind.REVIEW))
OPTIONAL = validation(result("lint", kind=Kind.LINT, required=False))


def holding(number: int, *paths: str, needed: bool | None = True, **rest: object) -> Attempt:
    held = tuple(Held(rule="tests-changed", path=path, needed=needed) for path in paths)
    after = RED if number % 2 else OTHER_RED
    return attempt(number, **({"after": after, "held": held} | rest))  # type: ignore[arg-type]


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


def test_without_an_agent_a_failure_ends_the_run() -> None:
    end = ended(progress(), replace(LIMITS, with_agent=False))
    assert end == End(verdict=Verdict.FAILED, reason="still failing: tests")


@pytest.mark.parametrize("budget", [Budget(attempts=0), Budget(cost_usd=0.0), Budget(wall_s=0.0)])
def test_an_empty_budget_allows_no_attempt(budget: Budget) -> None:
    end = ended(progress(), replace(LIMITS, budget=budget))
    assert end is not None
    assert end.verdict is Verdict.EXHAUSTED


VOID = replace(result("tests", Status.BROKEN), triage="target_missing", error="a.py is gone")
UNHEARD = result("taste", Status.BROKEN, kind=Kind.REVIEW)
MISSING = replace(result("tests", Status.BROKEN), error="run was not found")


@pytest.mark.parametrize(
    ("so_far", "reason", "remedy"),
    [
        (
            progress(baseline=validation(MISSING)),
            "tests cannot be run: run was not found",
            "run it yourself: run tests",
        ),
        (
            progress(baseline=validation(replace(MISSING, command=""))),
            "tests cannot be run: run was not found",
            None,
        ),
        (
            progress(baseline=validation(VOID)),
            "tests has nothing to judge: a.py is gone",
            "atlas undo",
        ),
        (progress(refused=REFUSED), "no key", "export KEY"),
        (progress(attempt(gave_up="it is wrong")), "the agent says: it is wrong", None),
        (
            progress(attempt(1, validation(replace(UNHEARD, error="no answer")))),
            "taste: no answer",
            None,
        ),
        (
            progress(
                attempt(1, None, rolled_back=True, violations=CHEAT),
                attempt(2, None, rolled_back=True, violations=CHEAT),
            ),
            "the guard refused two attempts: test_a.py (test-deleted)",
            None,
        ),
        (progress(attempt(cost_usd=5.0)), "the budget of $5.00 is spent", None),
        (
            progress(attempt(cost_usd=3.0)),
            (
                "the next attempt would exceed the budget: $3.00 of $5.00 are spent,"
                " the most expensive attempt cost $3.00"
            ),
            None,
        ),
        (
            progress(attempt(1, None, changes=(), error="cut off", cost_usd=5.0)),
            "the budget of $5.00 is spent; the last attempt failed: cut off",
            None,
        ),
        (
            progress(attempt(1, None, changes=(), denials=("Bash(rm a)",), cost_usd=5.0)),
            "the budget of $5.00 is spent",
            None,
        ),
    ],
)
def test_the_end_has_a_reason_and_a_remedy(
    so_far: Progress, reason: str, remedy: str | None
) -> None:
    end = ended(so_far)
    assert end is not None
    assert (end.reason, end.remedy) == (reason, remedy)


def test_a_budget_without_attempts_is_named_as_reason() -> None:
    end = ended(progress(), replace(LIMITS, budget=Budget(attempts=0)))
    assert end is not None
    assert end.reason == "test failed, and no attempt is allowed"


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


def test_a_gate_without_attempts_is_named_as_reason() -> None:
    end = ended(progress(), replace(LIMITS, gates=(gate(max_retries=0),)))
    assert end is not None
    assert end.reason == "tests failed, and no attempt is allowed"


def test_without_limits_a_run_does_not_end() -> None:
    unlimited = Limits(
        budget=Budget(attempts=None, cost_usd=None, wall_s=None),
        gates=(gate(max_retries=100),),
        with_agent=True,
    )
    many = [attempt(n, RED if n % 2 else OTHER_RED, cost_usd=9.0) for n in range(1, 20)]
    assert ended(progress(*many, elapsed_s=1e9), unlimited) is None


def test_a_gates_own_limit_ends_the_run_before_the_general_one() -> None:
    limits = replace(LIMITS, gates=(gate("build", Kind.BUILD, max_retries=1),))
    end = ended(progress(attempt(1, OTHER_RED)), limits)
    assert end is not None
    assert end.reason == "build failed after 1 attempt, its limit"


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


def reason_and_remedy(so_far: Progress) -> tuple[str | None, str | None]:
    end = ended(so_far)
    assert end is not None
    return end.reason, end.remedy


def test_a_spent_run_that_passes_only_with_held_changes_needs_review() -> None:
    limits = replace(LIMITS, budget=Budget(attempts=1))
    end = decide(progress(holding(1, "t", "u"), run_id="r"), limits)
    assert end == End(
        verdict=Verdict.NEEDS_REVIEW,
        reason="passes only with held changes: t, u",
        remedy="atlas pick r 1 --held",
    )


def test_products_that_a_green_needs_are_not_offered_for_acceptance() -> None:
    made = holding(1, "build/a.o", "build/b.o")
    made = replace(made, held=tuple(replace(one, by_hand=True) for one in made.held))
    end = decide(progress(made), replace(LIMITS, budget=Budget(attempts=1)))
    assert end == End(
        verdict=Verdict.NEEDS_REVIEW,
        reason="passes only because of files that git ignores (build/a.o, build/b.o): "
        "a fresh clone would fail",
        remedy="look at build/a.o, build/b.o, then: atlas validate",
    )


def test_a_person_is_not_asked_to_accept_what_does_not_help() -> None:
    vain = holding(1, "t")
    vain = replace(vain, held=tuple(replace(one, needed=False) for one in vain.held))
    reason, remedy = reason_and_remedy(progress(vain, attempt(2, OTHER_RED), attempt(3)))
    assert reason == "test failed after 3 attempts; held and restored: t (tests-changed)"
    assert remedy is None


def test_what_was_restored_whole_is_not_to_be_restored_by_hand() -> None:
    refused = attempt(1, None, ends=Verdict.REJECTED, remedy="by hand", rolled_back=True)
    left = replace(refused, left=(LeftBehind(path="x", states={}),))
    assert reason_and_remedy(progress(refused))[1] is None
    assert reason_and_remedy(progress(left))[1] == "by hand"


def test_what_is_not_installed_is_installed_next() -> None:
    start = validation(replace(MISSING, remedy="python -m pip install a"))
    assert reason_and_remedy(progress(baseline=start))[1] == "python -m pip install a"


def test_a_gates_own_limit_with_held_changes_needs_review() -> None:
    limits = replace(LIMITS, gates=(gate(max_retries=1),))
    end = decide(progress(holding(1, "t")), limits)
    assert end is not None
    assert end.verdict is Verdict.NEEDS_REVIEW


def test_a_later_attempt_does_not_hide_where_held_changes_passed() -> None:
    reason, remedy = reason_and_remedy(
        progress(holding(1, "t"), attempt(2, OTHER_RED), attempt(3), run_id="r")
    )
    assert reason == (
        "test failed after 3 attempts; held for a person to accept: t (tests-changed)"
    )
    assert remedy == "atlas pick r 1 --held"


def test_giving_up_after_held_changes_names_the_accept_command() -> None:
    _, remedy = reason_and_remedy(
        progress(holding(1, "t"), attempt(2, gave_up="the test is wrong"), run_id="r")
    )
    assert remedy == "atlas pick r 1 --held"


def test_a_run_with_a_refused_change_never_ends_as_changed_nothing() -> None:
    so_far = progress(attempt(1, OTHER_RED, violations=CHEAT), attempt(2, None, changes=()))
    reason, _ = reason_and_remedy(so_far)
    assert reason == "the last attempt added nothing; the guard refused test_a.py (test-deleted)"


@pytest.mark.parametrize(
    ("baseline", "why"),
    [(SKIPPED, "every required gate was skipped"), (OPTIONAL, "no gate is required")],
)
def test_an_unchecked_workspace_is_not_clean_and_names_the_remedy(
    baseline: Validation, why: str
) -> None:
    reason, remedy = reason_and_remedy(progress(baseline=baseline))
    assert reason == why
    assert "configure a required gate" in (remedy or "")


def test_a_skipped_gate_beside_a_passing_one_is_clean() -> None:
    end = ended(progress(baseline=validation(result(), *SKIPPED.results)))
    assert end == End(verdict=Verdict.CLEAN)


def test_what_a_person_must_review_gives_the_agent_one_more_attempt() -> None:
    one_gate = replace(LIMITS, gates=(gate(max_retries=1),), attempts_flag=None)
    so_far = progress(attempt(1, GREEN, held=LOOKED_AT), open_reviews=ASKED)
    assert ended(so_far, one_gate) is None
    assert ended(so_far, replace(LIMITS, with_agent=False)) is not None


def test_an_attempt_that_wrote_only_ignored_files_says_so() -> None:
    end = ended(progress(attempt(1, None, changes=(), unseen=("local.env",))))
    assert end is not None
    assert "changed nothing but files that git ignores (not-under-git): local.env" in str(
        end.reason
    )
