"""Reading of agents' texts, common to all agents."""

import re
from contextlib import suppress
from typing import TypeVar

import msgspec

from atlas_retry.patterns import regex

_Shape = TypeVar("_Shape")

GIVE_UP = "ATLAS-CANNOT-FIX:"
"""Marker that the prompt tells an agent to write if it cannot fix the failures by the rules."""

CUT_OFF = "cut off"
"""Text of an interrupted agent's last activity, which has the known cost."""

_MARKUP = " \t>*_`#-"
_GAVE_UP = regex(
    rf"^[{re.escape(_MARKUP)}]*{GIVE_UP}(.*?)(?:\n[ \t]*\n|\Z)", re.MULTILINE | re.DOTALL
)
MAX_REASON_CHARS = 1000
MAX_LINE_CHARS = 200


def gave_up(text: str) -> str | None:
    """The reason of an agent that gave up; None if it did not.

    The marker counts only at the start of a line; the reason ends at the next empty line.
    """
    match = _GAVE_UP.search(text)
    if match is None:
        return None
    reason = " ".join(match[1].split()).strip(_MARKUP)
    return reason[:MAX_REASON_CHARS] or "no reason given"


def one_line(text: str, limit: int = MAX_LINE_CHARS) -> str:
    """The text as one line of bounded length, without control characters."""
    folded = " ".join("".join(c if c.isprintable() else " " for c in text[: limit * 4]).split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"


def last_lines(text: str, count: int = 3) -> str:
    """The last non-empty lines, joined to one line."""
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(" · ".join(lines[-count:]), limit=600)


def schema_of(answer: type[msgspec.Struct]) -> dict[str, object]:
    """JSON Schema of an answer for strict tools, which require closed objects."""
    _, objects = msgspec.json.schema_components([answer], ref_template="#/$defs/{name}")
    for each in objects.values():
        each["additionalProperties"] = False
    return {**objects.pop(answer.__name__), "$defs": objects}


def decoded(text: bytes | str, shape: type[_Shape]) -> _Shape | None:
    """The JSON as a value of this type; None if it is invalid."""
    try:
        document = text.encode("utf-8", "replace") if isinstance(text, str) else text
        return msgspec.json.decode(document, type=shape)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def whole_object(text: str) -> str:
    """The text from the first brace to the last: an object with a banner or prose around it."""
    return text[text.find("{") : text.rfind("}") + 1]


def given_twice(text: bytes | str, *names: str) -> bool:
    """Whether an object of the JSON has one of these keys twice: which value counts is unknown."""
    document = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if all(document.count(f'"{name}"') <= 1 for name in names):
        return False
    import json  # msgspec takes the last value, and says nothing

    found: list[str] = []

    def read(pairs: list[tuple[str, object]]) -> None:
        keys = [key for key, _ in pairs]
        found.extend(name for name in names if keys.count(name) > 1)

    with suppress(ValueError, RecursionError):
        json.loads(whole_object(document), object_pairs_hook=read)
    return bool(found)
