"""What a run does to the world, each effect by itself over a real repository."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from atlas_retry.agents.unavailable import Unavailable
from atlas_retry.errors import WorkspaceError
from atlas_retry.events import Event, Notice, unseen
from atlas_retry.gates.plan import Plan
from atlas_retry.model import (
    AgentReply,
    AgentRequest,
    Budget,
    Change,
    ChangeStatus,
    ReplyStatus,
    Validation,
)
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.effects import Effects
from atlas_retry.run.effects import agent as agent_effects
from atlas_retry.run.effects import gates as gate_effects
from atlas_retry.run.effects.open_run import LastTurn, OpenRun
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.run.progress import Progress
from atlas_retry.settings import AgentSettings, Settings
from atlas_retry.workspace.isolation import isolated
from tests.repositories import opened, write
from tests.values import GREEN, RED, gate
from tests.worlds import run, words

REQUEST = AgentRequest(prompt="?", workspace="/w", scratch="/s", attempt=1)
LONG_AGO, LONG_AHEAD = "2001-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"


def effects_in(root: Path, **used: object) -> Effects:
    """Of a run in this repository, with what a test does not use left out."""
    ws = opened(root)
    there = OpenWorkspace(
        root=root, settings=Settings(gates=()), state=ws.state, environ=ws.environ
    )
    fields = dict.fromkeys(OpenRun.__struct_fields__) | {
        "run": run(),
        "opened": there,
        "folder": ws.state / "run",
        "last_turn": LastTurn(),
        "budget": SharedBudget(),
        "asked": {},
        "started_s": time.monotonic(),
    }
    return Effects(of=OpenRun(**cast("Any", fields | used)))


def account_of(do: Effects) -> Progress:
    return do.account(
        Progress(baseline=RED, settled=RED, latest=RED, start="0", origin="0", current="0")
    )


def _asked(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    unavailable: Unavailable | None,
    takes_s: float = 0.0,
) -> tuple[int, list[Event]]:
    """How often two attempts ask whether the agent is available, and the events."""
    answers = list[Unavailable | None]()

    def check(*_: object) -> Unavailable | None:
        time.sleep(takes_s)
        answers.append(unavailable)
        return unavailable

    monkeypatch.setattr("atlas_retry.agents.check", check)
    monkeypatch.setattr(agent_effects, "PATIENCE_S", 0.1)
    seen: list[Event] = []
    do = effects_in(root, emit=seen.append)
    settings = SimpleNamespace(agent=AgentSettings())
    do.of.opened = replace(do.of.opened, settings=cast("Any", settings))
    assert [do.agent.unavailable(), do.agent.unavailable()] == [unavailable, unavailable]
    return len(answers), seen


def test_an_available_agent_is_asked_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _asked(root, monkeypatch, None) == (1, [])
    missing = Unavailable(error="not installed")
    assert _asked(root, monkeypatch, missing) == (2, [])


def test_a_slow_answer_of_the_agent_is_announced(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, seen = _asked(root, monkeypatch, None, takes_s=0.5)
    assert [event.message for event in seen] == ["  checking that claude-code is available"]


def test_time_counts_from_the_start_of_the_run_or_of_its_batch(root: Path) -> None:
    began_s = time.monotonic() - 100
    assert account_of(effects_in(root, started_s=began_s)).elapsed_s >= 100
    assert account_of(effects_in(root, started_s=began_s + 200)).elapsed_s >= 0


def test_a_run_that_is_over_is_promised_nothing_of_the_shared_budget(root: Path) -> None:
    budget = SharedBudget()
    for attempts, promised_usd in ((0, None), (1, 10.0)):
        given = run(attempts)
        limits = replace(given.limits, budget=Budget(attempts=attempts, cost_usd=10.0))
        do = effects_in(root, run=replace(given, limits=limits), budget=budget)
        assert account_of(do).elsewhere.promised_usd == promised_usd


def test_what_atlas_itself_writes_is_in_the_next_snapshot(root: Path) -> None:
    do = effects_in(root)
    start = do.tree.snapshot("start")
    do.tree.write({"src/a.py": words("written\n")})
    assert do.tree.read(do.tree.snapshot("1").id, ["src/a.py"]) == {"src/a.py": words("written\n")}
    do.tree.restore(start.id, do.tree.snapshot("1").id, ["src/a.py"])
    assert do.tree.snapshot("2").tree == start.tree


@pytest.mark.parametrize(
    ("path", "was", "now", "without"),
    [
        ("state.txt", "old", "new", "old"),
        ("state.txt", None, "new", None),
        ("state.txt", "old", "old", None),
        ("build/state.txt", "old", "new", None),
    ],
    ids=["changed", "new", "only its time moved", "can be made again"],
)
def test_a_pass_is_tried_without_what_the_run_wrote_where_git_does_not_look(
    root: Path, path: str, was: str | None, now: str, without: str | None
) -> None:
    write(root, ".gitignore", "state.txt\n")
    if was:
        write(root, path, was)
    do = effects_in(root)
    start = do.tree.snapshot("start")
    write(root, path, now)
    do.of.opened.tracker.moved()
    green = replace(GREEN, started_at=LONG_AGO)
    tried = do.tree.unseen(start.id, start.id, do.tree.snapshot("1").id, [path], green)
    assert tried == {path: words(without) if without else None}


@pytest.mark.parametrize(("started_at", "is_tried"), [(LONG_AGO, False), (LONG_AHEAD, True)])
def test_a_pass_is_tried_without_ignored_files_written_before_its_gates_started(
    root: Path, started_at: str, is_tried: bool
) -> None:
    write(root, ".gitignore", "state.txt\n")
    do = effects_in(root)
    start = do.tree.snapshot("start")
    write(root, "state.txt", "recorded")
    do.of.opened.tracker.moved()
    green = replace(GREEN, started_at=started_at)
    tried = do.tree.unseen(start.id, start.id, do.tree.snapshot("1").id, [], green)
    assert tried == ({"state.txt": None} if is_tried else {})


@pytest.mark.parametrize(
    ("path", "gates", "before", "is_tried"),
    [
        ("gen/table.py", 2, "one", True),
        ("gen/table.py", 2, None, False),
        ("gen/table.py", 1, "one", False),
        ("gen/table.db", 2, "one", False),
    ],
    ids=["written twice", "written once", "one gate", "no code"],
)
def test_a_pass_is_tried_without_code_that_a_gate_generated_for_another(
    root: Path, path: str, gates: int, before: str | None, is_tried: bool
) -> None:
    write(root, ".gitignore", "gen/\n")
    do = effects_in(root)
    start = do.tree.snapshot("start")
    if before:
        write(root, path, before)
        do.of.opened.tracker.moved()
    left = do.tree.snapshot("1-left")
    write(root, path, "two")
    do.of.opened.tracker.moved()
    green = replace(GREEN, results=GREEN.results[:1] * gates, started_at=LONG_AGO)
    tried = do.tree.unseen(start.id, left.id, do.tree.snapshot("1-end").id, [], green)
    assert tried == ({path: None} if is_tried else {})


@pytest.mark.parametrize(
    ("previous", "ends", "seen"),
    [
        (GREEN, [(GREEN, False)], GREEN),
        (GREEN, [(RED, True)], RED),
        (RED, [(RED, False)], RED),
        (GREEN, [(RED, False), (GREEN, True)], GREEN),
        (GREEN, [(RED, False), (RED, True)], RED),
    ],
    ids=["passed", "in place", "failed before", "passes in place", "fails in place too"],
)
def test_a_failure_beside_the_workspace_counts_once_the_gates_fail_in_it_too(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    previous: Validation,
    ends: list[tuple[Validation, bool]],
    seen: Validation,
) -> None:
    left = [*ends]

    @contextmanager
    def beside(*_: object, in_place: bool = False) -> Iterator[SimpleNamespace]:
        assert in_place is (len(left) < len(ends))
        reason = "docker" if left[0][1] else ""
        yield SimpleNamespace(reason=reason, wrap=None, file=None)

    monkeypatch.setattr(isolated, "beside", beside)
    monkeypatch.setattr(gate_effects, "run_gates", lambda *_: left.pop(0)[0])
    monkeypatch.setattr(
        gate_effects, "plan", lambda _, logs: Plan(root=root, logs=logs, environ={})
    )
    do = effects_in(root, folder=root.parent, asides=count(1), emit=unseen)
    assert do.gates.aside((gate(),), {}, previous, "it may fail") == seen
    assert left == []


def test_a_file_that_a_turn_changed_is_dated_after_its_start(root: Path) -> None:
    start_s = int(time.time())
    do = effects_in(
        root, last_turn=LastTurn(sealed=cast("Any", SimpleNamespace(taken_ns=start_s * 10**9)))
    )
    os.utime(root / "src/a.py", (start_s, start_s))
    do.tree.refresh([Change(path="src/a.py", status=ChangeStatus.MODIFIED)])
    assert (root / "src/a.py").stat().st_mtime >= start_s + 1


def test_a_changed_file_is_dated_after_one_that_was_dated_in_the_future(root: Path) -> None:
    later_s = int(time.time()) + 2
    was = {"src/a.py": (0o100644, 5, later_s * 10**9, 0, 1)}
    do = effects_in(root, last_turn=LastTurn(files=was))
    do.tree.refresh([Change(path="src/a.py", status=ChangeStatus.MODIFIED)])
    assert (root / "src/a.py").stat().st_mtime >= later_s + 1


def test_gates_that_have_to_run_in_place_are_announced_with_the_reason(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        gate_effects, "plan", lambda _, logs: Plan(root=root, logs=logs, environ={})
    )
    events: list[Event] = []
    do = effects_in(root, folder=root.parent, asides=count(1), emit=events.append)
    assert do.gates.aside((gate(run="true docker"),), {}, GREEN, "it may fail").success
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert notices == ["gates run in place: docker works outside an overlay"]


def test_a_removed_git_folder_is_reported_after_the_files_are_restored(root: Path) -> None:
    do = effects_in(root)
    start = do.tree.snapshot("start")
    do.tree.write({"src/a.py": words("by the agent\n")})
    after = do.tree.snapshot("1")
    shutil.rmtree(root / ".git")
    with pytest.raises(WorkspaceError, match="with the commits that no snapshot holds") as error:
        do.tree.restore(start.id, after.id, None)
    assert error.value.remedy == "copy it from a clone"
    assert (root / "src/a.py").read_text() == "a = 1\n"


def test_what_an_agent_writes_without_a_process_is_in_the_next_snapshot(root: Path) -> None:
    def agent(_: AgentRequest) -> AgentReply:
        write(root, "src/a.py", "by the agent\n")
        return AgentReply(status=ReplyStatus.DONE)

    do = effects_in(root, agent=agent, folder=root.parent)
    do.tree.snapshot("start")
    do.agent.ask(REQUEST)
    assert do.tree.read(do.tree.snapshot("1").id, ["src/a.py"]) == {
        "src/a.py": words("by the agent\n")
    }
