"""Agent CLIs with known command lines, each of them tried. Starts nothing itself."""

import os
import shlex
import shutil
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from atlas_retry.agents import command
from atlas_retry.agents.unavailable import Unavailable
from atlas_retry.events import Emit
from atlas_retry.model import Agent, AgentReply, AgentRequest
from atlas_retry.settings import AgentSettings


class Preset(Struct, frozen=True, kw_only=True):
    """Headless command line of an agent CLI, with permission to edit the workspace."""

    line: str
    """Like `agent.command`, starting with the program; `{args}` are `agent.extra_args`."""
    install: str
    answer_file: str | None = None
    """File in the attempt's folder with its answer, if it is not in the output."""

    @property
    def program(self) -> str:
        return self.line.split()[0]


PRESETS: Final[dict[str, Preset]] = {
    # 0.169. Its own sandbox: no network, writes only in the workspace.
    "codex": Preset(
        line="codex exec --json --ephemeral --sandbox workspace-write {args} - < {prompt_file}",
        install="npm install -g @openai/codex",
    ),
    # 0.61. In an untrusted folder it edits nothing and says so only on stderr.
    "gemini": Preset(
        line="gemini --approval-mode auto_edit --skip-trust --output-format json {args} "
        "< {prompt_file}",
        install="npm install -g @google/gemini-cli",
    ),
    # 1.18. Without a title it makes another paid request for one.
    "opencode": Preset(
        line="opencode run --format json --title atlas {args} < {prompt_file}",
        install="npm install -g opencode-ai",
    ),
    # 0.86. With --yes-always it would fetch every URL in a gate's output.
    "aider": Preset(
        line="aider --message-file {prompt_file} --yes-always --no-auto-commits "
        "--no-dirty-commits --no-gitignore --no-pretty --no-stream --no-check-update "
        "--no-show-release-notes --no-show-model-warnings --no-analytics --no-detect-urls "
        "--no-suggest-shell-commands --chat-history-file {scratch}/aider.md "
        "--input-history-file {scratch}/aider.history {args}",
        install="pipx install aider-chat",
    ),
    # 2.4. Its output includes the prompt, and the cost only in whole cents.
    "mini-swe-agent": Preset(
        line="mini --yolo --exit-immediately --output {scratch}/trajectory.json {args} "
        '--task "$(cat {prompt_file})"',
        answer_file="trajectory.json",
        install="pipx install mini-swe-agent",
    ),
}


def preset(settings: AgentSettings, emit: Emit, environ: Mapping[str, str]) -> Agent:
    """The `command` agent with the command line of the preset `agent.backend`.

    Without a model in the request, the CLI uses its own settings.
    """
    row = PRESETS[settings.backend]

    def ask(request: AgentRequest) -> AgentReply:
        model = ("--model", request.model) if request.model else ()
        line = row.line.replace("{args}", shlex.join((*model, *settings.extra_args)))
        return command.calling(line, row.answer_file, emit, environ, row.install)(request)

    return ask


def check(settings: AgentSettings, environ: Mapping[str, str]) -> Unavailable | None:
    """Why the CLI cannot be started, checked without starting it."""
    row = PRESETS[settings.backend]
    if shutil.which(row.program, path=environ.get("PATH", os.defpath)):
        return None
    return Unavailable(error=f"{row.program} is not on PATH", remedy=row.install)
