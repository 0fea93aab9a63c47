"""A green is about what is there: what moves while gates run is judged, and looked at again."""

from collections.abc import Callable, Collection

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.decision import Limits, Progress
from atlas_retry.effects import Effects, Judgement, Run, Taken
from atlas_retry.errors import Interrupted, WorkspaceError
from atlas_retry.events import unseen
from atlas_retry.loop import retry
from atlas_retry.model import (
    AgentReply,
    AgentRequest,
    Budget,
    Change,
    ChangeStatus,
    GateResult,
    Kind,
    ReplyStatus,
    Status,
    Validation,
    Verdict,
    Violation,
    WorkspaceFacts,
)
from tests.projects import TEST, Project, git
from tests.values import GREEN, RED, gate, result, validation

CHEAT = Violation(rule="tests-removed", path="test_a.py")


def test_code_that_rewrites_a_test_each_time_the_gates_run_buys_nothing(project: Project) -> None:
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


def test_a_green_of_files_that_somebody_changed_meanwhile_is_looked_at_again(
    project: Project,
) -> None:
    edits_once = "sleep 0.5; test -e ../edited || { touch ../edited; echo bad > state; }"
    project.configure(
        validation={
            "lint": ["grep -q good state"],
            "custom": [{"run": f"grep -q bad state || {{ {edits_once}; }}", "max_retries": 3}],
            "jobs": 2,
        }
    )
    (project.root / "state").write_text("bad\n")
    project.commit()
    project.attempt(1, {"state": "good\n"})
    outcome = project.retry(retry__max_ai_retry_attempts=1)
    assert (project.root / "state").read_text() == "bad\n"
    assert not outcome.verdict.is_green


class World(Struct, kw_only=True):
    """A workspace of one number, what was done to it, and what gates and guard say in turn."""

    validations: list[Validation]
    judgements: list[Judgement] = field(default_factory=list)
    moves: list[bool] = field(default_factory=list)
    """Whether a file moves while the gates run, validation by validation."""
    moved_path: Callable[[int], str] = "a.py".format
    tree: int = 0
    done: list[str] = field(default_factory=list)

    def effects(self, reply: AgentReply | None = None) -> Effects:
        return Effects(
            snapshot=self.snapshot,
            changes=self.changes,
            restore=self.restore,
            validate=self.validate,
            fix=lambda _: (),
            request=lambda _, number: (
                AgentRequest(prompt="?", workspace="/w", scratch="/s", attempt=number),
                "/s/prompt.md",
            ),
            lack=lambda: None,
            ask=lambda _: self.ask(reply or AgentReply(status=ReplyStatus.DONE)),
            judge=self.judge,
            learn=lambda _: None,
            account=lambda progress: progress,
            elapsed_s=lambda: 0.0,
            emit=unseen,
        )

    def snapshot(self, name: str) -> Taken:
        self.done.append(f"snapshot {name}")
        return Taken(id=str(self.tree), tree=str(self.tree))

    def changes(self, before: str, after: str) -> tuple[Change, ...]:
        if before == after:
            return ()
        return (Change(path=self.moved_path(int(after)), status=ChangeStatus.MODIFIED),)

    def restore(self, target: str, _: str, paths: Collection[str] | None) -> None:
        self.done.append(f"restore {target} {'all' if paths is None else sorted(paths)}")
        self.tree = int(target) if paths is None else self.tree + 1

    def validate(self, _: Validation | None) -> Validation:
        self.done.append("validate")
        self.tree += self.moves.pop(0) if self.moves else 0
        return self.validations.pop(0)

    def ask(self, reply: AgentReply) -> AgentReply:
        self.done.append("ask")
        self.tree += 1
        return reply

    def judge(self, before: str, after: str, _: Validation) -> Judgement:
        self.done.append(f"judge {before}..{after}")
        return self.judgements.pop(0) if self.judgements else Judgement()


def run(attempts: int = 1) -> Run:
    return Run(
        run_id="r",
        workspace=WorkspaceFacts(name="w", root="/w"),
        limits=Limits(budget=Budget(attempts=attempts), gates=(gate(),), with_agent=True),
    )


def test_the_guard_looks_before_and_after_the_gates() -> None:
    world = World(validations=[RED, GREEN])
    assert retry(run(), world.effects()).verdict is Verdict.FIXED
    looks = [what for what in world.done if what.startswith(("ask", "judge", "validate"))]
    assert looks == ["validate", "ask", "judge 0..1", "validate", "judge 0..1"]


def test_what_the_guard_finds_only_after_the_gates_is_put_back_and_the_gates_run_again() -> None:
    refused = Judgement(violations=(CHEAT,), put_back=("test_a.py",))
    world = World(
        validations=[RED, GREEN, GREEN], judgements=[Judgement(), refused], moves=[False, True]
    )
    outcome = retry(run(), world.effects())
    assert outcome.verdict is Verdict.FIXED
    assert outcome.attempts[0].violations == (CHEAT,)
    assert world.done.count("validate") == 3


def test_what_still_violates_once_it_is_put_back_goes_whole() -> None:
    refused = Judgement(violations=(CHEAT,), put_back=("test_a.py",))
    world = World(validations=[RED, GREEN], judgements=[refused, refused])
    outcome = retry(run(), world.effects())
    assert outcome.verdict is Verdict.EXHAUSTED
    assert outcome.attempts[0].rolled_back
    assert "restore 0 all" in world.done
    assert world.done.count("validate") == 1


def test_files_that_never_rest_while_the_gates_run_void_the_attempt() -> None:
    world = World(validations=[RED, *[GREEN] * 3], moves=[False, *[True] * 3])
    world.moved_path = "{}.py".format
    outcome = retry(run(), world.effects())
    assert outcome.verdict is Verdict.EXHAUSTED
    assert {violation.rule for violation in outcome.attempts[0].violations} == {"restless"}
    assert world.tree == 0


def test_a_file_that_the_gates_write_each_time_costs_one_more_look_and_no_green() -> None:
    world = World(validations=[RED, *[GREEN] * 3], moves=[False, *[True] * 3])
    assert retry(run(), world.effects()).verdict is Verdict.FIXED
    assert world.done.count("validate") == 3


def test_a_file_that_the_baselines_gates_wrote_as_well_costs_no_second_look() -> None:
    world = World(validations=[RED, *[GREEN] * 3], moves=[True] * 4)
    assert retry(run(), world.effects()).verdict is Verdict.FIXED
    assert world.done.count("validate") == 2


def test_a_red_needs_no_second_look() -> None:
    world = World(validations=[RED, RED], moves=[False, True])
    assert retry(run(), world.effects()).verdict is Verdict.EXHAUSTED
    assert world.done.count("validate") == 2


@pytest.mark.parametrize("end", [Interrupted(2), WorkspaceError("git failed")])
def test_an_attempt_that_goes_no_further_is_put_back(end: BaseException) -> None:
    world = World(validations=[RED])

    def judge(*_: object) -> Judgement:
        raise end

    with pytest.raises(type(end)):
        retry(run(), replace(world.effects(), judge=judge))
    assert world.tree == 0
    assert "snapshot 1-unfinished" in world.done


def test_the_first_error_is_told_when_putting_back_fails_as_well() -> None:
    world = World(validations=[RED])

    def refuse(*_: object) -> None:
        raise WorkspaceError("no space to put it back")

    def judge(*_: object) -> Judgement:
        raise WorkspaceError("git failed")

    with pytest.raises(WorkspaceError, match="git failed"):
        retry(run(), replace(world.effects(), judge=judge, restore=refuse))


def test_before_the_first_attempt_a_missing_tool_is_broken_and_a_flaky_test_run_again() -> None:
    world = World(validations=[RED, GREEN])
    asked: list[Validation | None] = []

    def validate(previous: Validation | None) -> Validation:
        asked.append(previous)
        return world.validate(previous)

    retry(run(), replace(world.effects(), validate=validate, fix=lambda _: ("a.py",)))
    assert asked == [None, None]


def reviewed(cost_usd: float, status: Status = Status.PASSED) -> GateResult:
    return replace(result("sense", status, kind=Kind.REVIEW), cost_usd=cost_usd)


def test_every_review_counts_towards_the_money_also_of_validations_that_do_not() -> None:
    world = World(
        validations=[
            validation(reviewed(1.0, Status.FAILED)),
            validation(reviewed(0.5)),
            validation(reviewed(0.25)),
        ],
        moves=[False, True, False],
    )
    reply = AgentReply(status=ReplyStatus.DONE, cost_usd=2.0)
    assert retry(run(), world.effects(reply)).cost_usd == 3.75


def test_calls_that_were_refused_are_told_with_the_attempt() -> None:
    world = World(validations=[RED, GREEN])
    reply = AgentReply(status=ReplyStatus.DONE, denials=("Bash: curl",))
    assert retry(run(), world.effects(reply)).attempts[0].denials == ("Bash: curl",)


def test_progress_counts_a_baseline_once_that_nothing_was_fixed_in() -> None:
    seen = validation(reviewed(1.0, Status.FAILED))
    progress = Progress(
        baseline=seen, settled=seen, latest=seen, start="0", origin="0", current="0"
    )
    assert progress.cost_usd == 1.0


def test_a_cheat_that_the_gates_make_again_each_time_voids_the_attempt() -> None:
    refused = Judgement(violations=(CHEAT,), put_back=("test_a.py",))
    world = World(
        validations=[RED, *[GREEN] * 3],
        judgements=[Judgement(), *[refused, Judgement()] * 3],
        moves=[False, *[True] * 3],
    )
    outcome = retry(run(), world.effects())
    assert outcome.verdict is Verdict.EXHAUSTED
    assert outcome.attempts[0].rolled_back
    assert CHEAT in outcome.attempts[0].violations
    assert world.tree == 0
