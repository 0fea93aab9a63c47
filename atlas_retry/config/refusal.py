"""What is wrong with a configuration: its place, what was expected, the nearest key. Pure."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec.structs import replace

from atlas_retry.config.layers import SAME, Layer, Path, dotted
from atlas_retry.errors import ConfigError, Place
from atlas_retry.text.redaction import clean, redact

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MAX_SHOWN_CHARS = 200

EXPECTED = {
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "too_short": "at least one item",
}
"""By type of pydantic's errors; what is not here brings its own words."""


def refusals(
    error: "ValidationError", layer: Layer, keys: Sequence[Path]
) -> tuple[ConfigError, ...]:
    """One error for each value that the model refused; `keys` are all that there are."""
    return tuple(_refusal(details, layer, keys) for details in error.errors(include_url=False))


def refused(path: Path, message: str, layer: Layer) -> ConfigError:
    """One error about the value at this path."""
    return ConfigError(f"{dotted(path) or 'configuration'}: {message}", place=layer.place(path))


def together(errors: Sequence[ConfigError]) -> ConfigError:
    """All of them as one, in the order of the file, one for each place.

    Fit to be shown: no secrets, no control codes.
    """
    by_place = {error.place: error for error in reversed(errors)}
    first, *others = sorted(by_place.values(), key=_order)
    return ConfigError(
        first.message,
        place=_shown(first.place),
        remedy=first.remedy,
        also=[ConfigError(other.message, place=_shown(other.place)) for other in others],
    )


def _order(error: ConfigError) -> tuple[str, int, int]:
    place = error.place
    return place.source, place.line or 0, place.column or 0


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that was probably meant."""
    return next(iter(get_close_matches(word, known, n=1)), None)


def _shown(place: Place) -> Place:
    if place.text is None:
        return place
    return replace(place, text=redact(clean(place.text))[:MAX_SHOWN_CHARS])


def _refusal(details: "ErrorDetails", layer: Layer, keys: Sequence[Path]) -> ConfigError:
    path = _known(details["loc"], layer)
    kind = details["type"]
    if kind == "extra_forbidden":
        return ConfigError(_unknown(path, keys), place=layer.place(path, of_key=True))
    if kind == "missing":
        return refused(path, f"{details['loc'][-1]} is missing", layer)
    context = details.get("ctx", {})
    expected = EXPECTED.get(kind) or context.get("expected")
    words = f"expected {expected}" if expected else str(context.get("error", details["msg"]))
    return refused(path, f"{words}, found {_found(details['input'])}", layer)


def _known(loc: Path, layer: Layer) -> Path:
    """Without what pydantic adds: `[key]` of mappings, the key that a string is short for."""
    value: object = layer.values
    for end, part in enumerate(loc):
        try:
            value = value[part]  # type: ignore[index]
        except (TypeError, KeyError, IndexError):
            return loc[:end]
    return loc


def _unknown(path: Path, keys: Sequence[Path]) -> str:
    *above, key = (part for part in path if isinstance(part, str))
    siblings = [known[-1] for known in keys if known[:-1] == tuple(above)]
    elsewhere = {str(known[-1]): dotted(known) for known in reversed(keys)}
    spelled = [known[-1] for known in SAME if known[:-1] == tuple(above)]
    near = nearest(key, list(map(str, [*siblings, *spelled]))) or elsewhere.get(
        nearest(key, list(elsewhere)) or ""
    )
    hint = f"did you mean {near}?" if near else f"known here: {', '.join(map(str, siblings))}"
    return f"unknown key {dotted(path)}; {hint}"


def _found(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            return repr(redact(clean(value))[:MAX_SHOWN_CHARS])
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return str(value)[:MAX_SHOWN_CHARS]
