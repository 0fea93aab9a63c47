"""The Stop hook: what Claude Code is answered at the end of a turn."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.hooks import SESSION, begin, end, hook_input
from tests.projects import FIXED, Project, atlas

FAILS = "echo 'calc.py:1:5: E501 line too long'; exit 1"
REQUIRED = "required quality gates fail"


def gates(project: Project, *lines: object, **sections: object) -> None:
    project.configure(validation={"lint": list(lines)}, **sections)


def end_turn(project: Project, *, active: bool = True, **more: object) -> Mapping[str, object]:
    """The answer to the end of a turn that changed a file which no gate reads."""
    begin(project, SESSION, session_id=more.get("session_id", "s"))
    (project.root / "notes.txt").write_text(str(time.monotonic_ns()))
    return end(project, stop_hook_active=active, **({"prompt_id": None} | more))


def passes(answer: Mapping[str, object], *more: str, counts: str = "1 of 1") -> bool:
    """Whether it is the line of a passing turn, and then these lines."""
    line, *rest = str(answer["systemMessage"]).split("\n")
    tree = re.fullmatch(rf"gates: green, {counts}, tree [0-9a-f]{{7}}", line)
    return bool(tree) and rest == [*more] and [*answer] == ["systemMessage"]


def called(project: Project, *, timeout_s: float = 60.0) -> tuple[Mapping[str, object], str]:
    """The same by the command line, as Claude Code calls it, and what stderr said."""
    done = subprocess.run(
        (sys.executable, "-m", "atlas_retry", "hook", "stop", "--timeout", str(timeout_s)),
        cwd=project.root,
        env=project.environ,
        input=hook_input(project, "Stop", stop_hook_active=True),
        check=True,
        capture_output=True,
        timeout=300,
    )
    return json.loads(done.stdout), done.stderr.decode()


def test_a_passing_turn_ends_with_one_line(project: Project) -> None:
    gates(project, "true")
    assert passes(end_turn(project))


def test_a_failing_turn_is_sent_back_with_the_gate_errors(project: Project) -> None:
    gates(project, {"run": FAILS, "name": "lint"}, {"run": "exit 7", "name": "types"})
    answer = end_turn(project, active=False)
    assert answer["decision"] == "block"
    reason = str(answer["reason"])
    assert reason.startswith("gates: red, 2 problems\n\n")
    assert "E501 line too long" in reason
    assert "task_completion" not in reason


def test_turns_are_blocked_up_to_the_limit_then_the_verdict_is_shown(project: Project) -> None:
    gates(project, {"run": FAILS, "name": "lint"}, retry={"max_ai_retry_attempts": 2})
    for attempt in (1, 2):
        assert f"(attempt {attempt}/2)" in str(end_turn(project)["reason"])
    for _ in range(2):
        last = end_turn(project)
        assert "decision" not in last
        assert last["continue"] is False
        assert REQUIRED in str(last["stopReason"])


def test_the_answer_goes_to_stdout_and_the_message_to_stderr(project: Project) -> None:
    gates(project, FAILS, retry={"max_ai_retry_attempts": 0})
    answer, err = called(project)
    assert REQUIRED in str(answer["systemMessage"])
    assert err == f"{answer['systemMessage']}\n"


def test_turns_are_blocked_until_the_gates_pass(project: Project) -> None:
    gates(project, "grep -q 'a + b' calc.py")
    assert end_turn(project, active=False)["decision"] == "block"
    (project.root / "calc.py").write_text(FIXED)
    assert passes(end_turn(project), "Quality gates passed on attempt 1")
    assert passes(end_turn(project))


@pytest.mark.parametrize(("limit", "blocks"), [(0, 0), (1, 1), (4, 4)])
def test_a_gate_has_its_own_limit(project: Project, limit: int, blocks: int) -> None:
    gates(project, {"run": FAILS, "max_retries": limit}, {"run": "true", "max_retries": 9})
    answers = [end_turn(project) for _ in range(blocks + 1)]
    assert ["decision" in answer for answer in answers] == [True] * blocks + [False]


def test_blocks_never_exceed_the_limit_of_claude_code(project: Project) -> None:
    gates(project, {"run": FAILS, "max_retries": 99})
    assert "(attempt 1/8)" in str(end_turn(project, session_id="other")["reason"])
    answers = [end_turn(project, CLAUDE_CODE_STOP_HOOK_BLOCK_CAP="2") for _ in range(3)]
    assert [answer.get("decision") for answer in answers] == ["block", "block", None]
    assert REQUIRED in str(answers[-1]["systemMessage"])


def test_a_new_prompt_and_another_session_start_a_new_count(project: Project) -> None:
    gates(project, FAILS, retry={"max_ai_retry_attempts": 1})
    assert end_turn(project, active=False, prompt_id="p1")["decision"] == "block"
    assert "decision" not in end_turn(project, active=False, prompt_id="p1")
    assert end_turn(project, session_id="../../other")["decision"] == "block"
    assert end_turn(project, active=False, prompt_id="p2")["decision"] == "block"


def test_a_failing_optional_gate_only_warns(project: Project) -> None:
    gates(project, "true", {"run": FAILS, "name": "style", "required": False})
    answer = end_turn(project)
    warning = "⚠️ style failed (optional): exit code 1, 1 problem"
    assert passes(answer, warning, counts="1 of 2")


def test_a_missing_tool_does_not_block(project: Project) -> None:
    gates(project, {"run": "no-such-tool-anywhere", "name": "gone"})
    answer = end_turn(project)
    assert "decision" not in answer
    assert "gates: unsure" in str(answer["systemMessage"])


def test_a_flaky_test_does_not_block(project: Project) -> None:
    project.configure(validation={"test": ["test -e ../seen || { touch ../seen; exit 1; }"]})
    assert passes(end_turn(project))


def configure_badly(project: Project) -> None:
    (project.root / ".atlas" / "config.yaml").write_text("version: 1\nnope: 2\n")


def remove_configuration(project: Project) -> None:
    (project.root / ".atlas" / "config.yaml").unlink()


def close_state(project: Project) -> None:
    state = Path(project.environ["ATLAS_HOME"])
    state.write_text("a file where a folder should be")


@pytest.mark.parametrize("spoil", [configure_badly, remove_configuration, close_state])
def test_an_internal_error_is_reported_and_does_not_block(project: Project, spoil: object) -> None:
    gates(project, FAILS)
    assert callable(spoil)
    spoil(project)
    answer = end_turn(project)
    assert list(answer) == ["systemMessage"]
    assert "has not judged this turn" in str(answer["systemMessage"])


@pytest.mark.parametrize("text", ["{", r'{"session_id": "s", "cwd": "a\u0000b"}'])
def test_input_that_cannot_be_read_does_not_block(project: Project, text: str) -> None:
    ended = atlas(project, "hook", "stop", stdin=text)
    assert ended.code == 0
    assert list(json.loads(ended.out)) == ["systemMessage"]
    assert "cannot be read" in ended.err


@pytest.mark.parametrize("event", ["start", "stop"])
def test_input_that_is_not_utf_8_is_refused_by_a_message(project: Project, event: str) -> None:
    done = subprocess.run(
        (sys.executable, "-m", "atlas_retry", "hook", event),
        cwd=project.root,
        env=project.environ,
        input=b'{"session_id": "\xff"}',
        check=True,
        capture_output=True,
    )
    if event == "start":
        assert (done.stdout, done.stderr) == (b"", b"")
        return
    message = str(json.loads(done.stdout)["systemMessage"])
    assert message.endswith("the hook's input cannot be read: it is not UTF-8 (byte 16)")


def test_slow_gates_are_stopped_in_time_and_do_not_block(project: Project) -> None:
    gates(project, "sleep 600")
    since = time.monotonic()
    answer, _ = called(project, timeout_s=4)
    assert time.monotonic() - since < 100
    # less than the limit is left for the gates: the turn was judged before
    assert re.search(r"the gates took longer than [012] s", str(answer["systemMessage"]))
    assert "decision" not in answer


def test_a_gate_that_failed_before_the_timeout_blocks(project: Project) -> None:
    gates(project, {"run": FAILS, "name": "lint"}, "sleep 30")
    answer, _ = called(project, timeout_s=10)
    assert answer["decision"] == "block"
    assert "❌ lint" in str(answer["reason"])


def test_an_agent_inside_a_run_is_not_judged_by_the_hook(project: Project) -> None:
    gates(project, FAILS)
    assert end_turn(project, ATLAS_INSIDE_AGENT="1") == {}


def test_the_message_is_short_and_holds_no_secret(project: Project) -> None:
    loud = 'for i in $(seq 5000); do echo "line $i $API_TOKEN"; done; exit 1'
    gates(project, *({"run": loud, "name": f"g{n}"} for n in range(6)))
    reason = str(end_turn(project, API_TOKEN="hunter2-hunter2")["reason"])
    assert len(reason) < 10_000
    assert "hunter2" not in reason
    assert all(f"❌ g{n}\n" in reason for n in range(6))
