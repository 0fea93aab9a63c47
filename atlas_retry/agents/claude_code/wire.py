"""The JSON of Claude Code's stream, as far as it is read. Only shapes; the rest is skipped."""

from typing import Final

import msgspec

SYNTHETIC: Final = "<synthetic>"
"""The model of messages that the CLI wrote itself: API errors."""

_EMPTY: Final = msgspec.Raw(b"{}")
_NOTHING: Final = msgspec.Raw(b"")


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
        what = " ".join(str(part) for part in (self.error_status, self.error) if part)
        wait = f", again in {self.retry_delay_ms / 1000:.1f} s" if self.retry_delay_ms else ""
        return f"{what or 'no connection'}{wait}"


class Fallback(msgspec.Struct):
    """The CLI goes on with another model."""

    original_model: str = ""
    fallback_model: str = ""


class Denied(msgspec.Struct):
    tool_use_id: str
    tool_name: str = ""


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
