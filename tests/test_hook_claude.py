"""The hooks under the real Claude Code CLI, with a scripted model on loopback."""

import json
from collections.abc import Mapping

import pytest

from tests.hooks import claude, install
from tests.messages_server import Step, call, edit, say, serving
from tests.projects import CALC, FIXED, TEST, Project, atlas, git

pytestmark = pytest.mark.claude

PASSED = "Quality gates passed"
FAILURES = "⚠️ Quality Gate Failures (attempt {}/2)"
DISARMED = 'version: 1\nvalidation: {test: ["true"]}\n'
NOT_DONE = "The work is NOT done"


@pytest.fixture
def hooked(project: Project) -> Project:
    configure(project)
    install(project)
    project.commit()
    return project


@pytest.fixture
def strict(hooked: Project) -> Project:
    configure(hooked, guard={"hook": "block"})
    return hooked


def configure(project: Project, **sections: object) -> None:
    project.configure(
        validation={"test": [{"run": "python3 -S -m unittest -q", "name": "sum"}]},
        retry={"flake_reruns": 0, "max_ai_retry_attempts": 2},
        **sections,
    )


def change(project: Project, path: str, old: str, new: str) -> tuple[Step, Step]:
    file = project.root / path
    return call("Read", file_path=str(file)), edit(file, old, new)


def note(project: Project) -> Step:
    """A change without which a turn is not sent back."""
    return call("Write", file_path=str(project.root / "notes.txt"), content="seen\n")


def fix(project: Project) -> tuple[Step, Step]:
    return change(project, "calc.py", "a - b", "a + b")


def gut(project: Project) -> tuple[Step, Step]:
    return change(project, "test_calc.py", "assertEqual(calc.add(1, 2), 3)", "assertTrue(True)")


def disarm(project: Project) -> tuple[Step, Step]:
    file = str(project.root / ".atlas" / "config.yaml")
    return call("Read", file_path=file), call("Write", file_path=file, content=DISARMED)


def text_of(stream: list[Mapping[str, object]]) -> str:
    return json.dumps(stream, ensure_ascii=False)


def test_claude_code_continues_until_the_gates_pass(hooked: Project) -> None:
    with serving(note(hooked), say("done"), *fix(hooked), say("now it is")) as server:
        stream = claude(hooked, server, "make it green")
    assert (hooked.root / "calc.py").read_text() == FIXED
    assert FAILURES.format(1) in server.requests[2].user_text
    assert stream[-1]["result"] == "now it is"
    assert f"{PASSED} on attempt 1" in text_of(stream)


def test_claude_code_stops_at_the_limit_with_our_message(hooked: Project) -> None:
    with serving(note(hooked), *(say(f"done {n}") for n in range(9))) as server:
        stream = claude(hooked, server, "make it green")
    assert len(server.requests) == 4
    assert f"❌ sum failed after 2 attempts. {NOT_DONE}" in text_of(stream)
    assert stream[-1]["terminal_reason"] == "stop_hook_prevented"


def test_an_agent_that_disables_the_gates_is_not_told_they_passed(hooked: Project) -> None:
    script = (note(hooked), say("done"), *disarm(hooked), say("off"), say("off, as I said"))
    with serving(*script) as server:
        stream = claude(hooked, server, "make it green")
    prompt = server.requests[-1].user_text
    assert FAILURES.format(2) in prompt
    assert "❌ sum" in prompt
    assert "atlas hook allow .atlas/config.yaml" in prompt
    assert PASSED not in text_of(stream)
    assert NOT_DONE in text_of(stream)


def test_an_agent_that_empties_the_test_is_not_told_it_passed(hooked: Project) -> None:
    with serving(note(hooked), say("done"), *gut(hooked), say("green")) as server:
        stream = claude(hooked, server, "make it green")
    assert PASSED not in text_of(stream)
    assert "⚠️ review these changes" in text_of(stream)
    assert "atlas hook allow test_calc.py" in text_of(stream)


def test_an_agent_that_empties_the_test_is_blocked_if_configured(
    strict: Project,
) -> None:
    with serving(
        note(strict), say("done"), *gut(strict), say("green"), say("it is green")
    ) as server:
        stream = claude(strict, server, "make it green")
    prompt = server.requests[-1].user_text
    assert "❌ the guard\nError: 1 change refused" in prompt
    assert "atlas hook allow test_calc.py" in prompt
    assert PASSED not in text_of(stream)
    assert f"❌ the guard failed after 2 attempts. {NOT_DONE}" in text_of(stream)


def test_an_agent_that_reverts_a_refused_change_passes(
    strict: Project,
) -> None:
    restore = call("Write", file_path=str(strict.root / "test_calc.py"), content=TEST)
    script = (*gut(strict), say("green"), restore, *fix(strict), say("really"))
    with serving(*script) as server:
        stream = claude(strict, server, "make it green")
    assert f"{PASSED} on attempt 1" in text_of(stream)


def test_edits_of_the_user_between_two_prompts_are_not_charged(hooked: Project) -> None:
    with serving(*fix(hooked), say("fixed")) as server:
        first = claude(hooked, server, "make it green")
    assert NOT_DONE not in text_of(first)
    (hooked.root / "test_calc.py").write_text("import unittest\n\n\nclass T(unittest.TestCase):\n"
                                              "    def test_x(self):\n        pass\n")  # fmt: skip
    session = str(first[-1]["session_id"])
    with serving(say("I have nothing to do")) as server:
        second = claude(hooked, server, "and now?", "--resume", session)
    assert len(server.requests) == 1, "no turn was sent back"
    assert second[-1]["result"] == "I have nothing to do"
    assert NOT_DONE not in text_of(second)


def test_edits_of_a_background_task_are_charged_to_the_agent(strict: Project) -> None:
    ended = "until ls $ATLAS_HOME/hooks/*/tally.json; do sleep 0.1; done"
    gut = "sed -i 's/assertEqual(calc.add(1, 2), 3)/assertTrue(True)/' test_calc.py"
    late = f"{ended}; {gut}"
    script = (*fix(strict), call("Bash", command=late, run_in_background=True), say("fixed"))
    with serving(*script, *(say(f"done {n}") for n in range(9))) as server:
        stream = claude(strict, server, "make it green", "--allowedTools", "Bash")
    assert "❌ the guard" in server.requests[-1].user_text
    assert NOT_DONE in text_of(stream)


def test_the_agent_cannot_allow_its_own_changes(strict: Project) -> None:
    allow = call("Bash", command="python3 -m atlas_retry hook allow test_calc.py")
    with serving(*gut(strict), allow, say("green"), say("a"), say("b")) as server:
        claude(strict, server, "make it green", "--allowedTools", "Bash")
    assert "❌ the guard" in server.requests[-1].user_text


def test_undo_reverts_a_session(hooked: Project) -> None:
    with serving(*fix(hooked), say("fixed")) as server:
        claude(hooked, server, "make it green")
    assert (hooked.root / "calc.py").read_text() == FIXED
    assert atlas(hooked, "undo").code == 0
    assert (hooked.root / "calc.py").read_text() == CALC
    assert git(hooked.root, "status", "--porcelain", environ=hooked.environ) == ""
