"""The hooks of other agents, run where they are on PATH, and of Cursor, by its documentation."""

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec import Struct

from atlas_retry.cli.hook.hosts import HOSTS, Host
from tests.messages_server import Answer, Recorded, call, say, serving
from tests.needs import needs
from tests.programs import with_programs
from tests.projects import FIXED, WORSE, Project, atlas, git
from tests.test_agent_clis import CODEX

CODEX_ANSWER = {"continue", "decision", "reason", "stopReason", "suppressOutput", "systemMessage"}
"""All that codex-rs/hooks/schema/generated/stop.command.output.schema.json lets through."""


def installed(project: Project, host: str) -> dict[str, list[dict[str, object]]]:
    """The entries of each event, as `atlas hook install` writes them."""
    assert atlas(project, "hook", "install", "--for", host).code == 0
    row = HOSTS[host]
    document = json.loads((project.root / row.file).read_text())
    return {
        event: entries if row.is_flat else [e for group in entries for e in group["hooks"]]
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


@pytest.mark.parametrize("row", HOSTS.values(), ids=HOSTS.keys())
def test_hooks_are_installed_once_and_uninstalled(row: Host, project: Project) -> None:
    file = project.root / row.file
    file.parent.mkdir(parents=True)
    other: dict[str, object] = {"command": "say done", "type": "command"}
    mine = {**row.top, "hooks": {"other": [other if row.is_flat else {"hooks": [other]}]}}
    before = json.dumps(mine, indent=2) + "\n"
    file.write_text(before)
    entries = installed(project, row.name)
    after = file.read_text()
    assert list(entries) == ["other", *row.events]
    assert atlas(project, "hook", "install", "--for", row.name).code == 0
    assert file.read_text() == after
    assert atlas(project, "hook", "uninstall", "--for", row.name).code == 0
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


class Real(Struct, frozen=True, kw_only=True):
    """How a host is run with a scripted model, and how that calls its shell."""

    argv: tuple[str, ...]
    runs: Callable[[str], Answer]
    variables: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    """Below HOME, with their content; `{url}` and `{root}` are filled in."""


GEMINI = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
REAL = {
    "codex": Real(
        argv=(
            *("codex", "exec", "--sandbox", "danger-full-access"),
            *("--dangerously-bypass-hook-trust", "-"),
        ),
        runs=lambda line: call("exec_command", cmd=line),
        variables={"OPENAI_API_KEY": "dummy-key"},
        files={".codex/config.toml": f'{CODEX}[projects."{{root}}"]\ntrust_level = "trusted"\n'},
    ),
    "gemini": Real(
        argv=("gemini", "--approval-mode", "yolo", "--model", "gemini-2.5-pro"),
        runs=lambda line: call("run_shell_command", command=line),
        variables={
            "GEMINI_API_KEY": "dummy-key",
            "GOOGLE_GEMINI_BASE_URL": "{url}",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        files={".gemini/settings.json": json.dumps(GEMINI)},
    ),
    "copilot": Real(
        argv=("copilot", "-p", "fix it", "--allow-all-tools", "--no-auto-update"),
        runs=lambda line: call("bash", command=line, description="a command"),
        variables={
            "COPILOT_PROVIDER_BASE_URL": "{url}",
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_API_KEY": "dummy-key",
            "COPILOT_MODEL": "claude-sonnet-4.5",
            "COPILOT_OFFLINE": "true",
        },
        files={".copilot/config.json": '{"trusted_folders": ["{root}"]}'},
    ),
    "qwen": Real(
        argv=("qwen", "--yolo", "--auth-type", "anthropic", "--model", "claude-sonnet-4-5"),
        runs=lambda line: call(
            "run_shell_command", command=line, description="a command", is_background=False
        ),
        variables={
            "ANTHROPIC_API_KEY": "dummy-key",
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        },
    ),
}
"""Cursor is in no registry; Claude Code has files of its own."""


def run_real(project: Project, host: str, *script: Answer) -> list[Recorded]:
    """The requests of one headless session of the real program, with the hooks of atlas."""
    installed(project, host)
    row, home = REAL[host], Path(project.environ["HOME"])
    with serving(*script) as server:

        def filled(text: str) -> str:
            return text.replace("{url}", server.url).replace("{root}", str(project.root))

        for path, content in row.files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(filled(content))
        environ = with_programs(project.environ, "node")
        subprocess.run(
            row.argv,
            cwd=project.root,
            env=environ | {name: filled(value) for name, value in row.variables.items()},
            input="fix it",
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
    return server.requests


def said(request: Recorded) -> str:
    """All that the model was told."""
    return json.dumps(request.body, ensure_ascii=False)


@pytest.mark.parametrize("host", [pytest.param(name, marks=needs(name, "node")) for name in REAL])
def test_the_real_host_refuses_a_push_and_continues_until_the_gates_pass(
    host: str, project: Project
) -> None:
    project.configure(hook={"when": "push"})
    project.commit()
    shell = REAL[host].runs
    commit = shell("git -c user.name=dev -c user.email=dev@example.invalid commit -qam fixed")
    fix = shell("sed -i 's/a - b/a + b/' calc.py")
    requests = run_real(project, host, commit, fix, commit, say("done"))
    assert "gates: red, 1 problem" in said(requests[1])
    assert (project.root / "calc.py").read_text() == FIXED
    log = git(project.root, "log", "--format=%s", environ=project.environ)
    assert log.splitlines()[0] == "fixed"
    assert len(requests) == 4, "no gate ran at the end of the turn, and none failed at the commit"


@pytest.mark.parametrize("host", [pytest.param(name, marks=needs(name, "node")) for name in REAL])
def test_the_real_host_continues_up_to_the_limit(host: str, project: Project) -> None:
    project.configure(retry={"max_ai_retry_attempts": 2, "flake_reruns": 0})
    project.commit()
    note = REAL[host].runs("echo seen >notes.txt")
    requests = run_real(project, host, note, say("done"), say("again"), say("and again"))
    assert "Quality Gate Failures (attempt 1/2)" in said(requests[2])
    assert "Quality Gate Failures (attempt 2/2)" in said(requests[3])
    assert len(requests) == 4, "given up at the limit"
