"""Table of the names and prices of models, for all agents.

Source: the aliases and prices that Claude Code 2.1.330 uses for its own budget; a test compares
the table with the installed CLI.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import asdict

from atlas_retry.model import Tokens

MILLION = 1_000_000


class Price(Struct, frozen=True, kw_only=True):
    """USD per million tokens of each kind in `Tokens`."""

    input: float
    output: float
    cache_write: float
    cache_read: float


class Model(Struct, frozen=True, kw_only=True):
    """One model of the Messages API."""

    id: str
    price: Price
    long_prompt_tokens: int | None = None
    """Prompt tokens above which a request costs `long_prompt_factor` times as much."""
    long_prompt_factor: float = 1.0


_SONNET = Model(
    id="claude-sonnet-5-5",
    price=Price(input=2.0, output=10.0, cache_write=2.5, cache_read=0.1),
)
_OPUS = Model(
    id="claude-opus-5-5",
    price=Price(input=4.0, output=20.0, cache_write=5.0, cache_read=0.2),
)
_HAIKU = Model(
    id="claude-haiku-5-5",
    price=Price(input=0.1, output=0.5, cache_write=0.125, cache_read=0.01),
    long_prompt_tokens=100_000,
    long_prompt_factor=5.0,
)
_FABLE = Model(
    id="claude-fable-5-2",
    price=Price(input=8.0, output=40.0, cache_write=10.0, cache_read=0.2),
)

MODELS = {"sonnet": _SONNET, "opus": _OPUS, "haiku": _HAIKU, "fable": _FABLE}
"""Models by alias."""

_BY_ID = {model.id: model for model in MODELS.values()}


def api_model(name: str) -> str:
    """The model id in the Messages API; a name that is not an alias is returned unchanged."""
    return MODELS[name].id if name in MODELS else name


def total_usd(name: str, requests: Iterable[Tokens]) -> float | None:
    """List price of requests; None for an unknown model."""
    costs = [cost_usd(name, tokens) or 0.0 for tokens in requests]
    return None if cost_usd(name, Tokens()) is None else sum(costs)


def cost_usd(name: str, tokens: Tokens) -> float | None:
    """List price of one request; None for an unknown model."""
    model = _BY_ID.get(api_model(name))
    if model is None:
        return None
    prompt_tokens = tokens.input + tokens.cache_read + tokens.cache_write
    is_long = model.long_prompt_tokens is not None and prompt_tokens > model.long_prompt_tokens
    prices = asdict(model.price)
    millionths: float = sum(getattr(tokens, kind) * price for kind, price in prices.items())
    return millionths / MILLION * (model.long_prompt_factor if is_long else 1.0)
