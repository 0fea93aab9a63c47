r"""JSON of values whose text may hold bytes that are not UTF-8. Writes no file.

Such bytes are lone surrogates in a `str`, which JSON in UTF-8 cannot hold. For readers, `\udcNN` is
written as six characters; what `read` must return exactly is written by the standard library.
"""

import json
from typing import TypeVar

import msgspec

T = TypeVar("T")


def text_of(value: object) -> str:
    """A value as one line, from which `read` returns it exactly."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def read(text: str, kind: type[T]) -> T:
    """The value that `text_of` was given. Raises msgspec.ValidationError for any other text."""
    return msgspec.convert(json.loads(text), kind, strict=False)


def encode(value: object) -> bytes:
    """The value as one line."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(msgspec.to_builtins(value)))


def encodable(text: str) -> str:
    """The same text, with lone surrogates escaped."""
    return text.encode(errors="backslashreplace").decode()


def _encodable(value: object) -> object:
    match value:
        case str():
            return encodable(value)
        case dict():
            return {_encodable(key): _encodable(item) for key, item in value.items()}
        case list() | tuple():
            return [_encodable(item) for item in value]
    return value
