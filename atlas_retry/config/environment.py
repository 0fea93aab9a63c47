"""`ATLAS_*` variables as a layer of the configuration, each read by the type of its key."""

from collections.abc import Mapping
from functools import reduce
from typing import get_args

import msgspec

from atlas_retry.config.files import PREFIX
from atlas_retry.config.keys import keys, section_in
from atlas_retry.config.layers import SAME, Layer, overlay, said_by
from atlas_retry.errors import ConfigError, Place

NOTHING = "null"
"""How a variable says None."""


def read(variables: Mapping[str, str]) -> Layer:
    """What the variables say: `ATLAS_RETRY__MAX_AI_RETRY_ATTEMPTS=5`; lists and mappings as JSON.

    A variable whose JSON cannot be read is a problem of the layer.
    """
    layers = (_read_one(name, value) for name, value in variables.items())
    return reduce(overlay, layers, Layer())


def _read_one(name: str, text: str) -> Layer:
    place = Place(name, text=f"{name}={text}")
    spelled = tuple(name.removeprefix(PREFIX).lower().split("__"))
    path = SAME.get(spelled, spelled)
    field = keys().get(path)
    try:
        value = _value(text, field.type) if field else text
    except msgspec.DecodeError:
        problem = ConfigError("expected JSON for a list or a mapping", place=place)
        return Layer(problems=(problem,))
    return said_by(place, path, value)


def _value(text: str, kind: object) -> object:
    """As the type wants it; text that cannot be that stays, to be refused with all others."""
    if text == NOTHING:
        return None
    if section_in(kind) or _holds_more(kind):
        return msgspec.json.decode(text)
    try:
        value = msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        return text
    return text if isinstance(value, str) else value


def _holds_more(kind: object) -> bool:
    origin = getattr(kind, "__origin__", None)
    return origin in (tuple, Mapping) or any(map(_holds_more, get_args(kind)))
