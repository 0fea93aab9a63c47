"""Puts the events of a stream together to one message.

The SDK could do that (`messages.stream`), but it parses the whole arguments of a call again at each
of its pieces, and takes arguments that were cut for whole ones.
"""

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field

from atlas_retry.agents.anthropic.wire import Block, Call, ModelTurn
from atlas_retry.model import Tokens

if TYPE_CHECKING:
    from anthropic import types

_COUNTS: Final = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
"""Fields of Tokens, and what the API calls them."""
_ARGUMENTS: Final = "partial_json"
_PIECES: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": _ARGUMENTS,
}
"""By kind of delta, its field that is added to the block; the API asks to skip other kinds."""


class Hearing(Struct):
    """A message that is still coming. `feed` it every event, then read `turn`."""

    is_whole: bool = False
    """Whether its end came."""
    tokens: Tokens = Tokens()
    """What has been used so far, of a cut stream as well."""
    _stop_reason: str | None = None
    _refusal: str | None = None
    _blocks: dict[int, Block] = field(default_factory=dict)

    @property
    def turn(self) -> ModelTurn:
        blocks = [block for _, block in sorted(self._blocks.items()) if block.get("text") != ""]
        texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
        return ModelTurn(
            blocks=tuple(map(_sent_back, blocks)),
            calls=tuple(_call(block) for block in blocks if block.get("type") == "tool_use"),
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
                self._blocks[event.index] = event.content_block.to_dict()
            case "content_block_delta":
                block = self._blocks[event.index]
                if name := _PIECES.get(event.delta.type):
                    block[name] = f"{block.get(name) or ''}{getattr(event.delta, name)}"
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


def _call(block: Block) -> Call:
    arguments = str(block.get(_ARGUMENTS) or "{}").encode("utf-8", "surrogatepass")
    return Call(id=str(block.get("id")), name=str(block.get("name")), arguments=arguments)


def _sent_back(block: Block) -> Block:
    """The block as it goes back to the API, which takes nothing but an object of a call."""
    if block.get("type") != "tool_use":
        return block
    try:
        arguments = msgspec.json.decode(_call(block).arguments, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        arguments = {}
    kept = {name: value for name, value in block.items() if name != _ARGUMENTS}
    return kept | {"input": arguments}
