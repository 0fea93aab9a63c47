"""The agents by name. An agent is a callable `AgentRequest -> AgentReply`; it edits the workspace.

An agent raises nothing expected: whatever keeps it from working is a ReplyStatus. A signal ends it
with `errors.Interrupted`, once nothing of it is left running.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Final, cast

from atlas_retry.agents.lack import Lack
from atlas_retry.agents.presets import PRESETS
from atlas_retry.errors import AgentError
from atlas_retry.events import Emit
from atlas_retry.model import Agent
from atlas_retry.settings import AgentSettings

Factory = Callable[[AgentSettings, Emit, Mapping[str, str]], Agent]
"""Makes an agent from the `agent` section, an observer and the caller's environment."""
Check = Callable[[AgentSettings, Mapping[str, str]], Lack | None]
"""Why the agent is not available; None when it can. Spends nothing."""

AGENTS: Final = {
    "claude-code": "atlas_retry.agents.claude_code:claude_code",
    "anthropic": "atlas_retry.agents.anthropic:anthropic_api",
    "command": "atlas_retry.agents.command:command",
    "scripted": "atlas_retry.agents.scripted:scripted",
    **dict.fromkeys(PRESETS, "atlas_retry.agents.presets:preset"),
}
"""Where the factory is; `check`, a Check, is beside it. A run imports no agent but its own."""


def resolve(backend: str) -> Factory:
    """The factory of a name in AGENTS, or of `package.module:factory`.

    Raises AgentError naming what could not be found.
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
        raise AgentError(f"agent.backend: {backend} cannot be called")
    return cast("Factory", factory)


def check(settings: AgentSettings, environ: Mapping[str, str]) -> Lack | None:
    """Why the configured agent is not available; None when it can.

    Asked before anything is done that an unavailable agent would make pointless.
    """
    if settings.backend in AGENTS:
        module = importlib.import_module(AGENTS[settings.backend].partition(":")[0])
        return cast("Check", module.check)(settings, environ)
    try:
        resolve(settings.backend)
    except AgentError as error:
        return Lack(error=error.message, remedy=error.remedy)
    return None
