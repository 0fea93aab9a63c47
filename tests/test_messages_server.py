"""The scripted server speaks the API well enough for the official SDK, streamed or not.

The SDK takes a second to import, and each process of tests imports this file: few run it.
"""

from typing import TYPE_CHECKING

import pytest

from tests.messages_server import Answer, Block, Failure, MessagesServer, call, say, serving

if TYPE_CHECKING:
    import anthropic


def client(server: MessagesServer) -> "anthropic.Anthropic":
    import anthropic

    return anthropic.Anthropic(api_key="dummy-key", base_url=server.url, max_retries=0)


def test_the_sdk_reads_text_and_tool_calls_with_and_without_streaming() -> None:
    both = Answer(blocks=(Block(text="hello"), Block(tool="look", input={"path": "a"})))
    with serving(both, both) as server, client(server) as api:
        asked = api.messages.create(
            model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}]
        )
        with api.messages.stream(
            model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}]
        ) as stream:
            streamed = stream.get_final_message()
    assert [block.type for block in asked.content] == ["text", "tool_use"]
    assert streamed.content[1].to_dict()["input"] == {"path": "a"}
    assert streamed.stop_reason == asked.stop_reason == "tool_use"
    assert streamed.usage.output_tokens == asked.usage.output_tokens == 10
    assert [request.path for request in server.requests] == ["/v1/messages", "/v1/messages"]


@pytest.mark.parametrize("status", [401, 429, 529])
def test_the_sdk_sees_the_status_of_a_failure(status: int) -> None:
    import anthropic

    with serving(Failure(status=status)) as server, client(server) as api:
        with pytest.raises(anthropic.APIStatusError) as failure:
            api.messages.create(
                model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}]
            )
        assert failure.value.status_code == status


def test_a_truncated_stream_has_no_stop_reason() -> None:
    cut = Answer(blocks=(Block(text="hello"), Block(text="world")), cut=True)
    with (
        serving(cut) as server,
        client(server) as api,
        api.messages.stream(
            model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}]
        ) as stream,
    ):
        assert "".join(stream.text_stream) == "hello"
        assert stream.current_message_snapshot.stop_reason is None


def test_after_the_last_scripted_reply_requests_are_refused() -> None:
    import anthropic

    with serving(say("one"), call("look")) as server, client(server) as api:
        for _ in range(2):
            api.messages.create(
                model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}]
            )
        with pytest.raises(anthropic.BadRequestError, match="no further reply"):
            api.messages.create(
                model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}]
            )
