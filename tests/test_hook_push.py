"""`hook.when: push`: gates run before the agent's shell commits or pushes, and at no other time."""

import json
from collections.abc import Mapping

import pytest

from tests.hooks import begin, claude, end, hook_input, install
from tests.messages_server import call, edit, say, serving
from tests.projects import CALC, FIXED, Project, atlas, git

LOGGED = {"name": "sum", "run": "echo ran >> ../log; grep -q 'a + b' calc.py"}


@pytest.fixture
def waiting(project: Project) -> Project:
    configure(project, "push")
    project.commit()
    return project


def configure(project: Project, when: str, **sections: object) -> None:
    gates = {"test": [LOGGED]}
    project.configure(validation=gates, hook={"when": when}, retry={"flake_reruns": 0}, **sections)


def pushed(project: Project, command: object, *, host: str = "claude") -> Mapping[str, object]:
    """What the hook before a command of the shell answers, as the agent calls it."""
    turn = hook_input(project, "PreToolUse", prompt_id="p1", tool_input=command)
    ended = atlas(project, "hook", "push", "--for", host, stdin=turn.decode())
    assert ended.code == 0
    answer: Mapping[str, object] = json.loads(ended.out)
    return answer


def runs(project: Project) -> int:
    """How often the gate has run."""
    log = project.root.parent / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_no_gate_runs_at_the_end_of_a_turn(waiting: Project) -> None:
    begin(waiting)
    (waiting.root / "notes.txt").write_text("x\n")
    assert end(waiting) == {}
    assert runs(waiting) == 0


def test_a_commit_is_refused_while_gates_fail_and_counts_no_attempt(waiting: Project) -> None:
    begin(waiting)
    for _ in range(9):
        denied = pushed(waiting, {"command": "git add -A && git commit -m x"})
        assert [*denied] == ["hookSpecificOutput"]
    decision = denied["hookSpecificOutput"]
    assert isinstance(decision, dict)
    assert decision["permissionDecision"] == "deny"
    reason = str(decision["permissionDecisionReason"])
    assert reason.startswith("gates: red, 1 problem\n\nThis command was not run, as nothing is ")
    assert "❌ sum\n" in reason
    assert "then run it again" in reason


def test_a_green_commit_is_left_to_the_agents_own_permissions_and_free_once_judged(
    waiting: Project,
) -> None:
    begin(waiting)
    (waiting.root / "calc.py").write_text(FIXED)
    answer = pushed(waiting, {"command": "git commit -qam x"})
    assert [*answer] == ["systemMessage"]
    assert str(answer["systemMessage"]).startswith("gates: green, 1 of 1, tree ")
    assert atlas(waiting, "hook", "result").code == 0
    waiting.commit()
    assert pushed(waiting, {"command": "git push"}) == answer
    assert runs(waiting) == 1


def test_an_unchanged_green_is_free_at_the_end_of_a_turn(project: Project) -> None:
    configure(project, "turn")
    begin(project)
    (project.root / "calc.py").write_text(FIXED)
    line = end(project)["systemMessage"]
    project.commit()
    assert end(project)["systemMessage"] == line
    assert runs(project) == 1


def test_the_guard_judges_every_turn(waiting: Project) -> None:
    begin(waiting)
    configure(waiting, "turn")
    answer = end(waiting)
    assert answer["decision"] == "block"
    assert "❌ the guard" in str(answer["reason"])
    assert runs(waiting) == 0


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("git commit -m x", True),
        ("cd sub && git -C .. -c user.name='A B' commit -m x", True),
        ("git --no-pager push origin main", True),
        ("(git push)", True),
        ("git status", False),
        ("git log --grep commit", False),
        ("echo commit", False),
        ("gitk commit", False),
    ],
)
def test_what_is_a_commit_or_push(line: str, asks: bool, waiting: Project) -> None:
    begin(waiting)
    assert ("hookSpecificOutput" in pushed(waiting, {"command": line})) is asks


@pytest.mark.parametrize("given", [None, "git push", ["git push"], {"file": "git push"}])
def test_a_tool_without_a_line_of_shell_is_left_alone(given: object, waiting: Project) -> None:
    begin(waiting)
    assert pushed(waiting, given) == {}


def test_by_default_a_commit_is_left_alone(project: Project) -> None:
    configure(project, "turn")
    begin(project)
    assert pushed(project, {"command": "git commit -m x"}) == {}
    assert runs(project) == 0


def test_cursor_does_not_ask_before_commands_so_its_turns_are_judged(waiting: Project) -> None:
    fields = {"conversation_id": "c", "workspace_roots": [str(waiting.root)]}
    atlas(waiting, "hook", "start", "--for", "cursor", stdin=json.dumps(fields | {"prompt": "x"}))
    (waiting.root / "calc.py").write_text(CALC + "\n")
    ended = atlas(waiting, "hook", "stop", "--for", "cursor", stdin=json.dumps(fields))
    assert "❌ sum" in json.loads(ended.out)["followup_message"]


@pytest.mark.claude
def test_claude_code_pushes_only_once_the_gates_are_green(waiting: Project) -> None:
    """Under the real CLI: the first push is denied with the reason, the one after a fix happens."""
    install(waiting)
    waiting.commit()
    remote = waiting.root.parent / "remote.git"
    git(waiting.root, "init", "-q", "--bare", str(remote), environ=waiting.environ)
    git(waiting.root, "remote", "add", "origin", str(remote), environ=waiting.environ)
    file, push = waiting.root / "calc.py", call("Bash", command="git push -q origin HEAD:main")
    commit = call("Bash", command="git -c user.name=a -c user.email=a@b.c commit -qam fixed")
    read = call("Read", file_path=str(file))
    script = (push, read, edit(file, "a - b", "a + b"), commit, push, say("pushed"))
    with serving(*script) as server:
        stream = claude(waiting, server, "push it", "--allowedTools", "Bash")
    assert "gates: red, 1 problem" in server.requests[1].user_text
    assert "This command was not run" in server.requests[1].user_text
    assert stream[-1]["result"] == "pushed"
    asked = ("--git-dir", str(remote), "log", "--format=%s", "main")
    assert git(waiting.root, *asked, environ=waiting.environ).split("\n")[0] == "fixed"
    assert runs(waiting) == 2, "red, green at the commit, and the push of the same tree is free"
