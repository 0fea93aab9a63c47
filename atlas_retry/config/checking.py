"""Errors in a configuration: the place, what was expected, the nearest key. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from enum import EnumType
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta, ValidationError, convert
from msgspec.structs import fields, replace

from atlas_retry.config.keys import Configuration, keys, section_in
from atlas_retry.config.layers import SAME, Layer, Path, dotted
from atlas_retry.errors import ConfigError, Place, nearest
from atlas_retry.settings import ConfigSection
from atlas_retry.text.redaction import clean, redact

MAX_SHOWN_CHARS = 200
WORDS: Mapping[Any, str] = {bool: "true or false", str: "text", tuple: "a list"}
"""Description of a type without its own; any other type is a mapping."""

OTHER_WORDS = {"command": "run", "run": "command"}
"""A gate's command is `run`, that of `quality_gates` and of an agent `command`."""


def refusals(layer: Layer) -> tuple[ConfigError, ...]:
    """One error for each invalid value."""
    return tuple(_wrong(Configuration, layer.tree(), (), layer))


def refused(path: Path, message: str, layer: Layer) -> ConfigError:
    """One error about the value at this path."""
    return ConfigError(f"{dotted(path) or 'configuration'}: {message}", place=layer.place(path))


def together(errors: Sequence[ConfigError]) -> ConfigError:
    """All errors as one, in the order of the file, one for each place."""
    by_place = {error.place: error for error in reversed(errors)}
    first, *others = sorted(by_place.values(), key=_order)
    return ConfigError(
        first.message,
        place=without_secrets(first.place),
        remedy=first.remedy,
        also=[ConfigError(other.message, place=without_secrets(other.place)) for other in others],
    )


def _order(error: ConfigError) -> tuple[str, int, int]:
    place = error.place
    return place.source, place.line or 0, place.column or 0


def without_secrets(place: Place) -> Place:
    """The place with a line that has no secrets and no control codes."""
    if place.text is None:
        return place
    return replace(place, text=redact(clean(place.text))[:MAX_SHOWN_CHARS])


def _wrong(kind: object, value: object, path: Path, layer: Layer) -> Iterator[ConfigError]:
    """Errors inside a value, else in the value as a whole."""
    own = _member(kind, value)
    if inside := list(_inside(own, value, path, layer)):
        yield from inside
        return
    try:
        convert(value, kind)
        checks = [meta.extra["holds"] for meta in _metas(own) if meta.extra]
        holds = value is None or all(check(value) for check in checks)
    except ValidationError:
        holds = False
    except ValueError as error:
        yield refused(path, f"{error}, found {_found(value)}", layer)
        return
    if not holds:
        yield refused(path, f"expected {_expected(own)}, found {_found(value)}", layer)


def _metas(kind: object) -> tuple[Meta, ...]:
    return getattr(kind, "__metadata__", ())


def _member(kind: object, value: object) -> object:
    """The member of a union that a value of this shape belongs to."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    members = [member for member in get_args(kind) if member is not NoneType]
    sections = [member for member in members if member is section_in(member)]
    return (sections if sections and isinstance(value, dict) else members)[0]


def _inside(kind: object, value: object, path: Path, layer: Layer) -> Iterator[ConfigError]:
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    section = section_in(kind)
    if isinstance(value, dict) and section and kind is section:
        yield from _in_section(section, value, path, layer)
    elif isinstance(value, dict) and get_origin(kind) is Mapping:
        of_key, of_value = get_args(kind)
        for key, inner in value.items():
            yield from _wrong(of_key, key, (*path, key), layer)
            yield from _wrong(of_value, inner, (*path, key), layer)
    elif isinstance(value, list) and get_origin(kind) is tuple:
        for position, inner in enumerate(value):
            yield from _wrong(get_args(kind)[0], inner, (*path, position), layer)


def _in_section(
    section: type[ConfigSection], values: Mapping[str, object], path: Path, layer: Layer
) -> Iterator[ConfigError]:
    known = {field.name: field for field in fields(section)}
    for key, value in values.items():
        if key in known:
            yield from _wrong(known[key].type, value, (*path, key), layer)
        else:
            place = layer.place((*path, key), of_key=True)
            yield ConfigError(_unknown((*path, key), list(known)), place=place)
    for name, field in known.items():
        if field.required and name not in values:
            yield refused(path, f"{name} is missing", layer)


def _unknown(path: Path, siblings: list[str]) -> str:
    *above, key = (step for step in path if isinstance(step, str))
    elsewhere = {known[-1]: dotted(known) for known in reversed(list(keys()))}
    spelled = [str(old[-1]) for old in SAME if old[:-1] == tuple(above)]
    other = OTHER_WORDS.get(key)
    here = other if other in siblings else nearest(key, [*siblings, *spelled])
    near = here or elsewhere.get(nearest(key, [*elsewhere]) or "")
    hint = f"did you mean {near}?" if near else f"known here: {', '.join(siblings)}"
    return f"unknown key {dotted(path)}; {hint}"


def _expected(kind: object) -> str:
    described = [meta.description for meta in _metas(kind)]
    if any(described):
        return str(described[0])
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    values = get_args(kind) if get_origin(kind) is Literal else ()
    if isinstance(kind, EnumType):
        values = tuple(kind)
    if values:
        *others, last = (f"'{value}'" for value in values)
        return f"{', '.join(others)} or {last}"
    return WORDS.get(get_origin(kind) or kind, "a mapping")


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
