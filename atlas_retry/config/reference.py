"""The configuration explained: effective values with their origins, descriptions, JSON Schema."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import FieldInfo

from atlas_retry.config.keys import Configuration
from atlas_retry.config.layers import SAME, Layer, Path, dotted, leaves, overlay
from atlas_retry.settings import ConfigSection
from atlas_retry.text.redaction import clean, redact

# --- effective values ------------------------------------------------------------------------


class EffectiveKey(Struct, frozen=True, kw_only=True):
    """One key of the effective configuration."""

    key: str
    """Dotted: `validation.lint[0].run`."""
    value: str
    """One line of YAML; secrets are redacted."""
    origin: str
    """`file:line`, the name of a variable, `the command line` or `default`."""


def rows(layer: Layer) -> Iterator[EffectiveKey]:
    """Every key with its effective value and origin, in the order of the schema."""
    defaults = dict(leaves(msgspec.to_builtins(Configuration())))
    effective = overlay(Layer(values=defaults), layer).tree()
    for key, whole in leaves(effective):
        origin = layer.origin(key) or "default"
        for path, value in _apart(key, whole):
            shown = redact(clean(inline(value)))
            yield EffectiveKey(key=dotted(path), value=shown, origin=origin)


def _apart(path: Path, value: object) -> Iterator[tuple[Path, object]]:
    """The keys of a list of mappings; any other value unchanged."""
    if not isinstance(value, list) or not any(isinstance(item, dict) for item in value):
        yield path, value
        return
    for position, item in enumerate(value):
        yield from leaves(item, (*path, position))


def inline(value: object) -> str:
    """The value as one line of YAML."""
    plain = msgspec.to_builtins(value)
    text = yaml.safe_dump(plain, default_flow_style=True, sort_keys=False, width=10**9)
    return text.removesuffix("\n").removesuffix("\n...")


# --- descriptions of the keys -----------------------------------------------------------------


def descriptions(section: type[Struct]) -> dict[str, str]:
    """The docstring of each key of a section."""
    words_by_key: dict[str, str] = {}
    for each in reversed(section.__mro__[: section.__mro__.index(ConfigSection)]):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for key, words in pairwise(body):
            if isinstance(key, ast.AnnAssign) and isinstance(words, ast.Expr):
                words_by_key[ast.unparse(key.target)] = " ".join(
                    ast.literal_eval(words.value).split()
                )
    return words_by_key


def default_of(field: FieldInfo) -> object:
    """The field's default value."""
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


# --- the JSON Schema -------------------------------------------------------------------------

JsonSchema = dict[str, Any]


def json_schema() -> JsonSchema:
    """JSON Schema 2020-12 of one file, with every alias of a key."""
    _, parts = msgspec.json.schema_components([Configuration], ref_template="#/$defs/{name}")
    for section in _sections(ConfigSection):
        for key, words in descriptions(section).items() if section.__name__ in parts else ():
            parts[section.__name__]["properties"][key]["description"] = words
    schema = {**parts.pop("Configuration"), "$defs": dict(sorted(parts.items()))}
    for old, new in SAME.items():
        *above, key = old
        _part(schema, tuple(above))["properties"][key] = _part(schema, new)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _sections(above: type[Struct]) -> Iterator[type[Struct]]:
    for section in above.__subclasses__():
        yield section
        yield from _sections(section)


def _part(schema: JsonSchema, path: Path) -> JsonSchema:
    """The schema at this path; sections that only aliases have are created."""
    inner = schema
    for name in path:
        inner = inner["properties"].setdefault(
            name, {"type": "object", "additionalProperties": False, "properties": {}}
        )
        if reference := inner.get("$ref"):
            inner = schema["$defs"][reference.rpartition("/")[2]]
    return inner
