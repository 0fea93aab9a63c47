"""The configuration explained: every effective value with its origin, the example, the schema."""

import textwrap
from collections.abc import Iterator
from typing import Any

import yaml
from msgspec import Struct
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from atlas_retry.config.layers import SAME, Layer, Path, Tree, dotted, overlay
from atlas_retry.config.sections import Configuration, inner_model
from atlas_retry.text.redaction import clean, redact

WIDTH = 92
HEAD = """\
# The configuration of atlas: .atlas/config.yaml or atlas.yaml at the root of the repository.
# Every key there is, with its default; where an empty list would show nothing, an example.
# Flags win over ATLAS_* variables (ATLAS_RETRY__MAX_AI_RETRY_ATTEMPTS=5), these over this file,
# this file over ~/.config/atlas/config.yaml.
"""


# --- effective values ------------------------------------------------------------------------


class EffectiveKey(Struct, frozen=True, kw_only=True):
    """One key of the effective configuration."""

    key: str
    """Dotted: `validation.lint[0].run`."""
    value: str
    """As YAML writes it on one line; secrets are hidden."""
    origin: str
    """`file:line`, the name of a variable, `the command line` or `default`."""


def rows(layer: Layer) -> tuple[EffectiveKey, ...]:
    """Every key with its effective value and where it comes from, in the order of the schema."""
    effective = overlay(Layer(values=_defaults(Configuration)), layer).values
    return tuple(
        EffectiveKey(
            key=dotted(path),
            value=redact(clean(_inline(value))),
            origin=layer.origin(_up_to_list(path)) or "default",
        )
        for path, value in _flat(effective)
    )


def _defaults(model: type[BaseModel]) -> Tree:
    return {
        name: _defaults(type(field.default))
        if isinstance(field.default, BaseModel)
        else field.default
        for name, field in model.model_fields.items()
    }


def _flat(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for position, inner in enumerate(value):
            yield from _flat(inner, (*path, position))
    else:
        yield path, value


def _up_to_list(path: Path) -> Path:
    """Lists are said as a whole."""
    end = next((at for at, part in enumerate(path) if isinstance(part, int)), len(path))
    return path[:end]


def _inline(value: object) -> str:
    plain = yaml.safe_dump(_plain(value), default_flow_style=True, sort_keys=False, width=10**9)
    return plain.removesuffix("\n").removesuffix("\n...")


def _plain(value: object) -> object:
    """Without our own enumerations."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


# --- the example -----------------------------------------------------------------------------


def example_text() -> str:
    """A configuration that names and explains every key, and can be used as it is."""
    return HEAD + "\n".join(_lines(Configuration, "", set())) + "\n"


def _lines(model: type[BaseModel], indent: str, shown: set[str]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if not indent:
            yield ""
        yield from _comment(field.description or "", indent)
        inner = inner_model(field.annotation)
        if isinstance(field.default, BaseModel):
            yield f"{indent}{name}:"
            yield from _lines(type(field.default), indent + "  ", shown)
            continue
        if inner:
            yield from _keys_of(inner, indent, shown)
        yield from _value(name, field, indent)


def _keys_of(model: type[BaseModel], indent: str, shown: set[str]) -> Iterator[str]:
    """What an item of a list may be, what was told before left out."""
    if (doc := model.__doc__ or "") not in shown:
        shown.add(doc)
        yield from _comment(doc, indent)
    fields = sorted(model.model_fields.items(), key=lambda item: not item[1].is_required())
    for name, field in fields:
        line = f"{name}: {field.description}"
        if line not in shown:
            shown.add(line)
            yield from _comment(line, indent, lead="#   ")


def _value(name: str, field: FieldInfo, indent: str) -> Iterator[str]:
    if not field.examples:
        yield f"{indent}{name}: {_inline(field.default)}"
        return
    yield f"{indent}{name}:"
    for item in field.examples[0]:
        yield f"{indent}  - {_inline(item)}"


def _comment(text: str, indent: str, lead: str = "# ") -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=indent + lead,
        subsequent_indent=indent + lead + ("  " if lead != "# " else ""),
        break_long_words=False,
        break_on_hyphens=False,
    )


# --- the JSON Schema -------------------------------------------------------------------------

JsonSchema = dict[str, Any]


def json_schema() -> JsonSchema:
    """JSON Schema 2020-12 of one file, with every other spelling of a key."""
    schema = Configuration.model_json_schema()
    for old, new in SAME.items():
        *above, key = old
        _part(schema, tuple(above))["properties"][key] = _part(schema, new)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _part(schema: JsonSchema, path: Path) -> JsonSchema:
    """The schema at this path; sections that only the other spellings have are made."""
    part = schema
    for name in path:
        part = part["properties"].setdefault(
            name, {"type": "object", "additionalProperties": False, "properties": {}}
        )
        if reference := part.get("$ref"):
            part = schema["$defs"][reference.rpartition("/")[2]]
    return part
