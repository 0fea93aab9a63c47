"""Agents by name. An agent is a callable `AgentRequest -> AgentReply` that edits the workspace.

Agents report expected failures as a ReplyStatus instead of raising. After a signal they raise
`errors.Interrupted`, once all of their processes have ended.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Final, cast

from atlas_retry.agents.presets import PRESETS
from atlas_retry.agents.unavailable import INSIDE_AGENT, NESTED, Unavailable
from atlas_retry.errors import AgentError
from atlas_retry.events import Emit
from atlas_retry.model import Agent
from atlas_retry.settings import AgentSettings

Factory = Callable[[AgentSettings, Emit, Mapping[str, str]], Agent]
"""Makes an agent from the `agent` section, an observer and the caller's environment."""
Check = Callable[[AgentSettings, Mapping[str, str]], Unavailable | None]
"""Tells why the agent is not available; None if it is. Costs nothing."""

AGENTS: Final = {
    "claude-code": "atlas_retry.agents.claude_code:claude_code",
    "anthropic": "atlas_retry.agents.anthropic:anthropic_api",
    "command": "atlas_retry.agents.command:command",
    "scripted": "atlas_retry.agents.scripted:scripted",
    **dict.fromkeys(PRESETS, "atlas_retry.agents.presets:preset"),
}
"""Location of each factory, in a module with a `check`. A run imports only its own agent."""


def resolve(backend: str) -> Factory:
    """The factory of an agent in AGENTS, or at `package.module:factory`.

    Raises AgentError if there is none.
    """
    module_name, colon, name = AGENTS.get(backend, backend).partition(":")
    if not colon:
        known = ", ".join(AGENTS)
        raise AgentError(
            f"agent.backend: no agent {backend!r}",
            remedy=f"one of {known}, or package.module:factory",
        )
    try:
        factory = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise AgentError(
            f"agent.backend: {backend}: {error}",
            remedy=f"install the package with {module_name!r} in the environment of atlas, "
            "or correct the name",
        ) from error
    if not callable(factory):
        raise AgentError(f"agent.backend: {backend} is not callable")
    return cast("Factory", factory)


def check(settings: AgentSettings, environ: Mapping[str, str]) -> Unavailable | None:
    """Why the configured agent is not available; None if it is.

    To be called before work that is useless without an agent.
    """
    if environ.get(INSIDE_AGENT):
        return NESTED
    if settings.backend in AGENTS:
        module = importlib.import_module(AGENTS[settings.backend].partition(":")[0])
        return cast("Check", module.check)(settings, environ)
    try:
        resolve(settings.backend)
    except AgentError as error:
        return Unavailable(error=error.message, remedy=error.remedy)
    return None
