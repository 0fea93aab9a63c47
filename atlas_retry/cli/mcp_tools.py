"""Atlas's own commands as tools of the Model Context Protocol. Spends no money.

Each tool is a command line of its own, so that a cancelled one stops like after Ctrl-C and an edit
of the configuration counts at the next call.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from atlas_retry import __version__

PAGE = 20
"""Problems that one answer lists."""
MAX_CHARS = 20_000
"""Characters of a diff or a prompt that one answer holds."""
INSTRUCTIONS = (
    "Call validate after your edits; it runs the project's own gates. Work is done when it says "
    "success. Change no test, setting or gate to get there: guard shows what would be refused."
)
Tell = Callable[[str], Awaitable[None]]


class Consent(BaseModel):
    """What a person answers to the question of `undo`."""

    undo: bool


def _question(run: str = "") -> Elicit[Consent]:
    return Elicit(f"{f'atlas undo {run}'.strip()}: restore the files from before?", Consent)


class Tools:
    """The tools for one workspace; `failures` pages through what the last `validate` found."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._last: list[dict[str, Any]] = []

    async def validate(
        self,
        ctx: Context[Any],
        only: list[str] | None = None,
        *,
        reuse: bool = True,
        changed: bool = False,
    ) -> dict[str, Any]:
        """Run the project's gates; returns their results and the first problems.

        only: kinds or names of gates. reuse: skip gates that passed on the same files. changed:
        only what the branch changed.
        """
        words = ["validate", "--json", *(["--reuse"] if reuse else [])]
        words += ["--changed="] if changed else []
        for name in only or ():
            words += ["--only", name]
        steps = count(1)
        self._last = []  # what a cancelled call or a broken configuration leaves is not this one's

        async def tell(line: str) -> None:
            await ctx.report_progress(next(steps), message=line)

        code, out, err = await _call(self._root, *words, tell=tell)
        document = json.loads(out or "{}")
        if "success" not in document:
            return {"success": False, "exit_code": code, "error": err.strip()}
        gates = list(chain.from_iterable(v for k, v in document.items() if k.endswith("_results")))
        self._last = list(chain.from_iterable(map(_problems, gates)))
        shown = ("name", "kind", "status", "required", "command", "error")
        return {
            "success": document["success"],
            "exit_code": code,
            "gates": [{key: gate.get(key) for key in shown} for gate in gates],
            **self.failures(),
        }

    def failures(self, start: Annotated[int, Field(ge=0)] = 0) -> dict[str, Any]:
        """The problems of the last validate, 20 at a time; start: the number of the first one."""
        end, total = start + PAGE, len(self._last)
        more = {"next": end} if end < total else {}
        return {"problems": self._last[start:end], "total": total, **more}

    async def prompt(self) -> str:
        """The failures with the code they are about, as atlas words them for an agent."""
        return await _text(self._root, "prompt", "--max-chars", str(MAX_CHARS))

    async def guard(self, base: str = "HEAD") -> dict[str, Any]:
        """How the changes since a revision are judged: violations, held and noted paths."""
        code, out, err = await _call(self._root, "guard", ".", "--base", base, "--json")
        answer: dict[str, Any] = json.loads(out) if out else {"error": err.strip()}
        return answer | {"exit_code": code}

    async def why(self, file: str, base: str = "HEAD") -> str:
        """Why the guard judges a changed file as it does."""
        return await _text(self._root, "guard", ".", "--base", base, "--why", file)

    async def diff(self, run: str = "") -> str:
        """What a run of atlas changed; by default the newest."""
        return await _text(self._root, "diff", *filter(None, [run]))

    async def undo(
        self, asked: Annotated[ElicitationResult[Consent], Resolve(_question)], run: str = ""
    ) -> str:
        """Restore what was before a run of atlas, if the person says so; by default the newest."""
        if not isinstance(asked, AcceptedElicitation) or not asked.data.undo:
            return "the person said no"
        return await _text(self._root, "undo", *filter(None, [run]))


def server(root: Path) -> MCPServer[Any]:
    """The server for one workspace."""
    made: MCPServer[Any] = MCPServer("atlas", version=__version__, instructions=INSTRUCTIONS)
    tools, reads = Tools(root), ToolAnnotations(read_only_hint=True)
    for tool in (tools.failures, tools.prompt, tools.guard, tools.why, tools.diff):
        made.add_tool(tool, annotations=reads)
    made.add_tool(tools.validate)
    made.add_tool(tools.undo, annotations=ToolAnnotations(destructive_hint=True))
    return made


def _problems(gate: dict[str, Any]) -> list[dict[str, Any]]:
    """The problems of a gate that failed; one without a place if it names none."""
    if gate["success"]:
        return []
    keys = ("path", "message", "rule_id", "level", "test_id", "region")
    known = [
        {"gate": gate["name"], **{key: each[key] for key in keys if each.get(key)}}
        for each in gate.get("diagnostics", ())
    ]
    return known or [{"gate": gate["name"], "message": gate.get("error") or gate["status"]}]


async def _text(root: Path, *words: str) -> str:
    _, out, err = await _call(root, *words)
    text = out or err
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}\n(cut)"


async def _call(root: Path, *words: str, tell: Tell | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line of atlas."""
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "atlas_retry", *words),
        cwd=root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    assert command.stdout  # noqa: S101 - a pipe
    assert command.stderr  # noqa: S101 - a pipe
    said: list[str] = []

    async def listen(stream: asyncio.StreamReader) -> None:
        async for line in stream:
            said.append(line.decode(errors="replace"))
            if tell and said[-1].strip():
                await tell(said[-1].strip())

    try:
        out, _ = await asyncio.gather(command.stdout.read(), listen(command.stderr))
        code = await command.wait()
    except asyncio.CancelledError:
        command.terminate()  # atlas stops the gates and restores what they had put aside
        await asyncio.shield(command.wait())
        raise
    return code, out.decode(errors="replace"), "".join(said)
