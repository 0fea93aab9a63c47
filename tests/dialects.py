"""A scripted answer as OpenAI's Responses API and Gemini's API stream it. Knows no HTTP.

Sources: https://platform.openai.com/docs/api-reference/responses-streaming and
https://ai.google.dev/api/generate-content
"""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.messages_server import Answer, Block

Event = dict[str, object]
Dialect = Callable[["Answer", int], Iterator[Event]]
"""The events of an answer; the number of the request makes its ids."""


def responses(answer: "Answer", number: int) -> Iterator[Event]:
    """As Codex CLI asks for it: `POST /v1/responses`."""
    response: Event = {"id": f"resp_{number}", "object": "response", "status": "in_progress"}
    yield {"type": "response.created", "response": response}
    for index, block in enumerate(answer.blocks):
        item = _output_item(block, f"{number}_{index}")
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
    yield {
        "type": "response.completed",
        "response": response | {"status": "completed", "usage": usage},
    }


def _output_item(block: "Block", number: str) -> Event:
    if block.tool is None:
        content = [{"type": "output_text", "text": block.text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": block.tool,
        "arguments": json.dumps(block.input),
        "status": "completed",
    }


def gemini(answer: "Answer", number: int) -> Iterator[Event]:
    """As Gemini CLI asks for it: `POST /v1beta/models/MODEL:streamGenerateContent?alt=sse`."""
    usage = {
        "promptTokenCount": answer.input_tokens,
        "candidatesTokenCount": answer.output_tokens,
        "totalTokenCount": answer.input_tokens + answer.output_tokens,
    }
    parts = [_part(block) for block in answer.blocks]
    content = {"role": "model", "parts": parts}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    yield {
        "candidates": [candidate],
        "usageMetadata": usage,
        "responseId": f"scripted-{number}",
    }


def _part(block: "Block") -> Event:
    if block.tool is None:
        return {"text": block.text}
    return {"functionCall": {"name": block.tool, "args": dict(block.input)}}


DIALECTS: dict[str, Dialect] = {"/responses": responses, ":streamGenerateContent": gemini}
"""By how the path ends; any other one is the Messages API's."""
