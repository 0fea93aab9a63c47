"""The configuration explained: every effective value with its origin, the example, the schema."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from atlas_retry.config.keys import Configuration, section_in
from atlas_retry.config.layers import SAME, Layer, Path, dotted, overlay
from atlas_retry.settings import ConfigSection
from atlas_retry.text.redaction import clean, redact

WIDTH = 92
EXAMPLES: Mapping[str, list[object]] = {
    "format": ["ruff format ."],
    "lint": ["ruff check .", {"name": "types", "run": "mypy src", "required": False}],
    "test": [{"run": "pytest -q", "timeout": "10m", "recheck": "pytest -q --lf"}],
    "pre_commit": ["pre-commit run --all-files"],
}
"""Where an empty list would show nothing."""
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
    defaults = msgspec.to_builtins(Configuration())
    effective = overlay(Layer(values=defaults), layer).values
    return tuple(
        EffectiveKey(
            key=dotted(path),
            value=redact(clean(_inline(value))),
            origin=layer.origin(_up_to_list(path)) or "default",
        )
        for path, value in _flat(effective)
    )


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
    plain = msgspec.to_builtins(value)
    text = yaml.safe_dump(plain, default_flow_style=True, sort_keys=False, width=10**9)
    return text.removesuffix("\n").removesuffix("\n...")


# --- the example -----------------------------------------------------------------------------


def example_text() -> str:
    """A configuration that names and explains every key, and can be used as it is."""
    return HEAD + "\n".join(_lines(Configuration, "", set())) + "\n"


def descriptions(section: type[Struct]) -> dict[str, str]:
    """The words under each key of a section."""
    found: dict[str, str] = {}
    for each in reversed(section.__mro__[: section.__mro__.index(ConfigSection)]):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for key, words in pairwise(body):
            if isinstance(key, ast.AnnAssign) and isinstance(words, ast.Expr):
                found[ast.unparse(key.target)] = " ".join(ast.literal_eval(words.value).split())
    return found


def _lines(section: type[Struct], indent: str, shown: set[str]) -> Iterator[str]:
    words = descriptions(section)
    for field in fields(section):
        if not indent:
            yield ""
        yield from _comment(words[field.name], indent)
        inner = section_in(field.type)
        if inner is field.type:
            yield f"{indent}{field.name}:"
            yield from _lines(inner, indent + "  ", shown)
            continue
        if inner:
            yield from _keys_of(inner, indent, shown)
        yield from _value(field, indent)


def _keys_of(section: type[Struct], indent: str, shown: set[str]) -> Iterator[str]:
    """What an item of a list may be, what was told before left out."""
    if (doc := section.__doc__ or "") not in shown:
        shown.add(doc)
        yield from _comment(doc, indent)
    words = descriptions(section)
    for field in sorted(fields(section), key=lambda field: not field.required):
        line = f"{field.name}: {words[field.name]}"
        if line not in shown:
            shown.add(line)
            yield from _comment(line, indent, lead="#   ")


def _value(field: FieldInfo, indent: str) -> Iterator[str]:
    if field.name not in EXAMPLES:
        yield f"{indent}{field.name}: {_inline(default_of(field))}"
        return
    yield f"{indent}{field.name}:"
    for item in EXAMPLES[field.name]:
        yield f"{indent}  - {_inline(item)}"


def default_of(field: FieldInfo) -> object:
    """Its value where nobody says one."""
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


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
    """The schema at this path; sections that only the other spellings have are made."""
    part = schema
    for name in path:
        part = part["properties"].setdefault(
            name, {"type": "object", "additionalProperties": False, "properties": {}}
        )
        if reference := part.get("$ref"):
            part = schema["$defs"][reference.rpartition("/")[2]]
    return part
