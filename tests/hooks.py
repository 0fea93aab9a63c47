"""Claude Code's side of the hooks: what it tells them, and headless sessions of the real CLI."""

import json
import subprocess
from collections.abc import Mapping

import msgspec

from atlas_retry.cli.hook import beginning, ending, hosts, installing, turns
from tests.messages_server import MessagesServer
from tests.processes import PYTHON
from tests.projects import Project
from tests.test_agents_claude_code import real

SESSION = "SessionStart"
PROMPT = "UserPromptSubmit"


def hook_input(project: Project, event: str, **more: object) -> bytes:
    fields = {"session_id": "s", "cwd": str(project.root), "hook_event_name": event}
    return json.dumps(fields | more).encode()


def begin(project: Project, event: str = PROMPT, **more: object) -> None:
    """A session starts, or the user gives a prompt."""
    of_prompt = {"prompt_id": "p1", "prompt": "fix it"} if event == PROMPT else {}
    beginning.start(hook_input(project, event, **(of_prompt | more)), project.environ)


def end(project: Project, **more: object) -> Mapping[str, object]:
    """The answer to the end of a turn; names in capitals are variables."""
    variables = {key: str(more.pop(key)) for key in [*more] if key.isupper()}
    timeout_s = float(str(more.pop("timeout_s", 60)))
    fields = {"prompt_id": "p1", "stop_hook_active": False} | more
    environ = project.environ | variables
    turn = turns.read_turn(hook_input(project, "Stop", **fields))
    answer = ending.stop(turn, environ, timeout_s=timeout_s)
    document: Mapping[str, object] = msgspec.to_builtins(answer)
    return document


def install(project: Project) -> None:
    """The hooks in the project's settings, as `atlas hook install` writes them."""
    call = f"{PYTHON} -m atlas_retry"
    folder = project.root / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(
        installing.merged("", call, hosts.HOSTS["claude"], source="")
    )


SAID = (
    *("--output-format", "stream-json", "--verbose"),
    *("--model", "sonnet", "--permission-mode", "acceptEdits"),
)


def claude(
    project: Project, server: MessagesServer, prompt: str, *flags: str
) -> list[Mapping[str, object]]:
    """One headless session of the real CLI, as its stream of events."""
    quiet = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING")
    done = subprocess.run(
        (real(), "-p", prompt, *SAID, *flags),
        cwd=project.root,
        env=project.environ
        | dict.fromkeys((*quiet, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1")
        | {
            "CLAUDE_CONFIG_DIR": str(project.root.parent / "claude"),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "dummy-key",
        },
        stdin=subprocess.DEVNULL,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
