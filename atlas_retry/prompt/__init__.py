"""From failures and attempts to the text that an agent is sent. Pure; spends nothing."""

from atlas_retry.prompt.brief import Brief, Prompt, Traced
from atlas_retry.prompt.compose import compose

__all__ = ["Brief", "Prompt", "Traced", "compose"]
