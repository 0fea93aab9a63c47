"""Values of ours as JSON text and back, exactly. Knows no table."""

import json
from typing import TypeVar

import msgspec

T = TypeVar("T")


def text_of(value: object) -> str:
    """JSON of a value.

    The standard library writes it: a path that is not UTF-8 holds lone surrogates, which msgspec
    refuses, and which have to come back as they were.
    """
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def read(text: str, kind: type[T]) -> T:
    """The value that `text_of` was given. Raises msgspec.ValidationError when it is none."""
    return msgspec.convert(json.loads(text), kind, strict=False)
