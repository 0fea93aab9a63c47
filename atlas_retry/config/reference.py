"""The configuration explained: effective values with their origins, descriptions, JSON Schema."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from operator import getitem
from typing import Any, cast

import msgspec
import yaml
from msgspec import Struct

from atlas_retry.config.keys import Configuration
from atlas_retry.config.sources import SAME, EffectiveKey, Path, Sources, Tree, dotted, leaves
from atlas_retry.settings import ConfigSection
from atlas_retry.text.redaction import clean, redact

# --- effective values ------------------------------------------------------------------------


def rows(configured: Tree, sources: Sources) -> Iterator[EffectiveKey]:
    """Every key with its effective value and origin, in the order of the schema."""
    for key, default in leaves(msgspec.to_builtins(Configuration())):
        whole = reduce(getitem, key, cast("Any", configured)) if sources.sets(key) else default
        for path, value in _apart(key, whole):
            shown = redact(clean(inline(value)))
            origin = sources.origin(path) or "default"
            yield EffectiveKey(key=dotted(path), value=shown, origin=origin)


def _apart(path: Path, value: object) -> Iterator[tuple[Path, object]]:
    """The keys of a mapping and of a list of mappings; any other value unchanged."""
    if not isinstance(value, list) or not any(isinstance(item, dict) for item in value):
        yield from leaves(value, path)
        return
    for position, item in enumerate(value):
        yield from leaves(item, (*path, position))


def inline(value: object) -> str:
    """The value as one line of YAML."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
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


# --- the JSON Schema -------------------------------------------------------------------------

JsonSchema = dict[str, Any]


def json_schema() -> JsonSchema:
    """JSON Schema 2020-12 of one file, with every alias of a key."""
    # pydantic takes half of a short command to import
    from atlas_retry.config.models import model_of

    schema = model_of(Configuration).model_json_schema()
    parts = {**schema["$defs"], Configuration.__name__: schema}
    for section in _sections(ConfigSection):
        for key, words in descriptions(section).items() if section.__name__ in parts else ():
            parts[section.__name__]["properties"][key]["description"] = words
    for old, new in SAME.items():
        _part(schema, old[:-1])["properties"][old[-1]] = _part(schema, new)
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
