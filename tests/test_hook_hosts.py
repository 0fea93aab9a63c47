"""The hooks of Codex CLI, run where it is on PATH, and of Cursor, by its documentation alone."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.messages_server import call, say, serving
from tests.needs import needs
from tests.projects import FIXED, WORSE, Project, atlas
from tests.test_agent_clis import CODEX

CODEX_ANSWER = {"continue", "decision", "reason", "stopReason", "suppressOutput", "systemMessage"}
"""All that codex-rs/hooks/schema/generated/stop.command.output.schema.json lets through."""


def installed(project: Project, host: str) -> dict[str, list[dict[str, object]]]:
    """The entries of each event, as `atlas hook install` writes them."""
    assert atlas(project, "hook", "install", "--for", host).code == 0
    document = json.loads((project.root / f".{host}/hooks.json").read_text())
    return {
        event: entries if host == "cursor" else [e for group in entries for e in group["hooks"]]
        for event, entries in document["hooks"].items()
    }


def called(project: Project, entry: dict[str, object], payload: dict[str, object]) -> str:
    """What a hook prints, run as the agent runs it."""
    line = str(entry["command"])
    assert shlex.split(line)
    done = subprocess.run(
        ("/bin/sh", "-c", line),
        cwd=project.root,
        env=project.environ,
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("host", "events"),
    [
        ("codex", ["SessionStart", "UserPromptSubmit", "Stop"]),
        ("cursor", ["beforeSubmitPrompt", "stop"]),
    ],
)
def test_hooks_are_installed_once_and_uninstalled(
    host: str, events: list[str], project: Project
) -> None:
    file = project.root / f".{host}/hooks.json"
    file.parent.mkdir()
    other = {"command": "say done", "type": "command"}
    mine = {"version": 1, "hooks": {"other": [other]}}
    before = json.dumps(mine, indent=2) + "\n"
    file.write_text(before)
    entries = installed(project, host) if host == "cursor" else None
    after = file.read_text() if entries else None
    if entries is None:
        file.write_text(json.dumps(mine | {"hooks": {"other": [{"hooks": [other]}]}}, indent=2))
        before = file.read_text() + "\n"
        entries = installed(project, host)
        after = file.read_text()
    assert list(entries) == ["other", *events]
    assert atlas(project, "hook", "install", "--for", host).code == 0
    assert file.read_text() == after
    assert atlas(project, "hook", "uninstall", "--for", host).code == 0
    assert file.read_text() == before


def codex(project: Project, event: str, **more: object) -> dict[str, object]:
    """As codex-rs/hooks/schema/generated/*.input.schema.json require it."""
    common = {"session_id": "s", "turn_id": "t1", "cwd": str(project.root), "model": "m"}
    rest = {"hook_event_name": event, "transcript_path": None, "permission_mode": "default"}
    return common | rest | more


def test_a_codex_turn_continues_until_the_gates_pass(project: Project) -> None:
    hooks = installed(project, "codex")
    (start,), (stop,) = hooks["UserPromptSubmit"], hooks["Stop"]
    assert called(project, start, codex(project, "UserPromptSubmit", prompt="fix it")) == ""
    (project.root / "calc.py").write_text(WORSE)
    fields = {"stop_hook_active": False, "last_assistant_message": "done"}
    answer = json.loads(called(project, stop, codex(project, "Stop", **fields)))
    assert answer["decision"] == "block"
    assert "2 != 3" in answer["reason"]
    assert answer.keys() <= CODEX_ANSWER
    (project.root / "calc.py").write_text(FIXED)
    fields = {"stop_hook_active": True, "last_assistant_message": "done"}
    answer = json.loads(called(project, stop, codex(project, "Stop", **fields)))
    assert "decision" not in answer
    assert answer.keys() <= CODEX_ANSWER


def cursor(project: Project, event: str, generation: str, **more: object) -> dict[str, object]:
    common = {"conversation_id": "c", "generation_id": generation, "hook_event_name": event}
    return common | {"workspace_roots": [str(project.root)], "model": "m"} | more


def test_a_cursor_turn_gets_follow_ups_until_the_gates_pass(project: Project) -> None:
    hooks = installed(project, "cursor")
    (start,), (stop,) = hooks["beforeSubmitPrompt"], hooks["stop"]
    prompt = cursor(project, "beforeSubmitPrompt", "g1", prompt="fix it", attachments=[])
    assert json.loads(called(project, start, prompt)) == {"continue": True}
    (project.root / "calc.py").write_text(WORSE)
    end = cursor(project, "stop", "g1", status="completed", loop_count=0)
    answer = json.loads(called(project, stop, end))
    assert "2 != 3" in answer["followup_message"]
    (project.root / "calc.py").write_text(FIXED)
    end = cursor(project, "stop", "g2", status="completed", loop_count=1)
    assert json.loads(called(project, stop, end)) == {}


@pytest.mark.parametrize("fires", [False, True])
def test_a_cursor_follow_up_is_not_a_prompt_of_a_person(fires: bool, project: Project) -> None:
    hooks = installed(project, "cursor")
    (start,), (stop,) = hooks["beforeSubmitPrompt"], hooks["stop"]
    called(project, start, cursor(project, "beforeSubmitPrompt", "g1", prompt="fix it"))
    config = project.root / ".atlas/config.yaml"
    config.write_text(config.read_text().replace("python3", "true python3"))
    end = cursor(project, "stop", "g1", status="completed", loop_count=0)
    message = json.loads(called(project, stop, end))["followup_message"]
    if fires:
        prompt = cursor(project, "beforeSubmitPrompt", "g2", prompt=message)
        called(project, start, prompt)
    end = cursor(project, "stop", "g2", status="completed", loop_count=1)
    assert ".atlas/config.yaml" in json.loads(called(project, stop, end))["followup_message"]


@pytest.mark.parametrize("status", ["aborted", "error"])
def test_an_aborted_cursor_turn_is_ignored(status: str, project: Project) -> None:
    (stop,) = installed(project, "cursor")["stop"]
    assert stop["loop_limit"] == 8
    end = cursor(project, "stop", "g1", status=status, loop_count=0)
    assert json.loads(called(project, stop, end)) == {}
    assert Path(project.root, ".cursor/hooks.json").exists()


@needs("codex")
def test_the_real_codex_continues_until_the_gates_pass(project: Project) -> None:
    installed(project, "codex")
    fix = call("exec_command", cmd="sed -i 's/a - b/a + b/' calc.py")
    trusted = f'[projects."{project.root}"]\ntrust_level = "trusted"\n'
    note = call("exec_command", cmd="echo seen >notes.txt")
    with serving(note, say("done"), fix, say("now it is")) as server:
        home = Path(project.environ["HOME"], ".codex")
        home.mkdir()
        (home / "config.toml").write_text(CODEX.replace("{url}", server.url) + trusted)
        subprocess.run(
            (
                "codex",
                "exec",
                "--sandbox",
                "workspace-write",
                "--dangerously-bypass-hook-trust",
                "-",
            ),
            cwd=project.root,
            env=project.environ | {"OPENAI_API_KEY": "dummy-key"},
            input="fix it",
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert (project.root / "calc.py").read_text() == FIXED
    asked = json.dumps(server.requests[2].body["input"], ensure_ascii=False)
    assert "<hook_prompt" in asked
    assert "Quality Gate Failures (attempt 1/" in asked
    assert len(server.requests) == 4, "green after the second stop"
