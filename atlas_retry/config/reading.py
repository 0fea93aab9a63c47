"""Reads, checks and merges the sources of a configuration: pydantic-settings, with places.

Each source is checked by itself before they are merged. Imported only after a change.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings.sources.utils import parse_env_vars

from atlas_retry.config import document
from atlas_retry.config.checking import problems_of, together
from atlas_retry.config.files import PREFIX, ConfigFile, ConfigSources
from atlas_retry.config.keys import Configuration
from atlas_retry.config.models import model_of
from atlas_retry.config.sources import Source, Sources, Tree, canonical, spelled, tree
from atlas_retry.errors import ConfigError, Place
from atlas_retry.settings import ConfigSection

S = TypeVar("S", bound=ConfigSection)
COMMAND_LINE = "the command line"


class Reading(Struct, frozen=True, kw_only=True):
    """A checked configuration, and where its values come from."""

    configuration: Configuration
    configured: Tree
    """What the sources set, without defaults."""
    sources: Sources
    files: tuple[ConfigFile, ...]
    """Every file, those that others extend included; highest precedence first."""


def read_sources(given: ConfigSources, overrides: Mapping[str, object]) -> Reading:
    """Read all sources, each by itself, and then merge them.

    Raises one ConfigError with the problems of all sources.
    """
    flags = Source(
        name=COMMAND_LINE, values=tree((tuple(key.split(".")), v) for key, v in overrides.items())
    )
    environment = Variables(given.variables).source
    families = [[*_family(file, given, (), set())] for file in given.files]
    files = [*chain.from_iterable(families)]
    each = (flags, environment, *(source for _, source in files))
    check = partial(problems_of, section=Configuration)
    problems = [*chain.from_iterable(map(check, each))]
    for source in each[:2]:
        if "extends" in source.values:
            place = source.place(("extends",))
            problems.append(ConfigError("extends: only a file can extend others", place=place))
    if problems:
        raise together(problems)
    merging = tuple(InitSettingsSource(_Settings, source.values) for source in each)
    merged = _Settings(_build_sources=(merging, {}))
    configured = merged.model_dump(mode="json", exclude_unset=True)
    return Reading(
        configuration=msgspec.convert(configured, Configuration),
        configured=configured,
        sources=Sources(each=each, project=tuple(source.name for _, source in families[0])),
        files=tuple(file for file, _ in files),
    )


def read_as(file: ConfigFile, section: type[S]) -> tuple[S, Source]:
    """A file of other keys, read and checked in the same way. Raises ConfigError."""
    source = document.source_of(file.content, file.name)
    if problems := [*problems_of(source, section)]:
        raise together(problems)
    return msgspec.convert(source.values, section), source


def _family(
    file: ConfigFile, given: ConfigSources, heirs: tuple[str, ...], seen: set[str]
) -> Iterator[tuple[ConfigFile, Source]]:
    """A file and those that it extends, highest precedence first; each file once."""
    seen.add(file.path)
    try:
        source = canonical(document.source_of(file.content, file.name))
    except ConfigError as error:
        source = Source(name=file.name, problems=(error,))
    others, problems = list[ConfigFile](), [*source.problems]
    names = source.values.get("extends", [])
    listed = names if isinstance(names, list) else [names]
    for position, name in enumerate(name for name in listed if isinstance(name, str)):
        place = source.place(("extends", position))
        try:
            other = given.extended(file, name)
        except ConfigError as error:
            problems.append(ConfigError(f"{error.place}: {error.message}", place=place))
            continue
        if other.path in (file.path, *heirs):
            problems.append(ConfigError(f"{other.name} would extend itself", place=place))
        elif other.path not in seen:
            others.append(other)
    yield file, replace(source, problems=tuple(problems))
    for other in reversed(others):
        yield from _family(other, given, (file.path, *heirs), seen)


class _Settings(model_of(Configuration), BaseSettings):  # type: ignore[misc]
    """The keys of `Configuration`, read by pydantic-settings."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_parse_none_str="null",
        extra="forbid",
        validate_default=False,
    )


class Variables(EnvSettingsSource):
    """The `ATLAS_*` variables.

    By itself pydantic-settings reads only the process's environment, knows no aliases of keys in
    other sections, ignores variables of no key, and names no variable in its errors.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        paths = {name: tuple(name.removeprefix(PREFIX).lower().split("__")) for name in variables}
        self._variables = {
            PREFIX + "__".join(map(str, spelled(path))): variables[name]
            for name, path in paths.items()
        }
        super().__init__(_Settings)
        known = _Settings.model_fields
        unknown = (
            (paths[name], text)
            for name, text in variables.items()
            if spelled(paths[name])[0] not in known
        )
        self.source = canonical(
            Source(
                name="the environment",
                values=tree(unknown) | self(),
                places={
                    path: Place(name, text=f"{name}={variables[name]}")
                    for name, path in paths.items()
                },
                is_text=True,
            )
        )

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return parse_env_vars(self._variables, parse_none_str=self.env_parse_none_str)

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: object) -> object:
        """The value of JSON; other text as it is, which is refused later, with its variable."""
        try:
            return super().decode_complex_value(field_name, field, value)
        except (ValueError, RecursionError):
            return value
