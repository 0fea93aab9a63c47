"""Puts the events of a stream together to one message.

The SDK could do that (`messages.stream`), but it parses the whole arguments of a call again at each
of its pieces, and takes arguments that were cut for whole ones.
"""

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from atlas_retry.agents.anthropic.wire import Block, Call, ModelTurn
from atlas_retry.model import Tokens

if TYPE_CHECKING:
    from anthropic import types

_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
"""Fields of Tokens, and what the API calls them."""


_PIECES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""By kind of delta, its field that is added to the block."""


class _Growing(Struct):
    """A block of which more comes."""

    block: Block
    pieces: dict[str, list[str]] = field(default_factory=dict)
    """By their name in the deltas, which is the block's but for the arguments of a call."""

    def grow(self, delta: "types.RawContentBlockDelta") -> None:
        """Take one more piece. Kinds that are not known are skipped, as the API asks for."""
        if name := _PIECES.get(delta.type):
            self.pieces.setdefault(name, []).append(getattr(delta, name))

    def closed(self) -> Block:
        """The block as it goes back to the API, which takes nothing but an object of a call."""
        if self.block.get("type") == "tool_use":
            return self.block | {"input": _object(self.arguments)}
        grown = {name: "".join(pieces) for name, pieces in self.pieces.items()}
        return self.block | {n: f"{self.block.get(n) or ''}{text}" for n, text in grown.items()}

    @property
    def call(self) -> Call | None:
        if self.block.get("type") != "tool_use":
            return None
        return Call(
            id=str(self.block.get("id")),
            name=str(self.block.get("name")),
            arguments=self.arguments,
        )

    @property
    def arguments(self) -> bytes:
        text = "".join(self.pieces.get("partial_json", ()))
        return text.encode("utf-8", "surrogatepass") or b"{}"


def _object(arguments: bytes) -> Block:
    try:
        return msgspec.json.decode(arguments, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}


class Hearing(Struct):
    """A message that is being told. `feed` it every event, then read `turn`."""

    is_whole: bool = False
    """Whether its end came."""
    tokens: Tokens = Tokens()
    """What has been used so far, of a cut stream as well."""
    _stop_reason: str | None = None
    _refusal: str | None = None
    _blocks: dict[int, _Growing] = field(default_factory=dict)

    @property
    def turn(self) -> ModelTurn:
        grown = [self._blocks[index] for index in sorted(self._blocks)]
        blocks = [one.closed() for one in grown]
        texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
        return ModelTurn(
            blocks=tuple(block for block in blocks if block.get("text") != ""),
            calls=tuple(one.call for one in grown if one.call),
            text="\n".join(texts).strip(),
            stop_reason=self._stop_reason,
            refusal=self._refusal,
            tokens=self.tokens,
        )

    def feed(self, event: "types.RawMessageStreamEvent") -> None:
        """Take one event; raises whatever an event trips over that is none of the API's."""
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start":
                self._blocks[event.index] = _Growing(event.content_block.to_dict())
            case "content_block_delta":
                self._blocks[event.index].grow(event.delta)
            case "message_delta":
                self._count(event.usage)
                self._stop_reason = event.delta.stop_reason
                if details := event.delta.stop_details:
                    self._refusal = details.explanation or details.category
            case "message_stop":
                self.is_whole = True

    def _count(self, usage: "types.Usage | types.MessageDeltaUsage") -> None:
        """Counts are cumulative; those that are left out stay as they were."""
        given = {name: getattr(usage, theirs, None) for name, theirs in _COUNTS.items()}
        known = {name: int(count) for name, count in given.items() if count is not None}
        self.tokens = msgspec.structs.replace(self.tokens, **known)
