"""Only if nothing came between: ignored files, staged fixes and skipped tests as a run settles."""

import pytest
from msgspec.structs import replace

from atlas_retry.events import Notice
from atlas_retry.guard import Judgement
from atlas_retry.model import Outcome, Status, Validation, Verdict, Violation
from atlas_retry.run.loop import retry
from atlas_retry.run.progress import Progress
from atlas_retry.run.settle import forget
from tests.test_settling import skipping
from tests.values import attempt, gate, result, validation
from tests.worlds import Files, World, run, validated

CHEAT = Violation(rule="tests-removed", path="test")


def retried(world: World, attempts: int = 3) -> Outcome:
    return retry(world.effects(run(attempts)))


@pytest.mark.parametrize(
    ("was", "now", "stays"),
    [("old", "the turn's", "old"), ("old", "a person's", "a person's"), (None, "the turn's", None)],
    ids=["as the turn wrote it", "rewritten since", "new"],
)
def test_an_ignored_file_of_a_turn_is_restored_unless_someone_rewrote_it(
    was: str | None, now: str, stays: str | None
) -> None:
    before: Files = {"log": was} if was else {}
    world = World(files={"log": now}, kept=[before, {"log": "the turn's"}])
    turn = attempt(snapshot="1", unseen=("log",), changes=())
    forget(_ended(turn), world.effects(run()))
    assert world.files.get("log") == stays


def test_an_ignored_file_of_a_turn_that_no_snapshot_holds_is_removed() -> None:
    world = World(files={"big": "the turn's"}, kept=[{}, {}], unheld=("big",))
    turn = attempt(snapshot="1", unseen=("big",), changes=())
    forget(_ended(turn), world.effects(run()))
    assert world.files == {}


def _ended(*attempts: object) -> Progress:
    red = validation(result("tests", Status.FAILED))
    return Progress(
        run_id="r",
        baseline=red,
        settled=red,
        latest=red,
        start="0",
        origin="0",
        current="0",
        trees=(),
        attempts=attempts,  # type: ignore[arg-type]
    )


def test_what_a_reverted_turn_wrote_counts_while_it_is_not_surely_as_before() -> None:
    wrote = ("cache", "same", "unheld")
    refused = Judgement(answers=(CHEAT,), restore=None, unseen=wrote)
    world = World(
        files={"code": "wrong", "test": "strict", "same": "1"},
        turns=[{"code": "sly", "same": "2"}, {"code": "right"}],
        judgements=[refused],
        gates_write={"cache": "left"},
    )
    retried(world)
    assert world.unseen_asked == [frozenset({"cache", "unheld"})]


def test_after_ignored_files_made_a_green_red_the_end_is_held_anew() -> None:
    world = World(turns=[{"code": "other", "test": "weak"}], unseen={"test": "strict"})
    (turn,) = retried(world, attempts=1).attempts
    assert turn.result is not None
    assert world.kept[int(turn.result)]["test"] == "strict"


def test_only_gates_that_pass_once_staged_are_said_to_pass_then() -> None:
    gates = (gate("tests"), gate("other"))

    red = validation(result("tests", Status.FAILED), result("other", Status.FAILED))
    world = World(turns=[{"code": "fixed"}], gates_say=lambda _: red, passes_staged=("tests",))
    outcome = retry(world.effects(run(1, gates)))
    ended = outcome.attempts[0].validation
    assert ended is not None
    assert [one.success for one in ended.results] == [True, False]
    assert [len(one.notes) for one in ended.results] == [1, 0]


def test_what_a_person_edited_while_gates_ran_is_named_when_a_turn_is_reverted() -> None:
    def said(files: Files) -> Validation:
        if files["code"] == "sly":
            files |= {"test": "weak", "notes": "a person's"}
        return validated(files)

    world = World(turns=[{"code": "sly"}], gates_say=said, rewritten=(CHEAT,))
    retried(world, attempts=1)
    texts = [event.text for event in world.events if isinstance(event, Notice)]
    named = [text for text in texts if text.startswith("restored, as it was changed while gates")]
    assert [text.partition(";")[0].rpartition(": ")[2] for text in named] == ["notes"]


def test_a_test_that_fails_alone_is_held_only_if_it_says_that_it_was_skipped() -> None:
    world = skipping(1)
    said = world.gates_say

    def fails_alone(files: Files) -> Validation:
        seen = said(files)
        return validation(replace(seen.results[0], stdout="no server")) if world.asides else seen

    world.gates_say = fails_alone
    assert retried(world).attempts[0].held == ()


@pytest.mark.parametrize(("code", "ends"), [("right", None), ("other", Verdict.NEEDS_REVIEW)])
def test_a_turn_that_adds_a_dependency_is_for_review_only_if_gates_fail_without_it(
    code: str, ends: Verdict | None
) -> None:
    dep = "node_modules/dep/index.js"
    judged = Judgement(
        answers=(Violation(rule="dependency-edited", path=dep),),
        reinstate=(dep,),
        adds_dependencies=True,
    )
    world = World(turns=[{"code": code}], judgements=[judged])
    assert retried(world, attempts=1).attempts[0].ends is ends
