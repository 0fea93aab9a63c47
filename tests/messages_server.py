"""A Messages API on loopback that answers from a script; it knows no model and no network.

Serves the real Claude Code CLI and the `anthropic` SDK alike: streamed (SSE) when the request asks
for it, else one JSON document; by the path of the request it speaks the APIs of `tests.dialects`.
Event order as the API documents it:
https://docs.anthropic.com/en/api/messages-streaming
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

from msgspec import Struct, field

from tests.dialects import DIALECTS


class Block(Struct, frozen=True, kw_only=True):
    """One content block: text, or a tool call when `tool` is set."""

    text: str = ""
    tool: str | None = None
    input: Mapping[str, object] = field(default_factory=dict)
    raw: str | None = None
    """The call's arguments as they are streamed, JSON or not; None: `input`."""


class Answer(Struct, frozen=True, kw_only=True):
    """One turn of the model."""

    blocks: tuple[Block, ...]
    stop_reason: str | None = None
    """None: `tool_use` when there is a tool call, else `end_turn`."""
    input_tokens: int = 1000
    output_tokens: int = 10
    cut: bool = False
    """Close the connection after the first block, in the middle of the stream."""
    stall: bool = False
    """Say nothing more after the first block, but keep the connection."""
    pings: bool = False
    """Say nothing but pings after the first block."""


class Raw(Struct, frozen=True):
    """Any bytes as the stream."""

    content: bytes


class Failure(Struct, frozen=True, kw_only=True):
    """An HTTP error as the API words it."""

    status: int
    kind: str = "api_error"
    message: str = "scripted failure"
    headers: tuple[tuple[str, str], ...] = (("x-should-retry", "false"),)
    document: bytes | None = None
    """The body, where it is not to be as the API words it."""


class Hang(Struct, frozen=True):
    """Accept the request and never answer."""


class Drop(Struct, frozen=True):
    """Close the connection without a word."""


Reply = Answer | Failure | Hang | Drop | Raw


class Recorded(Struct, frozen=True, kw_only=True):
    """One request, as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, object]

    @property
    def messages(self) -> list[dict[str, object]]:
        return cast("list[dict[str, object]]", self.body.get("messages", []))

    @property
    def user_text(self) -> str:
        """All text of all user messages, tool results included."""
        return "\n".join(_texts(m["content"]) for m in self.messages if m["role"] == "user")


Step = Reply | Callable[[Recorded], Reply]


def _texts(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _texts(content.get("text") or content.get("content") or "")
    return "\n".join(_texts(item) for item in content) if isinstance(content, list) else ""


def say(text: str, *, stop_reason: str | None = None) -> Answer:
    return Answer(blocks=(Block(text=text),), stop_reason=stop_reason)


def call(tool: str, **arguments: object) -> Answer:
    return Answer(blocks=(Block(tool=tool, input=arguments),))


def edit(path: object, old: str, new: str) -> Answer:
    return call("Edit", file_path=str(path), old_string=old, new_string=new)


class MessagesServer:
    """Answers request n with step n of the script; after the last one it refuses."""

    def __init__(self, script: tuple[Step, ...]) -> None:
        self._steps = list(script)
        self._lock = threading.Lock()
        self.closing = threading.Event()
        self.requests: list[Recorded] = []
        self._http = _Listener(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def add(self, *steps: Step) -> None:
        with self._lock:
            self._steps.extend(steps)

    def answer(self, request: Recorded) -> tuple[int, Reply]:
        """Number of the request, from 1, and the reply to it."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            step = self._steps.pop(0) if self._steps else _EXHAUSTED
        return number, step(request) if callable(step) else step

    def serve(self) -> None:
        self._http.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


_EXHAUSTED = Failure(
    status=400, kind="invalid_request_error", message="the script has no further reply"
)


@contextmanager
def serving(*script: Step) -> Iterator[MessagesServer]:
    server = MessagesServer(script)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(timeout=5)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, server: MessagesServer) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.scripted = server

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client may go away at any time."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _scripted(self) -> MessagesServer:
        return cast("_Listener", self.server).scripted

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", "0"))
        request = Recorded(
            method="POST",
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=json.loads(self.rfile.read(size)),
        )
        self._send(request, *self._scripted.answer(request))

    def _send(self, request: Recorded, number: int, reply: Reply) -> None:
        path = request.path.partition("?")[0]
        dialect = next((one for end, one in DIALECTS.items() if path.endswith(end)), None)
        match reply:
            case Answer() if dialect:
                self._open_stream()
                for event in dialect(reply, number):
                    self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            case Answer() if request.body.get("stream"):
                self._stream(request, reply, number)
            case Answer():
                self._document(200, _message(request, reply, number), ())
            case Failure():
                error = {"type": reply.kind, "message": reply.message}
                worded = {"type": "error", "error": error}
                self._document(reply.status, reply.document or worded, reply.headers)
            case Hang():
                self._scripted.closing.wait()
                self.close_connection = True
            case Drop():
                self.close_connection = True
            case Raw():
                self._open_stream()
                self.wfile.write(reply.content)

    def _document(
        self, status: int, document: object, headers: tuple[tuple[str, str], ...]
    ) -> None:
        payload = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    def _open_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def _stream(self, request: Recorded, answer: Answer, number: int) -> None:
        self._open_stream()
        for event in events_of(request, answer, number):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
            if event["type"] == "content_block_stop" and answer.stall:
                self._scripted.closing.wait()
            while event["type"] == "content_block_stop" and answer.pings:
                self.wfile.write(b'event: ping\ndata: {"type": "ping"}\n\n')
                self.wfile.flush()
                if self._scripted.closing.wait(0.1):
                    return
            if event["type"] == "content_block_stop" and (answer.cut or answer.stall):
                return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (inherited name)
        """Say nothing: the requests are recorded."""


def _usage(answer: Answer, output_tokens: int) -> dict[str, object]:
    return {
        "input_tokens": answer.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def _message(request: Recorded, answer: Answer, number: int) -> dict[str, object]:
    return {
        "id": f"msg_scripted_{number:04}",
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": [_content(block, number, index) for index, block in enumerate(answer.blocks)],
        "stop_reason": _stop_reason(answer),
        "stop_sequence": None,
        "usage": _usage(answer, answer.output_tokens),
    }


def _content(block: Block, number: int, index: int) -> dict[str, object]:
    if block.tool is None:
        return {"type": "text", "text": block.text}
    tool_id = f"toolu_scripted_{number:04}_{index}"
    return {"type": "tool_use", "id": tool_id, "name": block.tool, "input": dict(block.input)}


def _stop_reason(answer: Answer) -> str:
    called = any(block.tool for block in answer.blocks)
    return answer.stop_reason or ("tool_use" if called else "end_turn")


def events_of(request: Recorded, answer: Answer, number: int = 1) -> Iterator[dict[str, object]]:
    started = _message(request, answer, number)
    started |= {"content": [], "stop_reason": None, "usage": _usage(answer, 1)}
    yield {"type": "message_start", "message": started}
    for index, block in enumerate(answer.blocks):
        yield from _block_events(_content(block, number, index), index, block.raw)
    ending = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    used = {"output_tokens": answer.output_tokens}
    yield {"type": "message_delta", "delta": ending, "usage": used}
    yield {"type": "message_stop"}


def _block_events(
    content: dict[str, object], index: int, raw: str | None
) -> Iterator[dict[str, object]]:
    if content["type"] == "text":
        opened = content | {"text": ""}
        delta = {"type": "text_delta", "text": content["text"]}
    else:
        opened = content | {"input": {}}
        arguments = json.dumps(content["input"]) if raw is None else raw
        delta = {"type": "input_json_delta", "partial_json": arguments}
    yield {"type": "content_block_start", "index": index, "content_block": opened}
    yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}
