"""Puts the events of a stream together to one message. Pure; strict where the API is."""

from typing import Final

import msgspec
from msgspec import Struct, field

from atlas_retry.agents.anthropic.wire import Block, Call, ModelTurn
from atlas_retry.model import Tokens

_GROWS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""By kind of delta, the field of it that is added to the block."""


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct):
    model: str | None = None
    usage: _Usage = msgspec.field(default_factory=_Usage)


class _Details(msgspec.Struct):
    category: str | None = None
    explanation: str | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_details: _Details | None = None


class StreamEvent(msgspec.Struct):
    """Any event of a stream; what it does not have is empty."""

    type: str = ""
    index: int = -1
    message: _Message | None = None
    content_block: dict[str, object] | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None


class _Growing(Struct):
    """A block of which more comes."""

    opened: Block
    parts: dict[str, list[str]] = field(default_factory=dict)

    def closed(self) -> tuple[Block, Call | None]:
        grown = {name: "".join(parts) for name, parts in self.parts.items()}
        if self.opened.get("type") != "tool_use":
            start = {name: str(self.opened.get(name) or "") for name in grown}
            return self.opened | {name: start[name] + text for name, text in grown.items()}, None
        call = Call(
            id=str(self.opened.get("id")),
            name=str(self.opened.get("name")),
            arguments=grown.get("partial_json", "").encode("utf-8", "surrogatepass") or b"{}",
        )
        return self.opened | {"input": _object(call.arguments)}, call


def _object(arguments: bytes) -> Block:
    """What is sent back of a call; the API takes nothing but an object."""
    try:
        return msgspec.json.decode(arguments, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}


class Hearing(Struct):
    """A message that is being told. `feed` it every event, then read `turn`."""

    is_whole: bool = False
    """Whether its end came."""
    _model: str | None = None
    _usage: _Usage = field(default_factory=_Usage)
    _stop_reason: str | None = None
    _refusal: str | None = None
    _blocks: dict[int, _Growing] = field(default_factory=dict)

    @property
    def tokens(self) -> Tokens:
        """What has been used so far, of a cut stream as well."""
        return Tokens(
            input=self._usage.input_tokens or 0,
            output=self._usage.output_tokens or 0,
            cache_read=self._usage.cache_read_input_tokens or 0,
            cache_write=self._usage.cache_creation_input_tokens or 0,
        )

    @property
    def turn(self) -> ModelTurn:
        closed = [self._blocks[index].closed() for index in sorted(self._blocks)]
        said = [str(block.get("text") or "") for block, _ in closed if block.get("type") == "text"]
        return ModelTurn(
            blocks=tuple(block for block, _ in closed if block.get("text") != ""),
            calls=tuple(call for _, call in closed if call),
            text="\n".join(said).strip(),
            stop_reason=self._stop_reason,
            refusal=self._refusal,
            model=self._model,
            tokens=self.tokens,
        )

    def feed(self, event: StreamEvent) -> None:
        """Take one event. Kinds that are not known are skipped, as the API asks for."""
        match event:
            case StreamEvent(type="message_start", message=_Message() as message):
                self._model, self._usage = message.model, message.usage
            case StreamEvent(type="content_block_start", content_block=dict() as block):
                self._blocks[event.index] = _Growing(block)
            case StreamEvent(type="content_block_delta", delta=_Delta() as delta):
                self._grow(event.index, delta)
            case StreamEvent(type="message_delta"):
                self._close(event)
            case StreamEvent(type="message_stop"):
                self.is_whole = True

    def _grow(self, index: int, delta: _Delta) -> None:
        name = _GROWS.get(delta.type)
        if name and index in self._blocks:
            self._blocks[index].parts.setdefault(name, []).append(getattr(delta, name))

    def _close(self, event: StreamEvent) -> None:
        """Counts are cumulative; those that are left out stay as they were."""
        if event.delta:
            self._stop_reason = event.delta.stop_reason
            if details := event.delta.stop_details:
                self._refusal = details.explanation or details.category
        told = msgspec.structs.asdict(event.usage or _Usage())
        given = {name: count for name, count in told.items() if count is not None}
        self._usage = msgspec.structs.replace(self._usage, **given)
