"""Turns the bytes of all sources into checked settings; slow, as it imports YAML."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import get_args

import msgspec
from msgspec import Struct, convert
from msgspec.structs import replace

from atlas_retry.config import document, translation
from atlas_retry.config.checking import refusals, together
from atlas_retry.config.files import PREFIX, ConfigFile
from atlas_retry.config.keys import Configuration, keys, section_in
from atlas_retry.config.layers import SAME, Layer, canonical, overlay, single_value
from atlas_retry.config.translation import Surroundings
from atlas_retry.errors import ConfigError, Place
from atlas_retry.settings import Settings
from atlas_retry.text.redaction import redact

NOTHING = "null"
"""Value of a variable that means None."""


class Understood(Struct, frozen=True, kw_only=True):
    """A valid configuration."""

    settings: Settings
    layer: Layer
    """The configured values and their places."""


def understand(
    files: Sequence[ConfigFile],
    around: Surroundings,
    *,
    variables: Mapping[str, str],
    overrides: Mapping[str, object],
) -> Understood:
    """Merge the sources and check the result; `files` has the highest precedence first.

    Raises one ConfigError with all problems.
    """
    try:
        read = [canonical(document.read(file.content, file.path)) for file in reversed(files)]
    except ConfigError as error:
        raise together((error,)) from error
    place = Place("the command line")
    others = [_variable(name, value) for name, value in variables.items()]
    others += (
        single_value(place, tuple(key.split(".")), value) for key, value in overrides.items()
    )
    layer = reduce(overlay, (*read, *others))
    model = _checked(layer, around)
    settings = translation.settings_of(model, layer, around)
    if not settings.gates:
        nothing = ConfigError(
            "nothing to validate: no gate is configured",
            place=layer.place(("validation",), of_key=True),
            remedy='add one, for example  validation: {test: ["pytest -q"]}',
        )
        raise together((nothing,))
    secrets = tuple(chain.from_iterable(map(_secrets, files)))
    return Understood(settings=replace(settings, warnings=settings.warnings + secrets), layer=layer)


def _variable(name: str, text: str) -> Layer:
    """The layer of a variable like `ATLAS_RETRY__MAX_AI_RETRY_ATTEMPTS=5`; lists are JSON.

    Invalid JSON is a problem of the layer.
    """
    place = Place(name, text=f"{name}={text}")
    spelled = tuple(name.removeprefix(PREFIX).lower().split("__"))
    path = SAME.get(spelled, spelled)
    field = keys().get(path)
    try:
        value = _value(text, field.type) if field else text
    except msgspec.DecodeError:
        problem = ConfigError("expected JSON for a list or a mapping", place=place)
        return Layer(problems=(problem,))
    return single_value(place, path, value)


def _value(text: str, kind: object) -> object:
    """The value as its type; unconvertible text is returned, and refused later."""
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


def _checked(layer: Layer, around: Surroundings) -> Configuration:
    if wrong := layer.problems + refusals(layer):
        raise together(wrong)
    model = convert(layer.tree(), Configuration)
    if wrong := tuple(translation.contradictions(model, layer, around)):
        raise together(wrong)
    return model


def _secrets(file: ConfigFile) -> Iterator[str]:
    text = file.content.decode("utf-8-sig")
    lines = zip(text.split("\n"), redact(text).split("\n"), strict=True)
    for number, (line, shown) in enumerate(lines, start=1):
        if line != shown:
            yield (
                f"{file.path}:{number}: a secret in plain text: {shown.strip()}"
                " (keep it in the environment and name it in pass_env)"
            )
