"""Calls the Messages API and repeats requests if that may help. Knows no files and no answers.

The SDK's own retries are off: those here are reported and bounded. They, and running requests,
end at once when a stop is requested.
"""

import asyncio
import secrets
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

import msgspec
from msgspec import Struct, field

from atlas_retry import process
from atlas_retry.agents import models
from atlas_retry.agents.answers import decoded
from atlas_retry.agents.anthropic import faults
from atlas_retry.agents.anthropic.faults import ApiFault, TurnEndedError, stopped
from atlas_retry.agents.anthropic.wire import Block, Call, ModelTurn, Question
from atlas_retry.errors import Interrupted
from atlas_retry.events import Emit, TransportRetried
from atlas_retry.model import AgentRequest, Level, ReplyStatus, Tokens, total_tokens

if TYPE_CHECKING:
    import anthropic
    from anthropic import types

_COUNTS: Final = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
"""Fields of Tokens and their names in the API."""
_ARGUMENTS: Final = "partial_json"
_PIECES: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": _ARGUMENTS,
}
"""Field to append to the block, by kind of delta; unknown kinds are to be skipped."""


class IncomingMessage(Struct):
    """A message being received. `feed` it every event, then read `turn`."""

    is_whole: bool = False
    """Whether it was received completely."""
    tokens: Tokens = Tokens()
    """Usage so far, also of a broken stream."""
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
        )

    def feed(self, event: "types.RawMessageStreamEvent") -> None:
        """Process one event; may raise any exception for an invalid one."""
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
        """Update the cumulative counts that are given."""
        given = {name: getattr(usage, theirs, None) for name, theirs in _COUNTS.items()}
        known = {name: int(count) for name, count in given.items() if count is not None}
        self.tokens = msgspec.structs.replace(self.tokens, **known)


def _call(block: Block) -> Call:
    arguments = str(block.get(_ARGUMENTS) or "{}").encode("utf-8", "surrogatepass")
    return Call(id=str(block.get("id")), name=str(block.get("name")), arguments=arguments)


def _sent_back(block: Block) -> Block:
    """The block to send back to the API, which requires an object as input of a call."""
    if block.get("type") != "tool_use":
        return block
    arguments = decoded(_call(block).arguments, dict[str, object]) or {}
    kept = {name: value for name, value in block.items() if name != _ARGUMENTS}
    return kept | {"input": arguments}


TICK_S: Final = 0.05
CONNECT_S: Final = 30.0
_T = TypeVar("_T")


class Patience(Struct, frozen=True, kw_only=True):
    """Limits for repeating a request."""

    tries: int = 3
    first_wait_s: float = 2.0
    factor: float = 4.0
    total_s: float = 180.0
    """Seconds from the first try to the last, including waits."""

    def wait_s(self, number: int, fault: ApiFault) -> float:
        """Seconds to wait after try `number`, with jitter; at least the server's Retry-After."""
        backoff_s = self.first_wait_s * self.factor ** (number - 1)
        jitter = 0.75 + secrets.randbelow(500) / 1000
        return max(backoff_s * jitter, fault.retry_after_s or 0.0)


def has_key(environ: Mapping[str, str]) -> bool:
    """Whether the environment has a non-empty key or token."""
    return bool(environ.get("ANTHROPIC_API_KEY") or environ.get("ANTHROPIC_AUTH_TOKEN"))


class Connection(Struct, kw_only=True):
    """A connection to the API for one attempt; a context manager."""

    environ: Mapping[str, str]
    """Source of the API's address and key, which are never read from a file."""
    patience: Patience
    emit: Emit
    request: AgentRequest
    """The request, with its limits."""
    model: str
    retries: int = 0
    messages: list[IncomingMessage] = field(default_factory=list)
    """All messages, including broken and unfinished ones."""
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    _client: "anthropic.AsyncAnthropic | None" = None
    _started_s: float = 0.0

    def __enter__(self) -> Self:
        import anthropic

        key = self.environ.get("ANTHROPIC_API_KEY") or None
        token = self.environ.get("ANTHROPIC_AUTH_TOKEN") or None
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            auth_token=None if key else token,
            base_url=self.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com",
            max_retries=0,
            timeout=anthropic.Timeout(self.request.idle_timeout_s, connect=CONNECT_S),
            # A redirect would carry the key to another server.
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
        )
        self._started_s = time.monotonic()  # does not count the import of the SDK
        return self

    def __exit__(self, *_: object) -> None:
        if self._client:
            self._runner.run(self._client.close())
        self._runner.close()

    @property
    def cost_usd(self) -> float | None:
        """Cost of the attempt so far; None if the price is unknown."""
        return models.total_usd(self.model, (message.tokens for message in self.messages))

    @property
    def tokens(self) -> Tokens:
        return total_tokens(message.tokens for message in self.messages)

    def ask(self, question: Question) -> ModelTurn:
        """Send a request and return the model's message.

        Raises TurnEndedError; Interrupted when a stop was requested.
        """
        return self._runner.run(_unless_stopped(self._ask(question)))

    async def _ask(self, question: Question) -> ModelTurn:
        started_s, number = time.monotonic(), 0
        while True:
            number += 1
            message = IncomingMessage()
            self.messages.append(message)
            fault = await self._try(question, message)
            if fault is None:
                return message.turn
            if not fault.is_transient:
                raise TurnEndedError(fault.reply)
            reason = f"API error: {fault.error}"
            self.emit(TransportRetried(level=Level.WARNING, number=number, reason=reason))
            wait_s = self.patience.wait_s(number, fault)
            left_s = self.patience.total_s - (time.monotonic() - started_s)
            left_s = min(left_s, self._left_s() or left_s)
            if wait_s > left_s or number == self.patience.tries or fault.is_long:
                raise TurnEndedError(fault.given_up(number).reply)
            self.retries += 1
            await asyncio.sleep(wait_s)

    def _left_s(self) -> float | None:
        """Seconds left of the attempt; for asyncio, 0 or less means expired."""
        if self.request.timeout_s is None:
            return None
        return self.request.timeout_s - (time.monotonic() - self._started_s)

    async def _try(self, question: Question, message: IncomingMessage) -> ApiFault | None:
        """Make one request; why it failed, or None."""
        import anthropic
        import httpx2

        try:
            async with asyncio.timeout(self._left_s()) as whole:
                await self._receive(question, message)
        except TimeoutError as error:
            if whole.expired():
                why = f"the attempt took longer than {self.request.timeout_s:g} s"
                raise stopped(why, ReplyStatus.TIMED_OUT) from error
            return faults.broken_connection(f"silence for {self.request.idle_timeout_s:g} s")
        except anthropic.APIStatusError as error:
            return faults.of_status(error)
        except (anthropic.APIError, httpx2.HTTPError, httpx2.StreamError) as error:
            cause = error.__cause__ or error
            return faults.broken_connection(f"{cause or type(cause).__name__}")
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            # errors of the SDK and `IncomingMessage` if the stream is not a message
            return faults.broken_connection(f"the answer is not a message: {error}")
        return None if message.is_whole else faults.broken_connection("the answer was cut")

    async def _receive(self, question: Question, message: IncomingMessage) -> None:
        """Receive a message. Raises TimeoutError for silence; pings do not count."""
        client = cast("anthropic.AsyncAnthropic", self._client)
        stream = await client.messages.create(**question, stream=True)
        async with stream:
            while True:
                async with asyncio.timeout(self.request.idle_timeout_s):
                    event = await anext(stream, None)
                if event is None:
                    return
                message.feed(event)


async def _unless_stopped(work: Coroutine[Any, Any, _T]) -> _T:
    """The result; raises Interrupted once a stop is requested and the connection closed."""
    task = asyncio.ensure_future(work)
    while not task.done():
        if signum := process.stop_requested():
            task.cancel()
            with suppress(asyncio.CancelledError, TurnEndedError):
                await task
            raise Interrupted(signum)
        await asyncio.wait({task}, timeout=TICK_S)
    return task.result()
