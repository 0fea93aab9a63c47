"""What an attempt uses and what it may cost. Asks nobody."""

from msgspec import Struct, field

from atlas_retry.agents import models
from atlas_retry.model import Tokens, total_tokens


class StoppedError(Exception):
    """The model came to no answer; an attempt like any other."""


class Bill(Struct, kw_only=True):
    """What an attempt has used."""

    model: str
    allowed_usd: float | None
    used: list[Tokens] = field(default_factory=list)

    @property
    def cost_usd(self) -> float | None:
        costs = [models.cost_usd(self.model, tokens) for tokens in self.used]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    @property
    def tokens(self) -> Tokens:
        return total_tokens(self.used)

    def must_not_be_spent(self) -> None:
        """Raises StoppedError when nothing is left for another request."""
        if self.allowed_usd is not None and (self.cost_usd or 0.0) >= self.allowed_usd > 0:
            raise StoppedError(f"what the attempt may cost is spent: ${self.allowed_usd:.2f}")
