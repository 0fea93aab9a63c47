"""What a batch does next: who goes first, who waits, what is given up; no server, no clock."""

import msgspec
import pytest
from msgspec.structs import replace

from atlas_retry.fleet import batch as batches
from atlas_retry.fleet import books, plan
from atlas_retry.fleet.batch import Assignment, Ending, ItemResult, Stage, State
from atlas_retry.fleet.books import Beat
from atlas_retry.fleet.client import MAX_BYTES
from atlas_retry.fleet.manifest import BatchLimits, Manifest, Repository
from atlas_retry.model import Status, Verdict
from atlas_retry.settings import CascadeSettings
from tests import values


def batch(count: int, *, ai_fix: bool = True, canary: bool = True, **limits: object) -> State:
    manifest = Manifest(
        version=1,
        repositories=tuple(Repository(url=f"/r{index}") for index in range(count)),
        ai_fix=ai_fix,
        canary=canary,
        limits=BatchLimits(**limits),  # type: ignore[arg-type]
        cascade=CascadeSettings(enabled=False),
    )
    return batches.opened(batches.begun("b", "digest", manifest))


def result(
    one: Assignment,
    verdict: Verdict | None,
    *problems: str,
    cost_usd: float = 0.0,
    attempts: int = 0,
) -> ItemResult:
    failing = (values.result("tests", Status.FAILED, *problems),) if problems else ()
    return ItemResult(
        run=one.run,
        machine="m",
        verdict=verdict,
        cost_usd=cost_usd,
        attempts=attempts,
        failing=failing,
        has_patch=attempts > 0,
    )


def looked(state: State, *problems: str) -> State:
    """Every item has been looked at and fails with its problem."""
    state, assignments = plan.start(state)
    for one, problem in zip(assignments, problems, strict=True):
        state = plan.ended(state, one, result(one, Verdict.FAILED, problem))
    return state


def stages(assignments: tuple[Assignment, ...]) -> list[tuple[int, Stage]]:
    return [(one.index, one.stage) for one in assignments]


def agent(state: State, one: Assignment, verdict: Verdict = Verdict.FIXED) -> State:
    problems = () if verdict.is_green else ("still",)
    return plan.ended(state, one, result(one, verdict, *problems, cost_usd=1.0, attempts=1))


def died(state: State, one: Assignment) -> State:
    """Its worker had begun, and is gone."""
    return plan.lost(state, one, Beat(run=one.run, machine="m", number=one.number))


def test_a_passing_run_or_one_fixed_by_a_fixer_costs_nothing() -> None:
    state, (one, other) = plan.start(batch(2))
    state = plan.ended(state, one, result(one, Verdict.CLEAN))
    state = plan.ended(state, other, result(other, Verdict.FIXED))
    assert batches.is_segment_over(state)
    assert batches.endings(batches.status(state).letters) == (Ending.CLEAN, Ending.FIXER)


def test_without_ai_fix_no_agent_is_started() -> None:
    state = looked(batch(1, ai_fix=False), "a")
    assert batches.endings(batches.status(state).letters) == (Ending.FAILED,)


def test_one_run_per_group_goes_first_and_its_patch_is_tried_on_the_others() -> None:
    state, canaries = plan.start(looked(batch(4), "a", "a", "b", "a"))
    assert stages(canaries) == [(0, Stage.FIX), (2, Stage.FIX)]
    state, replays = plan.start(agent(state, canaries[0]))
    assert stages(replays) == [(1, Stage.REPLAY), (3, Stage.REPLAY)]
    assert {one.patch_of for one in replays} == {0}
    state = plan.ended(state, replays[0], result(replays[0], Verdict.FIXED, attempts=1))
    state = plan.ended(state, replays[1], result(replays[1], Verdict.REJECTED, "a"))
    state, asked = plan.start(state)
    assert stages(asked) == [(3, Stage.FIX)]
    state = agent(agent(state, asked[0]), canaries[1])
    assert batches.status(state).ended == {
        Ending.AGENT: 3,
        Ending.REPLAY: 1,
    }
    assert state.books.known_usd == pytest.approx(3.0)


def test_after_two_failed_canaries_every_run_gets_the_agent() -> None:
    state, first = plan.start(looked(batch(4), *"aaaa"))
    state, second = plan.start(agent(state, first[0], Verdict.EXHAUSTED))
    assert stages(second) == [(1, Stage.FIX)]
    _, rest = plan.start(agent(state, second[0], Verdict.EXHAUSTED))
    assert stages(rest) == [(2, Stage.FIX), (3, Stage.FIX)]


def test_without_canaries_every_run_gets_the_agent() -> None:
    _, asked = plan.start(looked(batch(3, canary=False), *"aaa"))
    assert stages(asked) == [(0, Stage.FIX), (1, Stage.FIX), (2, Stage.FIX)]


def test_the_number_of_concurrent_runs_is_limited() -> None:
    state, first = plan.start(batch(9, runs_at_once=4))
    assert len(first) == 4
    assert plan.start(state)[1] == ()


def test_runs_beyond_the_budget_are_not_started() -> None:
    state, asked = plan.start(
        looked(batch(3, canary=False, max_cost_usd=1.5, max_cost_usd_per_run=1.0), *"abc")
    )
    assert [(one.index, one.promised_usd) for one in asked] == [(0, 1.0)]
    state, rest = plan.start(agent(state, asked[0]))
    assert [(one.index, one.promised_usd) for one in rest] == [(1, 0.5)]
    done = plan.ended(state, rest[0], result(rest[0], Verdict.FIXED, cost_usd=0.5, attempts=1))
    done, none = plan.start(done)
    assert none == ()
    assert batches.endings(batches.status(done).letters)[2] is Ending.UNPAID


def test_an_item_that_lost_two_workers_is_given_up() -> None:
    state, (one,) = plan.start(batch(1))
    state, (again,) = plan.start(died(state, one))
    assert again.number == 2
    state = died(state, again)
    assert batches.endings(batches.status(state).letters) == (Ending.GIVEN_UP,)


def test_suspect_items_run_one_at_a_time() -> None:
    state, all_ = plan.start(batch(4, runs_at_once=3))
    for one in all_:
        state = died(state, one)
    _, again = plan.start(state)
    assert [one.index for one in again] == [0, 3]


def test_the_group_of_a_given_up_canary_gets_another_one() -> None:
    state, (one,) = plan.start(looked(batch(2), "a", "a"))
    state, (again,) = plan.start(died(state, one))
    _, after = plan.start(died(state, again))
    assert stages(after) == [(1, Stage.FIX)]


def test_runs_that_never_start_are_given_up_after_some_tries() -> None:
    state = batch(1)
    for _ in range(plan.MAX_TRIES):
        state, (one,) = plan.start(state)
        state = plan.lost(state, one, None)
    assert state.items[0].deaths == 0
    assert batches.endings(batches.status(state).letters) == (Ending.GIVEN_UP,)


def test_a_stopped_run_is_repeated_without_counting_a_death() -> None:
    state, (one,) = plan.start(batch(1))
    state, (again,) = plan.start(plan.ended(state, one, result(one, None)))
    assert (again.number, state.items[0].deaths) == (2, 0)


def test_money_held_for_a_lost_machine_is_waited_for_then_given_up() -> None:
    state, asked = plan.start(looked(batch(2, max_cost_usd=1.0, max_cost_usd_per_run=1.0), *"ab"))
    beat = Beat(run=asked[0].run, machine="m", number=asked[0].number, cost_usd=0.2)
    state, none = plan.start(plan.lost(state, asked[0], beat))
    assert none == ()
    assert not batches.is_segment_over(state)
    heard = books.report(state.books, replace(beat, cost_usd=0.3))
    assert heard.free_usd == pytest.approx(0.7)
    assert batches.is_segment_over(plan.forgone(state))


def test_a_common_cause_pauses_the_batch_and_is_reported() -> None:
    state, all_ = plan.start(batch(5, ai_fix=False))
    state = replace(state, cascade=CascadeSettings())
    for one in all_[:3]:
        state = plan.ended(state, one, result(one, Verdict.FAILED, "same"))
    assert "about same" in state.paused
    assert plan.start(plan.lost(state, all_[4], None))[1] == ()
    resumed = replace(plan.lost(state, all_[4], None), paused="", latest=())
    assert stages(plan.start(resumed)[1]) == [(4, Stage.LOOK)]


def test_the_state_passed_to_the_next_history_fits_a_payload() -> None:
    state = replace(batch(30_000), earlier="1" * 29_000)
    groups = {f"{number:064}": batches.Group(patch_of=number) for number in range(1000)}
    after = batches.next_segment(replace(state, groups=groups))
    assert len(after.groups) == batches.MAX_GROUPS
    assert len(msgspec.json.encode(after)) < MAX_BYTES
    assert batches.opened(after).items.keys() == set(range(500, 1000))
