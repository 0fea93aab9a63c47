"""Pydantic's models of the keys, made of their sections. Imported only to read a changed source."""

from collections.abc import Iterator, Mapping
from functools import cache, reduce
from itertools import chain
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen
from msgspec import NODEFAULT, Meta, Struct, to_builtins
from msgspec.structs import FieldInfo, fields
from pydantic import BaseModel, ConfigDict, Discriminator, Tag, create_model
from pydantic import GetCoreSchemaHandler as Handler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from atlas_retry.config.keys import section_in
from atlas_retry.settings import ConfigSection

T = TypeVar("T")
TEXT, MAPPING = "<text>", "<mapping>"
"""Steps that pydantic adds to the place of what may be written in both forms."""


class Section(BaseModel):
    """What all models have in common."""

    model_config = ConfigDict(extra="forbid")


@cache
def model_of(section: type[ConfigSection]) -> type[BaseModel]:
    """The model of a section: the same keys, types, limits and defaults."""
    keys: dict[str, Any] = {
        field.name: (_annotation(field.type), ... if field.required else default_of(field))
        for field in fields(section)
    }
    return create_model(section.__name__, __base__=Section, __doc__=section.__doc__, **keys)


def default_of(field: FieldInfo) -> object:
    """The field's default, as plain data."""
    factory = field.default_factory
    return to_builtins(field.default if factory is NODEFAULT else factory())


def _annotation(kind: object) -> object:
    """The annotation with models instead of sections, and with pydantic's limits."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = chain.from_iterable(map(_limits, inner[1:]))
        return _annotated(_annotation(inner[0]), *limits)
    if origin in (Union, UnionType):
        return _either(inner)
    if origin is tuple:
        return tuple[_annotation(inner[0]), ...]  # type: ignore[misc]
    if origin is Mapping:
        return dict[_annotation(inner[0]), _annotation(inner[1])]  # type: ignore[misc]
    section = section_in(kind)
    return model_of(section) if section else kind


def _annotated(kind: object, *limits: object) -> object:
    return Annotated[(kind, *limits)]


def _limits(meta: Meta) -> Iterator[object]:
    limits: dict[Any, float | None] = {Ge: meta.ge, Le: meta.le, MaxLen: meta.max_length}
    yield from (kind(limit) for kind, limit in limits.items() if limit is not None)
    yield _Expected(meta)


def _either(kinds: tuple[object, ...]) -> object:
    """A union; of text and mapping, the one that a value has the shape of says what is wrong."""
    members = [_annotation(kind) for kind in kinds]
    if NoneType in kinds or not any(map(section_in, kinds)):
        return reduce(or_, members)
    tagged = map(_annotated, members, (Tag(TEXT), Tag(MAPPING)))
    return _annotated(
        reduce(or_, tagged),
        Discriminator(lambda value: MAPPING if isinstance(value, dict | BaseModel) else TEXT),
    )


class _Expected(Struct, frozen=True):
    """The check of a key's type, and its words instead of pydantic's."""

    meta: Meta

    def __get_pydantic_core_schema__(self, source: object, handler: Handler) -> CoreSchema:
        schema = handler(source)
        if self.meta.extra:
            schema = core_schema.no_info_after_validator_function(self._holding, schema)
        if not self.meta.description or get_origin(source) is tuple:  # its items have own words
            return schema
        return core_schema.custom_error_schema(
            schema, "expected", custom_error_message="{expected}", custom_error_context=self._words
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Handler) -> JsonSchemaValue:
        return {**handler(schema), **(self.meta.extra_json_schema or {})}

    @property
    def _words(self) -> dict[str, Any]:
        return {"expected": self.meta.description}

    def _holding(self, value: T) -> T:
        if not (self.meta.extra or {})["holds"](value):
            raise PydanticCustomError("expected", "{expected}", self._words)
        return value
