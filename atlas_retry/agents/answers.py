"""What every agent's own words are read for. Knows no agent and no format."""

import re
from typing import TypeVar

import msgspec

from atlas_retry.patterns import regex

_Shape = TypeVar("_Shape")

GIVE_UP = "ATLAS-CANNOT-FIX:"
"""What the prompt tells an agent to write when the rules leave no way."""

CUT_OFF = "cut off"
"""The last activity of an agent whose turn is interrupted: it says what is known of the cost."""

_MARKUP = " \t>*_`#-"
_GAVE_UP = regex(
    rf"^[{re.escape(_MARKUP)}]*{GIVE_UP}(.*?)(?:\n[ \t]*\n|\Z)", re.MULTILINE | re.DOTALL
)
MAX_REASON_CHARS = 1000
MAX_LINE_CHARS = 200


def gave_up(text: str) -> str | None:
    """The reason of an agent that says it cannot be done; None when it does not say so.

    The marker counts at the start of a line only; the reason runs to the next empty line.
    """
    match = _GAVE_UP.search(text)
    if match is None:
        return None
    reason = " ".join(match[1].split()).strip(_MARKUP)
    return reason[:MAX_REASON_CHARS] or "no reason given"


def one_line(text: str, limit: int = MAX_LINE_CHARS) -> str:
    """Text for a person on one line: control characters out, white space folded, end cut."""
    folded = " ".join("".join(c if c.isprintable() else " " for c in text[: limit * 4]).split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"


def last_lines(text: str, count: int = 3) -> str:
    """The last lines that say something, on one line."""
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(" · ".join(lines[-count:]), limit=600)


def schema_of(answer: type[msgspec.Struct]) -> dict[str, object]:
    """JSON Schema of an answer, as strict tools want it: an object, and every object is closed."""
    _, objects = msgspec.json.schema_components([answer], ref_template="#/$defs/{name}")
    for each in objects.values():
        each["additionalProperties"] = False
    return {**objects.pop(answer.__name__), "$defs": objects}


def decoded(text: bytes | str, shape: type[_Shape]) -> _Shape | None:
    """The JSON as a value of that shape; None where it is none."""
    try:
        document = text.encode("utf-8", "replace") if isinstance(text, str) else text
        return msgspec.json.decode(document, type=shape)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
