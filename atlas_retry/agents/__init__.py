"""The agents by name. An agent is a callable `AgentRequest -> AgentReply`; it edits the workspace.

An agent raises nothing expected: whatever keeps it from working is a ReplyStatus. A signal ends it
with `errors.Interrupted`, once nothing of it is left running.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Final, cast

from atlas_retry.agents import anthropic, claude_code, command, presets, scripted
from atlas_retry.agents.lack import Lack
from atlas_retry.errors import AgentError
from atlas_retry.events import Emit
from atlas_retry.model import Agent
from atlas_retry.settings import AgentSettings

Factory = Callable[[AgentSettings, Emit, Mapping[str, str]], Agent]
"""Makes an agent from the `agent` section, an observer and the caller's environment."""
Check = Callable[[AgentSettings, Mapping[str, str]], Lack | None]
"""Why the agent cannot be had; None when it can. Spends nothing."""

AGENTS: Final[dict[str, Factory]] = {
    "claude-code": claude_code.claude_code,
    "anthropic": anthropic.anthropic_api,
    "command": command.command,
    "scripted": scripted.scripted,
    **dict.fromkeys(presets.PRESETS, presets.preset),
}
CHECKS: Final[dict[str, Check]] = {
    "claude-code": claude_code.check,
    "anthropic": anthropic.check,
    "command": command.check,
    "scripted": scripted.check,
    **dict.fromkeys(presets.PRESETS, presets.check),
}


def resolve(backend: str) -> Factory:
    """The factory of a name in AGENTS, or of `package.module:factory`.

    Raises AgentError naming what could not be found.
    """
    if backend in AGENTS:
        return AGENTS[backend]
    module_name, colon, name = backend.partition(":")
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
            remedy=f"install what holds {module_name!r} beside atlas, or mend the name",
        ) from error
    if not callable(factory):
        raise AgentError(f"agent.backend: {backend} cannot be called")
    return cast("Factory", factory)


def check(settings: AgentSettings, environ: Mapping[str, str]) -> Lack | None:
    """Why the configured agent cannot be had; None when it can.

    Asked before anything is done that an unavailable agent would make pointless.
    """
    known = CHECKS.get(settings.backend)
    if known:
        return known(settings, environ)
    try:
        resolve(settings.backend)
    except AgentError as error:
        return Lack(error=error.message, remedy=error.remedy)
    return None
