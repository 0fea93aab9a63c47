"""Reads session, cost and last text from the JSON output of agent CLIs. Pure.

Supported are `codex exec --json`, `gemini --output-format json`, `opencode run --format json`,
`claude --output-format json` and mini-swe-agent's trajectory; other text is returned
unchanged.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from msgspec import Struct, field

from atlas_retry.agents.answers import decoded, given_twice, whole_object
from atlas_retry.diagnostics.report_formats import value_at
from atlas_retry.model import Tokens, total_tokens
from atlas_retry.patterns import regex

MAX_JSON_CHARS: Final = 1 << 24
_COST_IN_TEXT: Final = regex(r"\bCost:\s+\$[\d.]+\s+message,\s+\$(\d+\.\d+)\s+session\b")
"""Last line of aider, which wraps it at 80 characters."""
_SESSIONS: Final = ("session_id", "sessionID", "thread_id")
_COSTS: Final = ("info.model_stats.instance_cost", "total_cost_usd", "part.cost")
_COST_KEYS: Final = ("info", "model_stats", "instance_cost", "total_cost_usd", "part", "cost")
_ANSWERS: Final = ("response", "result", "info.submission", "info.exit_status")
_SPOKEN: Final = ("part", "item")
"""Keys of parts that may have text."""

_Printed = Mapping[str, object]


class TurnOutput(Struct, frozen=True, kw_only=True):
    """Figures and text of a turn in a CLI's output."""

    words: str
    session_id: str | None = None
    cost_usd: float | None = None
    tokens: Tokens = field(default_factory=Tokens)


def read(printed: str) -> TurnOutput:
    """Read the output of a CLI; if it is not JSON, all of it is the text."""
    texts = [line for line in printed.splitlines() if _object(line)]
    if not texts:  # one object over several lines
        texts = [whole_object(printed)]
    objects = [one for text in texts if (one := _object(text))]
    words = [*filter(None, map(_words, objects))]
    counts = chain.from_iterable(map(_counts, objects))
    return TurnOutput(
        words=words[-1] if words else printed,
        session_id=next(filter(None, (_text(one, *_SESSIONS) for one in objects)), None),
        cost_usd=_all_usd(printed, texts, objects),
        tokens=total_tokens(map(_tokens, counts)),
    )


def _text(one: _Printed, *paths: str) -> str | None:
    values = (value_at(one, path) for path in paths)
    texts = (value for value in values if isinstance(value, str))
    return next(filter(None, texts), None)


def _words(one: _Printed) -> str | None:
    spoken = (name for name in _SPOKEN if _text(one, f"{name}.type") in ("text", "agent_message"))
    return _text(one, *(f"{name}.text" for name in spoken), *_ANSWERS)


def _all_usd(printed: str, texts: Iterable[str], objects: Iterable[_Printed]) -> float | None:
    """The cost of all objects, else that in the text; None if one object gives it twice."""
    known: list[float] = []
    for one in objects:
        costs = [cost for path in _COSTS if isinstance(cost := value_at(one, path), int | float)]
        if len(costs) > 1:
            return None
        known += costs
    if any(given_twice(text, *_COST_KEYS) for text in texts):
        return None
    in_text = [] if known else _COST_IN_TEXT.findall(printed)[-1:]
    usd = [max(0.0, float(cost)) for cost in (*known, *in_text)]
    return sum(usd) if usd else None


def _counts(one: _Printed) -> Iterator[object]:
    """Objects with token counts, under the names that each CLI uses."""
    models = value_at(one, "stats.models")
    by_model = models.values() if isinstance(models, dict) else ()
    whole = (value_at(one, "usage"), value_at(one, "part.tokens"))
    yield from (*whole, *(value_at(model, "tokens") for model in by_model))


def _tokens(counts: object) -> Tokens:
    """Counts as Tokens; Codex and Gemini count cached tokens as part of the input.

    Gemini's `input` is its `prompt` without cached tokens.
    """
    within = _sum(counts, "cached_input_tokens", "cached")
    return Tokens(
        input=(_sum(counts, "prompt") or _sum(counts, "input", "input_tokens")) - within,
        output=_sum(counts, "output", "output_tokens", "candidates", "thoughts"),
        cache_read=_sum(counts, "cache.read", "cache_read_input_tokens") + within,
        cache_write=_sum(counts, "cache.write", "cache_creation_input_tokens"),
    )


def _sum(counts: object, *paths: str) -> int:
    values = (value_at(counts, path) for path in paths)
    return sum(value for value in values if isinstance(value, int))


def _object(text: str) -> _Printed | None:
    if not text.startswith("{") or len(text) > MAX_JSON_CHARS:
        return None
    return decoded(text, dict[str, object])
