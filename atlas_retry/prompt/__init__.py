"""Composes the prompt from failures and attempts. Pure."""

from atlas_retry.prompt.brief import Brief, Traced
from atlas_retry.prompt.compose import compose

__all__ = ["Brief", "Traced", "compose"]
