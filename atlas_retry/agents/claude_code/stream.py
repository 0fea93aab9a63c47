"""What Claude Code prints with `--output-format stream-json`, read line by line. Pure.

Facts measured on 2.1.330: one JSON object a line, lines may be megabytes, other text may stand
between them, more than one `result` may come and the last counts.
"""

import posixpath
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from atlas_retry.agents import models
from atlas_retry.agents.answers import one_line
from atlas_retry.events import AgentActivity, Event, TransportRetried
from atlas_retry.model import Tokens

MAX_LINE_BYTES: Final = 64 << 20
"""A longer line is dropped: nothing that counts is that long."""
EDITING_TOOLS: Final = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
READING_TOOLS: Final = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read", "TodoWrite"})

_REFUSED_LOGIN: Final = frozenset({401, 403})

SYNTHETIC: Final = "<synthetic>"
"""The model of messages that the CLI wrote itself: API errors."""
_EMPTY: Final = msgspec.Raw(b"{}")
_NOTHING: Final = msgspec.Raw(b"")

_Shape = TypeVar("_Shape")


class Head(msgspec.Struct):
    """What every line has."""

    type: str = ""
    subtype: str | None = None
    session_id: str | None = None


class Init(msgspec.Struct):
    model: str | None = None


class Usage(msgspec.Struct):
    """Tokens as the Messages API counts them."""

    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0


class ToolInput(msgspec.Struct):
    """The argument of a tool call that tells a person what it is about; the model wrote it."""

    file_path: str | None = None
    notebook_path: str | None = None
    command: str | None = None
    pattern: str | None = None
    path: str | None = None
    url: str | None = None

    @property
    def target(self) -> str:
        named = (self.file_path, self.notebook_path, self.command, self.pattern, self.path)
        return next((name for name in named if name), self.url or "")


class ContentBlock(msgspec.Struct):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = _EMPTY


class Message(msgspec.Struct):
    id: str = ""
    model: str | None = None
    content: list[ContentBlock] = []
    usage: Usage = msgspec.field(default_factory=Usage)


class Assistant(msgspec.Struct):
    message: Message
    error: str | None = None


class ApiRetry(msgspec.Struct):
    """The CLI repeats a request by itself."""

    error_status: int | None = None
    error: str | None = None
    retry_delay_ms: float | None = None

    @property
    def reason(self) -> str:
        what = " ".join(map(str, filter(None, (self.error_status, self.error))))
        wait = f", again in {self.retry_delay_ms / 1000:.1f} s" if self.retry_delay_ms else ""
        return f"{what or 'no connection'}{wait}"


class Fallback(msgspec.Struct):
    """The CLI goes on with another model."""

    original_model: str = ""
    fallback_model: str = ""


class ApiEvent(msgspec.Struct):
    """A raw event of the Messages API; `message` opens one, `usage` closes it."""

    message: Message | None = None
    usage: Usage | None = None


class Partial(msgspec.Struct):
    event: ApiEvent


class Denial(msgspec.Struct):
    tool_use_id: str = ""
    tool_name: str = ""
    tool_input: msgspec.Raw = _EMPTY


class Result(msgspec.Struct):
    """How the CLI says it ended. `subtype` is `success` for API errors too."""

    is_error: bool | None = None
    subtype: str | None = None
    result: str | None = None
    errors: list[str] = []
    terminal_reason: str | None = None
    stop_reason: str | None = None
    api_error_status: int | None = None
    num_turns: int | None = None
    total_cost_usd: float | None = None
    usage: Usage | None = None
    permission_denials: list[Denial] = []
    structured_output: msgspec.Raw = _NOTHING
    """Empty when the model never called the tool for it, although all else says success."""

    @property
    def text(self) -> str:
        return self.result or "; ".join(self.errors)


class Lines(Struct):
    """Puts chunks together to lines, in time linear in their size."""

    _pending: bytearray = field(default_factory=bytearray)

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes."""
        head, *tail = chunk.split(b"\n")
        self._keep(head)
        if not tail:
            return []
        complete = [self.rest(), *tail[:-1]]
        self._keep(tail[-1])
        return complete

    def rest(self) -> bytes:
        """The line that was never ended, if any."""
        line = bytes(self._pending) if len(self._pending) <= MAX_LINE_BYTES else b""
        self._pending.clear()
        return line

    def _keep(self, chunk: bytes) -> None:
        if len(self._pending) <= MAX_LINE_BYTES:
            self._pending += chunk


def decode(line: bytes, wanted: type[_Shape]) -> _Shape | None:
    """The JSON object of one line; None where there is none of that shape.

    Text before and after the object (a banner, escape codes) is skipped.
    """
    document = line[line.find(b"{") : line.rfind(b"}") + 1]
    if not document:
        return None
    try:
        return msgspec.json.decode(document, type=wanted)
    except (msgspec.DecodeError, RecursionError):
        return None


class Transcript(Struct):
    """What a run of the CLI has said so far. `feed` it bytes, `finish` it, then read it."""

    root: str
    """The workspace, to which paths are told."""
    session_id: str | None = None
    model: str | None = None
    started: bool = False
    answered: bool = False
    """Whether the model wrote anything."""
    retries: int = 0
    refused_logins: int = 0
    """How many of the retries answer to 401 or 403: the CLI repeats those like any other."""
    text: str = ""
    """The model's last words."""
    fault: str | None = None
    """`assistant.error` of the last API error."""
    touched: list[str] = field(default_factory=list)
    ran_more: bool = False
    """Whether it called a tool that may edit what it does not name: a shell, another agent."""
    result: Result | None = None
    usage: dict[str, Usage] = field(default_factory=dict)
    """By message: what a run that was cut off has used."""
    _calls: dict[str, str] = field(default_factory=dict)
    _denied: dict[str, None] = field(default_factory=dict)
    _message_id: str = ""
    _lines: Lines = field(default_factory=Lines)

    @property
    def denials(self) -> tuple[str, ...]:
        """Refused tool calls, each once, as `Tool: target`."""
        calls = (self._calls.get(call_id, call_id) for call_id in self._denied)
        return tuple(dict.fromkeys(calls))

    @property
    def cost_usd(self) -> float | None:
        """List price of what its requests have used so far; None where it is not known."""
        if not self.model:
            return None
        costs = [models.cost_usd(self.model, tokens_of(usage)) for usage in self.usage.values()]
        return sum(cost for cost in costs if cost is not None) if None not in costs else None

    def activity(self, text: str) -> AgentActivity:
        """What it does, with the conversation and what that has cost so far."""
        return AgentActivity(
            text=one_line(text),
            session_id=self.session_id,
            cost_usd=self.cost_usd,
            turns=len(self.usage) or None,
        )

    def feed(self, chunk: bytes) -> tuple[Event, ...]:
        """Read more output; what a person should see of it at once."""
        return tuple(chain.from_iterable(map(self._read, self._lines.feed(chunk))))

    def finish(self) -> tuple[Event, ...]:
        """Read what was left without a line end."""
        return tuple(self._read(self._lines.rest()))

    def _read(self, line: bytes) -> Iterator[Event]:
        head = decode(line, Head)
        kind = head and (_KINDS.get((head.type, head.subtype)) or _KINDS.get((head.type, "")))
        event = decode(line, kind[0]) if kind else None
        if head and kind and event:
            self.session_id = head.session_id or self.session_id
            yield from kind[1](self, event)

    def read_init(self, init: Init) -> Iterator[Event]:
        self.started = True
        self.model = init.model or self.model
        return iter(())

    def read_assistant(self, answer: Assistant) -> Iterator[Event]:
        message = answer.message
        self.fault = answer.error or self.fault
        if message.model == SYNTHETIC:
            return
        self.answered, self.fault = True, None
        self.usage.setdefault(message.id, message.usage)
        for block in message.content:
            yield from self._read_block(block)

    def _read_block(self, block: ContentBlock) -> Iterator[Event]:
        if block.type == "text" and block.text.strip():
            self.text = block.text
        if block.type != "tool_use":
            return
        argument = decode(bytes(block.input), ToolInput) or ToolInput()
        target = self._relative(argument.target)
        self._calls[block.id] = f"{block.name}: {one_line(target)}"
        self.ran_more |= block.name not in EDITING_TOOLS | READING_TOOLS
        if block.name in EDITING_TOOLS and target and target not in self.touched:
            self.touched.append(target)
        yield self.activity(f"{block.name} {target}")

    def _relative(self, target: str) -> str:
        """A path as seen from the root; a path outside it, and what is no path, as it is."""
        inside = target.startswith(f"{self.root.rstrip('/')}/")
        return posixpath.relpath(target, self.root) if inside else target

    def read_retry(self, retry: ApiRetry) -> Iterator[Event]:
        self.retries += 1
        self.refused_logins += retry.error_status in _REFUSED_LOGIN
        yield TransportRetried(number=self.retries, reason=f"API error: {retry.reason}")

    def read_fallback(self, change: Fallback) -> Iterator[Event]:
        if change.fallback_model:
            self.model = change.fallback_model
            yield self.activity(
                f"{change.original_model} is not available now: {change.fallback_model} goes on"
            )

    def read_denied(self, denied: Denial) -> Iterator[Event]:
        self._denied[denied.tool_use_id] = None
        yield self.activity(f"denied: {self._calls.get(denied.tool_use_id, denied.tool_name)}")

    def read_partial(self, partial: Partial) -> Iterator[Event]:
        event = partial.event
        if event.message:
            self._message_id = event.message.id
            self.usage[self._message_id] = event.message.usage
        elif event.usage and self._message_id in self.usage:
            self.usage[self._message_id].output_tokens = event.usage.output_tokens
        return iter(())

    def read_result(self, result: Result) -> Iterator[Event]:
        self.result = result
        for denial in result.permission_denials:
            self._denied[denial.tool_use_id] = None
            argument = decode(bytes(denial.tool_input), ToolInput) or ToolInput()
            call = f"{denial.tool_name}: {one_line(self._relative(argument.target))}"
            self._calls.setdefault(denial.tool_use_id, call)
        return iter(())


_KINDS: Final[
    dict[tuple[str, str | None], tuple[type[Any], Callable[[Transcript, Any], Iterator[Event]]]]
] = {
    ("system", "init"): (Init, Transcript.read_init),
    ("system", "api_retry"): (ApiRetry, Transcript.read_retry),
    ("system", "model_fallback"): (Fallback, Transcript.read_fallback),
    ("system", "permission_denied"): (Denial, Transcript.read_denied),
    ("assistant", ""): (Assistant, Transcript.read_assistant),
    ("stream_event", ""): (Partial, Transcript.read_partial),
    ("result", ""): (Result, Transcript.read_result),
}
"""By type and subtype of a line: its shape, and what reads it."""


def tokens_of(usage: Usage) -> Tokens:
    """Usage in our own words."""
    return Tokens(
        input=usage.input_tokens or 0,
        output=usage.output_tokens or 0,
        cache_read=usage.cache_read_input_tokens or 0,
        cache_write=usage.cache_creation_input_tokens or 0,
    )
