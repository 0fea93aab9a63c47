"""The agents that need no CLI of their own: any command, a script, a dotted path."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from atlas_retry import agents
from atlas_retry.agents.unavailable import NESTED, agent_environment
from atlas_retry.errors import AgentError
from atlas_retry.events import Emit, Event
from atlas_retry.model import Agent, AgentReply, AgentRequest, ReplyStatus, Tokens
from atlas_retry.settings import AgentSettings

ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work tree"
    folder.mkdir()
    (tmp_path / "scratch").mkdir()
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return folder


def ask(
    root: Path,
    settings: AgentSettings,
    *,
    attempt: int = 1,
    timeout_s: float = 60.0,
    seen: list[Event] | None = None,
) -> AgentReply:
    agent = agents.resolve(settings.backend)(settings, (seen or []).append, ENVIRON)
    request = AgentRequest(
        prompt="fix «it»\n",
        workspace=str(root),
        scratch=str(root.parent / "scratch"),
        attempt=attempt,
        timeout_s=timeout_s,
    )
    return agent(request)


def by_command(line: str | None) -> AgentSettings:
    return AgentSettings(backend="command", command=line)


def test_a_command_gets_the_prompt_as_file_and_stdin_in_the_workspace(
    root: Path,
) -> None:
    reply = ask(
        root, by_command("cat > stdin.txt; cp {prompt_file} file.txt; pwd > {workspace}/pwd")
    )
    assert reply.status is ReplyStatus.DONE
    assert (root / "stdin.txt").read_text() == (root / "file.txt").read_text() == "fix «it»\n"
    assert (root / "pwd").read_text().strip() == str(root)


def test_braces_other_than_placeholders_are_kept(root: Path) -> None:
    reply = ask(root, by_command("echo '{\"a\": {workspac}}' | awk '{print $1}'"))
    assert reply.summary == '{"a":'


@pytest.mark.parametrize(
    ("line", "status", "error"),
    [
        ("true", ReplyStatus.DONE, None),
        ("echo oh no >&2; exit 3", ReplyStatus.FAILED, "exit 3: oh no"),
        ("no-such-agent --fix", ReplyStatus.UNAVAILABLE, "no-such-agent"),
        (None, ReplyStatus.UNAVAILABLE, "agent.command"),
    ],
)
def test_the_end_of_a_command_decides_the_reply(
    root: Path, line: str | None, status: ReplyStatus, error: str | None
) -> None:
    reply = ask(root, by_command(line))
    assert reply.status is status
    assert (error or "") in (reply.error or "")
    assert (reply.remedy is not None) is (status is ReplyStatus.UNAVAILABLE)


def test_a_command_that_cannot_start_names_its_key(root: Path) -> None:
    reply = ask(root, by_command("no-such-agent --fix"))
    assert (reply.error or "").startswith("the agent's command could not start: exit 127: ")
    assert "agent.command" in (reply.remedy or "")
    assert "atlas config show" in (reply.remedy or "")


def test_a_hanging_command_is_ended(root: Path) -> None:
    started = time.monotonic()
    reply = ask(root, by_command("sleep 600"), timeout_s=0.3)
    assert reply.status is ReplyStatus.TIMED_OUT
    assert time.monotonic() - started < 100


def test_a_command_can_give_up(root: Path) -> None:
    assert ask(root, by_command("echo ATLAS-CANNOT-FIX: no")).gave_up == "no"


FIX = """\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""


def script(root: Path, files: Mapping[str, str]) -> AgentSettings:
    folder = root.parent / "script"
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return AgentSettings(backend="scripted", path=str(folder))


def test_a_cost_given_twice_in_a_reply_is_unknown(root: Path) -> None:
    settings = script(root, {"1/reply.json": '{"cost_usd": 0.1, "summary": "s", "cost_usd": 0.2}'})
    reply = ask(root, settings)
    assert (reply.status, reply.summary, reply.cost_usd) == (ReplyStatus.DONE, "s", None)


def test_a_script_replays_files_deletions_patches_and_replies_by_attempt(root: Path) -> None:
    answer = json.dumps({"summary": "second", "cost_usd": 0.25})
    settings = script(
        root,
        {
            "1/files/pkg/new.py": "new\n",
            "2/delete": "pkg/new.py\n",
            "2/fix.diff": FIX,
            "2/reply.json": answer,
        },
    )
    first = ask(root, settings)
    assert (first.status, first.touched) == (ReplyStatus.DONE, ("pkg/new.py",))
    assert (root / "pkg/new.py").read_text() == "new\n"
    second = ask(root, settings, attempt=2)
    assert (second.summary, second.cost_usd) == ("second", 0.25)
    assert not (root / "pkg/new.py").exists()
    assert "a + b" in (root / "calc.py").read_text()


def test_a_patch_applies_below_the_root_of_a_repository(root: Path) -> None:
    subprocess.run(["/usr/bin/env", "git", "init", "-q", str(root.parent)], check=True, env=ENVIRON)
    ask(root, script(root, {"0001-fix.patch": FIX}))
    assert "a + b" in (root / "calc.py").read_text()


def test_each_patch_of_a_series_is_one_attempt(root: Path) -> None:
    settings = script(root, {"0001-fix.patch": FIX, "0002-again.patch": FIX})
    assert ask(root, settings).status is ReplyStatus.DONE
    assert "a + b" in (root / "calc.py").read_text()
    second = ask(root, settings, attempt=2)
    assert second.status is ReplyStatus.FAILED
    assert "0002-again.patch" in (second.error or "")


def test_a_reply_is_replayed_as_it_was_recorded(root: Path) -> None:
    recorded = AgentReply(
        status=ReplyStatus.FAILED,
        error="Reached maximum number of turns (2)",
        session_id="s-1",
        cost_usd=0.05,
        tokens=Tokens(input=10, output=2),
        denials=("Bash: curl x",),
        touched=("calc.py",),
    )
    settings = script(root, {"1/reply.json": msgspec.json.encode(recorded).decode()})
    assert ask(root, settings) == recorded


def test_modes_and_links_are_replayed(root: Path) -> None:
    settings = script(root, {"1/files/run.sh": "#!/bin/sh\n"})
    recorded = root.parent / "script/1/files"
    (recorded / "run.sh").chmod(0o755)
    (recorded / "link").symlink_to("calc.py")
    ask(root, settings)
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (root / "link").readlink() == Path("calc.py")


def test_replayed_files_get_a_new_modification_time(root: Path) -> None:
    settings = script(root, {"1/files/calc.py": "x = 1\n"})
    os.utime(root.parent / "script/1/files/calc.py", (0, 0))
    ask(root, settings)
    assert (root / "calc.py").stat().st_mtime > 0


@pytest.mark.parametrize(
    ("files", "attempt", "status", "error"),
    [
        ({"notes.txt": ""}, 1, ReplyStatus.UNAVAILABLE, "no attempt"),
        ({"1/reply.json": "{}"}, 2, ReplyStatus.FAILED, "ends with attempt 1"),
        ({"1/reply.json": "{"}, 1, ReplyStatus.FAILED, "truncated"),
        ({"1/reply.json": '{"status": "unavailable"}'}, 1, ReplyStatus.UNAVAILABLE, ""),
        ({"1/delete": "../scratch\n"}, 1, ReplyStatus.FAILED, "outside"),
        ({"1/delete": "missing\n"}, 1, ReplyStatus.FAILED, "missing"),
        ({"1/x.diff": FIX.replace("a - b", "nothing")}, 1, ReplyStatus.FAILED, "x.diff"),
        ({"1/x.diff": FIX.replace("calc.py", "../calc.py")}, 1, ReplyStatus.FAILED, "../calc.py"),
    ],
)
def test_an_invalid_script_is_reported(
    root: Path, files: Mapping[str, str], attempt: int, status: ReplyStatus, error: str
) -> None:
    reply = ask(root, script(root, files), attempt=attempt)
    assert reply.status is status
    assert error in (reply.error or "")


def test_a_script_does_not_write_through_a_link(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)
    reply = ask(root, script(root, {"1/files/link/x": "x"}))
    assert reply.status is ReplyStatus.FAILED
    assert list(outside.iterdir()) == []


def my_factory(_settings: AgentSettings, emit: Emit, _environ: Mapping[str, str]) -> Agent:
    def agent(_request: AgentRequest) -> AgentReply:
        return AgentReply(status=ReplyStatus.DONE, summary="mine")

    del emit
    return agent


def test_a_dotted_path_names_a_custom_agent(root: Path) -> None:
    settings = AgentSettings(backend=f"{__name__}:my_factory")
    assert agents.check(settings, ENVIRON) is None
    assert ask(root, settings).summary == "mine"


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("claude", "'claude'"),
        ("no.such.module:factory", "no.such"),
        (f"{__name__}:nothing", "nothing"),
        (f"{__name__}:ENVIRON", "not callable"),
        (":factory", "factory"),
    ],
)
def test_an_unknown_agent_is_reported_by_name(backend: str, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        agents.resolve(backend)
    unavailable = agents.check(AgentSettings(backend=backend), ENVIRON)
    assert unavailable
    assert message in unavailable.error


@pytest.mark.parametrize(
    "settings",
    [
        AgentSettings(backend="command", command="true"),
        AgentSettings(backend="scripted", path=str(Path(__file__).parent)),
        AgentSettings(backend="claude-code", path=sys.executable),
    ],
)
def test_no_agent_is_started_inside_an_agent(settings: AgentSettings) -> None:
    assert agents.check(settings, agent_environment(ENVIRON)) is NESTED
