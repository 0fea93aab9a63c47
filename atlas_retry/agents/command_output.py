"""Session, cost and last words in what agent CLIs print as JSON. Pure; knows no CLI by name.

Read are the shapes of `codex exec --json`, `gemini --output-format json`, `opencode run --format
json`, `claude --output-format json` and mini-swe-agent's trajectory; text that is no JSON is left
alone.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec
from msgspec import Struct, field

from atlas_retry.model import Tokens, paid, total_tokens

MAX_JSON_CHARS: Final = 1 << 24
_COST_IN_TEXT: Final = re.compile(r"\bCost:\s+\$[\d.]+\s+message,\s+\$(\d+\.\d+)\s+session\b")
"""As aider ends; it breaks the line at 80 characters, wherever that is."""


class _Cache(msgspec.Struct):
    read: int = 0
    write: int = 0


class _Tokens(msgspec.Struct):
    """Under the names that each of them uses."""

    input: int = 0
    output: int = 0
    cache: _Cache = msgspec.field(default_factory=_Cache)
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    prompt: int = 0
    candidates: int = 0
    cached: int = 0
    thoughts: int = 0

    @property
    def counted(self) -> Tokens:
        """In our words; Codex and Gemini count cached tokens as part of the input.

        Gemini's `input` is its `prompt` without those.
        """
        within = self.cached_input_tokens + self.cached
        return Tokens(
            input=(self.prompt or self.input + self.input_tokens) - within,
            output=self.output + self.output_tokens + self.candidates + self.thoughts,
            cache_read=self.cache.read + self.cache_read_input_tokens + within,
            cache_write=self.cache.write + self.cache_creation_input_tokens,
        )


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""
    cost: float | None = None
    tokens: _Tokens | None = None


class _Model(msgspec.Struct):
    tokens: _Tokens = msgspec.field(default_factory=_Tokens)


class _Stats(msgspec.Struct):
    models: dict[str, _Model] = {}


class _ModelStats(msgspec.Struct):
    instance_cost: float | None = None


class _Info(msgspec.Struct):
    model_stats: _ModelStats = msgspec.field(default_factory=_ModelStats)
    exit_status: str | None = None
    submission: str | None = None


class _CommandOutput(msgspec.Struct, rename={"session": "sessionID"}):
    type: str = ""
    session: str | None = None
    session_id: str | None = None
    thread_id: str | None = None
    total_cost_usd: float | None = None
    response: str | None = None
    result: str | None = None
    usage: _Tokens | None = None
    stats: _Stats | None = None
    part: _Part | None = None
    item: _Part | None = None
    info: _Info | None = None

    @property
    def words(self) -> str | None:
        spoken = (part for part in (self.part, self.item) if part)
        text = next((p.text for p in spoken if p.type in ("text", "agent_message")), None)
        ended = (self.info.submission or self.info.exit_status) if self.info else None
        return next(filter(None, (self.response, self.result, text, ended)), None)

    @property
    def cost_usd(self) -> float | None:
        if self.info:
            return self.info.model_stats.instance_cost
        return self.total_cost_usd if self.part is None else self.part.cost

    @property
    def tokens(self) -> Iterator[Tokens]:
        counts = [self.usage, self.part and self.part.tokens]
        if self.stats:
            counts += [model.tokens for model in self.stats.models.values()]
        yield from (count.counted for count in counts if count)


class TurnOutput(Struct, frozen=True, kw_only=True):
    """What a CLI says of its own turn."""

    words: str
    session_id: str | None = None
    cost_usd: float | None = None
    tokens: Tokens = field(default_factory=Tokens)


def read(printed: str) -> TurnOutput:
    """What is known from the output of a CLI; all of the output where it is no JSON."""
    objects = list(_objects(printed))
    words = [line.words for line in objects if line.words]
    ids = [line.session_id or line.session or line.thread_id for line in objects]
    costs = [cost for line in objects if (cost := paid(line.cost_usd)) is not None]
    in_text = _COST_IN_TEXT.findall(printed)
    return TurnOutput(
        words=words[-1] if words else printed,
        session_id=next((one for one in ids if one), None),
        cost_usd=sum(costs) if costs else float(in_text[-1]) if in_text else None,
        tokens=total_tokens(chain.from_iterable(line.tokens for line in objects)),
    )


def _objects(printed: str) -> Iterator[_CommandOutput]:
    """One object a line, or one over all lines."""
    lines = [one for line in printed.splitlines() if (one := _object(line))]
    whole = None if lines else _object(printed[printed.find("{") : printed.rfind("}") + 1])
    return iter([whole] if whole else lines)


def _object(text: str) -> _CommandOutput | None:
    if not text.startswith("{") or len(text) > MAX_JSON_CHARS:
        return None
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"), type=_CommandOutput)
    except (msgspec.DecodeError, RecursionError):
        return None
