"""What is taken when a turn of Claude Code begins, and what the guard says at its end."""

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from atlas_retry.cli.hook import allowing, beginning
from atlas_retry.cli.hook.beginning import KEPT_SNAPSHOTS
from atlas_retry.errors import UsageError
from atlas_retry.workspace import discovery
from atlas_retry.workspace.snapshot import snapshots, store
from tests import hooks
from tests.hooks import PROMPT, SESSION, end, hook_input
from tests.projects import CALC, FIXED, TEST, Project, atlas, git

GUTTED = TEST.replace("assertEqual(calc.add(1, 2), 3)", "assertTrue(True)")
GUTTED_LINE = GUTTED.replace("\n", "\\n") + "# by a gate\\n"
NOTIFICATION = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
PASSED = "Quality gates passed"


@pytest.fixture
def project(project: Project) -> Project:
    project.configure(retry={"flake_reruns": 0, "max_ai_retry_attempts": 2})
    project.commit()
    return project


def write(project: Project, path: str, text: str) -> None:
    (project.root / path).write_text(text)


def begin(project: Project, event: str = PROMPT, **more: object) -> None:
    """A session starts, or the user gives a prompt, and the agent notes something."""
    hooks.begin(project, event, **more)
    if event == PROMPT:
        write(project, "notes.txt", str(time.monotonic_ns()))


def passes(answer: Mapping[str, object], *more: str) -> bool:
    """Whether the answer is that the gates are green, and then these lines."""
    line, *rest = str(answer.get("systemMessage")).split("\n")
    return line.startswith("gates: green, 1 of 1, tree ") and rest == [*more]


def gut(project: Project) -> None:
    write(project, "test_calc.py", GUTTED)


def disarm(project: Project) -> None:
    """What an agent would do that wants the gates out of its way."""
    project.configure(validation={"test": ["true"]})


def held_blocks(project: Project) -> None:
    project.configure(
        retry={"flake_reruns": 0, "max_ai_retry_attempts": 2}, guard={"hook": "block"}
    )


def allow(project: Project, path: str) -> str:
    return allowing.allow(path, project.root, project.environ, has_terminal=True)


def is_blocked(answer: Mapping[str, object]) -> bool:
    assert PASSED not in str(answer)
    return answer.get("decision") == "block"


# --- what the agent may not do --------------------------------------------------------------------


def test_a_suppression_in_sources_is_only_noted(project: Project) -> None:
    begin(project)
    write(project, "calc.py", FIXED + "\n\nMORE = 1  # noqa\n")
    assert "noted: calc.py" in str(end(project)["systemMessage"])


def test_an_honest_fix_ends_the_turn(project: Project) -> None:
    begin(project)
    assert end(project)["decision"] == "block"
    write(project, "calc.py", FIXED)
    assert passes(end(project, stop_hook_active=True), f"{PASSED} on attempt 1")


def test_an_emptied_test_is_held_and_reported_with_the_allow_command(project: Project) -> None:
    begin(project)
    assert is_blocked(end(project))
    gut(project)
    answer = end(project, stop_hook_active=True)
    assert not is_blocked(answer), "people ask for changes of tests"
    assert "\n  test_calc.py:" in str(answer["systemMessage"])


def test_an_emptied_test_blocks_if_configured(project: Project) -> None:
    held_blocks(project)
    begin(project)
    gut(project)
    answer = end(project)
    assert is_blocked(answer)
    reason = str(answer["reason"])
    assert "❌ the guard" in reason
    assert "test_calc.py" in reason
    assert "❌ unittest" not in reason, "the gates themselves pass"


def test_a_reverted_refused_change_ends_the_turn(project: Project) -> None:
    before = (project.root / ".atlas" / "config.yaml").read_text()
    begin(project)
    disarm(project)
    assert is_blocked(end(project))
    write(project, ".atlas/config.yaml", before)
    write(project, "calc.py", FIXED)
    assert passes(end(project, stop_hook_active=True), f"{PASSED} on attempt 1")


def test_gates_come_from_the_configuration_at_the_start_of_the_turn(
    project: Project,
) -> None:
    begin(project)
    disarm(project)
    answer = end(project)
    assert is_blocked(answer)
    assert "❌ unittest" in str(answer["reason"])
    assert "atlas-touched" in str(answer["reason"])


def test_a_broken_or_removed_configuration_does_not_disable_the_gates(project: Project) -> None:
    begin(project)
    (project.root / ".atlas" / "config.yaml").unlink()
    assert is_blocked(end(project))
    write(project, ".atlas/config.yaml", "version: 1\nnope: 2\n")
    assert is_blocked(end(project, stop_hook_active=True))


def test_a_configuration_created_by_the_agent_is_not_used(project: Project) -> None:
    (project.root / ".atlas" / "config.yaml").unlink()
    begin(project)
    disarm(project)
    answer = end(project)
    assert "has not judged this turn: when it began: " in str(answer)
    assert "no configuration" in str(answer)
    assert PASSED not in str(answer)


def test_the_attempt_limit_ends_the_turn(project: Project) -> None:
    held_blocks(project)
    begin(project)
    gut(project)
    answers = [end(project, stop_hook_active=n > 0) for n in range(3)]
    assert [is_blocked(answer) for answer in answers] == [True, True, False]


def test_commits_and_branches_are_allowed(project: Project) -> None:
    begin(project)
    write(project, "calc.py", FIXED)
    git(project.root, "checkout", "-q", "-b", "fix", environ=project.environ)
    project.commit()
    assert passes(end(project))


def test_an_added_git_hook_is_refused(project: Project) -> None:
    begin(project)
    write(project, "calc.py", FIXED)
    write(project, ".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n")
    answer = end(project)
    assert is_blocked(answer)
    assert "git-state" in str(answer["reason"])


@pytest.fixture
def writing(project: Project) -> Project:
    """Its gate rewrites the test."""
    line = f"printf '{GUTTED_LINE}' > test_calc.py"
    make = {"name": "make", "run": line, "max_retries": 1, "writes": True}
    project.configure(validation={"custom": [make]}, guard={"hook": "block"})
    return project


def test_files_written_by_a_gate_at_an_earlier_stop_are_not_charged(writing: Project) -> None:
    begin(writing)
    assert passes(end(writing))
    assert passes(end(writing, stop_hook_active=True))
    gut(writing)
    assert is_blocked(end(writing, stop_hook_active=True)), "this was the agent"


def test_edits_during_a_background_task_are_charged_to_the_agent(writing: Project) -> None:
    begin(writing)
    assert passes(end(writing, background_tasks=[{"id": "b1", "command": "sleep 4; sed ..."}]))
    assert is_blocked(end(writing))


# --- what is the person's -------------------------------------------------------------------------


def test_edits_of_the_user_between_two_prompts_are_not_charged(project: Project) -> None:
    begin(project)
    write(project, "calc.py", FIXED)
    assert passes(end(project))
    gut(project)
    disarm(project)
    begin(project, prompt_id="p2")
    assert passes(end(project, prompt_id="p2"))


def test_edits_of_the_user_before_the_first_prompt_are_not_charged(project: Project) -> None:
    begin(project, SESSION, source="startup")
    gut(project)
    begin(project)
    assert passes(end(project))


def test_a_prompt_during_the_turn_takes_no_new_state(project: Project) -> None:
    held_blocks(project)
    begin(project)
    gut(project)
    begin(project, prompt="typed while it works")
    assert is_blocked(end(project))


def test_a_compaction_takes_no_new_state(project: Project) -> None:
    held_blocks(project)
    begin(project, SESSION, source="startup")
    gut(project)
    begin(project, SESSION, source="compact", prompt_id="p1")
    assert is_blocked(end(project))


@pytest.mark.parametrize("prompt", [NOTIFICATION, "wake up"], ids=["a task", "a timer"])
def test_an_automatic_prompt_takes_no_new_state(project: Project, prompt: str) -> None:
    held_blocks(project)
    begin(project)
    write(project, "calc.py", FIXED)
    assert passes(end(project, session_crons=[{"id": "1", "prompt": "wake up"}]))
    gut(project)
    begin(project, prompt_id="p2", prompt=prompt)
    assert is_blocked(end(project, prompt_id="p2"))


def test_a_refused_change_stays_refused_until_the_user_edits(project: Project) -> None:
    held_blocks(project)
    begin(project)
    gut(project)
    assert is_blocked(end(project))
    begin(project, prompt_id="p2", prompt="go on")
    assert is_blocked(end(project, prompt_id="p2"))
    write(project, "notes.txt", "of the user\n")
    begin(project, prompt_id="p3", prompt="I have looked at it")
    assert passes(end(project, prompt_id="p3"))


def test_without_a_recorded_start_only_the_gates_run_and_it_is_reported(project: Project) -> None:
    disarm(project)
    answer = end(project)
    assert answer == {
        "systemMessage": "⚠️ the guard has not judged this turn: "
        "no state was recorded when it began (atlas hook install)"
    }


def test_without_git_the_first_configuration_is_used_and_it_is_reported(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    plain = Project(root=tmp_path / "plain", script=tmp_path, environ=environ)
    plain.root.mkdir()
    plain.configure(validation={"lint": ["false"]})
    begin(plain)
    disarm(plain)
    answer = end(plain)
    assert is_blocked(answer)
    assert "without git" in str(answer["systemMessage"])


@pytest.mark.parametrize(("mode", "says"), [("warn", "atlas-touched"), ("off", "")])
def test_the_guard_mode_applies_to_the_hook(project: Project, mode: str, says: str) -> None:
    project.configure(validation={"test": ["true"]}, guard={"mode": mode})
    begin(project)
    write(project, "atlas.yaml", "version: 1\n")
    answer = end(project)
    assert "decision" not in answer
    assert says in str(answer.get("systemMessage", ""))
    assert passes(answer) is not bool(says)


# --- allowing -------------------------------------------------------------------------------------


def test_an_allowed_change_ends_the_turn_and_is_reported(project: Project) -> None:
    held_blocks(project)
    begin(project)
    gut(project)
    assert is_blocked(end(project))
    assert allow(project, "test_calc.py") == "test_calc.py"
    answer = end(project, stop_hook_active=True)
    assert "decision" not in answer
    assert "allowed by `atlas hook allow`: test_calc.py" in str(answer["systemMessage"])


def test_an_allowance_applies_only_to_sessions_seen_before(project: Project) -> None:
    held_blocks(project)
    begin(project)
    allow(project, "test_calc.py")
    begin(project, session_id="another")
    gut(project)
    assert not is_blocked(end(project))
    assert is_blocked(end(project, session_id="another"))


@pytest.mark.parametrize("path", [".atlas/config.yaml", ".atlas"])
def test_an_allowed_configuration_change_takes_effect(project: Project, path: str) -> None:
    begin(project)
    disarm(project)
    allow(project, path)
    assert "decision" not in end(project)


def test_without_a_session_allow_is_a_usage_error(project: Project) -> None:
    with pytest.raises(UsageError, match="no agent session"):
        allow(project, "test_calc.py")


def test_allow_without_a_terminal_is_refused(project: Project) -> None:
    begin(project)
    done = atlas(project, "hook", "allow", "test_calc.py")
    assert done.code == 2
    assert "only a person can allow it" in done.err


def test_allow_from_inside_claude_code_is_refused(project: Project) -> None:
    begin(project)
    inside = project.environ | {"CLAUDECODE": "1"}
    with pytest.raises(UsageError, match="only a person"):
        allowing.allow("test_calc.py", project.root, inside, has_terminal=True)


def test_allow_at_a_terminal_is_accepted(project: Project) -> None:
    held_blocks(project)
    begin(project)
    theirs, ours = pty.openpty()
    command = (sys.executable, "-m", "atlas_retry", "hook", "allow", "test_calc.py")
    with os.fdopen(theirs), os.fdopen(ours) as terminal:
        subprocess.run(
            command,
            cwd=project.root,
            env=project.environ,
            stdin=terminal,
            check=True,
            capture_output=True,
            timeout=60,
        )
    gut(project)
    assert not is_blocked(end(project))


# --- the start itself -----------------------------------------------------------------------------


def start(project: Project, payload: bytes, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        (sys.executable, "-m", "atlas_retry", "hook", "start"),
        cwd=project.root,
        env=project.environ | variables,
        input=payload,
        check=False,
        capture_output=True,
        timeout=60,
    )


def break_input(_: Project) -> bytes:
    return b"{"


def break_state(project: Project) -> bytes:
    Path(project.environ["ATLAS_HOME"]).write_text("a file where a folder should be")
    return hook_input(project, SESSION)


def break_configuration(project: Project) -> bytes:
    write(project, ".atlas/config.yaml", "nope: 1\n")
    return hook_input(project, PROMPT, prompt_id="p")


def break_repository(project: Project) -> bytes:
    write(project, ".git/HEAD", "nonsense")
    return hook_input(project, PROMPT, prompt_id="p")


@pytest.mark.parametrize("spoil", [break_input, break_state, break_configuration, break_repository])
def test_a_failing_start_hook_does_not_break_the_session(
    project: Project, spoil: Callable[[Project], bytes]
) -> None:
    done = start(project, spoil(project))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_start_hook_stores_no_secret(project: Project) -> None:
    assert start(project, hook_input(project, SESSION), API_TOKEN="hunter2-hunter2").returncode == 0
    kept = [path for path in Path(project.environ["ATLAS_HOME"]).rglob("*") if path.is_file()]
    assert any(path.suffix == ".seal" for path in kept)
    assert not any(b"hunter2" in path.read_bytes() for path in kept)


def test_the_start_hook_does_nothing_inside_a_run(project: Project) -> None:
    environ = project.environ | {"ATLAS_INSIDE_AGENT": "1"}
    beginning.start(hook_input(project, SESSION), environ)
    assert not (Path(environ["ATLAS_HOME"]) / "hooks").exists()


# --- going back -----------------------------------------------------------------------------------


def test_undo_reverts_the_last_turn_and_keeps_later_edits(project: Project) -> None:
    begin(project)
    write(project, "calc.py", FIXED)
    write(project, "made.py", "by the agent\n")
    end(project)
    write(project, "mine.py", "by the user\n")
    done = atlas(project, "undo")
    assert (done.code, done.out.startswith("partly undone: ")) == (1, True), done.err
    assert ": mine.py\n" in done.out
    assert (project.root / "calc.py").read_text() == CALC
    assert not (project.root / "made.py").exists()
    assert (project.root / "mine.py").exists()


def test_an_interrupted_turn_can_be_undone(project: Project) -> None:
    begin(project)
    write(project, "calc.py", FIXED)
    assert atlas(project, "undo").code == 0
    assert (project.root / "calc.py").read_text() == CALC


def test_undo_ignores_a_session_before_its_first_prompt(project: Project) -> None:
    begin(project, SESSION, source="startup")
    write(project, "calc.py", "by the user\n")
    assert "no run is recorded" in atlas(project, "undo").err
    assert (project.root / "calc.py").read_text() == "by the user\n"


def test_a_turn_that_only_a_session_start_recorded_can_be_undone(project: Project) -> None:
    begin(project, SESSION, source="startup")
    write(project, "calc.py", FIXED)
    end(project)
    assert atlas(project, "undo").code == 0
    assert (project.root / "calc.py").read_text() == CALC


def test_an_undone_turn_can_be_picked_again(project: Project) -> None:
    begin(project)
    write(project, "calc.py", FIXED)
    end(project)
    command = atlas(project, "undo").out.split("atlas pick ")[1].split()
    assert atlas(project, "pick", *command).code == 0
    assert (project.root / "calc.py").read_text() == FIXED


def test_undo_reverts_the_newer_of_run_and_turn(project: Project) -> None:
    begin(project)
    write(project, "calc.py", CALC + "# by the agent of the session\n")
    end(project)
    project.attempt(1, {"calc.py": FIXED})
    project.retry()
    assert "undone: run " in atlas(project, "undo").out
    assert "# by the agent" in (project.root / "calc.py").read_text()


def test_undo_skips_a_turn_without_changes(project: Project) -> None:
    begin(project)
    write(project, "calc.py", FIXED)
    end(project)
    hooks.begin(project, PROMPT, prompt_id="p2")
    end(project, prompt_id="p2")
    assert atlas(project, "undo").code == 0
    assert (project.root / "calc.py").read_text() == CALC


def test_undo_reverts_a_turn_continued_by_a_background_task(
    project: Project,
) -> None:
    begin(project)
    write(project, "calc.py", FIXED)
    end(project)
    begin(project, prompt_id="p2", prompt=NOTIFICATION)
    write(project, "calc.py", FIXED + "# later\n")
    end(project, prompt_id="p2")
    assert atlas(project, "undo").code == 0
    assert (project.root / "calc.py").read_text() == CALC


def test_snapshots_of_the_oldest_turns_are_dropped(project: Project) -> None:
    ws = discovery.open_workspace(
        project.root, Path(project.environ["ATLAS_HOME"]), environ=project.environ
    )
    taken = snapshots.snapshot(ws).id
    names = ("runs/20200101-000000-abcd/start", "runs/20200101-000000-abcd-hook/start")
    for name in (*names, *(f"runs/20210101-0000{n}-hook/start" for n in range(KEPT_SNAPSHOTS))):
        store.keep(ws, name, taken)
    begin(project)
    kept = store.kept(ws)
    assert names[0] in kept, "a run's"
    assert names[1] not in kept
    assert len(kept) == KEPT_SNAPSHOTS + 1


def test_state_is_stored_only_in_the_state_directory(project: Project) -> None:
    hooks.begin(project, PROMPT)
    end(project)
    assert git(project.root, "status", "--porcelain", environ=project.environ) == ""
    starts = [*Path(project.environ["ATLAS_HOME"]).glob("hooks/*/*-hook.json")]
    assert [json.loads(file.read_bytes())["prompt_id"] for file in starts] == ["p1"]
