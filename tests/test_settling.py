"""What becomes of a turn: judged once, what is held restored and tried, what is kept proved."""

import pytest
from msgspec.structs import replace

from atlas_retry.errors import Interrupted, WorkspaceError
from atlas_retry.events import Notice, ValidationFinished, ViolationsFound
from atlas_retry.guard import Judgement
from atlas_retry.model import (
    AgentReply,
    Answer,
    Attempt,
    Diagnostic,
    GateResult,
    Held,
    Kind,
    Outcome,
    ReplyStatus,
    Status,
    Validation,
    Verdict,
    Violation,
)
from atlas_retry.run.confirm import NEEDED, SETTINGS_NEEDED, UNSEEN
from atlas_retry.run.held import account
from atlas_retry.run.loop import retry
from atlas_retry.run.progress import Progress
from tests.projects import TEST, Project, git
from tests.values import gate, result, validation
from tests.worlds import Files, World, run, validated, words

CHEAT = Violation(rule="tests-removed", path="test")
HELD = Held(rule="tests-changed", path="test")
HOLDS = Judgement(answers=(HELD,), restore=("test",))
REFUSES = Judgement(answers=(CHEAT,), restore=("test",))
KEEPS = Judgement(as_before={"test": words("strict")})
REVIEWED = Held(rule="special-case", path="code", in_place=True)


def retried(world: World, attempts: int | None = 3) -> Outcome:
    return retry(world.effects(run(attempts)))


def needed(attempt: Attempt) -> list[tuple[str, bool | None]]:
    return [(held.path, held.needed) for held in attempt.held]


def test_code_that_rewrites_tests_during_gates_is_not_a_fix(project: Project) -> None:
    second = TEST.replace("add(1, 2), 3", "add(2, 2), 4").replace("AddTest", "MoreTest")
    (project.root / "test_more.py").write_text(second)
    project.commit()
    sly = (
        "import pathlib\n"
        "more = pathlib.Path(__file__).with_name('_'.join(('te' + 'st', 'more.py')))\n"
        "more.write_text(more.read_text().replace('4)', '3)'))\n\n\n"
        "def add(a, b):\n    return 3\n"
    )
    for number in (1, 2):
        project.attempt(number, {"calc.py": sly})
    outcome = project.retry()
    assert not outcome.verdict.is_green
    assert git(project.root, "status", "--porcelain", environ=project.environ) == ""


def test_a_pass_on_files_changed_during_the_gates_is_checked_again(
    project: Project,
) -> None:
    edits_once = "sleep 0.5; test -e ../edited || { touch ../edited; echo bad > state.py; }"
    project.configure(
        validation={
            "lint": ["grep -q good state.py"],
            "custom": [{"run": f"grep -q bad state.py || {{ {edits_once}; }}", "max_retries": 3}],
            "jobs": 2,
        }
    )
    (project.root / "state.py").write_text("bad\n")
    project.commit()
    project.attempt(1, {"state.py": "good\n"})
    outcome = project.retry(retry__max_ai_retry_attempts=1)
    assert (project.root / "state.py").read_text() == "bad\n"
    assert not outcome.verdict.is_green


def test_a_turn_is_sealed_before_and_judged_once_before_the_gates() -> None:
    world = World(turns=[{"code": "right"}])
    assert retried(world).verdict is Verdict.FIXED
    steps = [what for what in world.done if not what.startswith("snapshot")]
    assert steps == ["validate", "seal", "ask", "judge", "validate"]


def test_every_attempt_is_sealed_again() -> None:
    world = World(turns=[{"code": "worse"}, {"code": "right"}])
    retried(world)
    assert world.done.count("seal") == 2


@pytest.mark.parametrize("own", [{}, {"code": "right"}])
def test_the_snapshots_around_a_turn_differ_only_by_the_agents_edits(own: Files) -> None:
    reply = AgentReply(status=ReplyStatus.DONE, touched=tuple(own), touched_all=True)
    world = World(turns=[own | {"notes": "the user's"}], reply=reply)
    (attempt,) = retried(world).attempts
    assert [change.path for change in attempt.changes] == [*own]
    names = [what.removeprefix("snapshot ") for what in world.done if what.startswith("snapshot ")]
    held = dict(zip(names, world.kept, strict=True))
    assert held["1"] == held["1-before"] | own
    assert world.files["notes"] == "the user's"


def test_files_written_by_gates_after_a_turn_are_neither_charged_nor_reverted() -> None:
    world = World(turns=[{"code": "right"}], gates_write={"log": "ran"})
    (attempt,) = retried(world).attempts
    assert [change.path for change in attempt.changes] == ["code"]
    assert world.files == {"code": "right", "test": "strict", "log": "ran"}


def test_a_held_change_that_is_not_needed_is_left_out() -> None:
    world = World(turns=[{"code": "right", "test": "weak"}], judgements=[HOLDS])
    outcome = retried(world)
    assert outcome.verdict is Verdict.FIXED
    assert needed(outcome.attempts[0]) == [("test", False)]
    assert world.files == {"code": "right", "test": "strict"}
    assert world.asides == []


def test_a_needed_held_change_gets_one_more_attempt_then_needs_review() -> None:
    turn = {"code": "other", "test": "weak"}
    world = World(turns=[turn, {"code": "another", "test": "weak"}, turn], judgements=[HOLDS] * 3)
    outcome = retried(world, attempts=9)
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert [needed(attempt) for attempt in outcome.attempts] == [[("test", True)]] * 2
    assert outcome.remedy == "atlas pick r 2 --held"
    assert world.files == {"code": "another", "test": "strict"}
    assert [attempt.kept for attempt in outcome.attempts] == [False, True]
    assert outcome.escalation_required


@pytest.mark.parametrize(
    ("code", "attempts", "is_required"),
    [("right", 3, False), ("wrong", 0, False), ("worse", 1, True)],
    ids=["clean", "no attempt was made", "every attempt failed"],
)
def test_a_person_has_to_take_over_only_where_attempts_failed(
    code: str, attempts: int, is_required: bool
) -> None:
    world = World(files={"code": code, "test": "strict"}, turns=[{"code": "other"}])
    assert retried(world, attempts).escalation_required is is_required


def test_no_person_has_to_take_over_a_fixed_run() -> None:
    assert not retried(World(turns=[{"code": "right"}])).escalation_required


def test_the_next_attempt_can_fix_the_source_instead() -> None:
    world = World(turns=[{"test": "weak"}, {"code": "right"}], judgements=[HOLDS])
    outcome = retried(world)
    assert outcome.verdict is Verdict.FIXED
    assert needed(outcome.attempts[0]) == [("test", True)]


def test_held_changes_are_tried_with_all_gates_except_reviews() -> None:
    lint, sense = gate("lint", Kind.LINT), gate("sense", Kind.REVIEW)
    world = World(turns=[{"code": "other", "test": "weak"}], judgements=[HOLDS])
    skipped = result("sense", Status.SKIPPED, kind=Kind.REVIEW)
    world.gates_say = lambda files: validation(
        result("lint", kind=Kind.LINT), *validated(files).results, skipped
    )
    outcome = retry(world.effects(run(1, (lint, gate(), sense))))
    assert [[g.name for g in gates] for gates in world.asides] == [["lint", "tests"]]
    assert needed(outcome.attempts[0]) == [("test", True)]
    assert world.files["test"] == "strict"


def test_gates_do_not_run_if_only_held_edits_were_made() -> None:
    world = World(turns=[{"test": "weak"}], judgements=[HOLDS])
    outcome = retried(world, attempts=1)
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert world.done.count("validate") == 1


def test_a_held_change_that_fails_too_was_not_needed() -> None:
    world = World(turns=[{"code": "other", "test": "other"}, {"code": "right"}], judgements=[HOLDS])
    outcome = retried(world)
    assert needed(outcome.attempts[0]) == [("test", False)]
    assert outcome.verdict is Verdict.FIXED


def test_the_same_held_change_twice_is_stalled_with_it_as_reason() -> None:
    world = World(turns=[{"test": "a"}, {"test": "b"}], judgements=[HOLDS] * 2)
    outcome = retried(world)
    assert outcome.verdict is Verdict.STALLED
    assert len(outcome.attempts) == 2
    assert (outcome.final_error or "").startswith(
        "the attempt made no new change; held and restored: test (tests-changed); "
    )


def test_a_failed_review_does_not_try_held_changes() -> None:
    sense = gate("sense", Kind.REVIEW)
    world = World(turns=[{"code": "right", "test": "weak"}], judgements=[HOLDS])
    refuses = result("sense", Status.FAILED, "s", kind=Kind.REVIEW)
    world.gates_say = lambda files: validation(*validated(files).results, refuses)
    outcome = retry(world.effects(run(1, (gate(), sense))))
    assert needed(outcome.attempts[0]) == [("test", None)]
    assert world.asides == []


def test_a_kept_change_is_verified_with_the_earlier_tests() -> None:
    world = World(turns=[{"code": "right", "test": "more"}], judgements=[KEEPS])
    outcome = retried(world)
    assert outcome.verdict is Verdict.FIXED
    assert "aside test" in world.done
    assert world.files["test"] == "more"


def test_a_kept_change_that_the_tests_depend_on_is_held() -> None:
    turn = {"code": "other", "test": "weak"}
    world = World(turns=[turn, {"code": "another", "test": "weak"}], judgements=[KEEPS] * 2)
    outcome = retried(world)
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    first = outcome.attempts[0]
    assert [(h.rule, h.path, h.needed) for h in first.held] == [(NEEDED.rule, "test", True)]
    assert first.validation is not None
    assert not first.validation.success
    assert world.files == {"code": "another", "test": "strict"}
    assert outcome.remedy == "atlas pick r 2 --held"


def test_the_failing_verification_is_the_reported_validation() -> None:
    world = World(turns=[{"code": "other", "test": "weak"}], judgements=[KEEPS])
    outcome = retried(world, attempts=1)
    reported = [event.validation for event in world.events if isinstance(event, ValidationFinished)]
    assert reported == [outcome.attempts[0].validation]


def test_only_gates_that_may_read_tests_verify_kept_changes() -> None:
    gates = (gate("lint", Kind.LINT), gate(), gate("make", Kind.BUILD), gate("own", Kind.CUSTOM))
    world = World(turns=[{"code": "right", "test": "more"}], judgements=[KEEPS])
    world.gates_say = lambda files: validation(
        result("lint", kind=Kind.LINT),
        *validated(files).results,
        result("make", kind=Kind.BUILD),
        result("own", kind=Kind.CUSTOM),
    )
    retry(world.effects(run(gates=gates)))
    assert [[g.name for g in gates] for gates in world.asides] == [["tests", "own"]]


def test_all_gates_verify_kept_settings() -> None:
    gates = (gate("lint", Kind.LINT), gate())
    seen = Answer(rule="settings-added", path="test", detail="only adds")
    kept = replace(KEEPS, answers=(seen,))
    world = World(turns=[{"code": "right", "test": "more"}], judgements=[kept])
    world.gates_say = lambda files: validation(
        result(
            "lint", Status.FAILED if files["test"] == "strict" else Status.PASSED, kind=Kind.LINT
        ),
        *validated(files).results,
    )
    outcome = retry(world.effects(run(1, gates)))
    assert [[g.name for g in gates] for gates in world.asides] == [["tests"], ["lint"]]
    (held,) = outcome.attempts[0].held
    assert (held.rule, held.path, held.needed) == (SETTINGS_NEEDED.rule, "test", True)


def test_a_coverage_threshold_does_not_fail_the_verification() -> None:
    def bar(files: Files) -> Validation:
        if files["test"] == "more":
            return validation(result())
        low = replace(result("tests", Status.FAILED, "bar"), triage="threshold")
        return validation(low)

    world = World(turns=[{"test": "more"}], judgements=[KEEPS], gates_say=bar)
    assert retried(world).verdict is Verdict.FIXED
    assert world.files["test"] == "more"


def test_a_coverage_threshold_reached_by_an_ignored_file_is_held() -> None:
    def bar(files: Files) -> Validation:
        if files["test"] == "weak":
            return validation(result())
        low = replace(result("tests", Status.FAILED, "bar"), triage="threshold")
        return validation(low)

    turn = {"code": "other", "test": "weak"}
    world = World(turns=[turn], unseen={"test": "strict"}, gates_say=bar)
    (attempt,) = retried(world, attempts=1).attempts
    assert needed(attempt) == [("test", True)]


def test_an_attempt_whose_code_rewrites_a_test_is_reverted_completely() -> None:
    turn = {"code": "sly", "test": "strict"}
    world = World(turns=[turn], gates_write={"test": "weak"}, rewritten=(CHEAT,))
    (attempt,) = retried(world, attempts=1).attempts
    assert (attempt.violations, attempt.rolled_back) == ((CHEAT,), True)
    after_gates = world.done[world.done.index("validate", world.done.index("judge")) :]
    assert "restore all" in after_gates[: after_gates.index("snapshot 1-guarded")]


def test_a_pass_that_depends_on_ignored_files_is_held() -> None:
    world = World(turns=[{"code": "other", "test": "weak"}], unseen={"test": "strict"})
    (attempt,) = retried(world, attempts=1).attempts
    assert needed(attempt) == [("test", True)]
    assert [(h.rule, h.detail) for h in attempt.held] == [(UNSEEN.rule, UNSEEN.detail)]
    notices = [event.text for event in world.events if isinstance(event, Notice)]
    assert f"  {UNSEEN.announced}: test" in notices


def test_all_gates_except_reviews_are_checked_without_ignored_files() -> None:
    kinds = (Kind.LINT, Kind.TEST, Kind.BUILD, Kind.CUSTOM, Kind.REVIEW)
    gates = tuple(gate(kind.value, kind) for kind in kinds)
    world = World(turns=[{"code": "right"}], unseen={"cache": "old"})
    world.gates_say = lambda files: validation(
        *(replace(validated(files).results[0], name=kind.value, kind=kind) for kind in kinds)
    )
    assert retry(world.effects(run(gates=gates))).verdict is Verdict.FIXED
    assert [[g.name for g in chosen] for chosen in world.asides] == [
        ["lint", "test", "build", "custom"]
    ]


@pytest.mark.parametrize(
    ("kinds", "says_so"), [((Kind.TEST,), True), ((Kind.CUSTOM,), True), ((Kind.LINT,), False)]
)
def test_a_second_test_run_is_announced_only_if_there_are_tests(
    kinds: tuple[Kind, ...], says_so: bool
) -> None:
    world = World(turns=[{"code": "right", "test": "more"}], judgements=[KEEPS])
    world.gates_say = lambda files: validation(
        *(replace(validated(files).results[0], kind=kind) for kind in kinds)
    )
    gates = tuple(gate(kind=kind, max_retries=9) for kind in kinds)
    assert retry(world.effects(run(gates=gates))).verdict is Verdict.FIXED
    notices = [event.text for event in world.events if isinstance(event, Notice)]
    assert any("running again with the original tests" in text for text in notices) is says_so


def skipping(failed: int) -> World:
    """Some tests fail before the turn, and are skipped after it."""
    world = World(turns=[{"code": "right"}])
    red = replace(result("tests", Status.FAILED), command="pytest")
    names = [f"t.py::test_{number}" for number in range(1, failed + 1)]
    problems = tuple(Diagnostic(tool="pytest", message="no", test_id=name) for name in names)

    def said(files: Files) -> Validation:
        if world.asides:
            return validation(replace(red, stdout="1 skipped"))
        if files["code"] == "wrong":
            return validation(replace(red, diagnostics=problems))
        return validation(replace(result(), stdout=f"{failed} skipped"))

    world.gates_say = said
    return world


def test_a_failed_test_that_is_skipped_after_a_turn_is_held_with_the_reason() -> None:
    attempt = retried(skipping(1)).attempts[0]
    assert [(held.rule, held.detail) for held in attempt.held] == [
        ("skipped-test", "t.py::test_1 failed before the run, and is skipped now.")
    ]


def test_of_many_failed_tests_only_the_first_five_run_alone() -> None:
    world = skipping(8)
    retried(world)
    assert [gates[0].run[-6:] for gates in world.asides] == [f"test_{n}" for n in range(1, 6)]


def cached(*, passes: bool) -> World:
    """A world whose tests pass by a cached result once the code is right."""
    world = World(turns=[{"code": "right"}], uncached={"tests": gate(run="for real")})

    def said(files: Files) -> Validation:
        is_red = files["code"] == "wrong" or (world.asides and not passes)
        return validation(result("tests", Status.FAILED if is_red else Status.PASSED))

    world.gates_say = said
    return world


@pytest.mark.parametrize(("passes", "verdict"), [(True, Verdict.FIXED), (False, Verdict.EXHAUSTED)])
def test_a_cached_pass_after_a_turn_counts_only_if_the_gate_passes_without_the_cache(
    passes: bool, verdict: Verdict
) -> None:
    world = cached(passes=passes)
    outcome = retried(world, 1)
    assert outcome.verdict is verdict
    assert [gates[0].run for gates in world.asides] == ["for real"]
    assert outcome.attempts[0].validation is not None
    assert outcome.attempts[0].validation.success is passes


def test_a_red_with_cached_passes_runs_nothing_again() -> None:
    world = cached(passes=True)
    world.turns = [{"code": "wrong"}]
    retried(world, 1)
    assert not world.asides


@pytest.mark.parametrize(
    ("before", "after", "asks"),
    [
        ("1 failed, 1 passed in 0.01s", "1 passed in 0.01s", True),
        ("1 failed, 1 passed in 0.01s", "2 passed in 0.01s", False),
        ("1 failed in 0.01s", "2 passed in 0.01s", False),
        ("no summary", "1 passed in 0.01s", False),
        ("1 failed, 1 passed in 0.01s", "no summary", False),
    ],
)
def test_a_pass_of_fewer_tests_than_had_run_counts_only_if_it_passes_again(
    before: str, after: str, asks: bool
) -> None:
    world = World(turns=[{"code": "right"}])

    def said(files: Files) -> Validation:
        is_red = files["code"] == "wrong" or bool(world.asides)
        one = result("tests", Status.FAILED if is_red else Status.PASSED)
        return validation(replace(one, stdout=before if is_red else after))

    world.gates_say = said
    assert (retried(world, 1).verdict is Verdict.FIXED) is not asks
    assert len(world.asides) == asks


def test_a_gate_that_is_no_test_may_count_fewer() -> None:
    world = World(turns=[{"code": "right"}])

    def said(files: Files) -> Validation:
        is_red = files["code"] == "wrong"
        one = result("lint", Status.FAILED if is_red else Status.PASSED, kind=Kind.LINT)
        return validation(replace(one, stdout=f"{2 if is_red else 1} passed in 0.01s"))

    world.gates_say = said
    outcome = retry(world.effects(run(1, gates=(gate("lint", Kind.LINT, max_retries=9),))))
    assert (outcome.verdict, world.asides) == (Verdict.FIXED, [])


def test_an_edit_for_review_stays_and_the_run_needs_review() -> None:
    world = World(turns=[{"code": "right"}], judgements=[Judgement(answers=(REVIEWED,))])
    outcome = retried(world)
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert outcome.remedy == "atlas accept r"
    assert needed(outcome.attempts[0]) == [("code", None)]
    assert world.files["code"] == "right"
    assert outcome.attempts[0].kept


def test_an_edit_for_review_is_remembered_when_a_later_attempt_passes() -> None:
    world = World(
        turns=[{"code": "worse"}, {"code": "right"}], judgements=[Judgement(answers=(REVIEWED,))]
    )
    assert retried(world).verdict is Verdict.NEEDS_REVIEW


def test_a_refused_change_is_reverted_and_the_rest_counts() -> None:
    world = World(turns=[{"code": "right", "test": "weak"}], judgements=[REFUSES])
    outcome = retried(world)
    assert outcome.verdict is Verdict.FIXED
    assert outcome.attempts[0].violations == (CHEAT,)
    assert world.files == {"code": "right", "test": "strict"}
    assert [e.violations for e in world.events if isinstance(e, ViolationsFound)] == [(CHEAT,)]


@pytest.mark.parametrize("judgement", [REFUSES, Judgement(answers=(CHEAT,), restore=None)])
def test_an_attempt_with_nothing_left_is_rolled_back_without_gates(
    judgement: Judgement,
) -> None:
    world = World(turns=[{"test": "weak"}] * 2, judgements=[judgement] * 2)
    outcome = retried(world)
    assert outcome.verdict is Verdict.REJECTED
    assert all(attempt.rolled_back for attempt in outcome.attempts)
    assert world.done.count("validate") == 1


def test_a_refused_change_that_cannot_be_restored_ends_the_run() -> None:
    judgement = Judgement(
        answers=(Violation(rule="dependency-edited", path="node_modules/dep/index.js"),),
        restore=(),
        ends=Verdict.REJECTED,
        remedy="npm ci",
    )
    world = World(turns=[{"code": "right"}], judgements=[judgement])
    outcome = retried(world)
    assert (outcome.verdict, outcome.remedy) == (Verdict.REJECTED, "npm ci")
    assert world.done.count("validate") == 1
    assert world.files["code"] == "wrong"


def test_a_turn_that_changed_only_unsnapshotted_files_is_judged() -> None:
    judgement = Judgement(answers=(replace(CHEAT, path="dep"),), restore=(), ends=Verdict.REJECTED)
    world = World(turns=[{}], judgements=[judgement])
    outcome = retried(world)
    assert outcome.verdict is Verdict.REJECTED
    assert outcome.attempts[0].violations


def test_a_pass_that_needs_acceptance_ends_the_run_at_once() -> None:
    judgement = Judgement(answers=(HELD,), restore=("test",), ends=Verdict.NEEDS_REVIEW)
    world = World(turns=[{"code": "right", "test": "more"}], judgements=[judgement])
    outcome = retried(world)
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert outcome.remedy == "atlas pick r 1 --held"
    assert needed(outcome.attempts[0]) == [("test", False)]
    assert world.files == {"code": "right", "test": "strict"}


def test_a_warning_guard_holds_and_verifies_nothing() -> None:
    judgement = replace(
        HOLDS, answers=(CHEAT, HELD), as_before={"test": words("strict")}, blocks=False
    )
    world = World(turns=[{"code": "other", "test": "weak"}], judgements=[judgement])
    outcome = retried(world)
    assert outcome.verdict is Verdict.FIXED
    (attempt,) = outcome.attempts
    assert (attempt.violations, attempt.held) == ((CHEAT,), ())
    assert [seen.rule for seen in attempt.noted] == ["tests-changed"]
    assert world.files["test"] == "weak"


def test_a_refused_fix_is_never_reported_as_no_change() -> None:
    world = World(turns=[{"test": "weak"}, {}], judgements=[REFUSES])
    outcome = retried(world)
    assert outcome.verdict is Verdict.STALLED
    assert "changed nothing" not in (outcome.final_error or "")


def test_what_was_refused_and_what_was_held_are_listed_apart() -> None:
    both = Attempt(number=1, agent="x", violations=(CHEAT,), held=(HELD,))
    assert account((both,)) == (
        "the guard refused test (tests-removed); held for a person to accept: test (tests-changed)"
    )


@pytest.mark.parametrize("end", [Interrupted(2), WorkspaceError("git failed")])
def test_an_attempt_that_cannot_continue_is_reverted(end: BaseException) -> None:
    class Ends(World):
        def judge(self, *_: object) -> Judgement:
            raise end

    world = Ends(turns=[{"code": "other"}])
    with pytest.raises(type(end)):
        retry(world.effects(run()))
    assert world.files["code"] == "wrong"
    assert "snapshot 1-unfinished" in world.done


def test_the_first_error_is_raised_if_reverting_fails_too() -> None:
    class Fails(World):
        def restore(self, *_: object) -> None:
            raise WorkspaceError("no space to put it back")

        def judge(self, *_: object) -> Judgement:
            raise WorkspaceError("git failed")

    with pytest.raises(WorkspaceError, match="git failed"):
        retry(Fails(turns=[{"code": "other"}]).effects(run()))


def test_validations_before_the_first_attempt_have_no_previous_one() -> None:
    asked: list[Validation | None] = []

    class Fixes(World):
        def validate(self, previous: Validation | None) -> Validation:
            asked.append(previous)
            return super().validate(previous)

        def fix(self, _: Validation) -> tuple[str, ...]:
            return ("a.py",)

    retry(Fixes().effects(run(0)))
    assert asked == [None, None]


def reviewed(cost_usd: float, status: Status = Status.PASSED) -> GateResult:
    return replace(result("sense", status, kind=Kind.REVIEW), cost_usd=cost_usd)


def test_every_review_is_charged() -> None:
    results = [reviewed(1.0, Status.FAILED), reviewed(0.5)]
    world = World(
        turns=[{"code": "right"}],
        gates_say=lambda _: validation(results.pop(0)),
        reply=AgentReply(status=ReplyStatus.DONE, cost_usd=2.0),
    )
    assert retried(world).cost_usd == 3.5


def test_attempts_and_runs_are_timed_in_milliseconds() -> None:
    outcome = retried(World(turns=[{"code": "worse"}, {"code": "right"}], turn_s=1.5))
    assert [attempt.duration_ms for attempt in outcome.attempts] == [1500, 1500]
    assert outcome.duration_ms == 3000


def test_denied_calls_are_recorded_with_the_attempt() -> None:
    reply = AgentReply(status=ReplyStatus.DONE, denials=("Bash: curl",))
    world = World(turns=[{"code": "right"}], reply=reply)
    assert retried(world).attempts[0].denials == ("Bash: curl",)


def test_a_baseline_without_fixes_is_charged_once() -> None:
    seen = validation(reviewed(1.0, Status.FAILED))
    progress = Progress(
        baseline=seen, settled=seen, latest=seen, start="0", origin="0", current="0"
    )
    assert progress.cost_usd == 1.0
