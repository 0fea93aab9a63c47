"""`atlas mcp`, called by the client of the official SDK and by the real Claude Code CLI."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from mcp import MCPError
from mcp.client import Client, ClientRequestContext
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, Tool
from msgspec import Struct

from tests.hooks import claude
from tests.messages_server import call, say, serving
from tests.processes import PYTHON
from tests.projects import FIXED, Project, atlas

LINT = {
    "name": "plus",
    "run": "for n in $(seq 30); do echo calc.py:$n:1: error: no $n; done; false",
}
SERVE = ["-m", "atlas_retry", "mcp"]
SAID = {True: "", False: "the person said no"}
TOOLS = {"validate", "failures", "prompt", "guard", "why", "diff", "undo"}


class Problem(Struct, kw_only=True):
    message: str
    path: str = ""
    region: dict[str, int | None] = {}
    rule: str = ""


class Answer(Struct, kw_only=True):
    """What the tools with structured answers return."""

    exit_code: int = 0
    success: bool = False
    error: str = ""
    gates: list[dict[str, object]] = []
    problems: list[Problem] = []
    total: int = 0
    next: int = 0
    held: list[dict[str, object]] = []
    violations: list[dict[str, object]] = []


Said = TypeVar("Said")


def talk(
    project: Project, talked: Callable[[Client], Awaitable[Said]], *, says: bool | None = None
) -> Said:
    """What a client makes of the server; `says`: a person's answer to its question."""

    async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context, params
        return ElicitResult(action="accept", content={"undo": bool(says)})

    async def meet() -> Said:
        at = StdioServerParameters(
            command=PYTHON, args=SERVE, cwd=project.root, env=dict(project.environ)
        )
        can_ask = None if says is None else ask
        async with Client(at, read_timeout_seconds=120, elicitation_callback=can_ask) as client:
            return await talked(client)

    return asyncio.run(meet())


def structured(result: CallToolResult) -> Answer:
    assert not result.is_error, result
    return msgspec.convert(result.structured_content, Answer)


def text(result: CallToolResult) -> str:
    return "".join(getattr(part, "text", "") for part in result.content)


def test_its_tools_are_listed_and_say_which_only_read(project: Project) -> None:
    async def listed(client: Client) -> list[Tool]:
        return (await client.list_tools()).tools

    tools = talk(project, listed)
    assert {tool.name for tool in tools} == TOOLS
    reading = {t.name for t in tools if t.annotations and t.annotations.read_only_hint}
    assert reading == TOOLS - {"validate", "undo"}


def test_validate_returns_problems_by_page_and_tells_its_progress(project: Project) -> None:
    project.configure(validation={"lint": [LINT], "test": ["true"]})
    told: list[str] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(f"{progress} {total} {message}")

    async def talked(client: Client) -> tuple[Answer, Answer, Answer]:
        first = await client.call_tool("validate", {}, progress_callback=tell)
        rest = await client.call_tool("failures", {"start": structured(first).next})
        only = await client.call_tool("validate", {"only": ["test"]})
        return structured(first), structured(rest), structured(only)

    first, rest, only = talk(project, talked)
    assert (first.success, first.exit_code, first.total) == (False, 1, 30)
    assert [gate["status"] for gate in first.gates] == ["failed", "passed"]
    problems = [*first.problems, *rest.problems]
    assert [p.region["start_line"] for p in problems] == [*range(1, 31)]
    assert problems[0].path == "calc.py"
    assert (only.success, only.total) == (True, 0)
    assert any("plus" in line for line in told)


def test_a_configuration_that_cannot_be_read_is_an_answer_and_leaves_no_old_problems(
    project: Project,
) -> None:
    project.configure(validation={"lint": [LINT]})

    async def talked(client: Client) -> tuple[Answer, Answer, CallToolResult]:
        await client.call_tool("validate", {})
        (project.root / ".atlas" / "config.yaml").write_text("version: 1\nnope: 2\n")
        broken = structured(await client.call_tool("validate", {}))
        left = structured(await client.call_tool("failures", {}))
        return broken, left, await client.call_tool("failures", {"start": -5})

    answer, left, refused = talk(project, talked)
    assert (answer.exit_code, "nope" in answer.error) == (2, True)
    assert (left.total, refused.is_error) == (0, True)


def test_a_cancelled_call_stops_the_gates(project: Project) -> None:
    pid = project.root.parent / "pid"
    project.configure(validation={"test": [f"echo $$ > {pid}; exec sleep 300"]})

    async def talked(client: Client) -> None:
        calling = asyncio.create_task(client.call_tool("validate", {}))
        await until(lambda: pid.exists() and bool(pid.read_text().strip()))
        calling.cancel()
        await until(lambda: not _lives(int(pid.read_text())))

    talk(project, talked)
    assert not _lives(int(pid.read_text()))


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1_200):
        if is_so():
            return
        await asyncio.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]


@pytest.mark.parametrize(("says", "is_undone"), [(True, True), (False, False), (None, False)])
def test_undo_asks_a_person(project: Project, says: bool | None, is_undone: bool) -> None:
    before = (project.root / "calc.py").read_text()
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0

    async def talked(client: Client) -> tuple[str, str]:
        shown = text(await client.call_tool("diff", {}))
        with suppress(MCPError):
            return shown, text(await client.call_tool("undo", {}))
        return shown, "the client cannot ask"

    shown, answer = talk(project, talked, says=says)
    assert "+    return a + b" in shown
    assert ((project.root / "calc.py").read_text() == before) is is_undone
    assert answer == "the client cannot ask" if says is None else answer.startswith(SAID[says])


def test_the_guard_and_the_prompt_are_asked_without_a_run(project: Project) -> None:
    (project.root / "test_calc.py").write_text("")

    async def talked(client: Client) -> tuple[Answer, str, str]:
        judged = await client.call_tool("guard", {})
        why = await client.call_tool("why", {"file": "test_calc.py"})
        return structured(judged), text(why), text(await client.call_tool("prompt", {}))

    judged, why, prompt = talk(project, talked)
    assert [held["path"] for held in judged.held + judged.violations] == ["test_calc.py"]
    assert why.startswith("test_calc.py: ")
    assert "unittest" in prompt


@pytest.mark.claude
def test_the_real_claude_code_calls_validate(project: Project) -> None:
    served = project.root.parent / "mcp.json"
    entry = {"command": PYTHON, "args": SERVE, "env": dict(project.environ)}
    served.write_text(json.dumps({"mcpServers": {"atlas": entry}}))
    flags = ("--mcp-config", str(served), "--allowedTools", "mcp__atlas__validate")
    with serving(call("mcp__atlas__validate"), say("done")) as server:
        stream = claude(project, server, "check it", *flags)
    (started,) = (event for event in stream if event.get("subtype") == "init")
    assert {"name": "atlas", "status": "connected"}.items() <= started["mcp_servers"][0].items()  # type: ignore[index]
    (answered,) = (event for event in stream if "tool_use_result" in event)
    assert '"success": false' in json.dumps(answered).replace('\\"', '"')
