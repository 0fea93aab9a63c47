"""Asks the Messages API, and asks again where that may help. Knows no files and no answers.

The SDK's own repetitions are off: each one here is told, bounded, and ends at once when a stop is
requested, as does a request that waits for its answer.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

import msgspec
from msgspec import Struct, field

from atlas_retry import process
from atlas_retry.agents.anthropic import faults
from atlas_retry.agents.anthropic.faults import MAX_RETRY_AFTER_S, ApiFault
from atlas_retry.agents.anthropic.hearing import Hearing, StreamEvent
from atlas_retry.agents.anthropic.wire import MAX_TOKENS, ModelTurn, Question
from atlas_retry.errors import Interrupted
from atlas_retry.events import Emit, TransportRetried
from atlas_retry.model import Level

if TYPE_CHECKING:
    import anthropic

TICK_S: Final = 0.05
CONNECT_S: Final = 30.0
_T = TypeVar("_T")


class Patience(Struct, frozen=True, kw_only=True):
    """How long one request is repeated."""

    tries: int = 3
    first_wait_s: float = 2.0
    factor: float = 4.0
    total_s: float = 180.0
    """From the first try to the last, waiting included."""

    def wait_s(self, number: int, fault: ApiFault) -> float:
        """How long to wait after the n-th try, with jitter; at least what the server asks for."""
        backoff_s = self.first_wait_s * self.factor ** (number - 1)
        jitter = 0.75 + secrets.randbelow(500) / 1000
        return max(backoff_s * jitter, fault.retry_after_s or 0.0)


class UnansweredError(Exception):
    """There is no answer to be had; the fault says what the user has to do."""

    def __init__(self, fault: ApiFault) -> None:
        super().__init__(fault.error)
        self.fault = fault


class TooLateError(Exception):
    """The time of the attempt is over."""


class Access(Struct, frozen=True, kw_only=True):
    """Where the API is and who asks: from the environment alone, never from a file."""

    key: str | None
    token: str | None
    url: str | None

    @property
    def is_missing(self) -> bool:
        return not (self.key or self.token)


def access(environ: Mapping[str, str]) -> Access:
    """What the environment says; an empty variable says nothing."""
    key = environ.get("ANTHROPIC_API_KEY") or None
    return Access(
        key=key,
        token=None if key else environ.get("ANTHROPIC_AUTH_TOKEN") or None,
        url=environ.get("ANTHROPIC_BASE_URL") or None,
    )


class Connection(Struct, kw_only=True):
    """A connection to the API for one attempt; a context manager."""

    access: Access
    patience: Patience
    emit: Emit
    timeout_s: float | None
    idle_timeout_s: float | None
    retries: int = 0
    wasted: list[Hearing] = field(default_factory=list)
    """Streams that were cut, or are under way."""
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    _client: "anthropic.AsyncAnthropic | None" = None
    _started_s: float = 0.0

    def __enter__(self) -> Self:
        import anthropic

        self._client = anthropic.AsyncAnthropic(
            api_key=self.access.key,
            auth_token=self.access.token,
            base_url=self.access.url or "https://api.anthropic.com",
            max_retries=0,
            timeout=anthropic.Timeout(self.idle_timeout_s, connect=CONNECT_S),
            # A redirect would carry the key to another server.
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
        )
        self._started_s = time.monotonic()  # the import of the SDK is nobody's attempt
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client:
            self._runner.run(self._client.close())
        self._runner.close()

    def ask(self, question: Question) -> ModelTurn:
        """The model's whole message.

        Raises UnansweredError, TooLateError; Interrupted when a stop was requested.
        """
        return self._runner.run(_unless_stopped(self._ask(question)))

    async def _ask(self, question: Question) -> ModelTurn:
        started_s, number = time.monotonic(), 0
        while True:
            number += 1
            heard = Hearing()
            self.wasted.append(heard)
            fault = await self._try(question, heard)
            if fault is None:
                self.wasted.remove(heard)
                return heard.turn
            if not fault.is_transient:
                raise UnansweredError(fault)
            self._tell(number, fault)
            wait_s = self.patience.wait_s(number, fault)
            until_s = time.monotonic() - started_s + wait_s
            if (fault.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
                raise UnansweredError(_come_back(fault))
            is_last = number == self.patience.tries or until_s > self.patience.total_s
            if is_last or wait_s > self._left_s():
                raise UnansweredError(_exhausted(fault, number))
            self.retries += 1
            await asyncio.sleep(wait_s)

    def _tell(self, number: int, fault: ApiFault) -> None:
        reason = f"API error: {fault.error}"
        self.emit(TransportRetried(level=Level.WARNING, number=number, reason=reason))

    def _left_s(self) -> float:
        if self.timeout_s is None:
            return float("inf")
        return max(self.timeout_s - (time.monotonic() - self._started_s), 0.0)

    async def _try(self, question: Question, heard: Hearing) -> ApiFault | None:
        """One request; why it failed, or None."""
        left_s = self._left_s()
        try:
            async with asyncio.timeout(None if self.timeout_s is None else left_s):
                return await self._caught(lambda: self._listen(question, heard))
        except TimeoutError as error:
            raise TooLateError(f"the attempt took longer than {self.timeout_s:g} s") from error

    async def _listen(self, question: Question, heard: Hearing) -> ApiFault | None:
        client = cast("anthropic.AsyncAnthropic", self._client)
        stream = await client.messages.create(**_parameters(question), stream=True)
        async with stream:
            try:
                while event := await self._next(stream):
                    heard.feed(msgspec.convert(event.to_dict(), StreamEvent))
            except TimeoutError:
                return faults.broken_connection(f"silence for {self.idle_timeout_s:g} s")
        if heard.is_whole:
            return None
        return faults.broken_connection("the answer was cut in the middle")

    async def _next(
        self, stream: "anthropic.AsyncStream[anthropic.types.RawMessageStreamEvent]"
    ) -> "anthropic.types.RawMessageStreamEvent | None":
        """None at the end. Pings, which the SDK drops, are no sign of life: TimeoutError."""
        async with asyncio.timeout(self.idle_timeout_s):
            return await anext(stream, None)

    async def _caught(self, listen: Callable[[], Awaitable[ApiFault | None]]) -> ApiFault | None:
        """What the SDK raises, as a fault."""
        import anthropic
        import httpx2

        try:
            return await listen()
        except anthropic.APIStatusError as error:
            return faults.of_status(_refused(error), datetime.now(UTC))
        except (anthropic.APIError, httpx2.HTTPError, httpx2.StreamError) as error:
            cause = error.__cause__ or error
            return faults.broken_connection(f"{cause or type(cause).__name__}")
        except (
            *(ValueError, TypeError, AttributeError, RecursionError),
            msgspec.ValidationError,
        ) as error:
            # What the SDK trips over when the stream holds no message.
            return faults.broken_connection(f"the answer is no message: {error}")


async def _unless_stopped(work: Coroutine[Any, Any, _T]) -> _T:
    """Its result; Interrupted as soon as a stop is requested, once its connection is closed."""
    task = asyncio.ensure_future(work)
    while not task.done():
        if signum := process.stop_requested():
            task.cancel()
            with suppress(asyncio.CancelledError, UnansweredError, TooLateError):
                await task
            raise Interrupted(signum)
        await asyncio.wait({task}, timeout=TICK_S)
    return task.result()


def _parameters(question: Question) -> dict[str, Any]:
    """The request's body; the SDK types each of its fields, we write them as the API does."""
    effort = {"output_config": {"effort": question.effort}} if question.effort else {}
    return {
        "model": question.model,
        "max_tokens": MAX_TOKENS,
        "system": list(question.system),
        "messages": list(question.messages),
        "tools": list(question.tools),
    } | effort


def _refused(error: "anthropic.APIStatusError") -> faults.Refused:
    return faults.Refused(
        status=error.status_code,
        kind=error.type if isinstance(error.type, str) else None,
        code=error.error_code,
        message=error.api_message if isinstance(error.api_message, str) else error.message,
        headers=dict(error.response.headers),
    )


def _exhausted(fault: ApiFault, tries: int) -> ApiFault:
    times = f"{tries} tries" if tries > 1 else "one try"
    return ApiFault(error=f"the API did not answer in {times}: {fault.error}", remedy=fault.remedy)


def _come_back(fault: ApiFault) -> ApiFault:
    wait_s = fault.retry_after_s or 0.0
    return ApiFault(
        error=f"the API asks to wait {wait_s:.0f} s: {fault.error}",
        remedy=f"run the same command again in {wait_s / 60:.0f} minutes",
    )
