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
    transcript = Transcript(root=ROOT)
    return transcript, [*transcript.feed(stream), *transcript.finish()]


def facts(transcript: Transcript) -> tuple[object, ...]:
    return (
        transcript.session_id,
        transcript.model,
        transcript.retries,
        transcript.text,
        transcript.denials,
        transcript.touched,
        transcript.result
        and (
            transcript.result.result,
            transcript.result.total_cost_usd,
            transcript.result.is_error,
        ),
    )


WHOLE = (
    INIT
    + b"[SandboxDebug] not JSON\n"
    + line(type="system", subtype="api_retry", attempt=1, error_status=529, error="overloaded")
    + called("Edit", file_path=f"{ROOT}/src/calc.py", old_string="ä", new_string="ö")
    + line(type="system", subtype="permission_denied", tool_use_id="toolu_1", tool_name="Edit")
    + RESULT
)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=40))
def test_chunk_sizes_do_not_matter(sizes: list[int]) -> None:
    transcript, rest = Transcript(root=ROOT), WHOLE
    for size in sizes:
        transcript.feed(rest[:size])
        rest = rest[size:]
    transcript.feed(rest)
    assert facts(transcript) == facts(read(WHOLE)[0])


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
def test_the_last_result_is_read_among_other_output(stream: bytes) -> None:
    transcript, _ = read(stream)
    assert transcript.result is not None
    assert (transcript.result.result, transcript.result.is_error) == ("done", False)


def test_a_total_cost_that_is_given_twice_is_unknown() -> None:
    twice = RESULT.replace(b'"total_cost_usd"', b'"total_cost_usd":9,"total_cost_usd"')
    transcript, _ = read(INIT + b"Update available!\x1b[0m" + twice)
    assert transcript.result is not None
    assert transcript.result.total_cost_usd is None


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_invalid_bytes_are_skipped(noise: bytes) -> None:
    transcript, _ = read(INIT + noise + b"\n" + RESULT)
    assert transcript.result is not None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
_TYPES = ["system", "assistant", "user", "result", "stream_event"]
_FIELDS = ["subtype", "message", "event", "result", "is_error", "permission_denials", "usage"]


@settings(max_examples=200)
@given(st.sampled_from(_TYPES), st.dictionaries(st.sampled_from(_FIELDS), _JSON))
def test_a_line_with_wrong_field_types_is_skipped(kind: str, fields: dict[str, object]) -> None:
    transcript, _ = read(INIT + line(**{"type": kind, **fields}) + RESULT)
    assert transcript.result is not None
    assert transcript.result.result == "done"


def test_an_overlong_line_is_dropped_and_the_next_one_read() -> None:
    transcript = Transcript(root=ROOT)
    chunk = b'{"type":' + b"x" * (MAX_LINE_BYTES // 8)
    for _ in range(9):
        assert transcript.feed(chunk) == ()
    transcript.feed(b"tail}\n" + INIT + RESULT)
    assert (transcript.started, transcript.result is not None) == (True, True)


def test_a_long_line_in_small_chunks_takes_linear_time() -> None:
    transcript, started = Transcript(root=ROOT), time.process_time()
    for _ in range(200_000):
        transcript.feed(b"0123456789")
    transcript.feed(b"\n" + INIT)
    assert transcript.started
    assert time.process_time() - started < 5


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


def test_a_denied_call_is_reported_once() -> None:
    denial = {"tool_name": "Bash", "tool_use_id": "toolu_2", "tool_input": {"command": "curl x"}}
    transcript, _ = read(
        called("Edit", file_path=f"{ROOT}/tests/test_calc.py")
        + line(type="system", subtype="permission_denied", tool_use_id="toolu_1", tool_name="Edit")
        + line(
            type="result",
            is_error=False,
            permission_denials=[{"tool_name": "Edit", "tool_use_id": "toolu_1"}, denial],
        )
    )
    assert transcript.denials == ("Edit: tests/test_calc.py", "Bash: curl x")


def test_a_tool_call_that_failed_is_marked_and_a_denied_one_only_once() -> None:
    ended = {"type": "tool_result", "is_error": True, "content": "Exit code 1"}
    _, events = read(
        called("Bash", "1", command="pytest -q")
        + line(type="user", message={"content": [{**ended, "tool_use_id": "1"}]})
        + called("Edit", "2", file_path=f"{ROOT}/tests/a.py")
        + line(type="system", subtype="permission_denied", tool_use_id="2", tool_name="Edit")
        + line(type="user", message={"content": [{**ended, "tool_use_id": "2"}]})
    )
    assert [event.message for event in events] == [
        "Bash pytest -q",
        "failed: Bash: pytest -q",
        "Edit tests/a.py",
        "denied: Edit: tests/a.py",
    ]


def test_each_edited_file_is_listed_once() -> None:
    transcript, _ = read(
        called("Read", "1", file_path=f"{ROOT}/a.py")
        + called("Edit", "2", file_path=f"{ROOT}/a.py")
        + called("Edit", "3", file_path=f"{ROOT}/a.py")
        + called("NotebookEdit", "4", notebook_path=f"{ROOT}/n.ipynb")
        + called("Write", "5", file_path="/elsewhere/b.py")
    )
    assert transcript.touched == ["a.py", "n.ipynb", "/elsewhere/b.py"]


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
def test_a_retry_is_reported_with_its_reason(fields: dict[str, object], reason: str) -> None:
    transcript, events = read(line(type="system", subtype="api_retry", **fields))
    assert [event.message for event in events] == [reason]
    assert isinstance(events[0], TransportRetried)
    assert transcript.retries == 1


def test_usage_of_an_interrupted_run_is_counted_per_message() -> None:
    def partial(event: dict[str, object]) -> bytes:
        return line(type="stream_event", event=event)

    opened = {"id": "msg_1", "model": "claude-sonnet-5-5", "usage": {"input_tokens": 900}}
    transcript, _ = read(
        partial({"type": "message_start", "message": opened})
        + called("Read", file_path=f"{ROOT}/a.py")
        + partial({"type": "message_delta", "usage": {"output_tokens": 40}})
    )
    assert [(u.input_tokens, u.output_tokens) for u in transcript.usage.values()] == [(900, 40)]
