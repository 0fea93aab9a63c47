"""Reads the output of Claude Code with `--output-format stream-json`, line by line. Pure.

Measured on 2.1.330: one JSON object a line, lines may have megabytes, other text may be in
between, and the last of several `result` objects counts.
"""

import posixpath
from collections.abc import Iterator
from itertools import chain
from typing import Final, TypeVar

import msgspec
from msgspec import Struct, field

from atlas_retry.agents import models
from atlas_retry.agents.answers import decoded, given_twice, one_line
from atlas_retry.events import AgentActivity, Event, TransportRetried
from atlas_retry.model import EDITING_TOOLS, Tokens

MAX_LINE_BYTES: Final = 64 << 20
"""Longer lines are cut and ignored."""
READING_TOOLS: Final = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read", "TodoWrite"})

_REFUSED_LOGIN: Final = frozenset({401, 403})

SYNTHETIC: Final = "<synthetic>"
"""Model name in messages of the CLI itself, such as API errors."""
_EMPTY: Final = msgspec.Raw(b"{}")
_NOTHING: Final = msgspec.Raw(b"")

_TARGETS: Final = ("file_path", "notebook_path", "command", "pattern", "path", "url")
"""Arguments of a tool call to show to people."""
_Shape = TypeVar("_Shape")


class Usage(Struct):
    """Token counts of the Messages API."""

    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0

    @property
    def tokens(self) -> Tokens:
        return Tokens(
            input=self.input_tokens or 0,
            output=self.output_tokens or 0,
            cache_read=self.cache_read_input_tokens or 0,
            cache_write=self.cache_creation_input_tokens or 0,
        )


class ContentBlock(Struct):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = _EMPTY
    tool_use_id: str = ""
    is_error: bool | None = None


class Message(Struct):
    id: str = ""
    model: str | None = None
    content: list[ContentBlock] = []
    usage: Usage = field(default_factory=Usage)


class ApiEvent(Struct):
    """A raw event of the Messages API; `message` starts one, `usage` ends it."""

    message: Message | None = None
    usage: Usage | None = None


class Denial(Struct):
    tool_use_id: str = ""
    tool_name: str = ""
    tool_input: msgspec.Raw = _EMPTY


class Line(Struct):
    """One object of the stream, with the fields of all kinds that are read here."""

    type: str = ""
    subtype: str | None = None
    """Outcome of a result: `success` for API errors too."""
    session_id: str | None = None
    model: str | None = None
    message: Message = field(default_factory=Message)
    event: ApiEvent = field(default_factory=ApiEvent)
    error: str | None = None
    error_status: int | None = None
    retry_delay_ms: float | None = None
    original_model: str = ""
    fallback_model: str = ""
    tool_use_id: str = ""
    tool_name: str = ""
    is_error: bool | None = None
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
    """Empty if the model never called the tool for it, even in a success."""

    @property
    def text(self) -> str:
        return self.result or "; ".join(self.errors)


def decode(line: bytes, wanted: type[_Shape]) -> _Shape | None:
    """The JSON object in a line; None if there is none of this type.

    Text before and after the object (a banner, escape codes) is skipped.
    """
    document = line[line.find(b"{") : line.rfind(b"}") + 1]
    return decoded(document, wanted) if document else None


class Transcript(Struct):
    """The output of a CLI run so far. `feed` it bytes, `finish` it, then read it."""

    root: str
    """The workspace, which paths are relative to."""
    session_id: str | None = None
    model: str | None = None
    started: bool = False
    answered: bool = False
    """Whether the model wrote anything."""
    retries: int = 0
    refused_logins: int = 0
    """Retries after a 401 or 403, which the CLI repeats like any other error."""
    text: str = ""
    """The model's last text."""
    fault: str | None = None
    """`assistant.error` of the last API error."""
    touched: list[str] = field(default_factory=list)
    ran_more: bool = False
    """Whether it called a tool that may edit unnamed files: a shell or another agent."""
    result: Line | None = None
    usage: dict[str, Usage] = field(default_factory=dict)
    """Usage by message, for runs that are interrupted."""
    _calls: dict[str, str] = field(default_factory=dict)
    _denied: dict[str, None] = field(default_factory=dict)
    _message_id: str = ""
    _pending: bytearray = field(default_factory=bytearray)

    @property
    def denials(self) -> tuple[str, ...]:
        """Refused tool calls as `Tool: target`, without duplicates."""
        calls = (self._calls.get(call_id, call_id) for call_id in self._denied)
        return tuple(dict.fromkeys(calls))

    @property
    def cost_usd(self) -> float | None:
        """List price of the requests so far; None if unknown."""
        if not self.model:
            return None
        return models.total_usd(self.model, (usage.tokens for usage in self.usage.values()))

    def activity(self, text: str) -> AgentActivity:
        """An activity with this text, the session and the cost so far."""
        return AgentActivity(
            text=one_line(text),
            session_id=self.session_id,
            cost_usd=self.cost_usd,
            turns=len(self.usage) or None,
        )

    def feed(self, chunk: bytes) -> tuple[Event, ...]:
        """Read more output, in linear time, and return the events to show."""
        self._pending += chunk
        if b"\n" not in chunk:
            del self._pending[MAX_LINE_BYTES:]
            return ()
        *lines, self._pending = self._pending.split(b"\n")
        return tuple(chain.from_iterable(map(self._read, lines)))

    def finish(self) -> tuple[Event, ...]:
        """Read the last line if it has no line end."""
        return tuple(self._read(self._pending))

    def _read(self, text: bytearray) -> Iterator[Event]:
        line = decode(bytes(text), Line)
        if line is None:
            return
        self.session_id = line.session_id or self.session_id
        match line.type, line.subtype:
            case "system", "init":
                self.started = True
                self.model = line.model or self.model
            case "system", "api_retry":
                yield self._retried(line)
            case "system", "model_fallback" if line.fallback_model:
                self.model = line.fallback_model
                gone = f"{line.original_model} is not available now"
                yield self.activity(f"{gone}: continuing with {line.fallback_model}")
            case "system", "permission_denied":
                self._denied[line.tool_use_id] = None
                yield self.activity(f"denied: {self._calls.get(line.tool_use_id, line.tool_name)}")
            case "assistant", _:
                yield from self._answered(line)
            case "user", _:
                yield from self._failed_calls(line.message.content)
            case "stream_event", _:
                self._count(line.event)
            case "result", _:
                if given_twice(bytes(text), "total_cost_usd"):
                    line.total_cost_usd = None
                self._end(line)

    def _count(self, event: ApiEvent) -> None:
        if event.message:
            self._message_id = event.message.id
            self.usage[self._message_id] = event.message.usage
        elif event.usage and self._message_id in self.usage:
            self.usage[self._message_id].output_tokens = event.usage.output_tokens

    def _answered(self, line: Line) -> Iterator[Event]:
        message = line.message
        self.fault = line.error or self.fault
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
        target = self._target(block.input)
        self._calls[block.id] = f"{block.name}: {one_line(target)}"
        self.ran_more |= block.name not in EDITING_TOOLS | READING_TOOLS
        if block.name in EDITING_TOOLS and target and target not in self.touched:
            self.touched.append(target)
        yield self.activity(f"{block.name} {target}")

    def _failed_calls(self, blocks: list[ContentBlock]) -> Iterator[Event]:
        """Tool calls that ended with an error, without those that were denied."""
        for block in blocks:
            if block.is_error and block.tool_use_id not in self._denied:
                yield self.activity(f"failed: {self._calls.get(block.tool_use_id, 'a tool call')}")

    def _target(self, arguments: msgspec.Raw) -> str:
        """Target of a tool call: a path relative to the root, or another argument."""
        given = decode(bytes(arguments), dict[str, object]) or {}
        named = filter(None, (given.get(name) for name in _TARGETS))
        target = next((value for value in named if isinstance(value, str)), "")
        inside = target.startswith(f"{self.root.rstrip('/')}/")
        return posixpath.relpath(target, self.root) if inside else target

    def _retried(self, line: Line) -> Event:
        """The event that the CLI repeats a request."""
        self.retries += 1
        self.refused_logins += line.error_status in _REFUSED_LOGIN
        what = " ".join(map(str, filter(None, (line.error_status, line.error))))
        wait = f", again in {line.retry_delay_ms / 1000:.1f} s" if line.retry_delay_ms else ""
        reason = f"API error: {what or 'no connection'}{wait}"
        return TransportRetried(number=self.retries, reason=reason)

    def _end(self, result: Line) -> None:
        self.result = result
        for denial in result.permission_denials:
            self._denied[denial.tool_use_id] = None
            call = f"{denial.tool_name}: {one_line(self._target(denial.tool_input))}"
            self._calls.setdefault(denial.tool_use_id, call)
