"""An agent that only keeps its prompt. For `test_trace`."""

from collections.abc import Mapping
from pathlib import Path

from atlas_retry.events import Emit
from atlas_retry.model import Agent, AgentReply, AgentRequest, ReplyStatus
from atlas_retry.settings import AgentSettings


def factory(_: AgentSettings, __: Emit, environ: Mapping[str, str]) -> Agent:
    """Writes what it is told to `$HOME/prompt.txt`."""

    def ask(request: AgentRequest) -> AgentReply:
        Path(environ["HOME"], "prompt.txt").write_text(request.prompt)
        return AgentReply(status=ReplyStatus.DONE)

    return ask
