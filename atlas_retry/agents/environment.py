"""The environment that an agent's processes get, made from the caller's. Reads no `os.environ`."""

from collections.abc import Mapping

from atlas_retry.agents.lack import Lack
from atlas_retry.workspace.git import GIT_LOCAL

INSIDE_AGENT = "ATLAS_INSIDE_AGENT"
"""Set for everything an agent starts: `atlas retry` refuses to start another agent in there."""

_OF_AN_OUTER_CALL = GIT_LOCAL | {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"}
"""Of an editor or agent that runs atlas: the agent is not its child session."""


def agent_environment(
    environ: Mapping[str, str],
    *,
    forced: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Everything of the caller's but what belongs to an outer git or agent call.

    The agent runs as the user, with the user's login, proxies and tool chain. `defaults` give way
    to what the user has set, `forced` does not.
    """
    kept = {name: value for name, value in environ.items() if name not in _OF_AN_OUTER_CALL}
    return {**(defaults or {}), **kept, **(forced or {}), INSIDE_AGENT: "1"}


def nested(environ: Mapping[str, str]) -> Lack | None:
    """Why no agent may be started from here; None when it may."""
    if not environ.get(INSIDE_AGENT):
        return None
    return Lack(
        error="atlas was started by an agent that atlas runs; an agent may validate, not retry",
        remedy="atlas validate",
    )
