"""Only if nothing came between: what a killed turn, a gate or a person did before a run resumes."""

from collections.abc import Callable

import pytest

from atlas_retry.errors import WorkspaceError
from atlas_retry.history.values import OpenAttempt, Order, Remains, RunRow
from atlas_retry.model import AgentReply, AgentRequest, ReplyStatus, Status
from atlas_retry.run import resume
from atlas_retry.run.progress import Progress
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.snapshot.snapshots import snapshot
from tests.repositories import write
from tests.values import attempt, result, validation

DONE = AgentReply(status=ReplyStatus.DONE)
BEGAN = "2000-01-01T00:00:00+00:00"
RED = validation(result("tests", Status.FAILED, "a"))
WORSE = validation(result("tests", Status.FAILED, "a", "b"))


def interrupted(
    ws: Workspace, held: dict[str, str], begun: OpenAttempt | None
) -> resume._InterruptedRun:
    remains = Remains(
        order=Order(),
        validations=(RED,),
        attempts=(),
        open_attempt=begun,
        reviews_usd=0.0,
    )
    return resume._InterruptedRun(
        git=ws,
        run=RunRow.of_snapshots("r", str(ws.root), BEGAN, start=held["start"]),
        remains=remains,
        folder=ws.root.parent,
        held=held,
        emit=lambda _: None,
    )


def opened_attempt(before: str, *, restored: bool = False) -> OpenAttempt:
    return OpenAttempt(
        number=1,
        snapshot=before,
        session_id=None,
        reply=DONE,
        started_at=BEGAN,
        restored=restored,
    )


def test_what_moved_since_a_turn_is_told_by_what_was_left_of_it(ws: Workspace) -> None:
    start = snapshot(ws).id
    write(ws.root, "src/a.py", "held back by the guard\n")
    whole = snapshot(ws).id
    write(ws.root, "src/a.py", "a = 1\n")
    left = snapshot(ws).id
    write(ws.root, "made", "by a gate\n")
    held = {"start": start, "1": whole, "1-left": left}
    scene = interrupted(ws, held, opened_attempt(start))
    assert resume._since_turn(scene, snapshot(ws).id) == {"made"}


@pytest.mark.parametrize("restored", [True, False])
def test_after_a_turn_was_reverted_every_edit_is_someone_elses(
    restored: bool, ws: Workspace
) -> None:
    start = snapshot(ws).id
    write(ws.root, "src/a.py", "edited\n")
    scene = interrupted(ws, {"start": start}, opened_attempt(start, restored=restored))
    late_s = 9e9  # as if the run had lived until long after the edit
    there = snapshot(ws).id
    if not restored:
        assert resume._difference(scene, there, late_s) == ("src/a.py",)
        return
    with pytest.raises(WorkspaceError, match=r"edited since: src/a\.py"):
        resume._difference(scene, there, late_s)


def test_an_attempt_begun_after_a_worse_one_starts_from_the_better_state() -> None:
    progress = Progress(
        run_id="r",
        baseline=RED,
        settled=RED,
        latest=RED,
        start="0",
        origin="0",
        current="1",
        trees=("0", "1"),
        attempts=(attempt(after=WORSE, worse=True),),
    )
    begun = OpenAttempt(
        number=2, snapshot="before-2", session_id=None, reply=None, started_at=BEGAN
    )
    again = resume._as_in_workspace(progress, begun)
    assert (again.current, again.latest) == ("before-2", RED)
    assert resume._as_in_workspace(progress, None).latest == WORSE


@pytest.mark.parametrize(("number", "is_asked"), [(1, False), (2, True)])
def test_only_the_interrupted_attempt_takes_the_reply_that_was_paid(
    number: int, is_asked: bool, ws: Workspace
) -> None:
    start = snapshot(ws).id
    scene = interrupted(ws, {"start": start}, opened_attempt(start))
    asked = list[AgentRequest]()
    agent = resume._continuing_agent(scene, None, _agent(asked))
    agent(AgentRequest(prompt="?", workspace=str(ws.root), scratch="/s", attempt=number))
    assert bool(asked) is is_asked


def _agent(asked: list[AgentRequest]) -> Callable[[AgentRequest], AgentReply]:
    def agent(request: AgentRequest) -> AgentReply:
        asked.append(request)
        return DONE

    return agent


def test_a_continued_turn_does_not_replace_what_someone_edited_since(ws: Workspace) -> None:
    start = snapshot(ws).id
    write(ws.root, "src/a.py", "of the turn\n")
    write(ws.root, "src/b.py", "of the turn\n")
    turn = snapshot(ws).id
    write(ws.root, "src/a.py", "of a person\n")
    write(ws.root, "src/b.py", "b = 2\n")
    begun = opened_attempt(start)
    resume._restore_turn(interrupted(ws, {"start": start}, begun), begun, turn)
    assert (ws.root / "src/a.py").read_text() == "of a person\n"
    assert (ws.root / "src/b.py").read_text() == "of the turn\n"
