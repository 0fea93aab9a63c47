"""Reading Claude Code's stream: whatever is printed, what can be known is known."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas_retry.agents.claude_code.stream import MAX_LINE_BYTES, Transcript
from atlas_retry.events import AgentActivity, Event, TransportRetried

ROOT = "/work/calc"
SESSION = "d38bbf3a-33fb-4295-b12a-62565bd12a1d"


def line(**fields: object) -> bytes:
    return json.dumps({"session_id": SESSION, **fields}).encode() + b"\n"


def called(tool: str, call_id: str = "toolu_1", **arguments: object) -> bytes:
    block = {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
    message = {"id": "msg_1", "model": "claude-sonnet-5-5", "content": [block]}
    return line(type="assistant", message=message)


INIT = line(type="system", subtype="init", model="claude-sonnet-5-5")
RESULT = line(type="result", subtype="success", is_error=False, result="done", total_cost_usd=0.1)


def read(stream: bytes) -> tuple[Transcript, list[Event]]:
    said = Transcript(root=ROOT)
    return said, [*said.feed(stream), *said.finish()]


def facts(said: Transcript) -> tuple[object, ...]:
    return (
        said.session_id,
        said.model,
        said.retries,
        said.text,
        said.denials,
        said.touched,
        said.result and (said.result.result, said.result.total_cost_usd, said.result.is_error),
    )


WHOLE = (
    INIT
    + b"[SandboxDebug] not JSON\n"
    + line(type="system", subtype="api_retry", attempt=1, error_status=529, error="overloaded")
    + called("Edit", file_path=f"{ROOT}/src/calc.py", old_string="ä", new_string="ö")
    + line(type="system", subtype="permission_denied", tool_use_id="toolu_1", tool_name="Edit")
    + RESULT
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=40))
def test_how_the_stream_is_cut_into_chunks_does_not_matter(sizes: list[int]) -> None:
    said, rest = Transcript(root=ROOT), WHOLE
    for size in sizes:
        said.feed(rest[:size])
        rest = rest[size:]
    said.feed(rest)
    assert facts(said) == facts(read(WHOLE)[0])


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(b"Update available!\n" + INIT + RESULT, id="banner"),
        pytest.param(INIT + b"\x1b[?25l" + RESULT.rstrip() + b"\x1b[0m\n", id="escape-codes"),
        pytest.param(INIT + RESULT + b"<html>502 Bad Gateway</html>\n", id="html-after"),
        pytest.param(INIT + b'{"type": "result", "is_error": fal\n' + RESULT, id="half-a-result"),
        pytest.param(INIT + RESULT + b'{"type":"assis', id="truncated-tail"),
        pytest.param(INIT + RESULT.rstrip(b"\n"), id="no-last-line-end"),
        pytest.param(INIT + RESULT.replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(INIT + b"[" * 100_000 + b"\n" + RESULT, id="deep-list"),
        pytest.param(INIT + b'{"type":' + b'{"a":' * 100_000 + b"}\n" + RESULT, id="deep-object"),
        pytest.param(
            INIT + RESULT[:-2] + b', "x": ' + b"[" * 500 + b"]" * 500 + b"}\n", id="deep-unread"
        ),
        pytest.param(INIT + line(type="result", is_error=True, result="first") + RESULT, id="two"),
        pytest.param(INIT + line(type="user", tool_use_result="x" * 3_000_000) + RESULT, id="3 MB"),
        pytest.param(INIT + line(type="later_version", message=[1]) + RESULT, id="unknown-type"),
        pytest.param(INIT + b"\xff\xfe\x00\n" + RESULT, id="not-utf-8"),
        pytest.param(INIT + b"null\n42\n[]\n" + RESULT, id="json-but-no-object"),
    ],
)
def test_the_last_result_is_found_whatever_stands_around_it(stream: bytes) -> None:
    said, _ = read(stream)
    assert said.result is not None
    assert (said.result.result, said.result.is_error) == ("done", False)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(noise: bytes) -> None:
    said, _ = read(INIT + noise + b"\n" + RESULT)
    assert said.result is not None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
_TYPES = ["system", "assistant", "user", "result", "stream_event"]
_FIELDS = ["subtype", "message", "event", "result", "is_error", "permission_denials", "usage"]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(_TYPES), st.dictionaries(st.sampled_from(_FIELDS), _JSON))
def test_fields_of_another_shape_make_a_line_noise(kind: str, fields: dict[str, object]) -> None:
    said, _ = read(INIT + line(**{"type": kind, **fields}) + RESULT)
    assert said.result is not None
    assert said.result.result == "done"


def test_a_line_beyond_the_limit_is_dropped_and_the_next_one_read() -> None:
    said = Transcript(root=ROOT)
    chunk = b'{"type":' + b"x" * (MAX_LINE_BYTES // 8)
    for _ in range(9):
        assert said.feed(chunk) == ()
    said.feed(b"tail}\n" + INIT + RESULT)
    assert (said.started, said.result is not None) == (True, True)


def test_a_long_line_in_small_chunks_takes_linear_time() -> None:
    said, started = Transcript(root=ROOT), time.monotonic()
    for _ in range(200_000):
        said.feed(b"0123456789")
    said.feed(b"\n" + INIT)
    assert said.started
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("stream", "shown"),
    [
        (called("Edit", file_path=f"{ROOT}/src/calc.py"), "Edit src/calc.py"),
        (called("Read", file_path="/etc/hostname"), "Read /etc/hostname"),
        (called("Bash", command="pytest -q\n&& echo"), "Bash pytest -q && echo"),
        (called("Bash", command="echo \x1b[31mred\u202e"), "Bash echo [31mred"),
        (called("Grep", pattern="def add", path=ROOT), "Grep def add"),
        (called("Bash", command=["not", "text"]), "Bash"),
        (called("Unheard", of="it"), "Unheard"),
    ],
)
def test_a_tool_call_is_shown_as_one_clean_line(stream: bytes, shown: str) -> None:
    _, events = read(stream)
    assert [event.message for event in events] == [shown]
    assert isinstance(events[0], AgentActivity)
    assert events[0].session_id == SESSION


def test_a_refused_call_is_told_once_by_what_it_was() -> None:
    denial = {"tool_name": "Bash", "tool_use_id": "toolu_2", "tool_input": {"command": "curl x"}}
    said, _ = read(
        called("Edit", file_path=f"{ROOT}/tests/test_calc.py")
        + line(type="system", subtype="permission_denied", tool_use_id="toolu_1", tool_name="Edit")
        + line(
            type="result",
            is_error=False,
            permission_denials=[{"tool_name": "Edit", "tool_use_id": "toolu_1"}, denial],
        )
    )
    assert said.denials == ("Edit: tests/test_calc.py", "Bash: curl x")


def test_each_edited_file_is_told_once_and_read_ones_are_not() -> None:
    said, _ = read(
        called("Read", "1", file_path=f"{ROOT}/a.py")
        + called("Edit", "2", file_path=f"{ROOT}/a.py")
        + called("Edit", "3", file_path=f"{ROOT}/a.py")
        + called("NotebookEdit", "4", notebook_path=f"{ROOT}/n.ipynb")
        + called("Write", "5", file_path="/elsewhere/b.py")
    )
    assert said.touched == ["a.py", "n.ipynb", "/elsewhere/b.py"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"error_status": 529, "error": "overloaded", "retry_delay_ms": 595},
            "[RETRY 1] API error: 529 overloaded, again in 0.6 s",
        ),
        ({"error_status": None, "error": "unknown"}, "[RETRY 1] API error: unknown"),
        ({"error_status": None}, "[RETRY 1] API error: no connection"),
    ],
)
def test_a_retry_is_told_with_its_reason(fields: dict[str, object], reason: str) -> None:
    said, events = read(line(type="system", subtype="api_retry", **fields))
    assert [event.message for event in events] == [reason]
    assert isinstance(events[0], TransportRetried)
    assert said.retries == 1


def test_what_a_cut_off_run_has_used_is_counted_by_message() -> None:
    def partial(event: dict[str, object]) -> bytes:
        return line(type="stream_event", event=event)

    opened = {"id": "msg_1", "model": "claude-sonnet-5-5", "usage": {"input_tokens": 900}}
    said, _ = read(
        partial({"type": "message_start", "message": opened})
        + called("Read", file_path=f"{ROOT}/a.py")
        + partial({"type": "message_delta", "usage": {"output_tokens": 40}})
    )
    assert [(u.input_tokens, u.output_tokens) for u in said.usage.values()] == [(900, 40)]
