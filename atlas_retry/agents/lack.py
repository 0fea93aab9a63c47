"""Why an agent is not available, and what helps. Finds nothing out by itself."""

from typing import Final

from msgspec import Struct

from atlas_retry.model import AgentReply, ReplyStatus

AGAIN: Final = "then run the same command again"
BILLING: Final = f"add credit at https://console.anthropic.com/settings/billing, {AGAIN}"
LIMIT: Final = f"wait until the limit is lifted, {AGAIN}"
MODEL: Final = "choose a model that the account has: agent.models, or --model"
NO_CONNECTION: Final = f"see to the network, the proxy or ANTHROPIC_BASE_URL, {AGAIN}"
OVERLOADED: Final = f"wait a few minutes (https://status.anthropic.com), {AGAIN}"
PROXY: Final = "give the proxy its password: HTTPS_PROXY"


class Lack(Struct, frozen=True, kw_only=True):
    """Why an agent is not available, and the next thing to type."""

    error: str
    remedy: str | None = None

    @property
    def reply(self) -> AgentReply:
        """To a request that was made all the same."""
        return AgentReply(status=ReplyStatus.UNAVAILABLE, error=self.error, remedy=self.remedy)
