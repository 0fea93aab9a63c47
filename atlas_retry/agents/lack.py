"""Why an agent is not available, as a value. Finds nothing out by itself."""

from msgspec import Struct

from atlas_retry.model import AgentReply, ReplyStatus


class Lack(Struct, frozen=True, kw_only=True):
    """Why an agent is not available, and the next thing to type."""

    error: str
    remedy: str | None = None

    @property
    def reply(self) -> AgentReply:
        """To a request that was made all the same."""
        return AgentReply(status=ReplyStatus.UNAVAILABLE, error=self.error, remedy=self.remedy)
