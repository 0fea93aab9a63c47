"""Pydantic checks what people write, msgspec decodes what was remembered: both read the same."""

import json
import random
from collections.abc import Mapping
from enum import EnumType
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin

import msgspec
import pytest
from msgspec import Meta, Struct
from msgspec.structs import fields

from atlas_retry import config
from atlas_retry.config import keys
from atlas_retry.config.files import ConfigFile, ConfigSources
from atlas_retry.config.keys import Configuration, section_in
from atlas_retry.config.reading import read_sources
from atlas_retry.config.sources import leaves, tree
from atlas_retry.errors import ConfigError
from atlas_retry.settings import Backend, FreeText, Glob, Model, Seconds, ShellLine, Text

VALID: list[tuple[object, list[object]]] = [
    (Backend, ["claude-code", "my.agents:make"]),
    (keys.Extends, [[]]),  # tests/test_config_sources.py
    (FreeText, ["", "a\nb", "é"]),
    (Glob, ["src/**", "*.lock"]),
    (Model, ["sonnet", "a/b:c"]),
    (Seconds, [90, 1.5, "90s", "1h30m"]),
    (ShellLine, ["ruff check .", "a && b", "true"]),
    (Text, ["x", "off", "1:30", " y "]),
    (keys.Folder, [".", "a/b"]),
    (keys.Jobs, ["auto", 1, 256]),
    (keys.Pattern, ["(?P<path>.+)"]),
    (keys.Variable, ["A", "_b2"]),
]


def valid(kind: object, rng: random.Random) -> object:
    """A random value of this type."""
    inner, of = get_args(kind), section_in(kind)
    if known := [values for alias, values in VALID if kind == alias]:
        return rng.choice(known[0])
    match get_origin(kind):
        case origin if origin is Annotated:
            return _limited(inner[0], inner[1], rng)
        case origin if origin in (Union, UnionType):
            return valid(rng.choice(inner), rng)
        case origin if origin is tuple:
            return [valid(inner[0], rng) for _ in range(rng.randrange(3))]
        case origin if origin is Mapping:
            pairs = range(rng.randrange(3))
            return {str(valid(inner[0], rng)): valid(inner[1], rng) for _ in pairs}
        case _:
            return section(of, rng) if of else _scalar(kind, rng)


def _limited(kind: object, limits: Meta, rng: random.Random) -> object:
    if limits.ge is None or limits.le is None:  # at least one item
        return [valid(get_args(kind)[0], rng)]
    number = rng.uniform(limits.ge, limits.le)
    return int(number) if kind is int else rng.choice((number, limits.le))


def _scalar(kind: object, rng: random.Random) -> object:
    if kind is NoneType:
        return None
    if kind is bool:
        return rng.random() < 0.5
    if kind is str:
        return rng.choice(("a", "yes", "2024-01-01"))
    return str(rng.choice([*kind] if isinstance(kind, EnumType) else get_args(kind)))


def section(kind: type[Struct], rng: random.Random) -> dict[str, object]:
    """Some of its keys, and all that are required."""
    chosen = (field for field in fields(kind) if field.required or rng.random() < 0.4)
    return {field.name: valid(field.type, rng) for field in chosen}


def as_read(values: dict[str, object]) -> Configuration:
    file = ConfigFile(path="config.yaml", content=json.dumps(values).encode())
    return read_sources(ConfigSources(project=file, reads=config.read), {}).configuration


@pytest.mark.parametrize("seed", range(300))
def test_both_libraries_read_a_random_configuration_alike(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    values = section(Configuration, rng)
    assert as_read(values) == msgspec.convert(values, Configuration)


@pytest.mark.parametrize("seed", range(100))
def test_both_libraries_refuse_a_value_of_another_type(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    written = [*leaves(section(Configuration, rng) | {"version": 1})]
    wrong = rng.randrange(len(written))
    values = tree(
        (path, [[{"no": "such value"}]] if number == wrong else value)
        for number, (path, value) in enumerate(written)
    )
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(values, Configuration)
    with pytest.raises(ConfigError):
        as_read(values)


def test_variables_are_read_as_if_they_were_in_a_file() -> None:
    file = ConfigFile(path="config.yaml", content=b"")
    variables = {"ATLAS_BATCH__JOBS": "3", "ATLAS_RETRY__MAX_COST_USD": "null"}
    sources = ConfigSources(project=file, reads=config.read, variables=variables)
    values = {"batch": {"jobs": 3}, "retry": {"max_cost_usd": None}}
    assert read_sources(sources, {}).configuration == msgspec.convert(values, Configuration)
