"""Reasons why an agent is not available, and its environment. Does not read `os.environ`."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from atlas_retry.model import AgentReply, ReplyStatus
from atlas_retry.workspace.git import GIT_LOCAL

AGAIN: Final = "then run the same command again"
BILLING: Final = f"add credit at https://console.anthropic.com/settings/billing, {AGAIN}"
LIMIT: Final = f"wait until the limit is lifted, {AGAIN}"
MODEL: Final = "choose a model that the account has: agent.models, or --model"
NO_CONNECTION: Final = f"check the network, the proxy or ANTHROPIC_BASE_URL, {AGAIN}"
OVERLOADED: Final = f"wait a few minutes (https://status.anthropic.com), {AGAIN}"
PROXY: Final = "set the proxy's password in HTTPS_PROXY"
BY_STATUS: Final[Mapping[int, str]] = {402: BILLING, 404: MODEL, 407: PROXY, 429: LIMIT}
"""Remedies by the status of HTTP that mean the same for each client of the API."""


class Unavailable(Struct, frozen=True, kw_only=True):
    """Why an agent is not available, and the remedy."""

    error: str
    remedy: str | None = None

    @property
    def reply(self) -> AgentReply:
        """The reply to a request."""
        return AgentReply(status=ReplyStatus.UNAVAILABLE, error=self.error, remedy=self.remedy)


INSIDE_AGENT = "ATLAS_INSIDE_AGENT"
"""Variable for all processes of an agent, in which `atlas retry` refuses to start another one."""
NESTED: Final = Unavailable(
    error="an agent of atlas started this command; it may validate, but not retry",
    remedy="atlas validate",
)

_OF_AN_OUTER_CALL = GIT_LOCAL | {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"}
"""Variables of an editor or agent that runs atlas, which are not for its child sessions."""


def agent_environment(
    environ: Mapping[str, str],
    *,
    forced: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The caller's environment without variables of an outer git or agent call.

    The agent runs as the user, with the user's login, proxies and tool chain. `defaults` apply
    unless the user has set them, `forced` always.
    """
    kept = {name: value for name, value in environ.items() if name not in _OF_AN_OUTER_CALL}
    return {**(defaults or {}), **kept, **(forced or {}), INSIDE_AGENT: "1"}
